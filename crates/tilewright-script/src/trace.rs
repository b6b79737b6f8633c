//! Schedule scripts: calls on a schedule, in the order of the text.
//!
//! Two forms are read. TVM's traces:
//!
//! ```python
//! def apply_trace(sch: tir.Schedule) -> None:
//!     b0 = sch.get_block(name="B", func_name="main")
//!     l1, l2 = sch.get_loops(block=b0)
//!     sch.transform_layout(block=b0, buffer=("write", 0), index_map=lambda i: (i // 4, i % 4))
//! ```
//!
//! and the short form of design documents, where a positional lambda may follow keywords:
//!
//! ```python
//! sched.transform_layout(block='compute', buffer='A', lambda i: [i//4, i%4], pad_value=-1)
//! s[B].transform_layout(lambda n, h, w, c: [n, c//4, h, w, c%4])
//! ```
//!
//! Lambdas are kept as text: how many parameters a `*star` stands for, and of which type they are,
//! is known only when a primitive meets its buffer. See [`LambdaText::bind`].

use std::sync::Arc;

use ruff_python_ast as ast;
use ruff_python_ast::visitor::transformer::{self, Transformer};
use ruff_text_size::Ranged;
use tilewright_ir::{Buffer, DType, Error, Expr, Result, Source, Span, Var};

use crate::args::elements;
use crate::env::Item;
use crate::expr::ExprParser;
use crate::syntax;
use crate::value::Value;

/// A schedule script.
#[derive(Clone, Debug)]
pub struct Script {
    /// The calls in order.
    pub calls: Vec<Call>,
    /// The text.
    pub source: Arc<Source>,
}

/// One call of a primitive.
#[derive(Clone, Debug)]
pub struct Call {
    /// Its place.
    pub span: Span,
    /// Names that its results get.
    pub outputs: Vec<Arc<str>>,
    /// What stands in the brackets of `s[...]`, where the schedule is indexed.
    pub receiver: Option<Argument>,
    /// Name of the primitive.
    pub method: Arc<str>,
    /// Arguments in order, with their names where they have one.
    pub args: Vec<(Option<Arc<str>>, Argument)>,
}

/// An argument, with its place.
#[derive(Clone, Debug)]
pub struct Argument {
    /// What it is.
    pub kind: ArgumentKind,
    /// Its place.
    pub span: Span,
}

/// What an argument is.
#[derive(Clone, Debug)]
pub enum ArgumentKind {
    /// `None`.
    None,
    /// `True` or `False`.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A number.
    Float(f64),
    /// Text.
    Str(Arc<str>),
    /// A typed constant or other expression without free names.
    Expr(Expr),
    /// A name: of a block or loop, or of a buffer.
    Name(Arc<str>),
    /// A list or tuple.
    List(Vec<Argument>),
    /// A function of indices.
    Lambda(LambdaText),
}

/// A lambda whose parameters have no types yet.
#[derive(Clone, Debug)]
pub struct LambdaText {
    params: Vec<Arc<str>>,
    star: Option<Arc<str>>,
    body: Arc<ast::Expr>,
    source: Arc<Source>,
    span: Span,
}

/// A lambda over variables.
#[derive(Clone, Debug)]
pub struct BoundLambda {
    /// One variable a parameter.
    pub params: Vec<Var>,
    /// What it returns; one item where that is not a list or tuple.
    pub items: Vec<BoundItem>,
}

/// One item of what a lambda returns.
#[derive(Clone, Debug)]
pub enum BoundItem {
    /// A typed expression.
    Expr(Expr),
    /// A bare number, which takes the type of its surroundings.
    Number(f64),
    /// `None`.
    None,
    /// `AXIS_SEPARATOR`.
    Separator,
}

/// Reads a schedule script.
///
/// # Errors
/// [`Error::Syntax`] with the place, for anything that is not a call on a schedule.
pub fn parse_script(source: &Arc<Source>) -> Result<Script> {
    read(source).map_err(|e| e.in_source(source))
}

fn read(source: &Arc<Source>) -> Result<Script> {
    let mut calls = Vec::new();
    for stmt in &syntax::parse_suite(&source.text)? {
        match stmt {
            ast::Stmt::FunctionDef(def) => {
                for inner in &def.body {
                    statement(inner, source, &mut calls)?;
                }
            }
            other => statement(other, source, &mut calls)?,
        }
    }
    Ok(Script { calls, source: source.clone() })
}

fn statement(stmt: &ast::Stmt, source: &Arc<Source>, calls: &mut Vec<Call>) -> Result<()> {
    let unexpected = || {
        Err(Error::syntax("expected a call on the schedule")
            .at(syntax::span(stmt))
            .help("such as `b0 = sch.get_block(name=\"B\", func_name=\"main\")`"))
    };
    match stmt {
        ast::Stmt::Pass(_) | ast::Stmt::Import(_) | ast::Stmt::ImportFrom(_) => Ok(()),
        ast::Stmt::Return(r) if r.value.is_none() => Ok(()),
        ast::Stmt::Expr(e) if e.value.is_string_literal_expr() => Ok(()),
        ast::Stmt::Expr(e) => match &*e.value {
            ast::Expr::Call(c) => {
                calls.push(call(c, Vec::new(), syntax::span(stmt), source)?);
                Ok(())
            }
            _ => unexpected(),
        },
        ast::Stmt::Assign(a) => {
            let (ast::Expr::Call(c), [target]) = (&*a.value, &a.targets[..]) else {
                return unexpected();
            };
            let mut outputs = Vec::new();
            for e in elements(target) {
                match e {
                    ast::Expr::Name(n) => outputs.push(n.id.as_str().into()),
                    _ => return Err(Error::syntax("expected a name").at(syntax::span(e))),
                }
            }
            calls.push(call(c, outputs, syntax::span(stmt), source)?);
            Ok(())
        }
        _ => unexpected(),
    }
}

fn call(
    c: &ast::ExprCall,
    outputs: Vec<Arc<str>>,
    span: Span,
    source: &Arc<Source>,
) -> Result<Call> {
    let ast::Expr::Attribute(f) = &*c.func else {
        return Err(Error::syntax("expected a method of the schedule").at(syntax::span(&*c.func)));
    };
    let receiver = match &*f.value {
        ast::Expr::Name(_) => None,
        ast::Expr::Subscript(s) => Some(argument(&s.slice, source)?),
        other => {
            return Err(Error::syntax("expected the schedule").at(syntax::span(other)));
        }
    };
    let mut args = Vec::new();
    // In the order of the text: a positional argument may follow a named one.
    let mut named = c.arguments.keywords.iter().peekable();
    for e in &c.arguments.args {
        while let Some(k) = named.next_if(|k| k.start() < e.start()) {
            args.push(keyword(k, source)?);
        }
        args.push((None, argument(e, source)?));
    }
    for k in named {
        args.push(keyword(k, source)?);
    }
    Ok(Call { span, outputs, receiver, method: f.attr.as_str().into(), args })
}

fn keyword(k: &ast::Keyword, source: &Arc<Source>) -> Result<(Option<Arc<str>>, Argument)> {
    match &k.arg {
        Some(name) => Ok((Some(name.as_str().into()), argument(&k.value, source)?)),
        None => Err(Error::syntax("`**` arguments are not supported").at(syntax::span(k))),
    }
}

fn argument(e: &ast::Expr, source: &Arc<Source>) -> Result<Argument> {
    let span = syntax::span(e);
    let kind = match e {
        ast::Expr::Name(n) => ArgumentKind::Name(n.id.as_str().into()),
        ast::Expr::List(_) | ast::Expr::Tuple(_) => ArgumentKind::List(
            elements(e).iter().map(|e| argument(e, source)).collect::<Result<_>>()?,
        ),
        ast::Expr::Lambda(l) => ArgumentKind::Lambda(lambda(l, source)?),
        _ => match ExprParser::new(DType::I32).value(e)? {
            Value::Int(v) => ArgumentKind::Int(
                i64::try_from(v).map_err(|_| Error::syntax("the number is too large").at(span))?,
            ),
            Value::Float(v) => ArgumentKind::Float(v),
            Value::Bool(v) => ArgumentKind::Bool(v),
            Value::Str(s) => ArgumentKind::Str(s),
            Value::None => ArgumentKind::None,
            other => ArgumentKind::Expr(other.typed(DType::I32).map_err(|e| e.at(span))?),
        },
    };
    Ok(Argument { kind, span })
}

fn lambda(l: &ast::ExprLambda, source: &Arc<Source>) -> Result<LambdaText> {
    let mut text = LambdaText {
        params: Vec::new(),
        star: None,
        body: Arc::new((*l.body).clone()),
        source: source.clone(),
        span: syntax::span(l),
    };
    if let Some(p) = &l.parameters {
        if let Some(extra) = p.kwonlyargs.first() {
            return Err(
                Error::syntax("a parameter may not follow the star").at(syntax::span(extra))
            );
        }
        text.params =
            p.posonlyargs.iter().chain(&p.args).map(|a| a.name().as_str().into()).collect();
        text.star = p.vararg.as_ref().map(|v| v.name.as_str().into());
    }
    Ok(text)
}

impl LambdaText {
    /// The text of the lambda.
    pub fn text(&self) -> &str {
        let (start, end) = (self.span.start as usize, self.span.end as usize);
        self.source.text.get(start..end).unwrap_or("lambda")
    }

    /// The body over new variables of the given types. A star takes the parameters that the named
    /// ones leave; a single parameter that is indexed in the body (`i[0]`) stands for all of
    /// them. Other names in the body are looked up among `vars` and `buffers`, by their names.
    ///
    /// # Errors
    /// [`Error::Syntax`] with the place, for another number of parameters, a name that is not
    /// known, or a body that is no expression of indices.
    pub fn bind(&self, dtypes: &[DType], vars: &[Var], buffers: &[Buffer]) -> Result<BoundLambda> {
        self.read(dtypes, vars, buffers).map_err(|e| e.in_source(&self.source))
    }

    fn read(&self, dtypes: &[DType], vars: &[Var], buffers: &[Buffer]) -> Result<BoundLambda> {
        let named = self.params.len();
        // One parameter for all axes, as in `lambda i: [i[0], i[1]]`.
        let whole = match (&self.params[..], &self.star) {
            ([one], None) if dtypes.len() != 1 => Some(one.clone()),
            _ => None,
        };
        let group = whole.clone().or_else(|| self.star.clone());
        let plain = if whole.is_some() { 0 } else { named };
        let wrong_number = || {
            let message =
                format!("the lambda takes {named} indices, but there are {} of them", dtypes.len());
            Err(Error::syntax(message).at(self.span))
        };
        if plain > dtypes.len() || (group.is_none() && plain != dtypes.len()) {
            return wrong_number();
        }
        let mut parser = ExprParser::new(dtypes.first().copied().unwrap_or(DType::I32));
        for v in vars {
            parser.env.insert(v.name().to_string(), Item::Var(v.clone()));
        }
        for b in buffers {
            parser.env.insert(b.name.to_string(), Item::Buffer(b.clone()));
        }
        parser.env.push();
        let mut params = Vec::new();
        for (k, dtype) in dtypes.iter().enumerate() {
            let name = match (self.params.get(k), &group) {
                (Some(name), _) if k < plain => name.to_string(),
                (_, Some(group)) => part(group, k - plain),
                _ => format!("i{k}"),
            };
            let var = Var::new(if k < plain { name.clone() } else { format!("i{k}") }, *dtype);
            parser.env.insert(name, Item::Var(var.clone()));
            params.push(var);
        }
        let count = dtypes.len() - plain;
        let mut body = (*self.body).clone();
        let is_group = |e: &ast::Expr| {
            let e = if let ast::Expr::Starred(s) = e { &*s.value } else { e };
            e.as_name_expr().is_some_and(|n| Some(n.id.as_str()) == group.as_deref())
        };
        if let Some(group) = &group {
            let indexed = Parts { group, count, indexed: false, error: None }.rewrite(&mut body)?;
            // A single parameter stands for all axes only where it is used so.
            if whole.is_some() && !indexed && !elements(&body).iter().any(|e| is_group(e)) {
                return wrong_number();
            }
        }
        let mut items = Vec::new();
        for e in elements(&body) {
            let spread = match e {
                ast::Expr::Starred(s) => Some(&*s.value),
                other if elements(&body).len() == 1 => Some(other),
                _ => None,
            };
            let spread = spread.and_then(ast::Expr::as_name_expr).map(|n| n.id.as_str());
            match (&group, spread) {
                (Some(group), Some(name)) if name == &**group => {
                    items.extend(params[plain..].iter().map(|v| BoundItem::Expr(v.expr())));
                }
                _ => items.push(item(&mut parser, e)?),
            }
        }
        Ok(BoundLambda { params, items })
    }
}

/// The name that stands for one axis of a group; no Python name looks like it.
fn part(group: &str, k: usize) -> String {
    format!("{group}[{k}]")
}

fn item(parser: &mut ExprParser, e: &ast::Expr) -> Result<BoundItem> {
    if let ast::Expr::Attribute(a) = e
        && a.attr.as_str() == "AXIS_SEPARATOR"
    {
        return Ok(BoundItem::Separator);
    }
    Ok(match parser.value(e)? {
        Value::None => BoundItem::None,
        Value::Int(v) => BoundItem::Number(v as f64),
        Value::Float(v) => BoundItem::Number(v),
        other => BoundItem::Expr(other.typed(parser.int).map_err(|err| err.at(syntax::span(e)))?),
    })
}

/// Replaces `group[k]` by the name of that axis.
struct Parts<'a> {
    group: &'a str,
    count: usize,
    /// Whether an axis was asked for.
    indexed: bool,
    error: Option<Error>,
}

impl Parts<'_> {
    /// Rewrites a body, and says whether there was something to rewrite.
    fn rewrite(mut self, body: &mut ast::Expr) -> Result<bool> {
        Rewriter(std::cell::RefCell::new(&mut self)).visit_expr(body);
        self.error.map_or(Ok(self.indexed), Err)
    }
}

struct Rewriter<'a, 'b>(std::cell::RefCell<&'a mut Parts<'b>>);

impl Transformer for Rewriter<'_, '_> {
    fn visit_expr(&self, e: &mut ast::Expr) {
        let mut parts = self.0.borrow_mut();
        if let ast::Expr::Subscript(s) = e
            && let ast::Expr::Name(n) = &*s.value
            && n.id.as_str() == parts.group
        {
            parts.indexed = true;
            let count = parts.count as i64;
            let at = match ExprParser::new(DType::I32).value(&s.slice) {
                Ok(Value::Int(k)) => i64::try_from(k).ok(),
                _ => None,
            };
            let at = at.map(|k| if k < 0 { k + count } else { k });
            match at.filter(|k| (0..count).contains(k)) {
                Some(k) => {
                    let mut name = n.clone();
                    name.id = part(parts.group, k as usize).into();
                    *e = ast::Expr::Name(name);
                }
                None => {
                    let message = format!("there are {count} axes, counted from 0");
                    parts
                        .error
                        .get_or_insert_with(|| Error::syntax(message).at(syntax::span(&*s.slice)));
                }
            }
            return;
        }
        drop(parts);
        transformer::walk_expr(self, e);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script(text: &str) -> Script {
        parse_script(&Source::new("trace.py", text)).expect("a script")
    }

    fn the_lambda(s: &Script) -> LambdaText {
        let mut found = s.calls[0].args.iter().filter_map(|(_, a)| match &a.kind {
            ArgumentKind::Lambda(l) => Some(l.clone()),
            _ => None,
        });
        found.next().expect("a lambda")
    }

    fn shown(b: &BoundLambda) -> Vec<String> {
        let one = |i: &BoundItem| match i {
            BoundItem::Expr(e) => e.to_string(),
            BoundItem::Number(v) => format!("number {v}"),
            BoundItem::None => "None".into(),
            BoundItem::Separator => "|".into(),
        };
        b.items.iter().map(one).collect()
    }

    #[test]
    fn a_trace_is_a_list_of_calls() {
        let s = script(
            "def apply_trace(sch: tir.Schedule) -> None:\n  b0 = sch.get_block(name=\"B\")\n  l1, = sch.get_loops(block=b0)\n  l2, l3 = sch.split(loop=l1, factors=[None, T.int64(4)])\n",
        );
        let calls: Vec<(usize, &str, usize)> =
            s.calls.iter().map(|c| (c.outputs.len(), &*c.method, c.args.len())).collect();
        assert_eq!(calls, [(1, "get_block", 1), (1, "get_loops", 1), (2, "split", 2)]);
        let ArgumentKind::List(factors) = &s.calls[2].args[1].1.kind else { panic!() };
        assert!(matches!(factors[0].kind, ArgumentKind::None));
        assert!(matches!(&factors[1].kind, ArgumentKind::Expr(e) if e.as_int() == Some(4)));
    }

    #[test]
    fn a_lambda_may_follow_keywords() {
        let s = script(
            "sched.transform_layout(block='compute', buffer='A', lambda i: [i//4, i%4], pad_value=-1)",
        );
        let names: Vec<Option<&str>> = s.calls[0].args.iter().map(|(n, _)| n.as_deref()).collect();
        assert_eq!(names, [Some("block"), Some("buffer"), None, Some("pad_value")]);
        let l = the_lambda(&s);
        assert_eq!(l.text(), "lambda i: [i//4, i%4]");
        let b = l.bind(&[DType::I64], &[], &[]).expect("binds");
        assert_eq!(shown(&b), ["i // T.int64(4)", "i % T.int64(4)"]);
        assert!(l.bind(&[DType::I32; 2], &[], &[]).is_err());
    }

    #[test]
    fn one_name_may_stand_for_all_axes() {
        let three = [DType::I32; 3];
        let cases = [
            ("s[B].f(lambda *i, k: [*i, k // 4])", None),
            ("s[B].f(lambda i, *rest: [*rest, i % 4])", Some("i1 i2 i % 4")),
            ("s[B].f(lambda i: [i[2], te.AXIS_SEPARATOR, i[-3] + i[1]])", Some("i2 | i0 + i1")),
            ("s[B].f(lambda i: i)", Some("i0 i1 i2")),
            ("s[B].f(lambda a, b, c: (0.5, None, c))", Some("number 0.5 None c")),
        ];
        for (text, expected) in cases {
            let parsed = parse_script(&Source::new("t.py", text));
            let Some(expected) = expected else {
                assert!(parsed.is_err(), "{text}");
                continue;
            };
            let s = parsed.expect(text);
            let b = the_lambda(&s).bind(&three, &[], &[]).expect(text);
            assert_eq!(shown(&b).join(" "), expected, "{text}");
            assert!(s.calls[0].receiver.is_some());
        }
        let s = script("s[B].f(lambda i: i[3])");
        let e = the_lambda(&s).bind(&three, &[], &[]).expect_err("out of range");
        assert_eq!(e.to_string(), "there are 3 axes, counted from 0");
    }

    #[test]
    fn free_names_are_variables_and_buffers_of_the_function() {
        let n = Var::index("n");
        let b = Buffer::with_extents("B", &[4, 4], DType::F32);
        let s = script("sch.f(lambda i, j: B[0, (i - n) % 4])");
        let l = the_lambda(&s);
        let bound = l.bind(&[DType::I32; 2], &[n], &[b]).expect("binds");
        assert_eq!(shown(&bound), ["B[0, (i - n) % 4]"]);
        assert!(l.bind(&[DType::I32; 2], &[], &[]).is_err());
    }

    #[test]
    fn other_statements_are_refused_at_their_place() {
        let e = parse_script(&Source::new("t.py", "x = 3\n")).expect_err("no call");
        assert_eq!(
            e.render(),
            "error: expected a call on the schedule\n  --> t.py:1:1\n   1 | x = 3\n     | ^^^^^\nhelp: such as `b0 = sch.get_block(name=\"B\", func_name=\"main\")`\n"
        );
    }
}

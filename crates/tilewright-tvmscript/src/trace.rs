//! Schedule scripts: calls on a schedule, in the order of the text.
//!
//! Three forms are read. TVM's traces:
//!
//! ```python
//! def apply_trace(sch: tir.Schedule) -> None:
//!     b0 = sch.get_block(name="B", func_name="main")
//!     l1, l2 = sch.get_loops(block=b0)
//!     sch.transform_layout(block=b0, buffer=("write", 0), index_map=lambda i: (i // 4, i % 4))
//! ```
//!
//! scripts as people write them, with lists of loops and calls inside of calls:
//!
//! ```python
//! loops = sch.get_loops(sch.get_block("B"))
//! outer, *rest = loops
//! sch.reorder(*rest[::-1], outer)
//! for l in loops[:2]:
//!     sch.unroll(l)
//! ```
//!
//! and the short form of design documents, where a positional lambda may follow keywords:
//!
//! ```python
//! sched.transform_layout(block='compute', buffer='A', lambda i: [i//4, i%4], pad_value=-1)
//! s[B].transform_layout(lambda n, h, w, c: [n, c//4, h, w, c%4])
//! ```

use std::sync::Arc;

use ruff_python_ast as ast;
use ruff_text_size::Ranged;
use tilewright_ir::{Attr, BinOp, DType, Error, Result, Source, Span};

use crate::args::elements;
use crate::expr::ExprParser;
use crate::lambda::lambda;
pub use crate::lambda::{LambdaText, parse_lambda};
use crate::syntax;

/// A schedule script.
#[derive(Clone, Debug)]
pub struct Script {
    /// What is done, in order.
    pub steps: Vec<ScriptStmt>,
    /// The text.
    pub source: Arc<Source>,
}

/// A statement of a script, with its place.
#[derive(Clone, Debug)]
pub struct ScriptStmt {
    /// What it does.
    pub kind: ScriptStmtKind,
    /// Its place.
    pub span: Span,
}

/// What a statement does.
#[derive(Clone, Debug)]
pub enum ScriptStmtKind {
    /// A call whose results get no name.
    Call(Call),
    /// `target = value`.
    Assign(Target, Argument),
    /// `for target in value: body`.
    For(Target, Argument, Vec<ScriptStmt>),
}

/// What a value is given to.
#[derive(Clone, Debug)]
pub enum Target {
    Name(Arc<str>),
    /// The elements of a list, one each; at most one of them is [`Target::Rest`].
    List(Vec<Target>),
    /// `*name`: the elements that the others leave.
    Rest(Arc<str>),
}

/// One call of a primitive.
#[derive(Clone, Debug)]
pub struct Call {
    /// Its place; that of the whole statement where it is one.
    pub span: Span,
    /// What is in the brackets of `s[...]`, where the schedule is indexed.
    pub receiver: Option<Argument>,
    /// Name of the primitive.
    pub method: Arc<str>,
    /// Arguments in order, with their names where they have one.
    pub args: Vec<(Option<Arc<str>>, Argument)>,
}

/// An argument or other value, with its place.
#[derive(Clone, Debug)]
pub struct Argument {
    pub kind: ArgumentKind,
    /// Its place.
    pub span: Span,
}

/// What an argument is.
#[derive(Clone, Debug)]
pub enum ArgumentKind {
    /// A value that is in the text; an expression has no free names.
    Constant(Attr),
    /// A name: of a value of the script, or of a buffer.
    Name(Arc<str>),
    /// A list or tuple.
    List(Vec<Argument>),
    /// A function of indices.
    Lambda(LambdaText),
    /// A call of a primitive, whose results are the value.
    Call(Box<Call>),
    /// `of[at]`.
    Item(Box<Argument>, Box<Argument>),
    /// `of[start:stop:step]`.
    Slice(Box<Argument>, [Option<Box<Argument>>; 3]),
    /// `*of`: the elements, where arguments or elements of a list stand.
    Star(Box<Argument>),
    /// A function of Python on values of the script.
    Builtin(Builtin, Vec<Argument>),
    /// Arithmetic on whole numbers of the script.
    Binary(BinOp, Box<Argument>, Box<Argument>),
    /// `[item for target in over]`.
    Each {
        /// The new elements.
        item: Box<Argument>,
        /// What an element of `over` is called in `item`.
        target: Target,
        /// The old elements.
        over: Box<Argument>,
    },
}

/// Functions of Python that a script may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Builtin {
    /// Number of elements.
    Len,
    /// Whole numbers from a start up to an end, by a step.
    Range,
    /// The elements, last first.
    Reversed,
    /// The elements, each with its number.
    Enumerate,
    /// The first elements of several lists, then the second ones, and so on.
    Zip,
    /// The elements: `list(...)` and `tuple(...)`.
    List,
}

impl Builtin {
    fn from_name(name: &str) -> Option<Builtin> {
        Some(match name {
            "len" => Builtin::Len,
            "range" => Builtin::Range,
            "reversed" => Builtin::Reversed,
            "enumerate" => Builtin::Enumerate,
            "zip" => Builtin::Zip,
            "list" | "tuple" => Builtin::List,
            _ => return None,
        })
    }
}

/// Reads a schedule script.
///
/// # Errors
/// [`Error::Syntax`] with the place, for what is neither a call on a schedule nor a list of what
/// such calls return.
pub fn parse_script(source: &Arc<Source>) -> Result<Script> {
    let reader = Reader { source, x: ExprParser::new(DType::I32) };
    reader.script().map_err(|e| e.in_source(source))
}

struct Reader<'s> {
    source: &'s Arc<Source>,
    x: ExprParser,
}

impl Reader<'_> {
    fn script(mut self) -> Result<Script> {
        let mut steps = Vec::new();
        for stmt in &syntax::parse_suite(&self.source.text)? {
            match stmt {
                ast::Stmt::FunctionDef(def) => self.suite(&def.body, &mut steps)?,
                other => self.statement(other, &mut steps)?,
            }
        }
        Ok(Script { steps, source: self.source.clone() })
    }

    fn suite(&mut self, stmts: &[ast::Stmt], steps: &mut Vec<ScriptStmt>) -> Result<()> {
        stmts.iter().try_for_each(|s| self.statement(s, steps))
    }

    fn statement(&mut self, stmt: &ast::Stmt, steps: &mut Vec<ScriptStmt>) -> Result<()> {
        let span = syntax::span(stmt);
        let kind = match stmt {
            ast::Stmt::Pass(_) | ast::Stmt::Import(_) | ast::Stmt::ImportFrom(_) => return Ok(()),
            ast::Stmt::Return(r) if r.value.is_none() => return Ok(()),
            ast::Stmt::Expr(e) if e.value.is_string_literal_expr() => return Ok(()),
            ast::Stmt::Expr(e) => match &*e.value {
                ast::Expr::Call(c) => ScriptStmtKind::Call(self.call(c, span)?),
                _ => return Err(unexpected(span)),
            },
            ast::Stmt::Assign(a) => {
                let [target] = &a.targets[..] else { return Err(unexpected(span)) };
                let target = self.target(target)?;
                let value = match &*a.value {
                    ast::Expr::Call(c) if self.is_primitive(c) => {
                        let kind = ArgumentKind::Call(Box::new(self.call(c, span)?));
                        Argument { kind, span: syntax::span(c) }
                    }
                    other => self.argument(other)?,
                };
                ScriptStmtKind::Assign(target, value)
            }
            ast::Stmt::For(f) if f.orelse.is_empty() && !f.is_async => {
                let (target, over) = (self.target(&f.target)?, self.argument(&f.iter)?);
                let mut body = Vec::new();
                self.suite(&f.body, &mut body)?;
                ScriptStmtKind::For(target, over, body)
            }
            _ => return Err(unexpected(span)),
        };
        steps.push(ScriptStmt { kind, span });
        Ok(())
    }

    fn target(&self, e: &ast::Expr) -> Result<Target> {
        match e {
            ast::Expr::Name(n) => Ok(Target::Name(n.id.as_str().into())),
            ast::Expr::Starred(s) => match &*s.value {
                ast::Expr::Name(n) => Ok(Target::Rest(n.id.as_str().into())),
                other => no_name(other),
            },
            ast::Expr::Tuple(_) | ast::Expr::List(_) => {
                let items: Vec<Target> =
                    elements(e).iter().map(|e| self.target(e)).collect::<Result<_>>()?;
                let rests = items.iter().filter(|t| matches!(t, Target::Rest(_))).count();
                if rests > 1 {
                    Err(syntax::error(e, "only one name may have a star"))
                } else {
                    Ok(Target::List(items))
                }
            }
            other => no_name(other),
        }
    }

    /// Whether a call is one on a schedule: `sch.split(...)`, `s[B].reorder(...)`.
    fn is_primitive(&self, c: &ast::ExprCall) -> bool {
        let ast::Expr::Attribute(f) = &*c.func else { return false };
        match &*f.value {
            ast::Expr::Name(_) => mapping(c).is_none() && self.x.path(&c.func).is_none(),
            ast::Expr::Subscript(_) => true,
            _ => false,
        }
    }

    fn call(&mut self, c: &ast::ExprCall, span: Span) -> Result<Call> {
        let ast::Expr::Attribute(f) = &*c.func else {
            return Err(syntax::error(&*c.func, "expected a method of the schedule"));
        };
        let receiver = match &*f.value {
            ast::Expr::Name(_) => None,
            ast::Expr::Subscript(s) => Some(self.argument(&s.slice)?),
            other => return Err(syntax::error(other, "expected the schedule")),
        };
        let mut args = Vec::new();
        // In the order of the text: a positional argument may follow a named one.
        let mut named = c.arguments.keywords.iter().peekable();
        for e in &c.arguments.args {
            while let Some(k) = named.next_if(|k| k.start() < e.start()) {
                args.push(self.keyword(k)?);
            }
            args.push((None, self.element(e)?));
        }
        for k in named {
            args.push(self.keyword(k)?);
        }
        Ok(Call { span, receiver, method: f.attr.as_str().into(), args })
    }

    fn keyword(&mut self, k: &ast::Keyword) -> Result<(Option<Arc<str>>, Argument)> {
        match &k.arg {
            Some(name) => Ok((Some(name.as_str().into()), self.argument(&k.value)?)),
            None => Err(syntax::error(k, "`**` arguments are not supported")),
        }
    }

    /// An element of a list or of arguments, which may be `*list`.
    fn element(&mut self, e: &ast::Expr) -> Result<Argument> {
        match e {
            ast::Expr::Starred(s) => {
                let kind = ArgumentKind::Star(Box::new(self.argument(&s.value)?));
                Ok(Argument { kind, span: syntax::span(e) })
            }
            _ => self.argument(e),
        }
    }

    fn list(&mut self, items: &[ast::Expr]) -> Result<Vec<Argument>> {
        items.iter().map(|e| self.element(e)).collect()
    }

    fn argument(&mut self, e: &ast::Expr) -> Result<Argument> {
        let kind = match e {
            ast::Expr::Name(n) => ArgumentKind::Name(n.id.as_str().into()),
            ast::Expr::List(_) | ast::Expr::Tuple(_) => ArgumentKind::List(self.list(elements(e))?),
            ast::Expr::Lambda(l) => ArgumentKind::Lambda(lambda(l, self.source)?),
            ast::Expr::Subscript(s) => self.subscript(s)?,
            ast::Expr::ListComp(c) => self.comprehension(c, syntax::span(e))?,
            ast::Expr::Call(c) => match self.function(c)? {
                Some(kind) => kind,
                None => self.plain(e)?,
            },
            ast::Expr::BinOp(b) => self.arithmetic(e, b)?,
            _ => self.plain(e)?,
        };
        Ok(Argument { kind, span: syntax::span(e) })
    }

    /// A constant of the text.
    fn plain(&mut self, e: &ast::Expr) -> Result<ArgumentKind> {
        self.x.scalar_attr(e).map(ArgumentKind::Constant)
    }

    fn subscript(&mut self, s: &ast::ExprSubscript) -> Result<ArgumentKind> {
        let of = Box::new(self.argument(&s.value)?);
        let ast::Expr::Slice(slice) = &*s.slice else {
            return Ok(ArgumentKind::Item(of, Box::new(self.argument(&s.slice)?)));
        };
        let mut part = |e: &Option<Box<ast::Expr>>| {
            let part = e.as_ref().map(|e| self.argument(e)).transpose()?;
            Ok::<_, Error>(part.map(Box::new))
        };
        let parts = [part(&slice.lower)?, part(&slice.upper)?, part(&slice.step)?];
        Ok(ArgumentKind::Slice(of, parts))
    }

    fn comprehension(&mut self, c: &ast::ExprListComp, span: Span) -> Result<ArgumentKind> {
        let [over] = &c.generators[..] else {
            return Err(Error::syntax("expected one `for` in the list").at(span));
        };
        if let Some(condition) = over.ifs.first() {
            return Err(syntax::error(condition, "a condition in a list is not supported"));
        }
        let target = self.target(&over.target)?;
        let item = Box::new(self.argument(&c.elt)?);
        Ok(ArgumentKind::Each { item, target, over: Box::new(self.argument(&over.iter)?) })
    }

    /// A call that is no constant: of a primitive, of a function on lists, or one that names a map.
    fn function(&mut self, c: &ast::ExprCall) -> Result<Option<ArgumentKind>> {
        if let ast::Expr::Name(n) = &*c.func
            && let Some(builtin) = Builtin::from_name(&n.id)
        {
            if let Some(k) = c.arguments.keywords.first() {
                return Err(syntax::error(k, format!("`{}` takes no named arguments here", n.id)));
            }
            return Ok(Some(ArgumentKind::Builtin(builtin, self.list(&c.arguments.args)?)));
        }
        if let Some(map) = mapping(c) {
            return match map {
                ast::Expr::Lambda(l) => Ok(Some(ArgumentKind::Lambda(lambda(l, self.source)?))),
                other => {
                    let e = syntax::error(other, "expected a lambda");
                    Err(e.help("write `IndexMap.from_func(lambda i, j: [j, i])`"))
                }
            };
        }
        if self.is_primitive(c) {
            Ok(Some(ArgumentKind::Call(Box::new(self.call(c, syntax::span(c))?))))
        } else {
            Ok(None)
        }
    }

    /// Arithmetic: of constants at once, with values of the script when it runs.
    fn arithmetic(&mut self, e: &ast::Expr, b: &ast::ExprBinOp) -> Result<ArgumentKind> {
        let op = match b.op {
            ast::Operator::Add => BinOp::Add,
            ast::Operator::Sub => BinOp::Sub,
            ast::Operator::Mult => BinOp::Mul,
            ast::Operator::FloorDiv => BinOp::FloorDiv,
            ast::Operator::Mod => BinOp::FloorMod,
            _ => return self.plain(e),
        };
        let (left, right) = (self.argument(&b.left)?, self.argument(&b.right)?);
        if is_constant(&left) && is_constant(&right) {
            self.plain(e)
        } else {
            Ok(ArgumentKind::Binary(op, Box::new(left), Box::new(right)))
        }
    }
}

fn no_name(e: &ast::Expr) -> Result<Target> {
    Err(syntax::error(e, "expected a name"))
}

fn is_constant(a: &Argument) -> bool {
    matches!(a.kind, ArgumentKind::Constant(_))
}

/// The function that `tvm.tir.IndexMap.from_func(lambda ...)` makes a map of. Its inverse, where it
/// is given too, follows from it.
fn mapping(c: &ast::ExprCall) -> Option<&ast::Expr> {
    let ast::Expr::Attribute(f) = &*c.func else { return None };
    let class = match &*f.value {
        ast::Expr::Attribute(a) => a.attr.as_str(),
        ast::Expr::Name(n) => n.id.as_str(),
        _ => return None,
    };
    if class != "IndexMap" || !matches!(f.attr.as_str(), "from_func" | "from_func_with_separators")
    {
        return None;
    }
    let named = c.arguments.find_keyword("mapping_function").map(|k| &k.value);
    c.arguments.args.first().or(named)
}

fn unexpected(span: Span) -> Error {
    Error::syntax("expected a call on the schedule")
        .at(span)
        .help("such as `b0 = sch.get_block(name=\"B\", func_name=\"main\")`")
}

#[cfg(test)]
mod tests {
    use tilewright_ir::lambda::{LambdaBody, LambdaItem};
    use tilewright_ir::{Buffer, Var};

    use super::*;

    fn script(text: &str) -> Script {
        parse_script(&Source::new("trace.py", text)).expect("a script")
    }

    /// The calls that are statements, or values of one.
    fn calls(s: &Script) -> Vec<Call> {
        s.steps
            .iter()
            .filter_map(|step| match &step.kind {
                ScriptStmtKind::Call(c) => Some(c.clone()),
                ScriptStmtKind::Assign(_, Argument { kind: ArgumentKind::Call(c), .. }) => {
                    Some((**c).clone())
                }
                _ => None,
            })
            .collect()
    }

    fn the_lambda(s: &Script) -> LambdaText {
        let all = calls(s);
        let mut found = all[0].args.iter().filter_map(|(_, a)| match &a.kind {
            ArgumentKind::Lambda(l) => Some(l.clone()),
            _ => None,
        });
        found.next().expect("a lambda")
    }

    fn shown(b: &LambdaBody) -> Vec<String> {
        b.items
            .iter()
            .map(|i| match i {
                LambdaItem::Expr(e) => e.to_string(),
                LambdaItem::Number(v) => format!("number {v}"),
                LambdaItem::None => "None".into(),
                LambdaItem::Separator => "|".into(),
                other => panic!("an item that no script writes: {other}"),
            })
            .collect()
    }

    #[test]
    fn a_trace_is_a_list_of_calls() {
        let s = script(
            "def apply_trace(sch: tir.Schedule) -> None:\n  b0 = sch.get_block(name=\"B\")\n  l1, = sch.get_loops(block=b0)\n  l2, l3 = sch.split(loop=l1, factors=[None, T.int64(4)])\n",
        );
        let all = calls(&s);
        let named: Vec<(&str, usize)> = all.iter().map(|c| (&*c.method, c.args.len())).collect();
        assert_eq!(named, [("get_block", 1), ("get_loops", 1), ("split", 2)]);
        let ArgumentKind::List(factors) = &all[2].args[1].1.kind else { panic!() };
        assert!(matches!(factors[0].kind, ArgumentKind::Constant(Attr::None)));
        let ArgumentKind::Constant(Attr::Expr(four)) = &factors[1].kind else { panic!() };
        assert_eq!(four.as_int(), Some(4));
    }

    #[test]
    fn a_lambda_may_follow_keywords() {
        let s = script(
            "sched.transform_layout(block='compute', buffer='A', lambda i: [i//4, i%4], pad_value=-1)",
        );
        let call = calls(&s).remove(0);
        let names: Vec<Option<&str>> = call.args.iter().map(|(n, _)| n.as_deref()).collect();
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
            assert!(calls(&s)[0].receiver.is_some());
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
    fn a_map_may_have_a_name() {
        let lambda = "lambda i: [i // 4, i % 4]";
        let maps = [
            format!("IndexMap.from_func({lambda})"),
            format!("IndexMap.from_func({lambda}, ndim=1)"),
            format!("IndexMap.from_func(mapping_function={lambda})"),
            format!("IndexMap.from_func_with_separators({lambda})"),
            format!("tir.IndexMap.from_func({lambda})"),
            format!(
                "tvm.tir.IndexMap.from_func({lambda}, inverse_index_map=lambda i, j: [i * 4 + j])"
            ),
            lambda.to_owned(),
        ];
        for map in maps {
            let s = script(&format!("m = {map}\n"));
            let ScriptStmtKind::Assign(_, value) = &s.steps[0].kind else { panic!("{map}") };
            let ArgumentKind::Lambda(l) = &value.kind else { panic!("{map}") };
            assert_eq!(l.text(), lambda, "{map}");
        }
    }

    #[test]
    fn other_statements_are_refused_at_their_place() {
        let e = parse_script(&Source::new("t.py", "x += 3\n")).expect_err("no call");
        assert_eq!(
            e.render(),
            "error: expected a call on the schedule\n  --> t.py:1:1\n   1 | x += 3\n     | ^^^^^^\nhelp: such as `b0 = sch.get_block(name=\"B\", func_name=\"main\")`\n"
        );
    }
}

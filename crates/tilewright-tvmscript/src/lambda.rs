//! Lambdas of scripts: index maps and pad values.
//!
//! A lambda is kept as text: how many parameters a `*star` stands for, and of which type they are, is
//! known only when a primitive meets its buffer. See [`LambdaText::bind`].

use std::sync::Arc;

use ruff_python_ast as ast;
use ruff_python_ast::helpers::any_over_expr;
use tilewright_ir::lambda::{LambdaBody, LambdaItem};
use tilewright_ir::{Buffer, DType, Error, Result, Source, Span, Var};

use crate::args::elements;
use crate::env::Item;
use crate::expr::ExprParser;
use crate::syntax;
use crate::value::TextValue;

/// A lambda whose parameters have no types yet.
#[derive(Clone, Debug)]
pub struct LambdaText {
    params: Vec<Arc<str>>,
    star: Option<Arc<str>>,
    body: Arc<ast::Expr>,
    source: Arc<Source>,
    span: Span,
}

pub(crate) fn lambda(l: &ast::ExprLambda, source: &Arc<Source>) -> Result<LambdaText> {
    let mut text = LambdaText {
        params: Vec::new(),
        star: None,
        body: Arc::new((*l.body).clone()),
        source: source.clone(),
        span: syntax::span(l),
    };
    if let Some(p) = &l.parameters {
        if let Some(extra) = p.kwonlyargs.first() {
            return Err(syntax::error(extra, "a parameter may not follow the star"));
        }
        text.params =
            p.posonlyargs.iter().chain(&p.args).map(|a| a.name().as_str().into()).collect();
        text.star = p.vararg.as_ref().map(|v| v.name.as_str().into());
    }
    Ok(text)
}

/// Reads a text that is one lambda.
///
/// # Errors
/// [`Error::Syntax`] with the place, where it is anything else.
pub fn parse_lambda(source: &Arc<Source>) -> Result<LambdaText> {
    read_lambda(source).map_err(|e| e.in_source(source))
}

fn read_lambda(source: &Arc<Source>) -> Result<LambdaText> {
    match syntax::parse_expression(&source.text)? {
        ast::Expr::Lambda(l) => lambda(&l, source),
        other => Err(syntax::error(&other, "expected `lambda i, j: [...]`")),
    }
}

impl LambdaText {
    /// The number of its parameters, unless it is one for any number: it has a star, or one parameter
    /// that may stand for all.
    pub fn rank(&self) -> Option<usize> {
        match (&self.params[..], &self.star) {
            ([one], None) if self.stands_for_all(one) => None,
            (params, None) => Some(params.len()),
            (_, Some(_)) => None,
        }
    }

    fn stands_for_all(&self, name: &str) -> bool {
        any_over_expr(&self.body, &|e: &ast::Expr| match e {
            ast::Expr::Subscript(s) => {
                s.value.as_name_expr().is_some_and(|n| n.id.as_str() == name)
            }
            _ => false,
        })
    }

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
    pub fn bind(&self, dtypes: &[DType], vars: &[Var], buffers: &[Buffer]) -> Result<LambdaBody> {
        self.read(dtypes, vars, buffers).map_err(|e| e.in_source(&self.source))
    }

    fn read(&self, dtypes: &[DType], vars: &[Var], buffers: &[Buffer]) -> Result<LambdaBody> {
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
        let named = self.params[..plain].iter().zip(dtypes);
        let mut params: Vec<Var> =
            named.map(|(name, dtype)| parser.env.define(name, *dtype)).collect();
        for (k, dtype) in dtypes.iter().enumerate().skip(plain) {
            params.push(Var::new(format!("i{k}"), *dtype));
        }
        let body = elements(&self.body);
        if let Some(group) = &group {
            // A single parameter stands for all axes only where it is used so.
            if whole.is_some()
                && !body.iter().any(|e| {
                    is_group(e, group) || any_over_expr(e, &|e: &ast::Expr| uses_group(e, group))
                })
            {
                return wrong_number();
            }
            parser.env.insert(group.to_string(), Item::Axes(params[plain..].into()));
        }
        let mut items = Vec::new();
        for e in body {
            let spread = match e {
                ast::Expr::Starred(s) => Some(&*s.value),
                other if body.len() == 1 => Some(other),
                _ => None,
            };
            let spread = spread.and_then(ast::Expr::as_name_expr).map(|n| n.id.as_str());
            match (&group, spread) {
                (Some(group), Some(name)) if name == &**group => {
                    items.extend(params[plain..].iter().map(|v| LambdaItem::Expr(v.expr())));
                }
                _ => items.push(item(&mut parser, e)?),
            }
        }
        Ok(LambdaBody { params, items })
    }
}

fn uses_group(e: &ast::Expr, group: &str) -> bool {
    match e {
        ast::Expr::Starred(s) => is_group(&s.value, group),
        ast::Expr::Subscript(s) => is_group(&s.value, group),
        _ => false,
    }
}

fn is_group(e: &ast::Expr, group: &str) -> bool {
    e.as_name_expr().is_some_and(|n| n.id.as_str() == group)
}

fn item(parser: &mut ExprParser, e: &ast::Expr) -> Result<LambdaItem> {
    if let ast::Expr::Attribute(a) = e
        && a.attr.as_str() == "AXIS_SEPARATOR"
    {
        return Ok(LambdaItem::Separator);
    }
    Ok(match parser.value(e)? {
        TextValue::None => LambdaItem::None,
        TextValue::Int(v) => LambdaItem::Number(v as f64),
        TextValue::Float(v) => LambdaItem::Number(v),
        other => LambdaItem::Expr(other.typed(parser.int).map_err(|err| err.at(syntax::span(e)))?),
    })
}

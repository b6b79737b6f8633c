//! Arguments of a call, matched to the names of its parameters.

use ruff_python_ast as ast;
use tilewright_ir::{Error, Result, Span};

use crate::syntax::{self, span};

/// Arguments by parameter.
pub(crate) struct Args<'a> {
    what: String,
    call: Span,
    slots: Vec<(&'static str, Option<&'a ast::Expr>)>,
    /// Positional arguments past the last parameter, where they are allowed.
    pub(crate) rest: Vec<&'a ast::Expr>,
}

impl<'a> Args<'a> {
    /// Matches the arguments of a call to parameters; `what` names the function in messages.
    pub(crate) fn bind(
        call: &'a ast::ExprCall,
        what: impl Into<String>,
        names: &[&'static str],
    ) -> Result<Self> {
        let args = Self::bind_variadic(call, what, names)?;
        match args.rest.first() {
            None => Ok(args),
            Some(extra) => Err(syntax::error(
                *extra,
                format!("`{}` takes at most {} positional arguments", args.what, names.len()),
            )
            .help(usage(&args.what, names))),
        }
    }

    /// Like [`Args::bind`], with any number of further positional arguments in `rest`.
    pub(crate) fn bind_variadic(
        call: &'a ast::ExprCall,
        what: impl Into<String>,
        names: &[&'static str],
    ) -> Result<Self> {
        let mut args = Args {
            what: what.into(),
            call: span(call),
            slots: names.iter().map(|n| (*n, None)).collect(),
            rest: Vec::new(),
        };
        for (i, e) in call.arguments.args.iter().enumerate() {
            if let ast::Expr::Starred(_) = e {
                return Err(syntax::error(e, "`*` arguments are not supported"));
            }
            match args.slots.get_mut(i) {
                Some(slot) => slot.1 = Some(e),
                None => args.rest.push(e),
            }
        }
        for k in &call.arguments.keywords {
            let Some(name) = &k.arg else {
                return Err(syntax::error(k, "`**` arguments are not supported"));
            };
            match args.slots.iter_mut().find(|(n, _)| *n == name.as_str()) {
                Some((_, slot @ None)) => *slot = Some(&k.value),
                Some(_) => {
                    return Err(syntax::error(
                        name,
                        format!("`{}` gets `{name}` twice", args.what),
                    ));
                }
                None => {
                    return Err(syntax::error(
                        name,
                        format!("`{}` has no parameter `{name}`", args.what),
                    )
                    .help(usage(&args.what, names)));
                }
            }
        }
        Ok(args)
    }

    /// An argument; `None` where it is missing or the literal `None`.
    pub(crate) fn get(&self, name: &str) -> Option<&'a ast::Expr> {
        let slot = self.slots.iter().find(|(n, _)| *n == name)?;
        slot.1.filter(|e| !e.is_none_literal_expr())
    }

    /// What `read` makes of an argument, where it is there.
    pub(crate) fn read<T>(
        &self,
        name: &str,
        read: impl FnOnce(&'a ast::Expr) -> Result<T>,
    ) -> Result<Option<T>> {
        self.get(name).map(read).transpose()
    }

    /// An argument that must be there.
    pub(crate) fn need(&self, name: &str) -> Result<&'a ast::Expr> {
        self.get(name).ok_or_else(|| {
            let names: Vec<&'static str> = self.slots.iter().map(|(n, _)| *n).collect();
            Error::syntax(format!("`{}` needs the argument `{name}`", self.what))
                .at(self.call)
                .help(usage(&self.what, &names))
        })
    }
}

/// The parameters of a function, none of which has a star or a default.
pub(crate) fn parameters(p: &ast::Parameters) -> Result<Vec<&ast::Parameter>> {
    if p.vararg.is_some() || p.kwarg.is_some() {
        return Err(syntax::error(p, "`*` and `**` parameters are not supported"));
    }
    p.iter_non_variadic_params()
        .map(|p| match &p.default {
            None => Ok(&p.parameter),
            Some(default) => Err(syntax::error(&**default, "parameters have no defaults")),
        })
        .collect()
}

fn usage(what: &str, names: &[&'static str]) -> String {
    format!("the parameters are {what}({})", names.join(", "))
}

/// The text of a string literal.
pub(crate) fn string(e: &ast::Expr) -> Result<&str> {
    match e {
        ast::Expr::StringLiteral(s) => Ok(s.value.to_str()),
        _ => Err(syntax::error(e, "expected a string")),
    }
}

/// The elements of a tuple or list; anything else is one element.
pub(crate) fn elements(e: &ast::Expr) -> &[ast::Expr] {
    match e {
        ast::Expr::Tuple(t) => &t.elts,
        ast::Expr::List(l) => &l.elts,
        other => std::slice::from_ref(other),
    }
}

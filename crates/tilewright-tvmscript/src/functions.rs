//! The functions of a module by their definitions, and what decorators say of them.

use std::sync::Arc;
use tilewright_ir::hash::HashMap;

use ruff_python_ast as ast;
use tilewright_ir::suggest::closest;
use tilewright_ir::{Error, Result, Span};

use crate::args::string;
use crate::expr::{ExprParser, Space};

/// What the decorator of a function says.
#[derive(Debug, Default)]
pub(crate) struct FuncHead {
    /// Graph function or tensor function.
    pub(crate) graph: bool,
    /// Not visible outside the module.
    pub(crate) private: bool,
    /// The function's name, where it is not a Python name.
    name: Option<String>,
    /// Names of parameters that are not Python names, by the names that stand for them.
    names: HashMap<String, String>,
}

impl FuncHead {
    /// The name of a parameter that the text calls `name`.
    pub(crate) fn real_name<'a>(&'a self, name: &'a str) -> &'a str {
        self.names.get(name).map_or(name, String::as_str)
    }
}

/// The functions of a module, before their bodies are read.
#[derive(Default)]
pub(crate) struct Functions<'a> {
    entries: Vec<Entry<'a>>,
    /// Position by the name in the text.
    by_name: HashMap<&'a str, usize>,
}

pub(crate) struct Entry<'a> {
    /// What the decorator says.
    pub(crate) head: FuncHead,
    /// Name in the module.
    pub(crate) key: Arc<str>,
    /// The definition.
    pub(crate) def: &'a ast::StmtFunctionDef,
}

impl<'a> Functions<'a> {
    /// The function that the text calls `name`.
    pub(crate) fn get(&self, name: &str) -> Option<&Entry<'a>> {
        self.by_name.get(name).and_then(|i| self.entries.get(*i))
    }

    /// The function whose name in the module is `key`.
    pub(crate) fn by_key(&self, key: &str) -> Option<&Entry<'a>> {
        self.entries.iter().find(|e| &*e.key == key)
    }

    /// The names in the text.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().copied()
    }

    /// All of them, in the order of the text.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Entry<'a>> {
        self.entries.iter()
    }

    /// Adds what the text defines.
    ///
    /// # Errors
    /// `Syntax` for a name that is taken, and for what decorators may not say.
    pub(crate) fn add(&mut self, x: &ExprParser, def: &'a ast::StmtFunctionDef) -> Result<()> {
        let head = head(x, def)?;
        let name = def.name.as_str();
        let key: Arc<str> = head.name.as_deref().unwrap_or(name).into();
        let at = x.span(&def.name);
        if self.by_key(&key).is_some() {
            return Err(defined_twice(&key, at));
        }
        if self.by_name.insert(name, self.entries.len()).is_some() {
            return Err(defined_twice(name, at));
        }
        self.entries.push(Entry { head, key, def });
        Ok(())
    }
}

fn defined_twice(text: &str, at: Span) -> Error {
    Error::syntax(format!("the function `{text}` is defined twice")).at(at)
}

/// What the decorators of a function say.
fn head(x: &ExprParser, def: &ast::StmtFunctionDef) -> Result<FuncHead> {
    let at = x.span(&def.name);
    let mut head: Option<FuncHead> = None;
    for d in &def.decorator_list {
        let (callee, call) = match &d.expression {
            ast::Expr::Call(c) => (&*c.func, Some(c)),
            e => (e, None),
        };
        let graph = match x.path(callee) {
            Some((Space::T | Space::Bare, n)) if n == "prim_func" => false,
            Some((Space::T, n)) if n == "func" => false,
            Some((Space::R, n)) if n == "function" || n == "func" => true,
            Some((Space::Bare, n)) if n == "function" => true,
            found => {
                let error = x.error(&d.expression, "unknown decorator");
                let known = ["prim_func", "function"];
                let near = found.as_ref().and_then(|(_, n)| closest(n, known));
                return Err(match near {
                    Some("prim_func") => error.help("did you mean `@T.prim_func`?"),
                    _ => error.help("write `@T.prim_func` or `@R.function`"),
                });
            }
        };
        let mut h = FuncHead { graph, ..FuncHead::default() };
        if let Some(c) = call {
            decorator_args(x, c, &mut h)?;
        }
        if head.replace(h).is_some() {
            return Err(x.error(d, "a function has one decorator"));
        }
    }
    if def.is_async {
        return Err(Error::syntax("functions are not `async`").at(at));
    }
    head.ok_or_else(|| {
        Error::syntax(format!("the function `{}` has no decorator", def.name))
            .at(at)
            .help("write `@T.prim_func` or `@R.function` above it")
    })
}

fn decorator_args(x: &ExprParser, c: &ast::ExprCall, head: &mut FuncHead) -> Result<()> {
    if let Some(e) = c.arguments.args.first() {
        return Err(x.error(e, "a decorator takes named arguments"));
    }
    for k in &c.arguments.keywords {
        match k.arg.as_ref().map(|a| a.as_str()) {
            Some("private") => head.private = flag_value(&k.value, x)?,
            // The dialects' own switches; they say nothing about the function.
            Some("s_tir" | "check_well_formed" | "tracked") => {
                flag_value(&k.value, x)?;
            }
            Some("pure") => {
                if !flag_value(&k.value, x)? {
                    return Err(x.unsupported(k, "impure graph functions are not supported"));
                }
            }
            Some("name") => head.name = Some(string(&k.value)?.to_owned()),
            Some("names") => {
                let ast::Expr::Dict(d) = &k.value else {
                    return Err(x.error(&k.value, "expected a dictionary"));
                };
                for item in &d.items {
                    let key = item.key.as_ref();
                    let key = key.ok_or_else(|| x.error(k, "expected a name"))?;
                    head.names.insert(string(key)?.to_owned(), string(&item.value)?.to_owned());
                }
            }
            _ => return Err(x.error(k, "unknown argument of a decorator")),
        }
    }
    Ok(())
}

fn flag_value(e: &ast::Expr, x: &ExprParser) -> Result<bool> {
    match e {
        ast::Expr::BooleanLiteral(b) => Ok(b.value),
        _ => Err(x.error(e, "expected True or False")),
    }
}

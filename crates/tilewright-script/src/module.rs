//! Modules: `@I.ir_module class Module:`, or bare functions.

use std::collections::HashMap;
use std::sync::Arc;

use ruff_python_ast as ast;
use tilewright_ir::suggest::closest;
use tilewright_ir::{Attrs, DType, Error, Function, Module, Result, Source, Span};

use crate::args::string;
use crate::consts::ConstTable;
use crate::env::Item;
use crate::expr::{ExprParser, Space};
use crate::graph::graph_func;
use crate::syntax;
use crate::tensor::tensor_func;

/// What the decorator of a function says.
#[derive(Debug, Default)]
pub(crate) struct FuncHead {
    /// Graph function or tensor function.
    graph: bool,
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
}

/// Reads a text; constants that it only names are in the table.
pub(crate) fn parse(source: &Arc<Source>, table: &ConstTable) -> Result<Module> {
    read(source, table).map_err(|e| e.in_source(source))
}

fn read(source: &Arc<Source>, table: &ConstTable) -> Result<Module> {
    let text = source.text.as_str();
    let stmts = syntax::parse_suite(text)?;
    let mut x = ExprParser::new(DType::I32);
    let mut dialect = None;
    let mut module = Module::new();
    let mut functions = Functions { entries: Vec::new(), by_name: HashMap::new() };
    let mut class: Option<Span> = None;
    let mut metadata = None;
    for s in &stmts {
        match s {
            ast::Stmt::Import(_) | ast::Stmt::ImportFrom(_) => import(&mut x, s, &mut dialect),
            ast::Stmt::FunctionDef(f) => add_function(&x, f, &mut functions)?,
            ast::Stmt::ClassDef(c) => {
                if class.is_some() {
                    return Err(Error::syntax("the text has two modules").at(x.span(&c.name)));
                }
                class = Some(x.span(&c.name));
                check_class(&x, c)?;
                x.env.insert(c.name.as_str(), Item::Module);
                module_body(&mut x, c, &mut functions, &mut module.attrs)?;
            }
            ast::Stmt::Assign(a) if is_name(&a.targets, "metadata") => metadata = Some(&*a.value),
            ast::Stmt::Expr(e) if e.value.is_string_literal_expr() => {}
            ast::Stmt::Pass(_) => {}
            _ => {
                return Err(Error::syntax("expected a module or a function").at(x.span(s)).help(
                    "write `@I.ir_module` above a class, `@T.prim_func` or `@R.function` above a function",
                ));
            }
        }
    }
    let newer = dialect.unwrap_or_else(|| looks_newer(text));
    let metadata = metadata.map(|e| crate::metadata::read(&x, e)).transpose()?;
    let constants = crate::graph::Constants { table, metadata: metadata.as_deref() };
    for entry in &functions.entries {
        let f: Function = match entry.head.graph {
            true => graph_func(&mut x, text, &functions, &constants, entry)?.into(),
            false => tensor_func(&mut x, text, newer, &entry.head, entry.def)?.into(),
        };
        module.functions.insert(entry.key.clone(), f);
    }
    if module.functions.is_empty() && class.is_none() {
        return Err(Error::syntax("the text has no module and no function")
            .at(Span::new(0, 0))
            .help("write `@T.prim_func` or `@R.function` above a function"));
    }
    module.source = Some(source.clone());
    Ok(module)
}

/// Whether a text without imports is in the newer dialect. Printed modules say what they come
/// from in comments.
fn looks_newer(text: &str) -> bool {
    ["import tirx", "T.sblock", "s_tir=True"].iter().any(|mark| text.contains(mark))
}

fn is_name(targets: &[ast::Expr], name: &str) -> bool {
    matches!(targets, [ast::Expr::Name(n)] if n.id.as_str() == name)
}

/// Learns the names of the vocabularies; other imports mean nothing here.
fn import(x: &mut ExprParser, s: &ast::Stmt, dialect: &mut Option<bool>) {
    let aliases = match s {
        ast::Stmt::Import(i) => &i.names,
        ast::Stmt::ImportFrom(i) => &i.names,
        _ => return,
    };
    for alias in aliases {
        let path = alias.name.as_str();
        let last = path.rsplit('.').next().unwrap_or(path);
        let space = match last {
            "tir" | "tirx" => Space::T,
            "relax" => Space::R,
            "ir" => Space::I,
            _ => continue,
        };
        if space == Space::T {
            *dialect = Some(last == "tirx");
        }
        let name = alias.asname.as_ref().unwrap_or(&alias.name).as_str();
        x.spaces.insert(name.to_owned(), space);
    }
}

fn check_class(x: &ExprParser, c: &ast::StmtClassDef) -> Result<()> {
    let module = |e: &ast::Expr| {
        let e = match e {
            ast::Expr::Call(c) => &*c.func,
            e => e,
        };
        matches!(x.path(e), Some((Space::I | Space::Bare, n)) if n == "ir_module")
    };
    match c.decorator_list.iter().any(|d| module(&d.expression)) {
        true => Ok(()),
        false => Err(Error::syntax(format!("the class `{}` is not a module", c.name))
            .at(x.span(&c.name))
            .help("write `@I.ir_module` above it")),
    }
}

fn module_body<'a>(
    x: &mut ExprParser,
    c: &'a ast::StmtClassDef,
    functions: &mut Functions<'a>,
    attrs: &mut Attrs,
) -> Result<()> {
    for s in &c.body {
        match s {
            ast::Stmt::FunctionDef(f) => add_function(x, f, functions)?,
            ast::Stmt::Pass(_) => {}
            ast::Stmt::Expr(e) => match &*e.value {
                ast::Expr::StringLiteral(_) | ast::Expr::EllipsisLiteral(_) => {}
                ast::Expr::Call(call) => match x.path(&call.func) {
                    Some((Space::I, name)) if name == "module_attrs" => {
                        let args = crate::args::Args::bind(call, "I.module_attrs", &["attrs"])?;
                        attrs.extend(x.attrs(args.need("attrs")?)?);
                    }
                    Some((Space::I, name)) => {
                        return Err(Error::unsupported(format!("`I.{name}` is not supported"))
                            .at(x.span(call)));
                    }
                    _ => return Err(Error::syntax("expected a function").at(x.span(s))),
                },
                _ => return Err(Error::syntax("expected a function").at(x.span(s))),
            },
            _ => return Err(Error::syntax("expected a function").at(x.span(s))),
        }
    }
    Ok(())
}

fn add_function<'a>(
    x: &ExprParser,
    def: &'a ast::StmtFunctionDef,
    functions: &mut Functions<'a>,
) -> Result<()> {
    let head = head(x, def)?;
    let name = def.name.as_str();
    let key: Arc<str> = head.name.as_deref().unwrap_or(name).into();
    let at = x.span(&def.name);
    let twice =
        |text: &str| Error::syntax(format!("the function `{text}` is defined twice")).at(at);
    if functions.entries.iter().any(|e| e.key == key) {
        return Err(twice(&key));
    }
    if functions.by_name.insert(name, functions.entries.len()).is_some() {
        return Err(twice(name));
    }
    functions.entries.push(Entry { head, key, def });
    Ok(())
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
                let error = Error::syntax("unknown decorator").at(x.span(&d.expression));
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
            return Err(Error::syntax("a function has one decorator").at(x.span(d)));
        }
    }
    let missing = || {
        Error::syntax(format!("the function `{}` has no decorator", def.name))
            .at(at)
            .help("write `@T.prim_func` or `@R.function` above it")
    };
    if def.is_async {
        return Err(Error::syntax("functions are not `async`").at(at));
    }
    head.ok_or_else(missing)
}

fn decorator_args(x: &ExprParser, c: &ast::ExprCall, head: &mut FuncHead) -> Result<()> {
    if let Some(e) = c.arguments.args.first() {
        return Err(Error::syntax("a decorator takes named arguments").at(x.span(e)));
    }
    let flag = |e: &ast::Expr| match e {
        ast::Expr::BooleanLiteral(b) => Ok(b.value),
        _ => Err(Error::syntax("expected True or False").at(x.span(e))),
    };
    for k in &c.arguments.keywords {
        match k.arg.as_ref().map(|a| a.as_str()) {
            Some("private") => head.private = flag(&k.value)?,
            // The dialects' own switches; they say nothing about the function.
            Some("s_tir" | "check_well_formed" | "tracked") => {
                flag(&k.value)?;
            }
            Some("pure") => {
                if !flag(&k.value)? {
                    return Err(Error::unsupported("impure graph functions are not supported")
                        .at(x.span(k)));
                }
            }
            Some("name") => head.name = Some(string(&k.value)?.to_owned()),
            Some("names") => {
                let ast::Expr::Dict(d) = &k.value else {
                    return Err(Error::syntax("expected a dictionary").at(x.span(&k.value)));
                };
                for item in &d.items {
                    let key = item.key.as_ref();
                    let key = key.ok_or_else(|| Error::syntax("expected a name").at(x.span(k)))?;
                    head.names.insert(string(key)?.to_owned(), string(&item.value)?.to_owned());
                }
            }
            _ => {
                return Err(Error::syntax("unknown argument of a decorator").at(x.span(k)));
            }
        }
    }
    Ok(())
}

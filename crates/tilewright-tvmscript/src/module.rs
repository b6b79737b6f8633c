//! Modules: `@I.ir_module class Module:`, or bare functions.

use std::sync::Arc;

use ruff_python_ast as ast;
use tilewright_ir::{Attrs, DType, Error, Function, Module, Result, Source, Span};

use crate::consts::ConstTable;
use crate::env::Item;
use crate::expr::{ExprParser, Space};
use crate::functions::Functions;
use crate::graph::graph_func;
use crate::syntax;
use crate::tensor::tensor_func;

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
    let mut functions = Functions::default();
    let mut class: Option<Span> = None;
    let mut metadata = None;
    for s in &stmts {
        match s {
            ast::Stmt::Import(_) | ast::Stmt::ImportFrom(_) => import(&mut x, s, &mut dialect),
            ast::Stmt::FunctionDef(f) => functions.add(&x, f)?,
            ast::Stmt::ClassDef(c) => {
                if class.is_some() {
                    return Err(x.error(&c.name, "the text has two modules"));
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
                return Err(x.error(s, "expected a module or a function").help(
                    "write `@I.ir_module` above a class, `@T.prim_func` or `@R.function` above a function",
                ));
            }
        }
    }
    let newer = dialect.unwrap_or_else(|| looks_newer(text));
    let metadata = metadata.map(|e| crate::metadata::read(&x, e)).transpose()?;
    let constants = crate::graph::Constants { table, metadata: metadata.as_deref() };
    for entry in functions.iter() {
        let f: Function = if entry.head.graph {
            graph_func(&mut x, text, &functions, &constants, entry)?.into()
        } else {
            tensor_func(&mut x, text, newer, &entry.head, entry.def)?.into()
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
    if c.decorator_list.iter().any(|d| module(&d.expression)) {
        Ok(())
    } else {
        Err(x
            .error(&c.name, format!("the class `{}` is not a module", c.name))
            .help("write `@I.ir_module` above it"))
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
            ast::Stmt::FunctionDef(f) => functions.add(x, f)?,
            ast::Stmt::Pass(_) => {}
            ast::Stmt::Expr(e) => match &*e.value {
                ast::Expr::StringLiteral(_) | ast::Expr::EllipsisLiteral(_) => {}
                ast::Expr::Call(call) => match x.path(&call.func) {
                    Some((Space::I, name)) if name == "module_attrs" => {
                        let args = crate::args::Args::bind(call, "I.module_attrs", &["attrs"])?;
                        attrs.extend(x.attrs(args.need("attrs")?)?);
                    }
                    Some((Space::I, name)) => {
                        return Err(x.unsupported(call, format!("`I.{name}` is not supported")));
                    }
                    _ => return Err(x.error(s, "expected a function")),
                },
                _ => return Err(x.error(s, "expected a function")),
            },
            _ => return Err(x.error(s, "expected a function")),
        }
    }
    Ok(())
}

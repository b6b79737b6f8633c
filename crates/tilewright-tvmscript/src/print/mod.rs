//! From IR to text.
//!
//! One dialect is printed, the older one of TVMScript (`T.block`, `T.alloc_buffer`), and every
//! text reads back as the same module. What that needs beyond TVM's own dialect:
//! * names that are not Python names are given by the decorator (`name=`, `names={...}`);
//! * `with R.bindings():` is a block of bindings that is not a dataflow region, where two of them
//!   follow each other;
//! * `R.call("name", ...)` calls an operator whose name is not a Python name;
//! * constants are in the forms of [`crate::consts`].

mod func;
mod graph;
mod names;
mod stmt;

use tilewright_ir::hash::HashMap;

use tilewright_ir::{Attr, Attrs, Expr, ExprKind, Function, Module, Range, TensorFunc, Var};
use tilewright_ir::{BinOp, equal, text};

use self::names::{Namer, identifier};
use crate::consts::{ConstTable, float_literal};
use crate::value::{constant_value, int_literal};

pub(crate) use self::names::is_identifier;

/// The text of a module.
///
/// It reads back ([`crate::parse_module`]) as a module that is structurally equal. Constants of
/// many elements are part of the text; [`print_module_with`] keeps them apart.
pub fn print_module(module: &Module) -> String {
    Printer::default().module(module)
}

/// The text of a module whose large constants go to a table.
///
/// The text names them (`R.const_ref("c0", R.Tensor(...))`); it reads back together with the
/// table ([`crate::parse_module_with`]).
pub fn print_module_with(module: &Module, table: &mut ConstTable) -> String {
    Printer { table: Some(table), ..Printer::default() }.module(module)
}

/// The text of a tensor function without a module around it.
pub fn print_func(name: &str, func: &TensorFunc) -> String {
    let mut p = Printer::default();
    p.tensor_func(name, &identifier(name), func);
    p.out
}

/// Whether an expression is `start + ...`.
fn is_sum_from(e: &Expr, start: &Expr) -> bool {
    matches!(e.kind(), ExprKind::Binary(BinOp::Add, x, _) if equal::same_expr(x, start))
}

/// Text under construction.
#[derive(Default)]
struct Printer<'t> {
    out: String,
    indent: usize,
    names: Namer,
    /// Ranges of the loops around, for `T.axis.remap`.
    loops: HashMap<Var, Range>,
    /// What the text calls each function of the module.
    functions: HashMap<String, String>,
    /// Where large constants go; into the text if there is none.
    table: Option<&'t mut ConstTable>,
}

impl Printer<'_> {
    fn line(&mut self, text: &str) {
        for _ in 0..self.indent {
            self.out.push_str("    ");
        }
        self.out.push_str(text);
        self.out.push('\n');
    }

    fn expr(&mut self, e: &Expr) -> String {
        self.names.expr(e)
    }

    fn exprs(&mut self, items: &[Expr]) -> String {
        text::commas(items.iter().map(|e| self.expr(e)))
    }

    /// First value, unless it is zero, and end of a range, so that they read back as the range
    /// (`range_between` of the reader).
    fn bounds(&mut self, r: &Range) -> (Option<String>, String) {
        let end = match (constant_value(&r.min), constant_value(&r.extent), r.extent.kind()) {
            (Some(0), ..) => return (None, self.expr(&r.extent)),
            (Some(a), Some(b), _) => {
                int_literal(a + b, r.min.dtype()).unwrap_or_else(|_| sum_with(&r.extent, r))
            }
            // The extent `end - min` is what two other bounds stand for.
            (a, _, ExprKind::Binary(BinOp::Sub, end, min))
                if equal::same_expr(min, &r.min)
                    && (a.is_none() || constant_value(end).is_none())
                    && !is_sum_from(end, min) =>
            {
                end.clone()
            }
            _ => sum_with(&r.extent, r),
        };
        (Some(self.expr(&r.min)), self.expr(&end))
    }

    fn attr(&mut self, a: &Attr) -> String {
        match a {
            Attr::None => "None".to_owned(),
            Attr::Bool(v) => if *v { "True" } else { "False" }.to_owned(),
            Attr::Int(v) => v.to_string(),
            Attr::Float(v) => float_literal(*v, tilewright_ir::DType::F64),
            Attr::Str(s) => text::quote(s),
            Attr::Expr(e) => match e.kind() {
                // A plain number would read back as a number without a type.
                ExprKind::Int(v) if e.dtype().is_int() => match e.dtype().kind {
                    tilewright_ir::TypeKind::UInt => format!("T.{}({})", e.dtype(), *v as u64),
                    _ => format!("T.{}({v})", e.dtype()),
                },
                ExprKind::Str(s) => format!("T.StringImm({})", text::quote(s)),
                _ => self.expr(e),
            },
            Attr::List(items) => {
                format!("[{}]", text::commas(items.iter().map(|a| self.attr(a))))
            }
            Attr::Map(items) => self.attrs(items),
        }
    }

    fn attrs(&mut self, attrs: &Attrs) -> String {
        let items = attrs.iter().map(|(k, a)| format!("{}: {}", text::quote(k), self.attr(a)));
        format!("{{{}}}", text::commas(items))
    }

    fn module(mut self, module: &Module) -> String {
        self.line("from tvm.script import ir as I");
        self.line("from tvm.script import tir as T");
        if module.graphs().next().is_some() {
            self.line("from tvm.script import relax as R");
        }
        self.line("");
        self.line("");
        self.line("@I.ir_module");
        self.line("class Module:");
        self.indent = 1;
        let mut functions = Namer::default();
        for key in module.functions.keys() {
            let name = functions.fresh(key);
            self.functions.insert(key.to_string(), name);
        }
        if !module.attrs.is_empty() {
            let attrs = self.attrs(&module.attrs);
            self.line(&format!("I.module_attrs({attrs})"));
            if !module.functions.is_empty() {
                self.line("");
            }
        } else if module.functions.is_empty() {
            self.line("pass");
        }
        for (i, (key, f)) in module.functions.iter().enumerate() {
            if i > 0 {
                self.line("");
            }
            let name = self.functions.get(&**key).cloned().unwrap_or_default();
            match f {
                Function::Tensor(f) => self.tensor_func(key, &name, f),
                Function::Graph(f) => self.graph_func(key, &name, f),
            }
        }
        self.out.lines().map(|l| l.trim_end().to_owned() + "\n").collect()
    }
}

fn sum_with(n: &Expr, r: &Range) -> Expr {
    Expr::binary(BinOp::Add, r.min.clone(), n.clone())
}

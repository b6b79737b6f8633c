//! Structural equality modulo names, with the first difference.
//!
//! Two trees are equal if there is a one-to-one pairing of their variables and of their buffers
//! under which every node agrees. The pairing is made where both sides define something; a use
//! must then respect it in both directions. Floats agree if their bits do, and any `NaN` agrees
//! with any other. Spans never count.
//!
//! [`fingerprint`] is a hash that agrees with it: equal functions have equal fingerprints.
//!
//! ```
//! use tilewright_ir::{Expr, Var, equal};
//! let (i, j) = (Var::index("i"), Var::index("j"));
//! let options = equal::Equality { free: equal::Free::Paired, ..Default::default() };
//! assert!(equal::exprs(&(&i + 1), &(&j + 1), &options).is_ok());
//! let d = equal::exprs(&(&i + 1), &(&j + 2), &options).unwrap_err();
//! assert_eq!(d.to_string(), "`i + 1` against `j + 2`");
//! ```

use crate::hash::{HashMap, HashSet};
use std::fmt;
use std::hash::Hash;
use std::mem::discriminant;
use std::sync::Arc;

use crate::buffer::Buffer;
use crate::error::Span;
use crate::expr::{Expr, ExprKind, Var};
use crate::func::{Param, TensorFunc};
use crate::graph::{
    Binding, BindingBlock, Body, GraphExpr, GraphFunc, GraphType, GraphVar, Loop, TensorType,
    callee,
};
use crate::module::{Function, Module};
use crate::stmt::{Attr, Attrs, Block, ForKind, Range, Region, Stmt, StmtKind};
use crate::tensor::Tensor;
use crate::text::{brief, commas};

pub use self::fingerprint::fingerprint;

mod fingerprint;
mod graph;
mod tensor;

/// How declared read and write regions of blocks are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Regions {
    /// They must agree, and so must their absence.
    Exact,
    /// They must agree where both sides declare them.
    WhereBoth,
}

/// What becomes of variables and buffers that are used without a definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Free {
    /// They must be the same ones on both sides.
    Identical,
    /// Those of one name and type are the same: two texts that were read on their own have no
    /// other way to mean the same variable.
    Named,
    /// They are paired where both sides first use one.
    Paired,
}

/// What counts.
#[derive(Clone, Debug)]
pub struct Equality {
    /// Whether the names and the order of functions, the attribute `global_symbol` and privacy
    /// count. Without, functions of one name are compared with each other, and the rest in order.
    pub names: bool,
    /// Whether the names of blocks count.
    pub block_names: bool,
    /// Regions of blocks.
    pub regions: Regions,
    /// Variables and buffers without a definition.
    pub free: Free,
    /// Whether what assertions say counts.
    pub messages: bool,
}

impl Default for Equality {
    /// Everything counts.
    fn default() -> Self {
        Equality {
            names: true,
            block_names: true,
            regions: Regions::Exact,
            free: Free::Identical,
            messages: true,
        }
    }
}

impl Equality {
    /// What matters for what a program does: names of functions and blocks do not count, and
    /// regions only where both sides declare them.
    pub fn loose() -> Self {
        let regions = Regions::WhereBoth;
        Equality { names: false, block_names: false, regions, ..Self::texts() }
    }

    /// Everything counts, in modules that were read on their own.
    pub fn texts() -> Self {
        Equality { free: Free::Named, ..Self::default() }
    }
}

/// The first difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The way to it: `function `main`, loop `i`, stored value`. May be empty.
    pub path: String,
    /// What the left side has there.
    pub left: String,
    /// What the right side has there.
    pub right: String,
    /// Located on the left, where it is known.
    pub left_span: Option<Span>,
    /// Located on the right, where it is known.
    pub right_span: Option<Span>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        write!(f, "{} against {}", self.left, self.right)
    }
}

impl std::error::Error for Difference {}

/// Nothing, or the first difference.
pub type Check = Result<(), Box<Difference>>;

/// Compares two modules.
pub fn modules(a: &Module, b: &Module, options: &Equality) -> Check {
    let mut m = Matcher::new(options);
    let pairs = m.pair_functions(a, b)?;
    let attrs = m.attrs(&a.attrs, &b.attrs, "attribute", "");
    attrs.within("the module")?;
    for (name, x, y) in pairs {
        m.function(x, y).within(format_args!("function `{name}`"))?;
    }
    Ok(())
}

/// Compares two tensor functions.
pub fn tensor_funcs(a: &TensorFunc, b: &TensorFunc, options: &Equality) -> Check {
    Matcher::new(options).tensor_func(a, b)
}

/// Compares two graph functions. They agree on what they call if the names do.
pub fn graph_funcs(a: &GraphFunc, b: &GraphFunc, options: &Equality) -> Check {
    Matcher::new(options).graph_func(a, b)
}

/// Compares two statements; [`Equality::free`] says what becomes of free variables and buffers.
pub fn stmts(a: &Stmt, b: &Stmt, options: &Equality) -> Check {
    Matcher::new(options).stmt(a, b)
}

/// Compares two expressions; [`Equality::free`] says what becomes of free variables and buffers.
pub fn exprs(a: &Expr, b: &Expr, options: &Equality) -> Check {
    Matcher::new(options).expr(a, b)
}

/// Whether an expression is the load of a buffer at some indices.
pub fn loads_cell(e: &Expr, buffer: &Buffer, indices: &[Expr]) -> bool {
    matches!(e.kind(), ExprKind::Load(from, at)
        if from == buffer && at.len() == indices.len()
            && at.iter().zip(indices).all(|(x, y)| same_expr(x, y)))
}

/// Whether two expressions over the same variables and buffers are equal.
pub fn same_expr(a: &Expr, b: &Expr) -> bool {
    a.ptr_eq(b) || may_agree(a, b) && exprs(a, b, &Equality::default()).is_ok()
}

/// Whether two expressions agree in what their nodes keep, and at their roots. Most that differ do
/// so there, and where they do it takes no text to say so.
fn may_agree(a: &Expr, b: &Expr) -> bool {
    let (x, y) = (a.effects(), b.effects());
    if a.size() != b.size() || x != y || !x.binds && a.var_bits() != b.var_bits() {
        return false;
    }
    same_root(a, b)
        && match (a.kind(), b.kind()) {
            (ExprKind::Binary(_, x1, x2), ExprKind::Binary(_, y1, y2)) => {
                same_root(x1, y1) && same_root(x2, y2)
            }
            (ExprKind::Load(x, i), ExprKind::Load(y, j)) => {
                x == y && i.iter().zip(j).all(|(i, j)| same_root(i, j))
            }
            _ => true,
        }
}

fn same_root(a: &Expr, b: &Expr) -> bool {
    match (a.kind(), b.kind()) {
        (ExprKind::Var(x), ExprKind::Var(y)) => x == y,
        (ExprKind::Int(x), ExprKind::Int(y)) => x == y,
        (ExprKind::Binary(o, ..), ExprKind::Binary(p, ..)) => o == p,
        (x, y) => discriminant(x) == discriminant(y),
    }
}

fn differ(left: impl fmt::Display, right: impl fmt::Display) -> Check {
    Err(Box::new(Difference {
        path: String::new(),
        left: left.to_string(),
        right: right.to_string(),
        left_span: None,
        right_span: None,
    }))
}

/// Where a difference is.
trait Located {
    /// Puts a place before the way to it.
    fn within(self, place: impl fmt::Display) -> Self;
    /// Gives it its places in the sources, unless it has places further inside.
    fn spanned(self, left: Option<Span>, right: Option<Span>) -> Self;
}

impl Located for Check {
    fn within(self, place: impl fmt::Display) -> Self {
        self.map_err(|mut d| {
            let sep = if d.path.is_empty() { "" } else { ", " };
            d.path = format!("{place}{sep}{}", d.path);
            d
        })
    }

    fn spanned(self, left: Option<Span>, right: Option<Span>) -> Self {
        self.map_err(|mut d| {
            if d.left_span.is_none() && d.right_span.is_none() {
                (d.left_span, d.right_span) = (left, right);
            }
            d
        })
    }
}

fn quoted(text: &str) -> String {
    format!("`{text}`")
}

/// Differs with the two sides' values of something, unless they are equal.
fn agree<T: PartialEq>(what: &str, a: &T, b: &T, text: impl Fn(&T) -> String) -> Check {
    if a == b { Ok(()) } else { differ(text(a), text(b)).within(what) }
}

/// The elements of two lists in pairs, unless their numbers differ.
fn pairs<'x, T>(
    what: &str,
    a: &'x [T],
    b: &'x [T],
) -> Result<impl Iterator<Item = (&'x T, &'x T)>, Box<Difference>> {
    agree(what, &a.len(), &b.len(), usize::to_string)?;
    Ok(a.iter().zip(b))
}

/// Whether two floats are the same, counting every `NaN` as the same.
fn same_float(a: f64, b: f64) -> bool {
    a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan())
}

/// A one-to-one pairing.
struct Pairs<T> {
    forth: HashMap<T, T>,
    back: HashMap<T, T>,
}

impl<T: Clone + Eq + Hash> Pairs<T> {
    fn new() -> Self {
        Pairs { forth: HashMap::default(), back: HashMap::default() }
    }

    /// Pairs both, and parts them from earlier partners; says whether there were any.
    fn define(&mut self, a: &T, b: &T) -> bool {
        let old_b = self.forth.insert(a.clone(), b.clone()).filter(|x| x != b);
        let old_a = self.back.insert(b.clone(), a.clone()).filter(|x| x != a);
        if let Some(x) = &old_b {
            self.back.remove(x);
        }
        if let Some(x) = &old_a {
            self.forth.remove(x);
        }
        old_a.is_some() || old_b.is_some()
    }

    /// Whether they are partners; `None` if neither has one.
    fn paired(&self, a: &T, b: &T) -> Option<bool> {
        match (self.forth.get(a), self.back.get(b)) {
            (None, None) => None,
            (x, _) => Some(x == Some(b)),
        }
    }
}

struct Matcher<'o> {
    options: &'o Equality,
    vars: Pairs<Var>,
    buffers: Pairs<Buffer>,
    graph_vars: Pairs<GraphVar>,
    /// Names of functions on the left with those on the right, where names do not count.
    funcs: Option<HashMap<Arc<str>, Arc<str>>>,
    /// Whether free variables are paired at first use, as in the shapes of parameters.
    pairing: bool,
    /// Nodes that were compared and agree, so that shared parts are compared once.
    same: HashSet<(usize, usize)>,
}

impl<'o> Matcher<'o> {
    fn new(options: &'o Equality) -> Self {
        Matcher {
            options,
            vars: Pairs::new(),
            buffers: Pairs::new(),
            graph_vars: Pairs::new(),
            funcs: None,
            pairing: options.free == Free::Paired,
            same: HashSet::default(),
        }
    }

    /// Compares what may name variables that it defines: free ones are paired.
    fn defining(&mut self, compare: impl FnOnce(&mut Self) -> Check) -> Check {
        let before = std::mem::replace(&mut self.pairing, true);
        let check = compare(self);
        self.pairing = before;
        check
    }

    /// Functions that belong together, with the name on the left.
    #[allow(clippy::type_complexity)]
    fn pair_functions<'m>(
        &mut self,
        a: &'m Module,
        b: &'m Module,
    ) -> Result<Vec<(Arc<str>, &'m Function, &'m Function)>, Box<Difference>> {
        let count = a.functions.len() == b.functions.len();
        if !count || (self.options.names && !a.functions.keys().eq(b.functions.keys())) {
            differ(function_names(a), function_names(b))?;
        }
        let mut rest = b.functions.iter().filter(|(n, _)| !a.functions.contains_key(*n));
        let mut pairs = Vec::new();
        let mut renamed = HashMap::default();
        for (name, x) in &a.functions {
            let (other, y) = match b.functions.get_key_value(name).or_else(|| rest.next()) {
                Some(found) => found,
                None => return differ(function_names(a), function_names(b)).map(|()| pairs),
            };
            renamed.insert(name.clone(), other.clone());
            pairs.push((name.clone(), x, y));
        }
        self.funcs = (!self.options.names).then_some(renamed);
        Ok(pairs)
    }

    fn function(&mut self, a: &Function, b: &Function) -> Check {
        match (a, b) {
            (Function::Tensor(x), Function::Tensor(y)) if Arc::ptr_eq(x, y) => Ok(()),
            (Function::Tensor(x), Function::Tensor(y)) => self.tensor_func(x, y),
            (Function::Graph(x), Function::Graph(y)) => self.graph_func(x, y),
            (Function::Tensor(_), _) => differ("a tensor function", "a graph function"),
            (Function::Graph(_), _) => differ("a graph function", "a tensor function"),
        }
    }

    fn func_attrs(&mut self, a: &Attrs, b: &Attrs, private_a: bool, private_b: bool) -> Check {
        if self.options.names {
            agree("visibility", &private_a, &private_b, |p| {
                if *p { "private" } else { "public" }.to_owned()
            })?;
        }
        let skip = if self.options.names { "" } else { "global_symbol" };
        self.attrs(a, b, "attribute", skip)
    }

    fn attrs(&mut self, a: &Attrs, b: &Attrs, what: &str, skip: &str) -> Check {
        for key in a.keys().chain(b.keys().filter(|k| !a.contains_key(*k))) {
            if &**key == skip {
                continue;
            }
            let (x, y) = (a.get(key), b.get(key));
            let check = match (x, y) {
                (Some(x), Some(y)) => self.attr(x, y),
                _ => differ(attr_or_nothing(x), attr_or_nothing(y)),
            };
            check.within(format_args!("{what} `{key}`"))?;
        }
        Ok(())
    }

    fn attr(&mut self, a: &Attr, b: &Attr) -> Check {
        let same = match (a, b) {
            (Attr::None, Attr::None) => true,
            (Attr::Bool(x), Attr::Bool(y)) => x == y,
            (Attr::Int(x), Attr::Int(y)) => x == y,
            (Attr::Float(x), Attr::Float(y)) => same_float(*x, *y),
            (Attr::Str(x), Attr::Str(y)) => x == y,
            (Attr::Expr(x), Attr::Expr(y)) => return self.expr(x, y),
            (Attr::List(x), Attr::List(y)) if x.len() == y.len() => {
                return x.iter().zip(y).try_for_each(|(x, y)| self.attr(x, y));
            }
            (Attr::Map(x), Attr::Map(y)) => return self.attrs(x, y, "key", ""),
            _ => false,
        };
        if same { Ok(()) } else { differ(attr_text(a), attr_text(b)) }
    }
}

fn function_names(m: &Module) -> String {
    format!("functions {}", commas(m.functions.keys().map(|k| quoted(k))))
}

fn attr_or_nothing(v: Option<&Attr>) -> String {
    v.map_or("nothing".into(), attr_text)
}

fn attr_text(a: &Attr) -> String {
    match a {
        Attr::None => "None".into(),
        Attr::Bool(v) => if *v { "True" } else { "False" }.into(),
        Attr::Int(v) => v.to_string(),
        Attr::Float(v) => format!("{v:?}"),
        Attr::Str(s) => format!("{s:?}"),
        Attr::Expr(e) => quoted(&brief(e)),
        Attr::List(items) => format!("[{}]", commas(items.iter().take(8).map(attr_text))),
        Attr::Map(items) => {
            format!("{{{}}}", commas(items.keys().take(8).map(|k| format!("{k:?}"))))
        }
    }
}

/// What a statement is, in a few words.
pub(crate) fn describe(s: &Stmt) -> String {
    match s.kind() {
        StmtKind::Store { buffer, indices, value } => {
            let none = if indices.is_empty() { "()" } else { "" };
            let indices = commas(indices.iter().map(brief));
            format!("`{}[{none}{indices}] = {}`", buffer.name, brief(value))
        }
        StmtKind::For { var, .. } => format!("loop `{}`", var.name()),
        StmtKind::If { cond, .. } => format!("`if {}`", brief(cond)),
        StmtKind::Let { var, value, .. } => format!("`{} = {}`", var.name(), brief(value)),
        StmtKind::Seq(stmts) => format!("a sequence of {} statements", stmts.len()),
        StmtKind::Allocate { buffer, .. } => format!("allocation of `{}`", buffer.name),
        StmtKind::Constant { buffer, .. } => format!("constant `{}`", buffer.name),
        StmtKind::Declare { buffer, .. } => format!("declaration of `{}`", buffer.name),
        StmtKind::Block { block, .. } => format!("block `{}`", block.name),
        StmtKind::Assume(e) => format!("`T.assume({})`", brief(e)),
        StmtKind::Assert { cond, .. } => format!("`assert {}`", brief(cond)),
        StmtKind::Evaluate(e) => format!("`T.evaluate({})`", brief(e)),
    }
}

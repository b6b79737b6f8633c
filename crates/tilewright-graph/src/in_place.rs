//! Functions that change a part of a tensor, for callers who give the memory of an input as that of a result.
//!
//! A function that stores a cell of its input into the same cell of its result everywhere, but for a few rows
//! (a cache of keys to which rows are appended), copies what was there. Where the caller's result *is* the
//! input, only the rows are to be written. [`mark_updates`] derives the function that writes these alone, and
//! notes it at the other one ([`IN_PLACE`]); which of the two runs, memory planning and each run decide.
//!
//! The rows must be as many for all data along one axis: from a first one on that the other indices decide
//! (`first <= i` and `i < first + count`), also around the end (`(i - first) % extent < count`). Other
//! functions stay as they are.

use std::sync::Arc;
use tilewright_ir::hash::HashSet;

use tilewright_analysis::Stage;
use tilewright_analysis::stage::open_stages;
use tilewright_ir::equal::same_expr;
use tilewright_ir::index::{Linear, Ranges, simplify};
use tilewright_ir::visit::Subst;
use tilewright_ir::{
    Attr, BinOp, Buffer, Dim, Expr, ExprKind, Fold, Function, GraphExpr, Module, Param, Result,
    Stmt, TensorFunc, Var, dim,
};

use crate::functions::Functions;
use crate::marks::IN_PLACE;
use crate::normal::{dataflow_graphs, normalize, results, var};
use crate::stages::{Iter, load, param};

/// Which input of a function its result may share memory with, and the function that writes what differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InPlace {
    /// The place of the input among the parameters.
    pub input: usize,
    /// The name of the function, which takes all parameters but that input.
    pub func: Arc<str>,
}

impl InPlace {
    /// What a function notes.
    pub fn of(func: &TensorFunc) -> Option<InPlace> {
        match func.attrs.get(IN_PLACE)? {
            Attr::List(parts) => match parts.as_slice() {
                [Attr::Int(input), Attr::Str(func)] => {
                    Some(InPlace { input: usize::try_from(*input).ok()?, func: func.clone() })
                }
                _ => None,
            },
            _ => None,
        }
    }

    fn attr(&self) -> Attr {
        Attr::List(vec![Attr::Int(self.input as i64), Attr::Str(self.func.clone())])
    }
}

/// The module with functions beside those that make a result of a graph function of one of its parameters and
/// keep most of it.
///
/// # Errors
/// Those of [`normalize`].
pub fn mark_updates(module: &Module) -> Result<Module> {
    let mut functions = Functions::new(module);
    let mut marks: Vec<(Arc<str>, InPlace)> = Vec::new();
    let mut seen: HashSet<Arc<str>> = HashSet::default();
    for (name, graph) in dataflow_graphs(module) {
        let graph = normalize(module, name, graph)?;
        let inputs: HashSet<u64> = graph.params.iter().map(|p| p.id()).collect();
        let outputs: HashSet<u64> =
            results(&graph.ret).into_iter().filter_map(|e| Some(var(e)?.id())).collect();
        for b in graph.bindings() {
            let GraphExpr::CallTir { func, args, outs, .. } = &b.value else { continue };
            let takes_input = args.iter().any(|a| var(a).is_some_and(|v| inputs.contains(&v.id())));
            if outs.len() != 1 || !outputs.contains(&b.var.id()) || !takes_input {
                continue;
            }
            let Some(Function::Tensor(called)) = module.functions.get(func) else { continue };
            if called.attrs.contains_key(IN_PLACE) || !seen.insert(func.clone()) {
                continue;
            }
            if let Some((input, update)) = update_of(called) {
                let update = functions.add(update, &format!("{func}_in_place"));
                marks.push((func.clone(), InPlace { input, func: update }));
            }
        }
    }
    let mut out = module.clone();
    for (name, mark) in marks {
        if let Some(Function::Tensor(f)) = out.functions.get_mut(&name) {
            Arc::make_mut(f).attrs.insert(IN_PLACE.into(), mark.attr());
        }
    }
    functions.join(&mut out);
    Ok(out)
}

/// The input that a function keeps but for some rows, and the function that writes these.
pub fn update_of(func: &TensorFunc) -> Option<(usize, TensorFunc)> {
    let [stage] = &open_stages(func)?[..] else { return None };
    let (out, inputs) = func
        .buffers()
        .cloned()
        .collect::<Vec<Buffer>>()
        .split_last()
        .map(|(out, inputs)| (out.clone(), inputs.to_vec()))?;
    let is_plain = stage.init.is_none()
        && stage.buffer == out
        && stage.covers_buffer().is_some_and(|axes| axes.iter().all(Option::is_some));
    if !is_plain || func.scratch_count() > 0 {
        return None;
    }
    inputs.iter().find_map(|old| {
        let is_like = old.dtype() == out.dtype() && same_exprs(&old.shape, &out.shape);
        let stmt = is_like.then(|| Update::collect(stage, old)).flatten()?;
        let input = param(func, old)?;
        let params: Vec<Param> =
            func.params.iter().filter(|p| p.buffer() != Some(old)).cloned().collect();
        let mut new = TensorFunc { params, ..func.clone() };
        new = new.with_root(Vec::new(), stmt);
        Some((input, new))
    })
}

/// The rows in which a stage stores something else than what an input has at the same place.
struct Update<'a> {
    stage: &'a Stage,
    old: &'a Buffer,
    /// Each way through the conditions to another value: the conditions, each with whether it holds.
    ways: Vec<Vec<(Expr, bool)>>,
    /// The value there.
    value: Option<Expr>,
}

impl Update<'_> {
    /// The loop nest that writes them.
    fn collect(stage: &Stage, old: &Buffer) -> Option<Stmt> {
        let mut update = Update { stage, old, ways: Vec::new(), value: None };
        update.walk(&stage.value, &mut Vec::new());
        let [way] = &update.ways[..] else { return None };
        let value = update.value.as_ref()?;
        let reads_old = |e: &Expr| {
            let mut found = false;
            e.for_each_load(|b, _| found |= b.data == old.data);
            found
        };
        if reads_old(value) || way.iter().any(|(c, _)| reads_old(c)) {
            return None;
        }
        let axes: Vec<&Var> = stage.dims().map(|(v, _, _)| v).collect();
        axes.into_iter().find_map(|axis| update.along(axis, way, value))
    }

    /// Follows the conditions of a value down to what is stored.
    fn walk(&mut self, e: &Expr, way: &mut Vec<(Expr, bool)>) {
        if let ExprKind::Select(cond, t, f) | ExprKind::IfThenElse(cond, t, f) = e.kind() {
            for (value, holds) in [(t, true), (f, false)] {
                way.push((cond.clone(), holds));
                self.walk(value, way);
                way.pop();
            }
            return;
        }
        let is_old =
            load(e).is_some_and(|(b, at)| b == self.old && same_exprs(at, &self.stage.indices));
        if !is_old {
            self.ways.push(way.clone());
            self.value = Some(e.clone());
        }
    }

    /// The loops where the rows are along this axis.
    fn along(&self, axis: &Var, way: &[(Expr, bool)], value: &Expr) -> Option<Stmt> {
        let extent = self.stage.dims().find(|(v, _, _)| *v == axis)?.1;
        let (first, count) = match way {
            [(cond, true)] => around(cond, axis, extent)?,
            _ => between(way, axis)?,
        };
        let is_around = way.len() == 1;
        let row = Var::new("row", axis.dtype());
        let place = first + row.expr();
        let place = if is_around { place.floormod(extent.typed(axis.dtype())) } else { place };
        let mut subst = Subst::vars([(axis.clone(), place.clone())]);
        let ranges = Ranges::default();
        let mut moved = |e: &Expr| simplify(&subst.expr(e), &ranges);
        let indices: Vec<Expr> = self.stage.indices.iter().map(&mut moved).collect();
        let store = Stmt::store(&self.stage.buffer, indices, moved(value));
        let body = if is_around {
            store
        } else {
            let zero = Expr::int(0, axis.dtype());
            let inside = zero.less_equal(place.clone()).and(place.less(extent.typed(axis.dtype())));
            Stmt::guard(inside, store)
        };
        let iters: Vec<Iter> = self
            .stage
            .dims()
            .map(
                |(v, n, kind)| {
                    if v == axis { (row.clone(), count, kind) } else { (v.clone(), n, kind) }
                },
            )
            .collect();
        Some(Stage::nest(self.stage.name().clone(), &iters, body))
    }
}

fn same_exprs(a: &[Expr], b: &[Expr]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_expr(a, b))
}

/// The first row and how many there are, of `first <= axis` and `axis < first + count`.
fn between(way: &[(Expr, bool)], axis: &Var) -> Option<(Expr, Dim)> {
    let [x, y] = way else { return None };
    let [x, y] = [x, y].map(|(cond, holds)| not_negative(cond, *holds));
    let (x, y) = (x?, y?);
    let (low, high) = match (x.coefficient(axis)?, y.coefficient(axis)?) {
        (1, -1) => (x, y),
        (-1, 1) => (y, x),
        _ => return None,
    };
    let count = low.clone().plus(&high, 1)?.plus(&Linear::constant(1, high.dtype), 1)?;
    Some((first_of(&low, axis)?, extent_of(&count)?))
}

/// The first row and how many there are, of `(axis - first) % extent < count`.
fn around(cond: &Expr, axis: &Var, extent: Dim) -> Option<(Expr, Dim)> {
    let ExprKind::Binary(BinOp::Lt, distance, count) = cond.kind() else { return None };
    let ExprKind::Binary(BinOp::FloorMod, from, by) = distance.kind() else { return None };
    let from = Linear::from_expr(from)?;
    let is_whole = extent_of(&Linear::from_expr(by)?)? == extent;
    if !is_whole || from.coefficient(axis)? != 1 {
        return None;
    }
    Some((first_of(&from, axis)?, extent_of(&Linear::from_expr(count)?)?))
}

/// `f` of a form that is `axis - f`.
fn first_of(form: &Linear, axis: &Var) -> Option<Expr> {
    Linear::from_expr(&axis.expr())?.plus(form, -1)?.to_expr()
}

/// A form as the extent of a loop.
fn extent_of(form: &Linear) -> Option<Dim> {
    match form.as_constant() {
        Some(n) => usize::try_from(n).ok().map(Dim::from),
        None => dim::of_shape(&[form.to_expr()?])?.first().copied(),
    }
}

/// A form that is not negative just where a comparison of integers has the value `holds`.
fn not_negative(cond: &Expr, holds: bool) -> Option<Linear> {
    let ExprKind::Binary(op, a, b) = cond.kind() else { return None };
    let (less, more, strict) = match (op, holds) {
        (BinOp::Lt, true) | (BinOp::Ge, false) => (a, b, 1),
        (BinOp::Le, true) | (BinOp::Gt, false) => (a, b, 0),
        (BinOp::Gt, true) | (BinOp::Le, false) => (b, a, 1),
        (BinOp::Ge, true) | (BinOp::Lt, false) => (b, a, 0),
        _ => return None,
    };
    let (less, more) = (Linear::from_expr(less)?, Linear::from_expr(more)?);
    let one = Linear::constant(strict, more.dtype);
    more.plus(&less, -1)?.plus(&one, -1)
}

//! The stages of a function that are left where what is computed cell by cell is put where it is read.

use tilewright_ir::hash::HashMap;

use tilewright_ir::index::{Linear, simplify_indices};
use tilewright_ir::visit::{Subst, fold_expr_children};
use tilewright_ir::{BinOp, Buffer, Expr, ExprKind, Fold, IterKind, TensorFunc, Var};

use super::steps::lowest;
use crate::stage::{Stage, open_stages};

/// Most nodes of an expression that is put where it is read.
const SIZE: u32 = 400;

/// The stages of a function in canonical form, without those that are put where they are read. What is reduced
/// over one element is that element, and a buffer that is stored in parts along an axis is one choice between these.
pub fn inlined(func: &TensorFunc) -> Option<Vec<Stage>> {
    let params: Vec<&Buffer> = func.buffers().collect();
    let (result, inputs) = params.split_last()?;
    let (mut inline, mut left) = (Inline::default(), Vec::new());
    // Of buffers that are stored in parts, those so far.
    let mut parts: HashMap<Buffer, Vec<Part>> = HashMap::default();
    for stage in open_stages(func)? {
        // Each buffer has one value.
        if inline.0.contains_key(&stage.buffer) || inputs.contains(&&stage.buffer) {
            return None;
        }
        let stage = of_one_element(&stage).unwrap_or(stage);
        if stage.value.loads_from(|b| parts.contains_key(b)) {
            return None;
        }
        let value = inline.expr(&stage.value);
        let vars: Option<Vec<Var>> = stage.indices.iter().map(|e| e.as_var().cloned()).collect();
        if let (None, Some(vars)) = (&stage.init, vars)
            && stage.buffer != **result
            && stage.covers_buffer().is_some()
            && value.size() <= SIZE
        {
            inline.0.insert(stage.buffer.clone(), (vars, value));
            continue;
        }
        if stage.buffer != **result
            && let Some(part) = Part::of(&stage, &value)
        {
            let mut all = parts.remove(&stage.buffer).unwrap_or_default();
            let (axis, from) = all.last().map_or((part.axis, 0), |last| (last.axis, last.to));
            if part.axis != axis || part.from != from {
                return None;
            }
            let is_last = stage.buffer.shape[axis].as_int() == Some(part.to);
            all.push(part);
            if is_last {
                let whole =
                    joined(&stage.buffer, &all).filter(|(_, value)| value.size() <= SIZE)?;
                inline.0.insert(stage.buffer.clone(), whole);
            } else {
                parts.insert(stage.buffer.clone(), all);
            }
            continue;
        }
        left.push(stage.with_value(value));
    }
    parts.is_empty().then_some(left)
}

/// What a stage stores in some places along one axis of a buffer, and all along the others.
struct Part {
    axis: usize,
    from: i64,
    to: i64,
    /// The variable of each index; where there is none, it is one number.
    vars: Vec<Option<Var>>,
    value: Expr,
}

impl Part {
    /// `None` where it stores something else, or all, or combines values.
    fn of(stage: &Stage, value: &Expr) -> Option<Part> {
        let mut left: Vec<(Var, i64)> = Vec::new();
        for (var, extent, kind) in stage.dims() {
            let extent = i64::try_from(extent.known()?).ok()?;
            if stage.init.is_some() || kind != IterKind::Spatial {
                return None;
            }
            left.push((var.clone(), extent));
        }
        let (mut place, mut vars) = (None, Vec::new());
        for (axis, (index, extent)) in stage.indices.iter().zip(&stage.buffer.shape).enumerate() {
            let (var, from, count) = match index.as_int() {
                Some(n) => (None, n, 1),
                None => {
                    let (var, from) = Linear::shifted(index)?;
                    let (_, count) = left.swap_remove(left.iter().position(|(v, _)| *v == var)?);
                    (Some(var), from, count)
                }
            };
            if (from, count) != (0, extent.as_int()?) {
                if place.is_some() {
                    return None;
                }
                place = Some((axis, from, from.checked_add(count)?));
            }
            vars.push(var);
        }
        let (axis, from, to) = place.filter(|_| left.iter().all(|(_, count)| *count == 1))?;
        Some(Part { axis, from, to, vars, value: value.clone() })
    }
}

/// The value of each element of a buffer that is stored in parts, one after the other along an axis.
fn joined(buffer: &Buffer, parts: &[Part]) -> Option<(Vec<Var>, Expr)> {
    let vars: Vec<Var> =
        buffer.shape.iter().map(|extent| Var::new("part", extent.dtype())).collect();
    let mut whole: Option<Expr> = None;
    for part in parts.iter().rev() {
        let mut names = Subst::default();
        for (axis, (var, new)) in part.vars.iter().zip(&vars).enumerate() {
            let Some(var) = var else { continue };
            if var.dtype() != new.dtype() {
                return None;
            }
            let from = if axis == part.axis { part.from } else { 0 };
            names.vars.insert(var.clone(), new.expr() - from);
        }
        let value = names.expr(&part.value);
        whole = Some(match whole {
            None => value,
            Some(rest) => {
                let place = &vars[part.axis];
                let is_here = place.expr().less(Expr::int(part.to, place.dtype()));
                Expr::if_then_else(is_here, value, rest)
            }
        });
    }
    Some((vars, whole?))
}

/// A sum, or the largest or smallest one, over axes of one element as that element, where it begins with what changes none.
fn of_one_element(stage: &Stage) -> Option<Stage> {
    let sum = stage.reduction()?;
    let begins = super::starts(stage.init.as_ref()?)?;
    let is_float = stage.buffer.dtype().is_float();
    let is_plain = match sum.op {
        BinOp::Add => begins == 0.0,
        BinOp::Max => is_float && lowest(begins) == f64::NEG_INFINITY,
        BinOp::Min => is_float && lowest(-begins) == f64::NEG_INFINITY,
        _ => false,
    };
    if !is_plain || stage.reduce().any(|(_, extent)| extent != 1) {
        return None;
    }
    let first = stage.reduce().map(|(var, _)| (var.clone(), Expr::int(0, var.dtype())));
    let value = simplify_indices(&Subst::vars(first).expr(&sum.value), &stage.ranges());
    let axes = stage.dims().filter(|(.., kind)| *kind == IterKind::Spatial);
    let axes: Vec<_> = axes.map(|(var, extent, kind)| (var.clone(), extent, kind)).collect();
    let at = stage.indices.clone();
    Some(Stage::build(stage.name().clone(), &axes, &stage.buffer, at, value, None))
}

/// What is stored into buffers that are read elsewhere, by the variables of their indices.
#[derive(Default)]
struct Inline(HashMap<Buffer, (Vec<Var>, Expr)>);

impl Fold for Inline {
    fn expr(&mut self, e: &Expr) -> Expr {
        let e = fold_expr_children(self, e);
        match e.kind() {
            ExprKind::Load(buffer, at) => match self.0.get(buffer) {
                Some((vars, value)) => {
                    Subst::vars(vars.iter().cloned().zip(at.iter().cloned())).expr(value)
                }
                None => e,
            },
            _ => e,
        }
    }
}

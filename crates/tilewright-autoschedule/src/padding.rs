//! What pads: values that are something inside of a box, and a constant outside of it.

use tilewright_ir::hash::HashMap;

use tilewright_analysis::Stage;
use tilewright_ir::dim::MAX_CELLS;
use tilewright_ir::index::{Interval, Ranges};
use tilewright_ir::{Dim, Expr, ExprKind, IterKind, Range, Var};
use tilewright_schedule::decompose_padding::box_of;

/// Whether a value is what lies somewhere, under a guard or not, and a constant where the guard is false.
pub(crate) fn moves(value: &Expr) -> bool {
    match value.kind() {
        ExprKind::Load(..) => true,
        ExprKind::IfThenElse(_, value, outside) => {
            let is_constant = outside.as_float().is_some() || outside.as_int().is_some();
            is_constant && matches!(value.kind(), ExprKind::Load(..))
        }
        _ => false,
    }
}

/// Variables with their extents and kinds.
pub type Iters = Vec<(Var, Dim, IterKind)>;

/// Those of a stage.
pub(crate) fn iters(stage: &Stage) -> Iters {
    stage.dims().map(|(v, extent, kind)| (v.clone(), extent, kind)).collect()
}

/// Variables with the half-open range of their values inside the box.
pub type Box = HashMap<Var, (i64, Dim)>;

/// The values of variables, and of the sizes that their extents depend on.
pub(crate) fn ranges(iters: &Iters) -> Ranges {
    let mut ranges = Ranges::default();
    iters.iter().flat_map(|i| i.1.vars()).for_each(|size| ranges.bind_size(&size));
    for (size, most) in iters.iter().flat_map(|i| i.1.limits(MAX_CELLS)) {
        let known = ranges.interval(&size.expr());
        ranges.bind(&size, known.meet(Interval::new(0, most as i128)));
    }
    for (v, extent, _) in iters {
        match extent.known() {
            Some(n) => ranges.bind(v, Interval::new(0, (n as i128 - 1).max(0))),
            None => ranges.bind_loop(v, &Range::upto(extent.typed(v.dtype()))),
        }
    }
    ranges
}

/// The parts of `if_then_else(inside, value, constant)` where `inside` is a conjunction of bounds
/// on single variables: the box, the value inside, and the constant.
pub fn padding(iters: &Iters, value: &Expr) -> Option<(Box, Expr, Expr)> {
    let ExprKind::IfThenElse(cond, value, outside) = value.kind() else { return None };
    if outside.as_float().is_none() && outside.as_int().is_none() {
        return None;
    }
    let vars: Vec<&Var> = iters.iter().map(|i| &i.0).collect();
    let bounds = box_of(cond, &vars, |k| Ok(iters[k].1)).ok()?;
    let pairs = iters.iter().zip(bounds);
    let inside = pairs.map(|((v, extent, _), bounds)| {
        (v.clone(), bounds.map_or((0, *extent), |b| (b.from, b.end)))
    });
    Some((inside.collect(), value.clone(), outside.clone()))
}

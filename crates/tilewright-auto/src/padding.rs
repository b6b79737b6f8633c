//! What pads: values that are something inside of a box, and a constant outside of it.

use std::collections::HashMap;

use tilewright_analysis::stage::Extent;
use tilewright_ir::interval::{Interval, Ranges};
use tilewright_ir::{BinOp, DType, Dim, Expr, ExprKind, IterKind, Var};

use tilewright_analysis::affine::Affine;

/// Variables with their extents and kinds.
pub type Iters = Vec<(Var, Dim, IterKind)>;

/// Variables with the half-open range of their values inside the box.
pub type Box = HashMap<Var, (i64, Dim)>;

/// The values of variables whose extents are known.
pub(crate) fn ranges(iters: &Iters) -> Ranges {
    let mut ranges = Ranges::default();
    for (v, extent, _) in iters {
        if let Some(n) = extent.known() {
            ranges.bind(v, Interval::new(0, (n as i128 - 1).max(0)));
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
    let mut inside: Box = iters.iter().map(|(v, e, _)| (v.clone(), (0, *e))).collect();
    narrow(cond, &mut inside)?;
    Some((inside, value.clone(), outside.clone()))
}

/// Intersects a box with a conjunction of comparisons; `None` if one does not bound a single
/// variable with coefficient one or minus one by a constant.
fn narrow(cond: &Expr, inside: &mut Box) -> Option<()> {
    let ExprKind::Binary(op, a, b) = cond.kind() else {
        return cond.is_true().then_some(());
    };
    if *op == BinOp::And {
        narrow(a, inside)?;
        return narrow(b, inside);
    }
    if !a.dtype().is_int() {
        return None;
    }
    // The condition as `0 <= rest`.
    let rest = match op {
        BinOp::Le => b.clone() - a,
        BinOp::Lt => b.clone() - a - 1,
        BinOp::Ge => a.clone() - b,
        BinOp::Gt => a.clone() - b - 1,
        _ => return None,
    };
    let rest = Affine::of(&rest).filter(|r| r.opaque().next().is_none())?;
    let mut vars = rest.vars().filter(|(v, _)| inside.contains_key(v));
    let (Some((v, k)), None) = (vars.next(), vars.next()) else {
        return None;
    };
    let v = v.clone();
    // What is left is a bound: a constant, or an open size.
    let bound = rest.vars().filter(|(x, _)| **x != v);
    let bound = bound.fold(Expr::i32(0), |sum, (x, k)| sum + x.expr().cast(DType::I32) * k);
    let range = inside.get_mut(&v)?;
    match (k, bound.as_int()) {
        (1, Some(0)) => range.0 = range.0.max(-rest.constant()),
        (-1, Some(0)) => range.1 = range.1.min((rest.constant() + 1).dim()),
        (-1, _) => range.1 = range.1.min(Dim::of(&(bound + (rest.constant() + 1)))?),
        _ => return None,
    }
    Some(())
}

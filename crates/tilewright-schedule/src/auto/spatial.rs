//! Loops for a stage without reduction: elementwise functions, copies, padding.
//!
//! Axes are fused as far as the accesses allow; the innermost loop is left to LLVM's vectoriser,
//! the outer ones run in parallel.
//!
//! Padding, `if_then_else(inside, value, constant)` where `inside` bounds single variables, runs
//! as two nests without conditions: the constant everywhere, then the value inside the box.

use std::collections::HashMap;
use std::ops::Neg;

use tilewright_analysis::Stage;
use tilewright_analysis::stage::Extent;
use tilewright_ir::{BinOp, DType, Dim, Expr, ExprKind, IterKind, Stmt, Var, dim};

use crate::auto::affine::Affine;
use crate::auto::axes::{Access, Axis, fuse, loose_vars, units};
use crate::auto::emit::{Point, Views, nest};

/// The loops of a stage without reduction variables.
pub fn schedule(stage: &Stage, views: &mut Views) -> Stmt {
    let iters: Vec<(Var, Dim, IterKind)> =
        stage.dims().map(|(v, e, k)| (v.clone(), e, k)).collect();
    if let Some((inside, value, outside)) = padding(stage) {
        let fill = loops(stage, &iters, &HashMap::new(), &outside, views);
        let shifts = inside.iter().map(|(v, (lo, _))| (v.clone(), *lo)).collect();
        // Below zero, a size that is known is zero.
        let size = |lo: i64, hi: Dim| if lo < 0 { hi + lo.neg().dim() } else { hi - lo.dim() };
        let boxed: Vec<(Var, Dim, IterKind)> = iters
            .iter()
            .map(|(v, e, k)| (v.clone(), inside.get(v).map_or(*e, |(lo, hi)| size(*lo, *hi)), *k))
            .collect();
        if boxed.iter().any(|i| i.1 == 0) {
            return fill;
        }
        return Stmt::seq([fill, loops(stage, &boxed, &shifts, &value, views)]);
    }
    loops(stage, &iters, &HashMap::new(), &stage.value, views)
}

/// Loops that store `value` for every point of a box: `iters` with the number of values of each
/// variable, starting at `shifts` (zero where there is none).
fn loops(
    stage: &Stage,
    iters: &[(Var, Dim, IterKind)],
    shifts: &HashMap<Var, i64>,
    value: &Expr,
    views: &mut Views,
) -> Stmt {
    let shifted: HashMap<Var, Expr> =
        shifts.iter().filter(|s| *s.1 != 0).map(|(v, lo)| (v.clone(), v.expr() + *lo)).collect();
    let mut shift = tilewright_ir::visit::Subst::vars(shifted);
    let value = tilewright_ir::Fold::expr(&mut shift, value);
    let indices: Vec<Expr> =
        stage.indices.iter().map(|i| tilewright_ir::Fold::expr(&mut shift, i)).collect();

    let mut accesses = Access::loads(&value);
    accesses.push(Access::new(&stage.buffer, &indices));
    let axes = fuse(iters, &accesses, &loose_vars(&value));
    let units = units(iters);
    let names: Vec<(String, Dim)> = axes.iter().map(|a| (a.name(), a.extent)).collect();
    let work = dim::product(axes.iter().map(|a| a.extent)).estimate();
    // The innermost loop stays whole, for the vectoriser, unless it is the only one.
    let fusible = names.len().saturating_sub(1).max(1);
    nest(&names, fusible, work, |at| {
        let point = Point::new(&units, axes.iter().zip(at).collect::<Vec<(&Axis, Expr)>>());
        let value = point.value(&value, views, None);
        point.store(&stage.buffer, &indices, value, views)
    })
}

/// Variables with the half-open range of their values inside the box.
type Box = HashMap<Var, (i64, Dim)>;

/// The parts of `if_then_else(inside, value, constant)` where `inside` is a conjunction of bounds
/// on single variables: the box, the value inside, and the constant.
fn padding(stage: &Stage) -> Option<(Box, Expr, Expr)> {
    let ExprKind::IfThenElse(cond, value, outside) = stage.value.kind() else { return None };
    if outside.as_float().is_none() && outside.as_int().is_none() {
        return None;
    }
    let mut inside: Box = stage.dims().map(|(v, e, _)| (v.clone(), (0, e))).collect();
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

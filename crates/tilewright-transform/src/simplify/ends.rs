//! Bounds of functions that the sets do not know, by their values at the ends.
//!
//! Shifts by a variable, and integers that come back from floating point
//! (`T.Cast("int32", T.ceil(T.log2(x)))`), are monotone: where their operands have constant
//! bounds, so have they. A function of floating point that is not exact is taken to be right to
//! [`TOLERANCE`], so that a bound does not depend on how it is computed.

use tilewright_ir::extent::holds;
use tilewright_ir::{CallTarget, Expr, ExprKind, Intrin};
use tilewright_polyhedral::Domain;

use super::Simplify;

/// The relative error that `T.log2` and its like may have.
const TOLERANCE: f64 = 1e-5;

impl Simplify<'_> {
    /// Takes the bounds of such functions in an expression as given.
    pub(super) fn bound_calls(&mut self, e: &Expr) {
        for call in calls(e) {
            if let Some((lo, hi)) = ends(&call, &self.domain()) {
                let bounds = call.clone().greater_equal(lo).and(call.less_equal(hi));
                self.know(self.points.with_guard(&bounds));
            }
        }
    }
}

/// The functions of an expression whose ends may be of use, without those that read memory.
fn calls(e: &Expr) -> Vec<Expr> {
    let mut found = Vec::new();
    e.for_each(|e| {
        let unknown = match e.kind() {
            ExprKind::Call(CallTarget::Intrin(Intrin::Shl | Intrin::Shr), args) => {
                args.get(1).is_some_and(|by| by.as_int().is_none())
            }
            ExprKind::Cast(inner) => inner.dtype().is_float(),
            _ => false,
        };
        if unknown && e.dtype().is_int() && e.dtype().lanes == 1 && e.effects().constant() {
            found.push(e.clone());
        }
        true
    });
    found
}

/// Least and greatest value of an integer function.
fn ends(e: &Expr, domain: &Domain) -> Option<(i64, i64)> {
    match e.kind() {
        ExprKind::Call(CallTarget::Intrin(op), args) => {
            let [value, by] = args.as_slice() else { return None };
            let ((a, b), (few, many)) = (known_bounds(value, domain)?, known_bounds(by, domain)?);
            if few < 0 || many >= i64::from(e.dtype().bits) {
                return None;
            }
            let corners = [
                shifted(a, few, op, e)?,
                shifted(a, many, op, e)?,
                shifted(b, few, op, e)?,
                shifted(b, many, op, e)?,
            ];
            Some((*corners.iter().min()?, *corners.iter().max()?))
        }
        ExprKind::Cast(inner) => {
            let (lo, hi) = real_ends(inner, &|e| known_bounds(e, domain))?;
            Some((fitting(lo.trunc() as i128, e)?, fitting(hi.trunc() as i128, e)?))
        }
        _ => None,
    }
}

fn known_bounds(e: &Expr, domain: &Domain) -> Option<(i64, i64)> {
    match domain.bounds(e) {
        Ok((Some(lo), Some(hi))) => Some((lo, hi)),
        _ => None,
    }
}

fn fitting(v: i128, e: &Expr) -> Option<i64> {
    i64::try_from(v).ok().filter(|_| holds(e.dtype(), v))
}

fn shifted(v: i64, by: i64, op: &Intrin, e: &Expr) -> Option<i64> {
    match op {
        Intrin::Shl => fitting(i128::from(v) << by, e),
        _ => fitting(i128::from(v >> by), e),
    }
}

/// Bounds of a value of floating point.
fn real_ends(e: &Expr, bounds: &impl Fn(&Expr) -> Option<(i64, i64)>) -> Option<(f64, f64)> {
    let ends = match e.kind() {
        ExprKind::Cast(inner) if inner.dtype().is_int() => {
            let (lo, hi) = bounds(inner)?;
            // Integers that the type has exactly.
            let largest = match e.dtype().bits {
                64 => 1u64 << 53,
                32 => 1 << 24,
                _ => return None,
            };
            (lo.unsigned_abs() <= largest && hi.unsigned_abs() <= largest)
                .then_some((lo as f64, hi as f64))?
        }
        ExprKind::Call(CallTarget::Intrin(op), args) => {
            let (lo, hi) = real_ends(args.first()?, bounds)?;
            let f = op.of_float().filter(|_| op.rises_from(lo))?;
            let slack = if op.is_exact() { 0.0 } else { TOLERANCE };
            let (lo, hi) = (f(lo), f(hi));
            (lo - lo.abs() * slack, hi + hi.abs() * slack)
        }
        _ => return None,
    };
    (ends.0.is_finite() && ends.1.is_finite()).then_some(ends)
}

//! What a value becomes when parts of it are known: neutral elements and constants fold away.
//!
//! `x + 0` and `x * 1` are `x`, the maximum with minus infinity is the other side, a choice is
//! decided by what is known of its condition. Zero times something is zero for integers; for floats
//! only if the other side is a finite constant, because zero times infinity is not, or if the user
//! has said that all values are finite ([`Floats::Finite`]).

use tilewright_ir::visit::fold_expr_children;
use tilewright_ir::{BinOp, DType, Expr, ExprKind, Fold};
use tilewright_sets::Domain;

use crate::flow::is_index;

/// Which values floats in memory may have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Floats {
    /// Infinities and `NaN` too.
    #[default]
    Any,
    /// Numbers only: the user has said so.
    Finite,
}

/// The value without what does not matter at the points of a domain.
pub fn reduced(e: &Expr, at: &Domain, floats: Floats) -> Expr {
    Neutral { at, floats }.expr(e)
}

struct Neutral<'a> {
    at: &'a Domain,
    floats: Floats,
}

impl Fold for Neutral<'_> {
    fn expr(&mut self, e: &Expr) -> Expr {
        let t = e.dtype();
        if t.lanes == 1 && t.is_int() && e.as_int().is_none() && is_index(e) {
            // One that has a single value.
            return match self.at.bounds(e) {
                Ok((Some(lo), Some(hi))) if lo == hi => Expr::int(lo, t),
                _ => e.clone(),
            };
        }
        match e.kind() {
            ExprKind::Load(..) => e.clone(),
            ExprKind::Select(c, yes, no) | ExprKind::IfThenElse(c, yes, no) => {
                if self.at.prove(c).is_yes() {
                    return self.expr(yes);
                }
                if self.at.prove(&!c.clone()).is_yes() {
                    return self.expr(no);
                }
                fold_expr_children(self, e)
            }
            _ => {
                let e = fold_expr_children(self, e);
                match e.kind() {
                    ExprKind::Binary(op, a, b) => binary(*op, a, b, self.floats).unwrap_or(e),
                    ExprKind::Cast(a) => cast(a, e.dtype()).unwrap_or(e),
                    _ => e,
                }
            }
        }
    }
}

/// A constant as a number.
fn number(e: &Expr) -> Option<f64> {
    match e.kind() {
        ExprKind::Int(v) => Some(*v as f64),
        ExprKind::Float(v) => Some(*v),
        _ => None,
    }
}

fn is(e: &Expr, value: f64) -> bool {
    number(e) == Some(value)
}

/// The end of a type's values: what `max` (or `min`) of it with anything leaves alone.
fn is_end(e: &Expr, lowest: bool) -> bool {
    match e.kind() {
        ExprKind::Float(v) => *v == if lowest { f64::NEG_INFINITY } else { f64::INFINITY },
        ExprKind::Int(v) => {
            let t = e.dtype();
            let end = if lowest { t.min_int() } else { t.max_int() };
            end == Some(i128::from(*v)) && !t.is_bool()
        }
        _ => false,
    }
}

fn binary(op: BinOp, a: &Expr, b: &Expr, floats: Floats) -> Option<Expr> {
    let finite = |e: &Expr| match number(e) {
        Some(v) => v.is_finite(),
        None => e.dtype().is_int() || floats == Floats::Finite,
    };
    let zero_times = |x: &Expr, y: &Expr| is(x, 0.0) && finite(y);
    match op {
        BinOp::Add if is(b, 0.0) => Some(a.clone()),
        BinOp::Add if is(a, 0.0) => Some(b.clone()),
        BinOp::Sub if is(b, 0.0) => Some(a.clone()),
        BinOp::Mul if is(b, 1.0) => Some(a.clone()),
        BinOp::Mul if is(a, 1.0) => Some(b.clone()),
        BinOp::Mul if zero_times(a, b) || zero_times(b, a) => Some(Expr::constant(0.0, a.dtype())),
        BinOp::Div | BinOp::FloorDiv | BinOp::TruncDiv if is(b, 1.0) => Some(a.clone()),
        BinOp::Max if is_end(b, true) => Some(a.clone()),
        BinOp::Max if is_end(a, true) => Some(b.clone()),
        BinOp::Min if is_end(b, false) => Some(a.clone()),
        BinOp::Min if is_end(a, false) => Some(b.clone()),
        BinOp::And if a.is_true() => Some(b.clone()),
        BinOp::And if b.is_true() => Some(a.clone()),
        BinOp::Or if a.is_false() => Some(b.clone()),
        BinOp::Or if b.is_false() => Some(a.clone()),
        _ => constants(op, a, b),
    }
}

/// Arithmetic of two constants. A sum or product of two `float32` is exact enough in 64 bits to
/// round to the right value.
fn constants(op: BinOp, a: &Expr, b: &Expr) -> Option<Expr> {
    let (ExprKind::Float(x), ExprKind::Float(y)) = (a.kind(), b.kind()) else {
        let (x, y) = (a.as_int()?, b.as_int()?);
        let t = a.dtype();
        let value = match op {
            BinOp::Add => x.checked_add(y)?,
            BinOp::Sub => x.checked_sub(y)?,
            BinOp::Mul => x.checked_mul(y)?,
            BinOp::Min if t.min_int().is_some_and(|lo| lo < 0) => x.min(y),
            BinOp::Max if t.min_int().is_some_and(|lo| lo < 0) => x.max(y),
            _ => return None,
        };
        return Some(Expr::int(value, t));
    };
    let value = match op {
        BinOp::Add => x + y,
        BinOp::Sub => x - y,
        BinOp::Mul => x * y,
        BinOp::Min if !x.is_nan() && !y.is_nan() => x.min(*y),
        BinOp::Max if !x.is_nan() && !y.is_nan() => x.max(*y),
        _ => return None,
    };
    Some(Expr::float(value, a.dtype()))
}

/// A constant of another type, where the number is the same.
fn cast(a: &Expr, to: DType) -> Option<Expr> {
    if to.lanes != 1 || to.is_bool() {
        return None;
    }
    let new = match a.kind() {
        ExprKind::Int(v) if to.is_float() => Expr::float(*v as f64, to),
        ExprKind::Float(v) if to.is_float() => Expr::float(*v, to),
        ExprKind::Float(v) if to.is_int() && v.fract() == 0.0 && v.abs() < 128.0 => {
            Expr::int(*v as i64, to)
        }
        _ => return None,
    };
    (number(&new) == number(a) || number(a).is_some_and(f64::is_nan)).then_some(new)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright_ir::{Buffer, Var};
    use tilewright_sets::Engine;

    #[test]
    fn neutral_elements_vanish_and_a_zero_of_floats_does_not_swallow() {
        let engine = Engine::new().expect("libisl is there");
        let i = Var::index("i");
        let at = engine.box_of(&[(i.clone(), 1)]);
        for t in [DType::F32, DType::I32] {
            let x = Buffer::with_extents("X", &[4], t).load([Expr::i32(0)]);
            let c = |v: f64| Expr::constant(v, t);
            let binary = |op, a: &Expr, b: &Expr| Expr::binary(op, a.clone(), b.clone());
            let gone = |e: Expr| reduced(&e, &at, Floats::Any).ptr_eq(&x);
            assert!(gone(binary(BinOp::Add, &c(0.0), &x)) && gone(binary(BinOp::Sub, &x, &c(0.0))));
            assert!(gone(binary(BinOp::Mul, &x, &c(1.0))));
            assert!(!gone(binary(BinOp::Max, &x, &c(-5.0))));
            let low = match t.is_float() {
                true => Expr::float(f64::NEG_INFINITY, t),
                false => Expr::int(i64::from(i32::MIN), t),
            };
            assert!(gone(binary(BinOp::Max, &low, &x)) && !gone(binary(BinOp::Min, &low, &x)));
            let product = binary(BinOp::Mul, &binary(BinOp::Mul, &c(0.0), &c(7.0)), &x);
            let sum = binary(BinOp::Add, &x, &product);
            assert_eq!(reduced(&sum, &at, Floats::Any).ptr_eq(&x), t.is_int(), "{sum}");
            assert!(reduced(&sum, &at, Floats::Finite).ptr_eq(&x));
            let chosen = Expr::select(i.expr().less(1), x.clone(), c(3.0));
            assert!(gone(chosen));
        }
    }
}

//! What a value becomes when parts of it are known: neutral elements and constants fold away.
//!
//! `x + 0` and `x * 1` are `x`, also where that makes `-0.0` of `0.0`, and so is the maximum with
//! the least value of a type. Operations of constants are done, and rounded, in the type of their
//! result; a `NaN` stays to be computed. Zero times something is zero for integers; for floats only
//! if the other side is known to be finite ([`crate::magnitude`]), because zero times infinity is
//! not. The user may say that all floats in memory are ([`Floats::Finite`]); what is computed from
//! them may overflow all the same.
//!
//! `step` looks at one operation. [`reduced`] goes through a value, where a choice is decided, and
//! an index constant, by what is known at a place.

use tilewright_ir::equal::same_expr;
use tilewright_ir::operators::fold_binary;
use tilewright_ir::scalar::Scalar;
use tilewright_ir::visit::fold_expr_children;
use tilewright_ir::{BinOp, DType, Expr, ExprKind, Fold};
use tilewright_polyhedral::Domain;

use crate::magnitude::{Finite, magnitude};
use tilewright_ir::index::is_index;

/// Which values floats in memory may have. What is computed from them is not part of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Floats {
    /// Infinities and `NaN` too.
    #[default]
    Any,
    /// Numbers only: the user has said so.
    Finite,
}

/// No promise about floats in memory.
pub const ANY: Finite<'static> = &|_| false;

/// The value without what does not matter at the points of a domain.
pub fn reduced(e: &Expr, at: &Domain, finite: Finite<'_>) -> Expr {
    Neutral { at, finite }.expr(e)
}

/// One step for the outermost operation; its operands are as simple as they get.
pub fn step(e: Expr, finite: Finite<'_>) -> Expr {
    let found = match e.kind() {
        ExprKind::Binary(op, a, b) => binary(*op, a, b, finite),
        ExprKind::Cast(a) => cast(a, e.dtype()),
        ExprKind::Select(c, a, b) | ExprKind::IfThenElse(c, a, b) => {
            (same_expr(a, b) && !c.effects().calls).then(|| a.clone())
        }
        _ => None,
    };
    found.unwrap_or(e)
}

struct Neutral<'a> {
    at: &'a Domain,
    finite: Finite<'a>,
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
            ExprKind::Select(c, yes, _) | ExprKind::IfThenElse(c, yes, _) if self.at.proves(c) => {
                self.expr(yes)
            }
            ExprKind::Select(c, _, no) | ExprKind::IfThenElse(c, _, no)
                if self.at.proves(&!c.clone()) =>
            {
                self.expr(no)
            }
            _ => step(fold_expr_children(self, e), self.finite),
        }
    }
}

/// A constant, or one in all lanes, as a number.
pub fn number(e: &Expr) -> Option<f64> {
    match e.kind() {
        ExprKind::Int(v) => Some(*v as f64),
        ExprKind::Float(v) => Some(*v),
        ExprKind::Broadcast(inner) => number(inner),
        _ => None,
    }
}

/// Whether this is a number.
pub fn is(e: &Expr, value: f64) -> bool {
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

fn binary(op: BinOp, a: &Expr, b: &Expr, finite: Finite<'_>) -> Option<Expr> {
    let absorbs = |zero: &Expr, other: &Expr| is(zero, 0.0) && magnitude(other, finite).is_some();
    match op {
        BinOp::Add | BinOp::Sub if is(b, 0.0) => Some(a.clone()),
        BinOp::Add if is(a, 0.0) => Some(b.clone()),
        BinOp::Mul if is(a, 1.0) => Some(b.clone()),
        BinOp::Mul | BinOp::Div | BinOp::FloorDiv | BinOp::TruncDiv if is(b, 1.0) => {
            Some(a.clone())
        }
        BinOp::Mul if absorbs(a, b) => Some(a.clone()),
        BinOp::Mul if absorbs(b, a) => Some(b.clone()),
        BinOp::Max if is_end(b, true) => Some(a.clone()),
        BinOp::Max if is_end(a, true) => Some(b.clone()),
        BinOp::Min if is_end(b, false) => Some(a.clone()),
        BinOp::Min if is_end(a, false) => Some(b.clone()),
        _ => match (a.kind(), b.kind()) {
            (ExprKind::Float(_), ExprKind::Float(_)) => constants(op, a, b),
            _ => fold_binary(op, a, b),
        },
    }
}

/// Arithmetic of two constants of floating point, unless it gives `NaN`.
fn constants(op: BinOp, a: &Expr, b: &Expr) -> Option<Expr> {
    let value = Scalar::binary(op, Scalar::constant(a)?, Scalar::constant(b)?).ok()?;
    Some(value.expr()).filter(|e| e.as_float().is_none_or(|v| !v.is_nan()))
}

/// A constant of another type that has its value; a `NaN` stays.
fn cast(a: &Expr, to: DType) -> Option<Expr> {
    if to.lanes != 1 || !(to.is_int() || to.is_float()) {
        return None;
    }
    let from = Scalar::constant(a)?;
    let new = from.cast(to);
    let exact = to.is_float() || from.as_f64() == new.as_f64() && !from.dtype().is_int();
    Some(new.expr()).filter(|_| exact && !from.as_f64().is_nan())
}

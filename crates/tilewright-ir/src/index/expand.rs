//! Sums with constants multiplied in.

use crate::extent::holds;
use crate::visit::fold_expr_children;
use crate::{BinOp, Expr, ExprKind, Fold};

/// Multiplies constants into sums: `(i * 4 + j) * 16` is `i * 64 + j * 16`.
pub fn multiply_out(e: &Expr) -> Expr {
    Expand.expr(e)
}

struct Expand;

impl Fold for Expand {
    fn expr(&mut self, e: &Expr) -> Expr {
        if let ExprKind::Load(..) = e.kind() {
            return e.clone();
        }
        let e = fold_expr_children(self, e);
        match e.kind() {
            ExprKind::Binary(BinOp::Mul, a, b) => match (a.as_int(), b.as_int()) {
                (None, Some(k)) => scaled(a, k).unwrap_or(e),
                // Data stays as it is written.
                (Some(_), None) if b.effects().loads => e,
                (Some(k), None) => scaled(b, k).unwrap_or(e),
                _ => e,
            },
            _ => e,
        }
    }
}

/// `e * k` with the factor at the leaves of the sum; `None` where the factor gets too large.
fn scaled(e: &Expr, k: i64) -> Option<Expr> {
    Some(match e.kind() {
        ExprKind::Int(v) => {
            let value = v.checked_mul(k)?;
            holds(e.dtype(), value.into()).then(|| Expr::int(value, e.dtype()))?
        }
        ExprKind::Binary(BinOp::Add, a, b) => scaled(a, k)? + scaled(b, k)?,
        ExprKind::Binary(BinOp::Sub, a, b) => scaled(a, k)? - scaled(b, k)?,
        ExprKind::Binary(BinOp::Mul, a, b) => match (a.as_int(), b.as_int()) {
            (None, Some(_)) => a * scaled(b, k)?,
            (Some(_), None) => b * scaled(a, k)?,
            _ => e * k,
        },
        _ => e * k,
    })
}

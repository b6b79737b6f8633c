//! Whether arithmetic stays in its type, and sums with constants multiplied in.

use crate::Domain;
use tilewright_ir::extent::holds;
use tilewright_ir::visit::{fold_expr_children, walk_expr};
use tilewright_ir::{BinOp, Expr, ExprKind, Fold, TypeKind, Visit};

/// Whether the arithmetic of a stored value may leave its type on loops and sizes, which the sets do
/// not expect: they take it for index arithmetic. What they take for data wraps in them, too.
pub fn overflows(e: &Expr, domain: &Domain) -> bool {
    let mut overflow = Overflow { domain, found: false };
    overflow.expr(e);
    overflow.found
}

struct Overflow<'a> {
    domain: &'a Domain,
    found: bool,
}

impl Visit for Overflow<'_> {
    fn expr(&mut self, e: &Expr) {
        let t = e.dtype();
        // Narrow and unsigned arithmetic is exact in the sets.
        let may_grow = t.kind == TypeKind::Int && t.bits >= 32;
        if let ExprKind::Binary(BinOp::Add | BinOp::Sub | BinOp::Mul, ..) = e.kind()
            && may_grow
            && let Ok((Some(lo), Some(hi))) = self.domain.bounds(e)
        {
            self.found |= !(holds(t, lo.into()) && holds(t, hi.into()));
        }
        // Indices are index arithmetic.
        if !self.found && !matches!(e.kind(), ExprKind::Load(..)) {
            walk_expr(self, e);
        }
    }
}

/// Multiplies constants into sums: `(i * 4 + j) * 16` is `i * 64 + j * 16`.
pub struct Expand;

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

//! Whether arithmetic stays in its type.

use crate::Domain;
use tilewright_ir::extent::holds;
use tilewright_ir::visit::walk_expr;
use tilewright_ir::{BinOp, Expr, ExprKind, TypeKind, Visit};

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

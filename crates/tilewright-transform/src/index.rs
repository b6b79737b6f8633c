//! Small integer reasoning over index expressions: ranges, and folding by them.
//!
//! To be replaced by the integer sets of their own crate; until then it knows only intervals.

use tilewright_ir::{Expr, ExprKind};

/// Whether two index expressions are the same tree over the same variables. Expressions other
/// than variables, constants and arithmetic count as different unless they are one node.
pub(crate) fn same(a: &Expr, b: &Expr) -> bool {
    if a.ptr_eq(b) {
        return true;
    }
    match (a.kind(), b.kind()) {
        (ExprKind::Var(x), ExprKind::Var(y)) => x == y,
        (ExprKind::Int(x), ExprKind::Int(y)) => x == y && a.dtype() == b.dtype(),
        (ExprKind::Binary(f, x, y), ExprKind::Binary(g, u, v)) => {
            f == g && same(x, u) && same(y, v)
        }
        _ => false,
    }
}

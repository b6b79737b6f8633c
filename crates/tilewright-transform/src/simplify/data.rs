//! Arithmetic of data: what [`neutral`](tilewright_analysis::neutral) knows, and `T.undef()`.
//!
//! An operation on some arbitrary value is some arbitrary value, each time another one: so
//! `T.undef() - T.undef()` is one too. Zero times it is zero, since zero is what is left of a product
//! that is never computed.

use tilewright_ir::{BinOp, CallTarget, Expr, ExprKind};

use tilewright_analysis::neutral;

/// One step for the outermost operation; its operands are as simple as they get.
pub(super) fn reduced(e: Expr) -> Expr {
    match arbitrary(&e) {
        Some(new) => new,
        None => neutral::step(e, neutral::ANY),
    }
}

/// What an operation on `T.undef()` is.
fn arbitrary(e: &Expr) -> Option<Expr> {
    match e.kind() {
        ExprKind::Binary(BinOp::Mul, zero, other) | ExprKind::Binary(BinOp::Mul, other, zero)
            if neutral::is(zero, 0.0) && other.is_undef() =>
        {
            Some(zero.clone())
        }
        ExprKind::Binary(op, a, b)
            if (a.is_undef() || b.is_undef()) && !op.is_compare() && !op.is_logic() =>
        {
            (!e.effects().calls).then(|| Expr::undef(e.dtype()))
        }
        ExprKind::Cast(a) if a.is_undef() => Some(Expr::undef(e.dtype())),
        ExprKind::Call(CallTarget::Intrin(op), args)
            if args.iter().any(Expr::is_undef) && !op.is_predicate() =>
        {
            (!e.effects().calls).then(|| Expr::undef(e.dtype()))
        }
        ExprKind::Call(CallTarget::Reinterpret(_), args) if args.iter().any(Expr::is_undef) => {
            Some(Expr::undef(e.dtype()))
        }
        _ => None,
    }
}

//! Arithmetic of data: floating point where nothing is rounded differently, and `T.undef()`.
//!
//! * Operations of constants are done in the type of their result. Additions of zero, and
//!   multiplications and divisions by one go, of integers too; that `-0.0` may become `0.0` is
//!   allowed.
//! * An operation on some arbitrary value is some arbitrary value, each time another one: so
//!   `T.undef() - T.undef()` is one too. Zero times it is zero, since zero is what is left of a
//!   product that is never computed.

use tilewright_ir::expr::{fold_binary, round_to};
use tilewright_ir::{BinOp, CallTarget, Expr, ExprKind};

use super::traits::Traits;

/// One step for the outermost operation; its operands are as simple as they get.
pub(crate) fn reduced(e: Expr) -> Expr {
    let found = match e.kind() {
        ExprKind::Binary(op, a, b) => binary(*op, a, b, &e),
        ExprKind::Cast(a) if is_undef(a) => Some(Expr::undef(e.dtype())),
        ExprKind::Cast(a) if e.dtype().is_float() && e.dtype().lanes == 1 => {
            let exact = |v: &i64| v.unsigned_abs() < 1 << 53;
            a.as_int().filter(exact).map(|v| Expr::float(v as f64, e.dtype()))
        }
        ExprKind::Call(CallTarget::Intrin(op), args) => {
            let known = args.iter().any(is_undef) && !op.is_predicate();
            (known && droppable(&e)).then(|| Expr::undef(e.dtype()))
        }
        _ => None,
    };
    found.unwrap_or(e)
}

fn binary(op: BinOp, a: &Expr, b: &Expr, e: &Expr) -> Option<Expr> {
    use BinOp::*;
    if op == Mul && (is_number(a, 0.0) && is_undef(b) || is_undef(a) && is_number(b, 0.0)) {
        return Some(if is_undef(b) { a.clone() } else { b.clone() });
    }
    if (is_undef(a) || is_undef(b)) && !op.is_compare() && !op.is_logic() {
        return droppable(e).then(|| Expr::undef(e.dtype()));
    }
    if !a.dtype().is_float() {
        return fold_binary(op, a, b);
    }
    if let (Some(x), Some(y)) = (a.as_float(), b.as_float()) {
        // Twice the digits of the narrower types are enough to round once.
        let value = match op {
            Add => x + y,
            Sub => x - y,
            Mul => x * y,
            Div => x / y,
            Eq => return Some(Expr::bool(x == y)),
            Ne => return Some(Expr::bool(x != y)),
            Lt => return Some(Expr::bool(x < y)),
            Le => return Some(Expr::bool(x <= y)),
            Gt => return Some(Expr::bool(x > y)),
            Ge => return Some(Expr::bool(x >= y)),
            _ => return None,
        };
        let value = round_to(value, e.dtype());
        return value.is_finite().then(|| Expr::float(value, e.dtype()));
    }
    match op {
        Add if is_number(a, 0.0) => Some(b.clone()),
        Mul if is_number(a, 1.0) => Some(b.clone()),
        Add | Sub if is_number(b, 0.0) => Some(a.clone()),
        Mul | Div if is_number(b, 1.0) => Some(a.clone()),
        _ => None,
    }
}

fn is_undef(e: &Expr) -> bool {
    matches!(e.kind(), ExprKind::Undef)
        || matches!(e.kind(), ExprKind::Broadcast(inner) if is_undef(inner))
}

fn is_number(e: &Expr, value: f64) -> bool {
    match e.kind() {
        ExprKind::Float(v) => *v == value,
        ExprKind::Int(v) => *v as f64 == value,
        ExprKind::Broadcast(inner) => is_number(inner, value),
        _ => false,
    }
}

/// Whether not evaluating an expression changes nothing but its value.
fn droppable(e: &Expr) -> bool {
    !Traits::of(e).calls
}

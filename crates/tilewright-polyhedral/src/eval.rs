//! Exact evaluation at a point.
//!
//! The engine decides, and evaluation shows: a witness counts only where the guards hold and the
//! fact fails when both are computed with the witness's values. For terms that are not affine this
//! is also how a refutation is found at all.

use tilewright_ir::scalar::{Scalar, eval_int, exact};
use tilewright_ir::{BinOp, CallTarget, Expr, ExprKind, Var};

use crate::form::{Atom, Nature, Pred, Sum, Term};

/// The value of an atom, if the variables determine it.
pub(crate) fn atom(a: &Atom, env: &dyn Fn(&Var) -> Option<i128>) -> Option<i128> {
    let of = |a: &Atom| atom(a, env);
    match a.nature() {
        Nature::Var(v) => env(v),
        Nature::Product(parts) => parts.iter().try_fold(1i128, |p, t| p.checked_mul(term(t, &of)?)),
        Nature::Quotient(x, y) => exact(BinOp::FloorDiv, sum_of(x, &of)?, sum_of(y, &of)?),
        Nature::Remainder(x, y) => exact(BinOp::FloorMod, sum_of(x, &of)?, sum_of(y, &of)?),
        Nature::Opaque => None,
    }
}

fn term(t: &Term, of: &dyn Fn(&Atom) -> Option<i128>) -> Option<i128> {
    match t {
        Term::Atom(a) => of(a),
        Term::Div(s, k) => exact(BinOp::FloorDiv, sum_of(s, of)?, *k),
        Term::Mod(s, k) => exact(BinOp::FloorMod, sum_of(s, of)?, *k),
        Term::TruncDiv(s, k) => sum_of(s, of)?.checked_div(*k),
        Term::TruncMod(s, k) => sum_of(s, of)?.checked_rem(*k),
        Term::Min(a, b) => Some(sum_of(a, of)?.min(sum_of(b, of)?)),
        Term::Max(a, b) => Some(sum_of(a, of)?.max(sum_of(b, of)?)),
        Term::Select(c, a, b) => sum_of(if pred_of(c, of)? { a } else { b }, of),
    }
}

/// The value of a sum, if the values of its atoms determine it.
fn sum_of(s: &Sum, of: &dyn Fn(&Atom) -> Option<i128>) -> Option<i128> {
    s.terms
        .iter()
        .try_fold(s.constant, |total, (t, c)| total.checked_add(c.checked_mul(term(t, of)?)?))
}

/// Whether a condition holds, if the values of its atoms determine it.
pub(crate) fn pred_of(p: &Pred, of: &dyn Fn(&Atom) -> Option<i128>) -> Option<bool> {
    Some(match p {
        Pred::Bool(b) => *b,
        Pred::Ge(s) => sum_of(s, of)? >= 0,
        Pred::Eq(s) => sum_of(s, of)? == 0,
        Pred::Ne(s) => sum_of(s, of)? != 0,
        Pred::Flag(a, value) => (of(a)? != 0) == *value,
        Pred::And(parts) => parts.iter().try_fold(true, |all, p| Some(all & pred_of(p, of)?))?,
        Pred::Or(parts) => parts.iter().try_fold(false, |any, p| Some(any | pred_of(p, of)?))?,
    })
}

/// Whether a condition holds, if the variables determine it.
pub(crate) fn pred(p: &Pred, env: &dyn Fn(&Var) -> Option<i128>) -> Option<bool> {
    pred_of(p, &|a| atom(a, env))
}

/// The value of an integer or `bool` expression at a point, with the wrap-around of its types;
/// `None` where it reads memory, calls, divides by zero, or mentions a variable without a value.
///
/// Vector values, and intrinsics other than `likely` and `abs`, have none either.
pub fn evaluate(e: &Expr, env: &dyn Fn(&Var) -> Option<i64>) -> Option<i64> {
    let t = e.dtype();
    if t.lanes != 1 || !(t.is_int() || t.is_bool()) {
        return None;
    }
    match e.kind() {
        ExprKind::Int(v) => Some(*v),
        ExprKind::Var(v) => env(v),
        ExprKind::Cast(a) => {
            let v = evaluate(a, env)?;
            Expr::int(v, t).as_int()
        }
        ExprKind::Binary(op @ (BinOp::And | BinOp::Or), a, b) => {
            let first = evaluate(a, env)? != 0;
            let decided = first == (*op == BinOp::Or);
            if decided { Some(i64::from(first)) } else { evaluate(b, env) }
        }
        ExprKind::Binary(op, a, b) => {
            eval_int(*op, evaluate(a, env)?, evaluate(b, env)?, a.dtype())
        }
        ExprKind::Not(a) => Some(i64::from(evaluate(a, env)? == 0)),
        ExprKind::Select(c, a, b) | ExprKind::IfThenElse(c, a, b) => {
            evaluate(if evaluate(c, env)? != 0 { a } else { b }, env)
        }
        ExprKind::Call(CallTarget::Intrin(op), args) => {
            let args = args
                .iter()
                .map(|e| Some(Scalar::int(evaluate(e, env)?, e.dtype())))
                .collect::<Option<Vec<Scalar>>>()?;
            Some(Scalar::intrinsic(*op, &args).ok()?.bits() as i64)
        }
        ExprKind::Let(v, value, body) => {
            let value = evaluate(value, env)?;
            evaluate(body, &|x| if x == v { Some(value) } else { env(x) })
        }
        _ => None,
    }
}

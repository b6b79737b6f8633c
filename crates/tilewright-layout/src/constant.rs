//! Constants as expressions: when two are one value, and what operators make of them.
//!
//! [`evaluate`] is what an expression is where its loads are known, so what it is in padding: the
//! pad value of a result is the function's value on the pad values of its operands. Adding one moves
//! 0 to 1, `exp` 0 to 1, `relu` keeps 0. Loads whose value is not known are arbitrary, and so is
//! what is computed from them: a float zero times an arbitrary value may be `NaN`, an integer one is zero. A selection with
//! an unknown condition is known if both sides are.

use tilewright_ir::equal::same_expr;
use tilewright_ir::scalar::Scalar;
use tilewright_ir::{BinOp, Buffer, CallTarget, DType, Expr, ExprKind, Intrin};

/// A constant, or why there is none.
pub(crate) type Answer = Result<Expr, String>;

/// Whether two constants are one value; `-0.0` is `0.0`.
pub(crate) fn same_value(a: &Expr, b: &Expr) -> bool {
    let floats = a.as_float().zip(b.as_float());
    a.dtype() == b.dtype() && (same_expr(a, b) || floats.is_some_and(|(a, b)| a == b))
}

pub(crate) fn is_zero(e: &Expr) -> bool {
    e.as_int() == Some(0) || e.as_float() == Some(0.0)
}

pub(crate) fn cast(a: &Expr, to: DType) -> Answer {
    Ok(scalar(a)?.cast(to).expr())
}

pub(crate) fn binary(op: BinOp, a: &Expr, b: &Expr) -> Answer {
    let value = Scalar::binary(op, scalar(a)?, scalar(b)?);
    value.map(Scalar::expr).map_err(|f| f.text().to_owned())
}

pub(crate) fn intrinsic(op: Intrin, args: &[Expr]) -> Answer {
    let args = args.iter().map(scalar).collect::<Result<Vec<Scalar>, String>>()?;
    Scalar::intrinsic(op, &args).map(Scalar::expr).map_err(|f| f.text().to_owned())
}

pub(crate) fn scalar(e: &Expr) -> Result<Scalar, String> {
    Scalar::constant(e).ok_or_else(|| "a value that is no constant".into())
}

/// The value of an expression as a constant other than `NaN`; `load` says what a load gives, where
/// that is known.
pub(crate) fn evaluate(e: &Expr, load: &dyn Fn(&Buffer, &[Expr]) -> Option<Expr>) -> Option<Expr> {
    value(e, load).filter(|v| v.as_float().is_none_or(|v| !v.is_nan()))
}

fn value(e: &Expr, load: &dyn Fn(&Buffer, &[Expr]) -> Option<Expr>) -> Option<Expr> {
    if e.dtype().lanes != 1 {
        return None;
    }
    match e.kind() {
        ExprKind::Int(_) | ExprKind::Float(_) => Some(e.clone()),
        ExprKind::Load(b, at) => value(&load(b, at)?, load),
        ExprKind::Cast(x) => cast(&value(x, load)?, e.dtype()).ok(),
        ExprKind::Binary(op, a, b) => match (value(a, load), value(b, load)) {
            (Some(a), Some(b)) => binary(*op, &a, &b).ok(),
            // Zero times any integer is zero.
            (a, b) if *op == BinOp::Mul && e.dtype().is_int() => {
                a.or(b).filter(|known| known.as_int() == Some(0))
            }
            _ => None,
        },
        ExprKind::Not(x) => Some(Expr::bool(value(x, load)?.as_int()? == 0)),
        ExprKind::Select(c, t, f) | ExprKind::IfThenElse(c, t, f) => match value(c, load) {
            Some(c) if is_zero(&c) => value(f, load),
            Some(_) => value(t, load),
            None => value(t, load).filter(|t| value(f, load).is_some_and(|f| same_expr(t, &f))),
        },
        ExprKind::Call(CallTarget::Intrin(op), args) => {
            let args = args.iter().map(|e| value(e, load)).collect::<Option<Vec<Expr>>>()?;
            intrinsic(*op, &args).ok()
        }
        ExprKind::Call(CallTarget::Reinterpret(to), args) => {
            // A `NaN` in place of a number would not keep its bits.
            let number =
                Scalar::constant(&value(args.first()?, load)?).filter(|v| !v.as_f64().is_nan());
            let value = number?.reinterpret(*to);
            (!value.as_f64().is_nan()).then(|| value.expr())
        }
        _ => None,
    }
}

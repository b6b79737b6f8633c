//! What an expression is where some of its loads read padding.
//!
//! The pad value of a result is the function's value on the pad values of its operands: adding one
//! moves 0 to 1, `exp` 0 to 1, `relu` keeps 0. Loads whose value is not known are arbitrary, and
//! so is what is computed from them: a float zero times an arbitrary value may be `NaN`. A
//! selection with an unknown condition is known if both sides are.

use tilewright_interp::scalar::{binary, cast, from_f64, intrinsic, to_f64};
use tilewright_ir::{Buffer, CallTarget, DType, Expr, ExprKind};

/// The value of an expression as a constant; `load` says what a load gives, where that is known.
pub(crate) fn evaluate(e: &Expr, load: &dyn Fn(&Buffer, &[Expr]) -> Option<Expr>) -> Option<Expr> {
    bits(e, load).and_then(|b| constant(b, e.dtype()))
}

/// The constant of a type with these bits.
fn constant(bits: u64, dtype: DType) -> Option<Expr> {
    match dtype.is_float() {
        true => {
            let value = to_f64(bits, dtype);
            (!value.is_nan()).then(|| Expr::float(value, dtype))
        }
        false => Some(Expr::int(bits as i64, dtype)),
    }
}

fn bits(e: &Expr, load: &dyn Fn(&Buffer, &[Expr]) -> Option<Expr>) -> Option<u64> {
    let value = |e: &Expr| bits(e, load);
    if e.dtype().lanes != 1 {
        return None;
    }
    match e.kind() {
        ExprKind::Int(v) => Some(*v as u64),
        ExprKind::Float(v) => Some(from_f64(*v, e.dtype())),
        ExprKind::Load(b, at) => value(&load(b, at)?),
        ExprKind::Cast(x) => Some(cast(value(x)?, x.dtype(), e.dtype())),
        ExprKind::Binary(op, a, b) => binary(*op, a.dtype(), value(a)?, value(b)?).ok(),
        ExprKind::Not(x) => Some(u64::from(value(x)? == 0)),
        ExprKind::Select(c, t, f) | ExprKind::IfThenElse(c, t, f) => match value(c) {
            Some(0) => value(f),
            Some(_) => value(t),
            None => value(t).filter(|t| value(f) == Some(*t)),
        },
        ExprKind::Call(CallTarget::Intrin(op), args) => {
            let values = args.iter().map(value).collect::<Option<Vec<u64>>>()?;
            let second = values.get(1).copied().unwrap_or(0);
            intrinsic(*op, args.first()?.dtype(), *values.first()?, second).ok()
        }
        _ => None,
    }
}

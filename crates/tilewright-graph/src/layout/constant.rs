//! Constants as expressions: when two are one value, and what operators make of them.
//!
//! [`evaluate`] is what an expression is where its loads are known, so what it is in padding: the
//! pad value of a result is the function's value on the pad values of its operands. Adding one moves
//! 0 to 1, `exp` 0 to 1, `relu` keeps 0. Loads whose value is not known are arbitrary, and so is
//! what is computed from them: a float zero times an arbitrary value may be `NaN`. A selection with
//! an unknown condition is known if both sides are.

use tilewright_interp::scalar::{self, Scalar};
use tilewright_ir::equal::same_expr;
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
    literal(scalar::cast(bits(a)?, a.dtype(), to), to)
}

pub(crate) fn binary(op: BinOp, a: &Expr, b: &Expr) -> Answer {
    let value = scalar::binary(op, a.dtype(), bits(a)?, bits(b)?);
    let to = Expr::binary(op, a.clone(), b.clone()).dtype();
    literal(value.map_err(|f| f.text().to_owned())?, to)
}

pub(crate) fn intrinsic(op: Intrin, args: &[Expr], to: DType) -> Answer {
    let [a, rest @ ..] = args else { return Err("a function of nothing".into()) };
    let second = rest.first().map(bits).transpose()?.unwrap_or(0);
    let value = scalar::intrinsic(op, a.dtype(), bits(a)?, second);
    literal(value.map_err(|f| f.text().to_owned())?, to)
}

/// The bits of a constant.
pub(crate) fn bits(e: &Expr) -> Result<u64, String> {
    match (e.as_int(), e.as_float()) {
        (Some(v), _) => Ok(Scalar::int(v, e.dtype()).bits()),
        (_, Some(v)) => Ok(Scalar::float(v, e.dtype()).bits()),
        _ => Err("a value that is no constant".into()),
    }
}

fn literal(bits: u64, dtype: DType) -> Answer {
    let value = Scalar::from_bits(bits, dtype);
    match dtype.is_float() {
        true => Ok(Expr::float(value.as_f64(), dtype)),
        false => {
            i64::try_from(value.as_i128()).map(|v| Expr::int(v, dtype)).map_err(|e| e.to_string())
        }
    }
}

/// The value of an expression as a constant other than `NaN`; `load` says what a load gives, where
/// that is known.
pub(crate) fn evaluate(e: &Expr, load: &dyn Fn(&Buffer, &[Expr]) -> Option<Expr>) -> Option<Expr> {
    value(e, load).filter(|v| v.as_float().is_none_or(|v| !v.is_nan()))
}

fn value(e: &Expr, load: &dyn Fn(&Buffer, &[Expr]) -> Option<Expr>) -> Option<Expr> {
    let of = |e: &Expr| value(e, load);
    if e.dtype().lanes != 1 {
        return None;
    }
    match e.kind() {
        ExprKind::Int(_) | ExprKind::Float(_) => Some(e.clone()),
        ExprKind::Load(b, at) => of(&load(b, at)?),
        ExprKind::Cast(x) => cast(&of(x)?, e.dtype()).ok(),
        ExprKind::Binary(op, a, b) => binary(*op, &of(a)?, &of(b)?).ok(),
        ExprKind::Not(x) => Some(Expr::bool(of(x)?.as_int()? == 0)),
        ExprKind::Select(c, t, f) | ExprKind::IfThenElse(c, t, f) => match of(c) {
            Some(c) if is_zero(&c) => of(f),
            Some(_) => of(t),
            None => of(t).filter(|t| of(f).is_some_and(|f| same_expr(t, &f))),
        },
        ExprKind::Call(CallTarget::Intrin(op), args) => {
            let args = args.iter().map(of).collect::<Option<Vec<Expr>>>()?;
            intrinsic(*op, &args, e.dtype()).ok()
        }
        _ => None,
    }
}

//! Numbers whose order is that of values.

use tilewright_ir::{DType, Expr, Intrin};

use crate::operand::call;

/// The rank of a value among those of its type, an `int64`: the same for both zeros and for all `NaN`, which
/// come last. Of a type of 32 bits or less it is a number from -2^31 to 2^31 - 1.
pub(crate) fn rank(value: &Expr) -> Expr {
    let dtype = value.dtype();
    if dtype.is_float() {
        return rank_of_float(value);
    }
    let wide = value.clone().cast(DType::I64);
    match dtype {
        DType::U32 => wide - (1 << 31),
        DType::U64 => Expr::intrin(Intrin::BitXor, vec![wide, Expr::int(i64::MIN, DType::I64)]),
        _ => wide,
    }
}

fn rank_of_float(value: &Expr) -> Expr {
    let (work, whole) = match value.dtype() {
        DType::F64 => (DType::F64, DType::I64),
        _ => (DType::F32, DType::I32),
    };
    let last = Expr::int(if whole == DType::I64 { i64::MAX } else { i32::MAX.into() }, whole);
    let none = Expr::int(0, whole);
    let value = value.clone().cast(work);
    let bits = Expr::reinterpret(value.clone(), whole);
    let turned = Expr::intrin(Intrin::BitXor, vec![bits.clone(), last.clone()]);
    let number = Expr::select(bits.clone().less(none.clone()), turned, bits);
    let zero = value.clone().equal(Expr::float(0.0, work));
    let ordered = Expr::select(zero, none, number);
    Expr::select(call(Intrin::IsNan, value), last, ordered).cast(DType::I64)
}

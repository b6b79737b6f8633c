//! Numbers whose order is that of values, and of values of equal rank that of their positions.

use tilewright_ir::{DType, Dim, Expr, Intrin};

use crate::operand::call;

/// The last position that fits the lower half of a key.
const LAST: i64 = u32::MAX as i64;

/// One number for a value and its position, of which the one with the greater rank is greater, and of equal
/// ranks that with the lower position. The rank is one of 32 bits.
pub(crate) fn key(rank: Expr, position: &Expr) -> Expr {
    rank * (LAST + 1) + (Expr::int(LAST, DType::I64) - position.clone().cast(DType::I64))
}

/// The position in a key, of `n` positions.
pub(crate) fn position(key: &Expr, n: Dim) -> Expr {
    let lower = Expr::intrin(Intrin::BitAnd, vec![key.clone(), Expr::int(LAST, DType::I64)]);
    // It is one of those that there are, which is not seen from the key.
    (Expr::int(LAST, DType::I64) - lower).min(n.long() - 1).max(0)
}

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

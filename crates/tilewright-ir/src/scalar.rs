//! One number, and what each operator does to it: the only arithmetic on constants.
//!
//! A value is 64 bits whose meaning its type gives: integers are sign- or zero-extended from
//! their width (`uint64` above `i64::MAX` by its bits), `bool` is 0 or 1, floats are their own
//! bit pattern, so that a copy keeps the payload of a `NaN`.
//!
//! This module is the definition of the arithmetic; functions with a name are in
//! [`crate::intrinsic`]. The interpreter runs by it, with faster forms of some of it that tests
//! compare with this one, and constant folding uses it.
//!
//! ```
//! use tilewright_ir::scalar::{Fault, Scalar};
//! use tilewright_ir::{BinOp, DType, Expr};
//! let of = |v| Scalar::int(v, DType::I8);
//! assert_eq!(Scalar::binary(BinOp::Add, of(127), of(1)), Ok(of(-128)));
//! assert_eq!(Scalar::binary(BinOp::FloorDiv, of(1), of(0)), Err(Fault::DivisionByZero));
//! let x = Scalar::constant(&Expr::i32(300)).map(|x| x.cast(DType::U8).expr());
//! assert_eq!(x.and_then(|x| x.as_int()), Some(44));
//! ```

use half::{bf16, f16};

use crate::dtype::{DType, TypeKind};
use crate::expr::{BinOp, Expr, ExprKind};
use crate::intrinsic::{Intrin, OfFloats};

/// A number of some type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scalar {
    dtype: DType,
    bits: u64,
}

impl Scalar {
    /// An integer or `bool`, reduced to the width of its type.
    pub fn int(value: i64, dtype: DType) -> Self {
        Scalar { dtype, bits: wrap(value, dtype) as u64 }
    }

    /// A float, rounded to its type.
    pub fn float(value: f64, dtype: DType) -> Self {
        Scalar { dtype, bits: from_f64(value, dtype) }
    }

    /// A value from the bits that this module describes.
    pub fn from_bits(bits: u64, dtype: DType) -> Self {
        Scalar { dtype, bits }
    }

    /// The value of an integer, `bool` or float constant.
    pub fn constant(e: &Expr) -> Option<Self> {
        match e.kind() {
            _ if e.dtype().lanes != 1 => None,
            ExprKind::Int(v) => Some(Scalar::int(*v, e.dtype())),
            ExprKind::Float(v) => Some(Scalar::float(*v, e.dtype())),
            _ => None,
        }
    }

    /// The constant of this value.
    pub fn expr(self) -> Expr {
        if self.dtype.is_float() {
            Expr::float(self.as_f64(), self.dtype)
        } else {
            Expr::int(self.bits as i64, self.dtype)
        }
    }

    /// The value in another type, see [`cast`].
    pub fn cast(self, to: DType) -> Self {
        Scalar { dtype: to, bits: cast(self.bits, self.dtype, to) }
    }

    /// The value of another type that has the same bits, see [`reinterpret`].
    pub fn reinterpret(self, to: DType) -> Self {
        Scalar { dtype: to, bits: reinterpret(self.bits, self.dtype, to) }
    }

    /// An operator on two values of one type, see [`binary`].
    ///
    /// # Errors
    /// That there is no such value.
    pub fn binary(op: BinOp, a: Scalar, b: Scalar) -> Result<Scalar, Fault> {
        let bits = binary(op, a.dtype, a.bits, b.bits)?;
        let dtype = if op.is_compare() || op.is_logic() { DType::BOOL } else { a.dtype };
        Ok(Scalar { dtype, bits })
    }

    /// An intrinsic on values of one type, see [`intrinsic`].
    ///
    /// # Errors
    /// That there is no such value; `NoSuchOperator` for another number of them.
    pub fn intrinsic(op: Intrin, args: &[Scalar]) -> Result<Scalar, Fault> {
        let (a, b) = match (args, op.arity()) {
            ([a], 1) => (a, a),
            ([a, b], 2) => (a, b),
            _ => return Err(Fault::NoSuchOperator),
        };
        let bits = intrinsic(op, a.dtype, a.bits, b.bits)?;
        Ok(Scalar { dtype: op.result(a.dtype), bits })
    }

    /// The type.
    pub fn dtype(self) -> DType {
        self.dtype
    }

    /// The bits that this module describes.
    pub fn bits(self) -> u64 {
        self.bits
    }

    /// The value as `f64`; 64-bit integers are rounded.
    pub fn as_f64(self) -> f64 {
        if self.dtype.is_float() { to_f64(self.bits, self.dtype) } else { self.as_i128() as f64 }
    }

    /// The value as an integer; floats are truncated.
    pub fn as_i128(self) -> i128 {
        match self.dtype.kind {
            TypeKind::Float | TypeKind::BFloat => to_f64(self.bits, self.dtype) as i128,
            TypeKind::UInt | TypeKind::Handle => i128::from(self.bits),
            _ => i128::from(self.bits as i64),
        }
    }
}

macro_rules! from_number {
    ($($t:ty => $dtype:ident $v:ident $bits:expr;)*) => { $(
        impl From<$t> for Scalar {
            fn from($v: $t) -> Self {
                Scalar { dtype: DType::$dtype, bits: $bits }
            }
        } )*
    };
}
from_number! {
    i32 => I32 v i64::from(v) as u64;
    i64 => I64 v v as u64;
    bool => BOOL v u64::from(v);
    f32 => F32 v u64::from(v.to_bits());
    f64 => F64 v v.to_bits();
}

impl std::fmt::Display for Scalar {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.dtype.kind {
            TypeKind::Bool => write!(f, "{}", self.bits != 0),
            TypeKind::Float if self.dtype.bits == 32 => {
                write!(f, "{:?}", f32::from_bits(self.bits as u32))
            }
            TypeKind::Float | TypeKind::BFloat => {
                write!(f, "{:?}", to_f64(self.bits, self.dtype))
            }
            _ => write!(f, "{}", self.as_i128()),
        }
    }
}

/// Why an operator has no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Integer division or remainder by zero.
    DivisionByZero,
    /// An integer to a negative power.
    NegativePower,
    /// A shift by a negative number of bits, or by the width of the type or more.
    ShiftTooFar,
    /// An operator that the type does not have; well-formed functions have none.
    NoSuchOperator,
}

impl Fault {
    /// The message, without the place.
    pub fn text(self) -> &'static str {
        match self {
            Fault::DivisionByZero => "division by zero",
            Fault::NegativePower => "integer to a negative power",
            Fault::ShiftTooFar => "shift by the width of the type or more",
            Fault::NoSuchOperator => "operator that the type does not have",
        }
    }
}

/// The value of a float from its bits.
pub fn to_f64(bits: u64, dtype: DType) -> f64 {
    match (dtype.kind, dtype.bits) {
        (TypeKind::Float, 16) => f16::from_bits(bits as u16).to_f64(),
        (TypeKind::Float, 32) => f64::from(f32::from_bits(bits as u32)),
        (TypeKind::BFloat, _) => bf16::from_bits(bits as u16).to_f64(),
        _ => f64::from_bits(bits),
    }
}

/// The bits of a float that is rounded once to its type.
pub fn from_f64(value: f64, dtype: DType) -> u64 {
    match (dtype.kind, dtype.bits) {
        (TypeKind::Float, 16) => u64::from(f16::from_f32(round_to_odd(value)).to_bits()),
        (TypeKind::Float, 32) => u64::from((value as f32).to_bits()),
        (TypeKind::BFloat, _) => u64::from(bf16::from_f32(round_to_odd(value)).to_bits()),
        _ => value.to_bits(),
    }
}

macro_rules! extrema {
    ($t:ident $minimum:ident $maximum:ident) => {
        /// IEEE 754-2019 `minimum`: `NaN` if either is, and `-0.0` is below `0.0`.
        #[inline]
        pub fn $minimum(a: $t, b: $t) -> $t {
            if a < b || (a == b && a.is_sign_negative()) {
                a
            } else if b <= a {
                b
            } else {
                $t::NAN
            }
        }

        /// IEEE 754-2019 `maximum`: `NaN` if either is, and `0.0` is above `-0.0`.
        #[inline]
        pub fn $maximum(a: $t, b: $t) -> $t {
            if a > b || (a == b && a.is_sign_positive()) {
                a
            } else if b >= a {
                b
            } else {
                $t::NAN
            }
        }
    };
}
extrema!(f32 minimum32 maximum32);
extrema!(f64 minimum maximum);

/// An operator on two values of a type. Comparisons give `bool`.
pub fn binary(op: BinOp, dtype: DType, a: u64, b: u64) -> Result<u64, Fault> {
    if !dtype.is_float() {
        let value = eval_int(op, a as i64, b as i64, dtype);
        return match (value, op) {
            (Some(v), _) => Ok(v as u64),
            (None, BinOp::Div) => Err(Fault::NoSuchOperator),
            (None, _) => Err(Fault::DivisionByZero),
        };
    }
    let (x, y) = (to_f64(a, dtype), to_f64(b, dtype));
    match op {
        BinOp::Eq => truth(x == y),
        BinOp::Ne => truth(x != y),
        BinOp::Lt => truth(x < y),
        BinOp::Le => truth(x <= y),
        BinOp::Gt => truth(x > y),
        BinOp::Ge => truth(x >= y),
        // For narrower types, rounding the `f64` result gives what rounding the exact one does:
        // 53 bits are more than twice their 24, 11 or 8 bits, plus two.
        _ => {
            let value = match op {
                BinOp::Add => x + y,
                BinOp::Sub => x - y,
                BinOp::Mul => x * y,
                BinOp::Div => x / y,
                BinOp::Min => minimum(x, y),
                BinOp::Max => maximum(x, y),
                _ => return Err(Fault::NoSuchOperator),
            };
            Ok(from_f64(value, dtype))
        }
    }
}

fn truth(v: bool) -> Result<u64, Fault> {
    Ok(u64::from(v))
}

/// Conversion between types of one lane.
///
/// To `bool`: whether the value is not zero (`NaN` is not). Between integers: the low bits. Float
/// to integer: towards zero, `NaN` gives 0, and what is out of range gives the nearest value of
/// the type. To float: rounded once, ties to even.
pub fn cast(bits: u64, from: DType, to: DType) -> u64 {
    if from == to {
        return bits;
    }
    let float = from.is_float();
    match to.kind {
        TypeKind::Bool if float => u64::from(to_f64(bits, from) != 0.0),
        TypeKind::Bool => u64::from(bits != 0),
        TypeKind::Int if float => saturate(to_f64(bits, from), to),
        TypeKind::UInt if float => saturate(to_f64(bits, from), to),
        TypeKind::Int | TypeKind::UInt => wrap(bits as i64, to) as u64,
        TypeKind::Float | TypeKind::BFloat if float => from_f64(to_f64(bits, from), to),
        TypeKind::Float | TypeKind::BFloat => int_to_float(bits, from, to),
        TypeKind::Handle | TypeKind::Void => bits,
    }
}

/// The bits of a number, in the width of its type, as one of another type of that width.
pub fn reinterpret(bits: u64, from: DType, to: DType) -> u64 {
    let bits = bits & u64::MAX.checked_shr(64 - u32::from(from.bits)).unwrap_or(0);
    if to.is_float() { bits } else { wrap(bits as i64, to) as u64 }
}

fn saturate(value: f64, to: DType) -> u64 {
    let low = to.min_int().unwrap_or(0);
    let high = to.max_int().unwrap_or(0);
    (value as i128).clamp(low, high) as u64
}

fn int_to_float(bits: u64, from: DType, to: DType) -> u64 {
    let value = Scalar { dtype: from, bits }.as_i128();
    if to == DType::F32 {
        return u64::from((value as f32).to_bits());
    }
    if to == DType::F64 {
        return (value as f64).to_bits();
    }
    // 64 bits do not fit an f64: what is below bit 12 counts only as "not zero", which leaves
    // rounding to a short type as it is.
    let magnitude = value.unsigned_abs();
    let sticky = if magnitude >= 1 << 53 {
        (magnitude & !0xfff) | u128::from(magnitude & 0xfff != 0) << 12
    } else {
        magnitude
    };
    let value = if value < 0 { -(sticky as f64) } else { sticky as f64 };
    from_f64(value, to)
}

/// An intrinsic on values of a type; `b` is the second argument where there is one.
///
/// Functions of floats are computed in `f64` and rounded once to the type, so that those of the
/// narrower types are as good as correctly rounded.
pub fn intrinsic(op: Intrin, dtype: DType, a: u64, b: u64) -> Result<u64, Fault> {
    match dtype.is_float() {
        _ if !op.operands().admit(dtype) => Err(Fault::NoSuchOperator),
        true => {
            let (x, y) = (to_f64(a, dtype), to_f64(b, dtype));
            Ok(match op.of_floats().ok_or(Fault::NoSuchOperator)? {
                OfFloats::One(f) => from_f64(f(x), dtype),
                OfFloats::Two(f) => from_f64(f(x, y), dtype),
                OfFloats::Is(f) => u64::from(f(x)),
            })
        }
        false => {
            let f = op.of_ints().ok_or(Fault::NoSuchOperator)?;
            Ok(wrap(f(a as i64, b as i64, dtype)?, op.result(dtype)) as u64)
        }
    }
}

/// An operator on two integers of a type, with that type's wrap-around; `None` for division by
/// zero and for operators that integers do not have.
pub fn eval_int(op: BinOp, a: i64, b: i64, dtype: DType) -> Option<i64> {
    let (x, y) = (exact_value(a, dtype), exact_value(b, dtype));
    let value = match op {
        // The low bits are right, also where 127 bits do not hold the product.
        BinOp::Mul => x.wrapping_mul(y),
        _ => exact(op, x, y)?,
    };
    Some(wrap(value as i64, dtype))
}

fn exact_value(v: i64, dtype: DType) -> i128 {
    match dtype.kind {
        TypeKind::UInt => i128::from(v as u64),
        _ => i128::from(v),
    }
}

/// An operator on two integers without a type; comparisons give 0 or 1. `None` for division by zero,
/// for what 128 bits do not hold, and for the true division, whose result is no integer.
pub fn exact(op: BinOp, x: i128, y: i128) -> Option<i128> {
    Some(match op {
        BinOp::Add => x.checked_add(y)?,
        BinOp::Sub => x.checked_sub(y)?,
        BinOp::Mul => x.checked_mul(y)?,
        BinOp::Div => return None,
        BinOp::FloorDiv => x.checked_sub(floor_remainder(x, y)?)?.checked_div(y)?,
        BinOp::FloorMod => floor_remainder(x, y)?,
        BinOp::TruncDiv => x.checked_div(y)?,
        BinOp::TruncMod => x.checked_rem(y)?,
        BinOp::Min => x.min(y),
        BinOp::Max => x.max(y),
        BinOp::Eq => i128::from(x == y),
        BinOp::Ne => i128::from(x != y),
        BinOp::Lt => i128::from(x < y),
        BinOp::Le => i128::from(x <= y),
        BinOp::Gt => i128::from(x > y),
        BinOp::Ge => i128::from(x >= y),
        BinOp::And => i128::from(x != 0 && y != 0),
        BinOp::Or => i128::from(x != 0 || y != 0),
    })
}

fn floor_remainder(x: i128, y: i128) -> Option<i128> {
    x.checked_rem(y).map(|r| if r != 0 && (r < 0) != (y < 0) { r + y } else { r })
}

/// `value` reduced to the width of an integer type; unchanged for other kinds.
pub fn wrap(value: i64, dtype: DType) -> i64 {
    match (dtype.kind, dtype.bits) {
        (TypeKind::Int, bits @ 1..=63) => (value << (64 - bits)) >> (64 - bits),
        (TypeKind::UInt, bits @ 1..=63) => (value as u64 & ((1u64 << bits) - 1)) as i64,
        (TypeKind::Bool, _) => i64::from(value != 0),
        _ => value,
    }
}

/// `value` rounded once to a floating-point type (ties to even).
pub fn round_to(value: f64, dtype: DType) -> f64 {
    if dtype.is_float() { to_f64(from_f64(value, dtype), dtype) } else { value }
}

/// `value` as `f32`; where it is not exact, the neighbour with an odd last bit. Rounding that to
/// a type of at most 22 significant bits gives what rounding `value` itself gives.
pub fn round_to_odd(value: f64) -> f32 {
    let near = value as f32;
    let exact = f64::from(near);
    let bits = near.to_bits();
    if exact == value || near.is_nan() || bits & 1 == 1 {
        near
    } else if exact.abs() > value.abs() {
        f32::from_bits(bits - 1)
    } else {
        f32::from_bits(bits + 1)
    }
}

//! One number, and what each operator does to it.
//!
//! A value is 64 bits whose meaning its type gives: integers are sign- or zero-extended from
//! their width (`uint64` above `i64::MAX` by its bits), `bool` is 0 or 1, floats are their own
//! bit pattern, so that a copy keeps the payload of a `NaN`.
//!
//! This module is the definition of the arithmetic. The rest of the crate has faster forms of
//! some of it, which tests compare with this one.

use half::{bf16, f16};
use tilewright_ir::expr::{eval_int, round_to_odd, wrap};
use tilewright_ir::{BinOp, DType, Intrin, TypeKind};

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
        match self.dtype.is_float() {
            true => to_f64(self.bits, self.dtype),
            false => self.as_i128() as f64,
        }
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

impl From<i32> for Scalar {
    fn from(value: i32) -> Self {
        Scalar::int(i64::from(value), DType::I32)
    }
}
impl From<i64> for Scalar {
    fn from(value: i64) -> Self {
        Scalar::int(value, DType::I64)
    }
}
impl From<bool> for Scalar {
    fn from(value: bool) -> Self {
        Scalar::int(i64::from(value), DType::BOOL)
    }
}
impl From<f32> for Scalar {
    fn from(value: f32) -> Self {
        Scalar { dtype: DType::F32, bits: u64::from(value.to_bits()) }
    }
}
impl From<f64> for Scalar {
    fn from(value: f64) -> Self {
        Scalar { dtype: DType::F64, bits: value.to_bits() }
    }
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
    let truth = |v: bool| Ok(u64::from(v));
    match op {
        BinOp::Eq => truth(x == y),
        BinOp::Ne => truth(x != y),
        BinOp::Lt => truth(x < y),
        BinOp::Le => truth(x <= y),
        BinOp::Gt => truth(x > y),
        BinOp::Ge => truth(x >= y),
        _ if dtype == DType::F32 => {
            let (x, y) = (x as f32, y as f32);
            let value = match op {
                BinOp::Add => x + y,
                BinOp::Sub => x - y,
                BinOp::Mul => x * y,
                BinOp::Div => x / y,
                BinOp::Min => minimum32(x, y),
                BinOp::Max => maximum32(x, y),
                _ => return Err(Fault::NoSuchOperator),
            };
            Ok(u64::from(value.to_bits()))
        }
        // For the 16-bit types, rounding the `f64` result gives what rounding the exact one does:
        // 53 bits are more than twice their 11 or 8 bits, plus two.
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
    let sticky = match magnitude >= 1 << 53 {
        true => (magnitude & !0xfff) | u128::from(magnitude & 0xfff != 0) << 12,
        false => magnitude,
    };
    let value = if value < 0 { -(sticky as f64) } else { sticky as f64 };
    from_f64(value, to)
}

/// An intrinsic on values of a type; `b` is the second argument where there is one.
///
/// Functions of floats are computed in `f64` and rounded once to the type, so that those of the
/// narrower types are as good as correctly rounded.
pub fn intrinsic(op: Intrin, dtype: DType, a: u64, b: u64) -> Result<u64, Fault> {
    match op {
        op if op.is_hint() => Ok(a),
        _ if dtype.is_float() => float_intrinsic(op, dtype, a, b),
        _ => int_intrinsic(op, dtype, a as i64, b as i64),
    }
}

/// The function of an intrinsic that takes one float and gives one.
pub fn float_function(op: Intrin) -> Option<fn(f64) -> f64> {
    Some(match op {
        Intrin::Exp => libm::exp,
        Intrin::Exp2 => libm::exp2,
        Intrin::Exp10 => libm::exp10,
        Intrin::Log => libm::log,
        Intrin::Log2 => libm::log2,
        Intrin::Log10 => libm::log10,
        Intrin::Log1p => libm::log1p,
        Intrin::Sqrt => f64::sqrt,
        Intrin::Rsqrt => |x| 1.0 / x.sqrt(),
        Intrin::Sigmoid => |x| 1.0 / (1.0 + libm::exp(-x)),
        Intrin::Erf => libm::erf,
        Intrin::Sin => libm::sin,
        Intrin::Cos => libm::cos,
        Intrin::Tan => libm::tan,
        Intrin::Sinh => libm::sinh,
        Intrin::Cosh => libm::cosh,
        Intrin::Tanh => libm::tanh,
        Intrin::Asin => libm::asin,
        Intrin::Acos => libm::acos,
        Intrin::Atan => libm::atan,
        Intrin::Asinh => libm::asinh,
        Intrin::Acosh => libm::acosh,
        Intrin::Atanh => libm::atanh,
        Intrin::Abs => f64::abs,
        Intrin::Floor => f64::floor,
        Intrin::Ceil => f64::ceil,
        Intrin::Trunc => f64::trunc,
        Intrin::Round => f64::round,
        Intrin::NearbyInt => f64::round_ties_even,
        _ => return None,
    })
}

fn float_intrinsic(op: Intrin, dtype: DType, a: u64, b: u64) -> Result<u64, Fault> {
    let (x, y) = (to_f64(a, dtype), to_f64(b, dtype));
    if let Some(f) = float_function(op) {
        return Ok(from_f64(f(x), dtype));
    }
    let truth = |v: bool| Ok(u64::from(v));
    match op {
        Intrin::Atan2 => Ok(from_f64(libm::atan2(x, y), dtype)),
        Intrin::Pow => Ok(from_f64(libm::pow(x, y), dtype)),
        Intrin::Fmod => Ok(from_f64(libm::fmod(x, y), dtype)),
        Intrin::IsNan => truth(x.is_nan()),
        Intrin::IsInf => truth(x.is_infinite()),
        Intrin::IsFinite => truth(x.is_finite()),
        _ => Err(Fault::NoSuchOperator),
    }
}

fn int_intrinsic(op: Intrin, dtype: DType, a: i64, b: i64) -> Result<u64, Fault> {
    let width = i64::from(dtype.bits);
    let unsigned = dtype.kind == TypeKind::UInt;
    let shift = || match (0..width).contains(&b) {
        true => Ok(b as u32),
        false => Err(Fault::ShiftTooFar),
    };
    let value = match op {
        Intrin::Abs if unsigned => a,
        Intrin::Abs => a.wrapping_abs(),
        Intrin::Pow if !unsigned && b < 0 => return Err(Fault::NegativePower),
        Intrin::Pow => {
            let (mut base, mut exponent, mut value) = (a, b as u64, 1i64);
            while exponent > 0 {
                if exponent & 1 == 1 {
                    value = value.wrapping_mul(base);
                }
                base = base.wrapping_mul(base);
                exponent >>= 1;
            }
            value
        }
        Intrin::BitAnd => a & b,
        Intrin::BitOr => a | b,
        Intrin::BitXor => a ^ b,
        Intrin::BitNot if dtype.is_bool() => a ^ 1,
        Intrin::BitNot => !a,
        Intrin::Shl => a << shift()?,
        Intrin::Shr if unsigned => ((a as u64) >> shift()?) as i64,
        Intrin::Shr => a >> shift()?,
        Intrin::Popcount => {
            let mask = if width == 64 { u64::MAX } else { (1u64 << width) - 1 };
            i64::from((a as u64 & mask).count_ones())
        }
        _ => return Err(Fault::NoSuchOperator),
    };
    Ok(wrap(value, dtype) as u64)
}

//! 16-bit floating point: rounding, and the way from and to memory.
//!
//! Values of `float16` and `bfloat16` are held as `float` and are always exactly representable in
//! their type: each operation computes in `float` and rounds its result. For addition,
//! subtraction, multiplication, division and square root this equals one correct rounding, because
//! 24 bits are at least 2 * 11 + 2.
//!
//! `float16` uses the machine's conversions where it has them. Everything else is done by integer
//! arithmetic on the bits: no call of a compiler's support library, so that objects link anywhere.
//! All functions work on scalars and vectors alike.

use tilewright_ir::{DType, TypeKind};

use super::code::{Code, Scalar, Val};

/// Bits of the `float` 0.5, whose unit in the last place, 2^-24, is the smallest `float16`.
const HALF_BITS: i64 = 0x3f00_0000;
/// Difference of the exponents' biases, 127 - 15, in the bits of a `float`.
const REBIAS: i64 = 112 << 23;

/// Rounds a `float` to a 16-bit type, to nearest with ties to even. Other types are left alone.
pub(super) fn round(c: &mut Code<'_>, v: &Val, dtype: DType) -> Val {
    match (dtype.kind, dtype.bits) {
        (TypeKind::BFloat, 16) => round_bf16(c, v),
        (TypeKind::Float, 16) if c.shared.machine.half => {
            let h = c.convert("fptrunc", v, Scalar::Half);
            c.convert("fpext", &h, Scalar::F32)
        }
        (TypeKind::Float, 16) => round_f16(c, v),
        _ => v.clone(),
    }
}

/// `double` to `float` by rounding to odd: the last bit of an inexact result is set. A further
/// rounding to at most 22 bits is then the same as one rounding of the `double`.
pub(super) fn round_to_odd(c: &mut Code<'_>, v: &Val) -> Val {
    let nearest = c.convert("fptrunc", v, Scalar::F32);
    let back = c.convert("fpext", &nearest, Scalar::F64);
    let inexact = c.cmp("fcmp one", &back, v);
    let (a, b) = (c.math("fabs", &[&back]), c.math("fabs", &[v]));
    let away = c.cmp("fcmp ogt", &a, &b);
    let bits = c.convert("bitcast", &nearest, Scalar::I32);
    let away = c.convert("zext", &away, Scalar::I32);
    let inexact = c.convert("zext", &inexact, Scalar::I32);
    // Towards zero first; from an infinity that is to the largest finite value.
    let bits = c.bin("sub", &bits, &away);
    let bits = c.bin("or", &bits, &inexact);
    c.convert("bitcast", &bits, Scalar::F32)
}

/// The 16 bits in memory of a value that is rounded already, as the type of memory.
pub(super) fn to_memory(c: &mut Code<'_>, v: &Val, dtype: DType) -> Val {
    if dtype.kind == TypeKind::BFloat {
        let bits = c.convert("bitcast", v, Scalar::I32);
        let bits = c.bin("lshr", &bits, &Val::int(bits.ty, 16));
        return c.convert("trunc", &bits, Scalar::I16);
    }
    if c.shared.machine.half {
        return c.convert("fptrunc", v, Scalar::Half);
    }
    let (bits, sign, magnitude) = split(c, v);
    let ty = bits.ty;
    // Normal numbers: the exponent's bias changes, 13 bits of the mantissa go.
    let normal = c.bin("sub", &magnitude, &Val::int(ty, REBIAS));
    let normal = c.bin("lshr", &normal, &Val::int(ty, 13));
    // Subnormal numbers: multiples of 2^-24, counted by adding 0.5.
    let counted = c.convert("bitcast", &magnitude, Scalar::F32);
    let counted = c.bin("fadd", &counted, &Val::float(counted.ty, 0.5));
    let counted = c.convert("bitcast", &counted, Scalar::I32);
    let counted = c.bin("sub", &counted, &Val::int(ty, HALF_BITS));
    // Infinities and NaN keep their mantissa.
    let mantissa = c.bin("lshr", &magnitude, &Val::int(ty, 13));
    let mantissa = c.bin("and", &mantissa, &Val::int(ty, 0x3ff));
    let special = c.bin("or", &mantissa, &Val::int(ty, 0x7c00));
    let ends = (REBIAS + (1 << 23), 0xff << 23);
    let value = by_size(c, &magnitude, ends, [&counted, &normal, &special]);
    let sign = c.bin("lshr", &sign, &Val::int(ty, 16));
    let value = c.bin("or", &value, &sign);
    c.convert("trunc", &value, Scalar::I16)
}

/// The value of what [`to_memory`] gives.
pub(super) fn from_memory(c: &mut Code<'_>, v: &Val, dtype: DType) -> Val {
    if v.ty.scalar == Scalar::Half {
        return c.convert("fpext", v, Scalar::F32);
    }
    let bits = c.convert("zext", v, Scalar::I32);
    let ty = bits.ty;
    if dtype.kind == TypeKind::BFloat {
        let bits = c.bin("shl", &bits, &Val::int(ty, 16));
        return c.convert("bitcast", &bits, Scalar::F32);
    }
    let magnitude = c.bin("and", &bits, &Val::int(ty, 0x7fff));
    let sign = c.bin("xor", &bits, &magnitude);
    let sign = c.bin("shl", &sign, &Val::int(ty, 16));
    let shifted = c.bin("shl", &magnitude, &Val::int(ty, 13));
    let normal = c.bin("add", &shifted, &Val::int(ty, REBIAS));
    let special = c.bin("or", &shifted, &Val::int(ty, 0xff << 23));
    let counted = c.convert("uitofp", &magnitude, Scalar::F32);
    let counted = c.bin("fmul", &counted, &Val::float(counted.ty, 1.0 / f64::from(1 << 24)));
    let counted = c.convert("bitcast", &counted, Scalar::I32);
    let value = by_size(c, &magnitude, (0x400, 0x7c00), [&counted, &normal, &special]);
    let value = c.bin("or", &value, &sign);
    c.convert("bitcast", &value, Scalar::F32)
}

/// One of three values, by whether bits are below a first end, below a second one, or not.
fn by_size(c: &mut Code<'_>, bits: &Val, ends: (i64, i64), [x, y, z]: [&Val; 3]) -> Val {
    let small = c.cmp("icmp ult", bits, &Val::int(bits.ty, ends.0));
    let large = c.cmp("icmp uge", bits, &Val::int(bits.ty, ends.1));
    let finite = c.select(&small, x, y);
    c.select(&large, z, &finite)
}

/// The bits of a `float`, its sign bit, and its bits without the sign.
fn split(c: &mut Code<'_>, v: &Val) -> (Val, Val, Val) {
    let bits = c.convert("bitcast", v, Scalar::I32);
    let magnitude = c.bin("and", &bits, &Val::int(bits.ty, 0x7fff_ffff));
    let sign = c.bin("xor", &bits, &magnitude);
    (bits, sign, magnitude)
}

/// Rounds bits to a multiple of `1 << drop`, ties to even.
fn round_bits(c: &mut Code<'_>, bits: &Val, drop: i64) -> Val {
    let ty = bits.ty;
    let odd = c.bin("lshr", bits, &Val::int(ty, drop));
    let odd = c.bin("and", &odd, &Val::int(ty, 1));
    let sum = c.bin("add", bits, &Val::int(ty, (1 << (drop - 1)) - 1));
    let sum = c.bin("add", &sum, &odd);
    c.bin("and", &sum, &Val::int(ty, -(1 << drop)))
}

fn round_bf16(c: &mut Code<'_>, v: &Val) -> Val {
    let bits = c.convert("bitcast", v, Scalar::I32);
    let ty = bits.ty;
    let rounded = round_bits(c, &bits, 16);
    // A NaN keeps its upper bits and becomes a quiet one.
    let nan = c.bin("and", &bits, &Val::int(ty, -0x1_0000));
    let nan = c.bin("or", &nan, &Val::int(ty, 0x40_0000));
    let bits = c.select_cmp("fcmp uno", v, v, &nan, &rounded);
    c.convert("bitcast", &bits, Scalar::F32)
}

fn round_f16(c: &mut Code<'_>, v: &Val) -> Val {
    let (_, sign, magnitude) = split(c, v);
    let ty = magnitude.ty;
    let normal = round_bits(c, &magnitude, 13);
    // Half way between the largest value, 65504, and the next power of two everything is infinite.
    let huge = c.cmp("icmp uge", &magnitude, &Val::int(ty, 0x477f_f000));
    let normal = c.select(&huge, &Val::int(ty, 0xff << 23), &normal);
    // Below 2^-14 the result is a multiple of 2^-24: the sum with 0.5 rounds to one.
    let float = c.convert("bitcast", &magnitude, Scalar::F32);
    let half = Val::float(float.ty, 0.5);
    let sum = c.bin("fadd", &float, &half);
    let counted = c.bin("fsub", &sum, &half);
    let counted = c.convert("bitcast", &counted, Scalar::I32);
    let small = c.cmp("icmp ult", &magnitude, &Val::int(ty, REBIAS + (1 << 23)));
    let finite = c.select(&small, &counted, &normal);
    let nan = c.bin("and", &magnitude, &Val::int(ty, -0x2000));
    let nan = c.bin("or", &nan, &Val::int(ty, 0x40_0000));
    let value = c.select_cmp("fcmp uno", v, v, &nan, &finite);
    let value = c.bin("or", &value, &sign);
    c.convert("bitcast", &value, Scalar::F32)
}

//! `float32` functions that are computed in `float64`: powers and the rarer logarithms.
//!
//! Rounding a `float64` that is right to 34 bits gives the correctly rounded `float32` in all but
//! one of a thousand cases, and gets overflow and subnormal results right by itself.

use super::super::code::{Code, Scalar, Val};
use super::polynomial;
use super::single::log_special;

/// log2(m) = s Q(s^2) with s = (m - 1) / (m + 1), for m between sqrt(1/2) and sqrt(2), to 2^-45.
const LOG2: [f64; 6] = [
    2.88539008177785,
    0.9617966941133497,
    0.5770779423686762,
    0.412209251680566,
    0.3199057339066502,
    0.28289954226905895,
];
/// 2^x for |x| <= 1/2, to 2^-34.5.
const EXP2: [f64; 8] = [
    0.999999999961682,
    0.6931471807284474,
    0.24022651198157374,
    0.055504103534469336,
    0.009618027253691383,
    0.001333392256443397,
    0.00015469291135265833,
    1.5201921364606938e-05,
];
/// Adding 1.5 * 2^52 rounds to an integer, which is then in the lowest bits.
const ROUNDER: f64 = 6_755_399_441_055_744.0;
/// The bits of sqrt(1/2).
const SQRT_HALF: i64 = 0x3fe6_a09e_667f_3bcd;
const ONE: i64 = 0x3ff0_0000_0000_0000;

pub(super) fn widen(c: &mut Code<'_>, x: &Val) -> Val {
    c.convert("fpext", x, Scalar::F64)
}

pub(super) fn narrow(c: &mut Code<'_>, x: &Val) -> Val {
    c.convert("fptrunc", x, Scalar::F32)
}

/// log2 of a positive, finite, normal `float64`; anything for others.
fn log2_of(c: &mut Code<'_>, x: &Val) -> Val {
    let bits = c.convert("bitcast", x, Scalar::I64);
    let ty = bits.ty;
    let shifted = c.bin("add", &bits, &Val::int(ty, ONE - SQRT_HALF));
    let exponent = c.bin("lshr", &shifted, &Val::int(ty, 52));
    let fraction = c.bin("and", &shifted, &Val::int(ty, (1 << 52) - 1));
    let mantissa = c.bin("add", &fraction, &Val::int(ty, SQRT_HALF));
    let m = c.convert("bitcast", &mantissa, Scalar::F64);
    // The exponent as a number, without a conversion that only the newest machines vectorise.
    let biased = c.bin("add", &exponent, &Val::int(ty, ROUNDER.to_bits() as i64 - 1023));
    let biased = c.convert("bitcast", &biased, Scalar::F64);
    let e = c.bin("fsub", &biased, &Val::float(m.ty, ROUNDER));
    let one = Val::float(m.ty, 1.0);
    let above = c.bin("fsub", &m, &one);
    let sum = c.bin("fadd", &m, &one);
    let s = c.bin("fdiv", &above, &sum);
    let square = c.bin("fmul", &s, &s);
    let q = polynomial(c, &square, &LOG2);
    c.fma(&s, &q, &e)
}

/// 2^x of a `float64`: 0 or too large for a `float32` where |x| is above 200, `NaN` of `NaN`.
pub(super) fn exp2_of(c: &mut Code<'_>, x: &Val) -> Val {
    let (low, high) = (Val::float(x.ty, -200.0), Val::float(x.ty, 200.0));
    let x = c.clamp(x, &low, &high);
    let rounder = Val::float(x.ty, ROUNDER);
    let shifted = c.bin("fadd", &x, &rounder);
    let n = c.bin("fsub", &shifted, &rounder);
    let f = c.bin("fsub", &x, &n);
    let p = polynomial(c, &f, &EXP2);
    let bits = c.convert("bitcast", &shifted, Scalar::I64);
    let ty = bits.ty;
    // The shift drops all but the lowest bits.
    let biased = c.bin("add", &bits, &Val::int(ty, 1023));
    let power = c.bin("shl", &biased, &Val::int(ty, 52));
    let power = c.convert("bitcast", &power, Scalar::F64);
    c.bin("fmul", &p, &power)
}

pub(super) fn exp2(c: &mut Code<'_>, x: &Val) -> Val {
    let wide = widen(c, x);
    let y = exp2_of(c, &wide);
    narrow(c, &y)
}

pub(super) fn exp10(c: &mut Code<'_>, x: &Val) -> Val {
    let wide = widen(c, x);
    let power = c.bin("fmul", &wide, &Val::float(wide.ty, std::f64::consts::LOG2_10));
    let y = exp2_of(c, &power);
    narrow(c, &y)
}

/// The logarithm to the base whose logarithm of 2 is `scale`.
pub(super) fn log(c: &mut Code<'_>, x: &Val, scale: f64) -> Val {
    let wide = widen(c, x);
    let y = log2_of(c, &wide);
    let y = c.bin("fmul", &y, &Val::float(y.ty, scale));
    let y = narrow(c, &y);
    log_special(c, x, &y)
}

/// log(1 + x) of a `float64` above -1; anything for infinity and `NaN`. What the sum loses is put back by
/// the factor x / ((1 + x) - 1).
pub(super) fn log1p_of(c: &mut Code<'_>, x: &Val) -> Val {
    let one = Val::float(x.ty, 1.0);
    let sum = c.bin("fadd", x, &one);
    let y = log2_of(c, &sum);
    let y = c.bin("fmul", &y, &Val::float(y.ty, std::f64::consts::LN_2));
    let kept = c.bin("fsub", &sum, &one);
    let factor = c.bin("fdiv", x, &kept);
    let y = c.bin("fmul", &y, &factor);
    c.select_cmp("fcmp oeq", &sum, &one, x, &y)
}

/// log(1 + x).
pub(super) fn log1p(c: &mut Code<'_>, x: &Val) -> Val {
    let wide = widen(c, x);
    let y = log1p_of(c, &wide);
    let y = narrow(c, &y);
    let sum = c.bin("fadd", &wide, &Val::float(wide.ty, 1.0));
    let sum = narrow(c, &sum);
    let special = log_special(c, &sum, &y);
    // Where the sum rounds to zero or infinity but is neither, there is nothing special.
    let finite = c.math("fabs", &[x]);
    c.select_cmp("fcmp olt", &finite, &Val::float(x.ty, 0.5), &y, &special)
}

/// x^y = 2^(y log2 |x|), with the special cases of C99.
pub(super) fn pow(c: &mut Code<'_>, x: &Val, y: &Val) -> Val {
    let (zero, one) = (Val::zero(x.ty), Val::float(x.ty, 1.0));
    let infinity = Val::float(x.ty, f64::INFINITY);
    let magnitude = c.math("fabs", &[x]);
    let wide = widen(c, &magnitude);
    let log = log2_of(c, &wide);
    let log = c.select_cmp("fcmp oeq", x, &zero, &Val::float(log.ty, f64::NEG_INFINITY), &log);
    let is_infinite = c.cmp("fcmp oeq", &magnitude, &infinity);
    let log = c.select(&is_infinite, &Val::float(log.ty, f64::INFINITY), &log);
    let log = c.select_cmp("fcmp uno", x, x, &Val::float(log.ty, f64::NAN), &log);
    let power = widen(c, y);
    let power = c.bin("fmul", &power, &log);
    let r = exp2_of(c, &power);
    let r = narrow(c, &r);

    // Negative bases: odd powers are negative, broken ones are not there.
    let whole = c.math("floor", &[y]);
    let is_whole = c.cmp("fcmp oeq", &whole, y);
    let half = c.bin("fmul", y, &Val::float(y.ty, 0.5));
    let whole_half = c.math("floor", &[&half]);
    let is_odd = c.cmp("fcmp une", &whole_half, &half);
    let is_odd = c.bin("and", &is_odd, &is_whole);
    let signed = c.math("copysign", &[&r, x]);
    let r = c.select(&is_odd, &signed, &r);
    let is_negative = c.cmp("fcmp olt", x, &zero);
    let broken = c.not(&is_whole);
    let invalid = c.bin("and", &is_negative, &broken);
    let finite = c.not(&is_infinite);
    let invalid = c.bin("and", &invalid, &finite);
    let r = c.select(&invalid, &Val::float(x.ty, f64::NAN), &r);
    // NaN as a power is not whole, but must not become one of an infinite base.
    let r = c.select_cmp("fcmp uno", y, y, y, &r);

    let trivial = c.cmp("fcmp oeq", y, &zero);
    let base_one = c.cmp("fcmp oeq", x, &one);
    let trivial = c.bin("or", &trivial, &base_one);
    // (-1)^(+-inf) is 1 as well.
    let unit = c.cmp("fcmp oeq", &magnitude, &one);
    let y_magnitude = c.math("fabs", &[y]);
    let endless = c.cmp("fcmp oeq", &y_magnitude, &infinity);
    let unit = c.bin("and", &unit, &endless);
    let trivial = c.bin("or", &trivial, &unit);
    c.select(&trivial, &one, &r)
}

//! Functions that are computed in `float32`: `exp`, `log`, `tanh`, `erf`.

use super::super::code::{Code, Scalar, Val};
use super::{helper, polynomial};

/// ln 2 in two parts. Products of the first with integers below 2^15 are exact.
const LN2_HIGH: f64 = 0.693_359_375;
const LN2_LOW: f64 = std::f64::consts::LN_2 - LN2_HIGH;
/// Adding 1.5 * 2^23 rounds to an integer, which is then in the lowest bits; here with twice the
/// bias of exponents.
const ROUNDER: f64 = 12_582_912.0 + 2.0 * 127.0;
/// The exponential of this is 2^-254, of which each half has the exponent of zero. From -104 down it is zero.
const LOWEST: f64 = -176.0;

/// (e^r - 1 - r) / r^2 for |r| <= ln 2 / 2, to 2^-28.2 of e^r.
const EXP: [f64; 5] = f32s([0.49999994, 0.16666521, 0.041668266, 0.008368677, 0.0013820734]);
/// (log(1 + f) - f + f^2 / 2) / f^3 for 1 + f between sqrt(1/2) and sqrt(2), to 2^-30.3 of the
/// logarithm.
const LOG: [f64; 9] = f32s([
    0.33333313,
    -0.2500001,
    0.20002072,
    -0.16667989,
    0.14220358,
    -0.12406234,
    0.11883549,
    -0.116700985,
    0.06749269,
]);
/// (tanh(x) / x - 1) / x^2 in x^2 for |x| <= 0.625, to 2^-27.7.
const TANH: [f64; 5] = f32s([-0.3333328, 0.13331406, -0.053736515, 0.020628167, -0.0056922967]);
/// erf(x) / x - 1 in x^2 for |x| <= 1, to 2^-29.4.
const ERF: [f64; 7] = f32s([
    0.12837917,
    -0.37612626,
    0.11283579,
    -0.026853347,
    0.005187162,
    -0.0007997853,
    7.806904e-05,
]);
/// -log(1 - erf(x)) for x between 1 and 3.95, to 2^-29.8 of erf.
const ERF_TAIL: [f64; 7] = f32s([
    0.00034152236,
    1.1270891,
    0.638145,
    0.10310645,
    -0.021837832,
    0.0029475742,
    -0.0001863674,
]);

/// The coefficients as the `float32` numbers that they are.
pub(super) const fn f32s<const N: usize>(values: [f32; N]) -> [f64; N] {
    let mut out = [0.0; N];
    let mut k = 0;
    while k < N {
        out[k] = values[k] as f64;
        k += 1;
    }
    out
}

pub(super) fn constant(x: &Val, value: f64) -> Val {
    Val::float(x.ty, f64::from(value as f32))
}

/// e^x = 2^n e^r. The power of two is applied in two halves, so that results down to the smallest
/// subnormal number are rounded once and those that are too large become infinite. Their exponents,
/// with the bias, come from the bits of `n + ROUNDER` alone: what is in front of them is shifted out.
/// At the lower bound both halves are zero: a product that underflows takes some processors a hundred
/// times as long, and what a mask leaves out of a softmax lies there.
pub(super) fn exp(c: &mut Code<'_>, x: &Val) -> Val {
    // Beyond these bounds the result is 0 or infinite. NaN fails both comparisons and stays.
    let (low, high) = (constant(x, LOWEST), constant(x, 89.0));
    let x = c.clamp(x, &low, &high);
    let rounder = constant(&x, ROUNDER);
    let shifted = c.fma(&x, &constant(&x, std::f64::consts::LOG2_E), &rounder);
    let n = c.bin("fsub", &shifted, &rounder);
    let r = c.fma(&n, &constant(&x, -LN2_HIGH), &x);
    let r = c.fma(&n, &constant(&x, -LN2_LOW), &r);
    let p = polynomial(c, &r, &EXP);
    let p = c.fma(&p, &r, &constant(&x, 1.0));
    let bits = c.convert("bitcast", &shifted, Scalar::I32);
    let ty = bits.ty;
    let half = c.bin("ashr", &bits, &Val::int(ty, 1));
    let [whole, first] = [&bits, &half].map(|n| c.bin("shl", n, &Val::int(ty, 23)));
    let second = c.bin("sub", &whole, &first);
    let [first, second] = [first, second].map(|n| c.convert("bitcast", &n, Scalar::F32));
    // The first half has no rounding: it goes to both terms of 1 + r p.
    let r = c.bin("fmul", &r, &first);
    let y = c.fma(&p, &r, &first);
    c.bin("fmul", &y, &second)
}

/// log x = e ln 2 + log(1 + f).
pub(super) fn log(c: &mut Code<'_>, x: &Val) -> Val {
    // A subnormal number is made normal first.
    let tiny = c.cmp("fcmp olt", x, &Val::float(x.ty, f64::from(f32::MIN_POSITIVE)));
    let scaled = c.bin("fmul", x, &constant(x, 8_388_608.0));
    let normal = c.select(&tiny, &scaled, x);
    let bits = c.convert("bitcast", &normal, Scalar::I32);
    let ty = bits.ty;
    let scale = c.select(&tiny, &Val::int(ty, -23), &Val::zero(ty));
    // The exponent of what is left after dividing by sqrt(1/2), whose bits these are.
    let above = c.bin("sub", &bits, &Val::int(ty, 0x3f35_04f3));
    let exponent = c.bin("ashr", &above, &Val::int(ty, 23));
    let shifted = c.bin("shl", &exponent, &Val::int(ty, 23));
    let mantissa = c.bin("sub", &bits, &shifted);
    let mantissa = c.convert("bitcast", &mantissa, Scalar::F32);
    let exponent = c.bin("add", &exponent, &scale);
    let e = c.convert("sitofp", &exponent, Scalar::F32);
    let f = c.bin("fsub", &mantissa, &constant(x, 1.0));
    let square = c.bin("fmul", &f, &f);
    let cube = c.bin("fmul", &square, &f);
    let p = polynomial(c, &f, &LOG);
    let p = c.bin("fmul", &p, &cube);
    let p = c.fma(&e, &constant(x, LN2_LOW), &p);
    let p = c.fma(&square, &constant(x, -0.5), &p);
    let p = c.bin("fadd", &f, &p);
    let y = c.fma(&e, &constant(x, LN2_HIGH), &p);
    log_special(c, x, &y)
}

/// Replaces the logarithm of what has none: of zero, infinity, negative numbers and `NaN`.
pub(super) fn log_special(c: &mut Code<'_>, x: &Val, y: &Val) -> Val {
    let zero = Val::zero(x.ty);
    let infinity = Val::float(x.ty, f64::INFINITY);
    let y = c.select_cmp("fcmp oeq", x, &infinity, &infinity, y);
    let y = c.select_cmp("fcmp oeq", x, &zero, &Val::float(x.ty, f64::NEG_INFINITY), &y);
    c.select_cmp("fcmp ult", x, &zero, &Val::float(x.ty, f64::NAN), &y)
}

pub(super) fn tanh(c: &mut Code<'_>, x: &Val) -> Val {
    let one = constant(x, 1.0);
    let square = c.bin("fmul", x, x);
    let p = polynomial(c, &square, &TANH);
    let cube = c.bin("fmul", &square, x);
    let small = c.fma(&p, &cube, x);
    let magnitude = c.math("fabs", &[x]);
    let twice = c.bin("fadd", &magnitude, &magnitude);
    let e = helper(c, "exp", &[&twice], |c, x| exp(c, &x[0]));
    let denominator = c.bin("fadd", &e, &one);
    let quotient = c.bin("fdiv", &constant(x, 2.0), &denominator);
    let large = c.bin("fsub", &one, &quotient);
    let y = c.select_cmp("fcmp olt", &magnitude, &constant(x, 0.625), &small, &large);
    // This gives -0 its sign back as well.
    c.math("copysign", &[&y, x])
}

pub(super) fn erf(c: &mut Code<'_>, x: &Val) -> Val {
    let one = constant(x, 1.0);
    let square = c.bin("fmul", x, x);
    let p = polynomial(c, &square, &ERF);
    let small = c.fma(&p, x, x);
    let magnitude = c.math("fabs", &[x]);
    // From here on the result is 1.
    let end = constant(x, 3.95);
    let bounded = c.select_cmp("fcmp olt", &end, &magnitude, &end, &magnitude);
    let q = polynomial(c, &bounded, &ERF_TAIL);
    let q = c.emit(x.ty, format_args!("fneg {q}"));
    let e = helper(c, "exp", &[&q], |c, x| exp(c, &x[0]));
    let large = c.bin("fsub", &one, &e);
    let large = c.math("copysign", &[&large, x]);
    c.select_cmp("fcmp olt", &magnitude, &one, &small, &large)
}

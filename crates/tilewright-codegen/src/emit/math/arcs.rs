//! Inverse trigonometric functions of `float32`, computed in `float32`.

use super::super::code::{Code, Val};
use super::polynomial;
use super::single::{constant, f32s};

/// (asin(x) / x - 1) / x^2 in x^2 for |x| <= 1/2, to 2^-27.6.
const ASIN: [f64; 5] = f32s([0.16666752, 0.074953094, 0.04546915, 0.024184778, 0.042158306]);
/// (atan(x) / x - 1) / x^2 in x^2 for |x| <= 1, to 2^-28.5.
const ATAN: [f64; 9] = f32s([
    -0.333333,
    0.1999853,
    -0.14264016,
    0.109508805,
    -0.08399306,
    0.057881393,
    -0.031097002,
    0.01086871,
    -0.001782832,
]);
/// pi/2 in two parts.
const HALF_PI: f64 = std::f32::consts::FRAC_PI_2 as f64;
const HALF_PI_LOW: f64 = std::f64::consts::FRAC_PI_2 - HALF_PI;

/// pi/2 - (y + z), where z is the smaller one. One half of pi/2 is taken off y first, which loses
/// little or nothing, so that no step is larger than the result.
fn complement(c: &mut Code<'_>, y: &Val, z: &Val) -> Val {
    let half = constant(y, HALF_PI / 2.0);
    let y = c.bin("fsub", y, &half);
    let z = c.bin("fsub", z, &constant(z, HALF_PI_LOW));
    let less = c.bin("fadd", &y, &z);
    c.bin("fsub", &half, &less)
}

/// y^3 p(y^2), given y^2.
fn rest_of(c: &mut Code<'_>, y: &Val, square: &Val, coefficients: &[f64]) -> Val {
    let p = polynomial(c, square, coefficients);
    let cube = c.bin("fmul", square, y);
    c.bin("fmul", &p, &cube)
}

/// A number whose arc sine is the sum of itself and what follows from its square: |x| up to 1/2,
/// sqrt((1 - |x|) / 2) above. Also that rest, and whether |x| is above. `NaN` where |x| is above 1.
fn half_arc(c: &mut Code<'_>, magnitude: &Val) -> (Val, Val, Val) {
    let half = constant(magnitude, 0.5);
    let above = c.cmp("fcmp ogt", magnitude, &half);
    let left = c.bin("fsub", &constant(magnitude, 1.0), magnitude);
    let left = c.bin("fmul", &left, &half);
    let low_square = c.bin("fmul", magnitude, magnitude);
    let square = c.select(&above, &left, &low_square);
    let root = c.math("sqrt", &[&left]);
    let y = c.select(&above, &root, magnitude);
    let rest = rest_of(c, &y, &square, &ASIN);
    (y, rest, above)
}

/// asin(x) = pi/2 - 2 asin(sqrt((1 - x) / 2)) above 1/2.
pub(super) fn asin(c: &mut Code<'_>, x: &Val) -> Val {
    let magnitude = c.math("fabs", &[x]);
    let (y, rest, above) = half_arc(c, &magnitude);
    let small = c.bin("fadd", &y, &rest);
    let [y, rest] = [y, rest].map(|v| c.bin("fadd", &v, &v));
    let large = complement(c, &y, &rest);
    let arc = c.select(&above, &large, &small);
    c.math("copysign", &[&arc, x])
}

/// acos(x) = 2 asin(sqrt((1 - x) / 2)) above 1/2, pi less that of -x below -1/2, pi/2 - asin(x) between.
pub(super) fn acos(c: &mut Code<'_>, x: &Val) -> Val {
    let magnitude = c.math("fabs", &[x]);
    let (y, rest, above) = half_arc(c, &magnitude);
    let arc = c.bin("fadd", &y, &rest);
    let twice = c.bin("fadd", &arc, &arc);
    let negative = c.cmp("fcmp olt", x, &Val::zero(x.ty));
    let signed = c.math("copysign", &[&arc, x]);
    let mut less = |whole: f64, low: f64, arc: &Val| {
        let arc = c.bin("fsub", arc, &constant(x, low));
        c.bin("fsub", &constant(x, whole), &arc)
    };
    let below = less(2.0 * HALF_PI, 2.0 * HALF_PI_LOW, &twice);
    let between = less(HALF_PI, HALF_PI_LOW, &signed);
    let outside = c.select(&negative, &below, &twice);
    c.select(&above, &outside, &between)
}

/// atan(x) = pi/2 - atan(1 / x) above 1.
pub(super) fn atan(c: &mut Code<'_>, x: &Val) -> Val {
    let one = constant(x, 1.0);
    let magnitude = c.math("fabs", &[x]);
    let above = c.cmp("fcmp ogt", &magnitude, &one);
    let numerator = c.select(&above, &one, &magnitude);
    let denominator = c.select(&above, &magnitude, &one);
    let y = c.bin("fdiv", &numerator, &denominator);
    let square = c.bin("fmul", &y, &y);
    let rest = rest_of(c, &y, &square, &ATAN);
    let large = complement(c, &y, &rest);
    let small = c.bin("fadd", &y, &rest);
    let arc = c.select(&above, &large, &small);
    c.math("copysign", &[&arc, x])
}

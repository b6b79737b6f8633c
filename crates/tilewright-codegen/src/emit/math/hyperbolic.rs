//! Hyperbolic functions of `float32` and their inverses, computed in `float64`; `tanh` is in `single`.

use super::super::code::{Code, Val};
use super::polynomial;
use super::wide::{exp2_of, log1p_of, narrow, widen};

/// (sinh(x) / x - 1) / x^2 in x^2 for |x| <= 1, to 2^-43.
const SINH: [f64; 5] = [
    0.16666666667047308,
    0.008333333278471319,
    0.0001984129539939592,
    2.755214121575602e-06,
    2.5526645922007417e-08,
];

/// e^x and e^-x: 0 or too large for a `float32` where |x| is above 139, `NaN` of `NaN`.
fn both_powers(c: &mut Code<'_>, wide: &Val) -> (Val, Val) {
    let power = c.bin("fmul", wide, &Val::float(wide.ty, std::f64::consts::LOG2_E));
    let e = exp2_of(c, &power);
    let inverse = c.bin("fdiv", &Val::float(wide.ty, 1.0), &e);
    (e, inverse)
}

pub(super) fn sinh(c: &mut Code<'_>, x: &Val) -> Val {
    let wide = widen(c, x);
    let (e, inverse) = both_powers(c, &wide);
    let twice = c.bin("fsub", &e, &inverse);
    let large = c.bin("fmul", &twice, &Val::float(wide.ty, 0.5));
    let square = c.bin("fmul", &wide, &wide);
    let p = polynomial(c, &square, &SINH);
    let cube = c.bin("fmul", &square, &wide);
    let small = c.fma(&p, &cube, &wide);
    let y = c.select_cmp("fcmp olt", &square, &Val::float(wide.ty, 1.0), &small, &large);
    narrow(c, &y)
}

pub(super) fn cosh(c: &mut Code<'_>, x: &Val) -> Val {
    let wide = widen(c, x);
    let (e, inverse) = both_powers(c, &wide);
    let twice = c.bin("fadd", &e, &inverse);
    let y = c.bin("fmul", &twice, &Val::float(wide.ty, 0.5));
    narrow(c, &y)
}

/// asinh(x) = log(1 + x + x^2 / (1 + sqrt(1 + x^2))), which loses nothing where x is small.
pub(super) fn asinh(c: &mut Code<'_>, x: &Val) -> Val {
    let magnitude = c.math("fabs", &[x]);
    let wide = widen(c, &magnitude);
    let one = Val::float(wide.ty, 1.0);
    let square = c.bin("fmul", &wide, &wide);
    let under = c.bin("fadd", &square, &one);
    let root = c.math("sqrt", &[&under]);
    let below = c.bin("fadd", &root, &one);
    let part = c.bin("fdiv", &square, &below);
    let above = c.bin("fadd", &wide, &part);
    let y = log1p_of(c, &above);
    let y = narrow(c, &y);
    let infinity = Val::float(x.ty, f64::INFINITY);
    let y = c.select_cmp("fcmp olt", &magnitude, &infinity, &y, &magnitude);
    c.math("copysign", &[&y, x])
}

/// acosh(x) = log(1 + (x - 1) + sqrt((x - 1) (x + 1))).
pub(super) fn acosh(c: &mut Code<'_>, x: &Val) -> Val {
    let wide = widen(c, x);
    let one = Val::float(wide.ty, 1.0);
    let above = c.bin("fsub", &wide, &one);
    let sum = c.bin("fadd", &wide, &one);
    let product = c.bin("fmul", &above, &sum);
    let root = c.math("sqrt", &[&product]);
    let above = c.bin("fadd", &above, &root);
    let y = log1p_of(c, &above);
    let y = narrow(c, &y);
    let y = c.select_cmp("fcmp olt", x, &Val::float(x.ty, f64::INFINITY), &y, x);
    c.select_cmp("fcmp oge", x, &Val::float(x.ty, 1.0), &y, &Val::float(x.ty, f64::NAN))
}

/// atanh(x) = log(1 + 2 x / (1 - x)) / 2.
pub(super) fn atanh(c: &mut Code<'_>, x: &Val) -> Val {
    let magnitude = c.math("fabs", &[x]);
    let wide = widen(c, &magnitude);
    let twice = c.bin("fadd", &wide, &wide);
    let rest = c.bin("fsub", &Val::float(wide.ty, 1.0), &wide);
    let above = c.bin("fdiv", &twice, &rest);
    let y = log1p_of(c, &above);
    let y = c.bin("fmul", &y, &Val::float(wide.ty, 0.5));
    let y = narrow(c, &y);
    let one = Val::float(x.ty, 1.0);
    let infinity = Val::float(x.ty, f64::INFINITY);
    let y = c.select_cmp("fcmp oeq", &magnitude, &one, &infinity, &y);
    let y = c.select_cmp("fcmp ugt", &magnitude, &one, &Val::float(x.ty, f64::NAN), &y);
    c.math("copysign", &[&y, x])
}

//! `sin`, `cos` and `tan` of `float32`, for all inputs.
//!
//! With x = m 2^(E - 150), where m is the mantissa as an integer below 2^24 and E the biased
//! exponent, the multiple of pi/2 nearest to x and the rest follow from m T(E), where
//! T(E) = 2^(E - 150) 2/pi modulo 4: whole turns drop out, because m is an integer. T(E) is a
//! table of two `float64` for each exponent; the first has 29 significant bits, so that its
//! product with m is exact, the second the 53 that follow (Payne and Hanek's idea, with a table by
//! exponent). The closest that a `float32` comes to a multiple of pi/2 is about 2^-30 of it, which
//! leaves more than 40 bits of the rest.

use super::super::code::{Code, Scalar, Ty, Val};
use super::polynomial;

/// The fraction 2/pi, 256 bits, most significant first.
const TWO_OVER_PI: [u64; 4] =
    [0xA2F9_836E_4E44_1529, 0xFC27_57D1_F534_DDC0, 0xDB62_9599_3C43_9041, 0xFE51_63AB_DEBB_C561];

const TABLE: &str = "tw.two_over_pi";
/// Adding 1.5 * 2^52 rounds to an integer, which is then in the lowest bits.
const ROUNDER: f64 = 6_755_399_441_055_744.0;

/// (sin(r) / r - 1) / r^2 in r^2 for |r| <= pi/4, to 2^-27.9.
const SIN: [f64; 3] = [-0.16666655_f32 as f64, 0.008332188_f32 as f64, -0.000195181_f32 as f64];
/// (cos(r) - 1 + r^2 / 2) / r^4 in r^2 for |r| <= pi/4, to 2^-33.
const COS: [f64; 3] = [0.041666646_f32 as f64, -0.0013887311_f32 as f64, 2.4432553e-05_f32 as f64];
/// (tan(r) / r - 1) / r^2 in r^2 for |r| <= pi/4, to 2^-37.
const TAN: [f64; 9] = [
    0.3333333346428229,
    0.13333324902027974,
    0.05397011384167463,
    0.021849504403016275,
    0.008983616587580536,
    0.0031600897791678986,
    0.0023893868521302803,
    -0.0005719270723942715,
    0.0009507310572568396,
];

pub(super) fn sin(c: &mut Code<'_>, x: &Val) -> Val {
    let (quadrant, r) = reduce_single(c, x);
    let y = either(c, &quadrant, &r);
    let sign = c.convert("bitcast", x, Scalar::I32);
    let sign = c.bin("and", &sign, &Val::int(sign.ty, i64::from(i32::MIN)));
    let y = flip(c, &y, &quadrant, Some(&sign));
    // For these, including the subnormal ones and -0, the sine is the number itself.
    let magnitude = c.math("fabs", &[x]);
    c.select_cmp("fcmp olt", &magnitude, &Val::float(x.ty, 1.0 / 4096.0), x, &y)
}

pub(super) fn cos(c: &mut Code<'_>, x: &Val) -> Val {
    let (quadrant, r) = reduce_single(c, x);
    let quadrant = c.bin("add", &quadrant, &Val::int(quadrant.ty, 1));
    let y = either(c, &quadrant, &r);
    flip(c, &y, &quadrant, None)
}

/// In `float64`, so that the quotient -1 / tan(r) of odd quadrants is rounded once.
pub(super) fn tan(c: &mut Code<'_>, x: &Val) -> Val {
    let (quadrant, r) = reduce(c, x);
    let square = c.bin("fmul", &r, &r);
    let p = polynomial(c, &square, &TAN);
    let cube = c.bin("fmul", &square, &r);
    let even = c.fma(&p, &cube, &r);
    let odd = c.bin("fdiv", &Val::float(r.ty, -1.0), &even);
    let is_odd = c.bin("and", &quadrant, &Val::int(quadrant.ty, 1));
    let y = c.select_cmp("icmp ne", &is_odd, &Val::zero(quadrant.ty), &odd, &even);
    let y = c.convert("fptrunc", &y, Scalar::F32);
    let sign = c.math("copysign", &[&Val::float(x.ty, 1.0), x]);
    let y = c.bin("fmul", &y, &sign);
    // For these, including the subnormal ones and -0, the tangent is the number itself.
    let magnitude = c.math("fabs", &[x]);
    c.select_cmp("fcmp olt", &magnitude, &Val::float(x.ty, 2f64.powi(-20)), x, &y)
}

/// [`reduce`], with the rest as a `float32`.
fn reduce_single(c: &mut Code<'_>, x: &Val) -> (Val, Val) {
    let (quadrant, r) = reduce(c, x);
    (quadrant, c.convert("fptrunc", &r, Scalar::F32))
}

/// The quadrant of |x| (in the lowest two bits), and the rest between -pi/4 and pi/4, a `float64`.
fn reduce(c: &mut Code<'_>, x: &Val) -> (Val, Val) {
    c.shared.global(TABLE, table);
    let bits = c.convert("bitcast", x, Scalar::I32);
    let ty = bits.ty;
    let exponent = c.bin("lshr", &bits, &Val::int(ty, 23));
    let exponent = c.bin("and", &exponent, &Val::int(ty, 0xff));
    let mantissa = c.bin("and", &bits, &Val::int(ty, 0x7f_ffff));
    let mantissa = c.bin("or", &mantissa, &Val::int(ty, 0x80_0000));
    let m = c.convert("sitofp", &mantissa, Scalar::F64);
    let (high, low) = (entry(c, &exponent, 0), entry(c, &exponent, 1));
    let turns = c.bin("fmul", &m, &high);
    let small = c.bin("fmul", &m, &low);
    let rounder = Val::float(turns.ty, ROUNDER);
    let sum = c.bin("fadd", &turns, &small);
    let shifted = c.bin("fadd", &sum, &rounder);
    let n = c.bin("fsub", &shifted, &rounder);
    let rest = c.bin("fsub", &turns, &n);
    let rest = c.bin("fadd", &rest, &small);
    let r = c.bin("fmul", &rest, &Val::float(rest.ty, std::f64::consts::FRAC_PI_2));
    let quadrant = c.convert("bitcast", &shifted, Scalar::I64);
    let quadrant = c.convert("trunc", &quadrant, Scalar::I32);
    (quadrant, r)
}

/// One of the two numbers of each exponent, lane by lane.
fn entry(c: &mut Code<'_>, exponent: &Val, which: usize) -> Val {
    let one = Ty { scalar: Scalar::F64, lanes: 1 };
    c.lane_by_lane(one.with_lanes(exponent.lanes()), |c, lane| {
        let e = c.extract(exponent, lane);
        let at = c.widen(&e, false);
        let text = format_args!(
            "getelementptr inbounds [256 x [2 x double]], ptr @{TABLE}, i64 0, {at}, i64 {which}"
        );
        let address = c.emit(Ty::PTR, text);
        c.emit(one, format_args!("load double, {address}, align 8"))
    })
}

/// The sine of r in even quadrants, the cosine in odd ones.
fn either(c: &mut Code<'_>, quadrant: &Val, r: &Val) -> Val {
    let square = c.bin("fmul", r, r);
    let p = polynomial(c, &square, &SIN);
    let cube = c.bin("fmul", &square, r);
    let sine = c.fma(&p, &cube, r);
    let p = polynomial(c, &square, &COS);
    let fourth = c.bin("fmul", &square, &square);
    let half = c.fma(&square, &Val::float(r.ty, -0.5), &Val::float(r.ty, 1.0));
    let cosine = c.fma(&p, &fourth, &half);
    let odd = c.bin("and", quadrant, &Val::int(quadrant.ty, 1));
    c.select_cmp("icmp ne", &odd, &Val::zero(quadrant.ty), &cosine, &sine)
}

/// Negates in the quadrants 2 and 3, and where `sign` has its highest bit set.
fn flip(c: &mut Code<'_>, y: &Val, quadrant: &Val, sign: Option<&Val>) -> Val {
    let second = c.bin("and", quadrant, &Val::int(quadrant.ty, 2));
    let mut change = c.bin("shl", &second, &Val::int(quadrant.ty, 30));
    if let Some(sign) = sign {
        change = c.bin("xor", &change, sign);
    }
    let bits = c.convert("bitcast", y, Scalar::I32);
    let bits = c.bin("xor", &bits, &change);
    c.convert("bitcast", &bits, Scalar::F32)
}

/// The table as text: for each biased exponent the two parts of T.
fn table() -> String {
    let rows: Vec<String> = (0..256)
        .map(|exponent| {
            let (high, low) = turns(exponent);
            let (high, low) = (high.to_bits(), low.to_bits());
            format!("[2 x double] [double 0x{high:016X}, double 0x{low:016X}]")
        })
        .collect();
    format!("@{TABLE} = private unnamed_addr constant [256 x [2 x double]] [{}]", rows.join(", "))
}

/// T of a biased exponent; `NaN` for the one of infinities and `NaN`.
fn turns(exponent: i32) -> (f64, f64) {
    if exponent == 255 {
        return (f64::NAN, f64::NAN);
    }
    let scale = exponent - 150;
    // Bit k of the fraction counts 2^(scale - 1 - k); those of 4 and more are whole turns.
    let mut first = usize::try_from(scale - 2).unwrap_or(0);
    while bits(first, 1) == 0 {
        first += 1;
    }
    (digits_value(first, 29, scale), digits_value(first + 29, 53, scale))
}

fn digits_value(start: usize, count: usize, scale: i32) -> f64 {
    bits(start, count) as f64 * 2f64.powi(scale - (start + count) as i32)
}

/// Bits of the fraction, `count` from `start` on, as an integer.
fn bits(start: usize, count: usize) -> u64 {
    (start..start + count).fold(0, |v, k| (v << 1) | bit_of(k))
}

fn bit_of(k: usize) -> u64 {
    TWO_OVER_PI.get(k / 64).map_or(1, |w| (w >> (63 - k % 64)) & 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_agrees_with_division_by_pi() {
        // Below the first full turn there is nothing to remove.
        for exponent in 1..150 {
            let (high, low) = turns(exponent);
            let expected = 2f64.powi(exponent - 150) * std::f64::consts::FRAC_2_PI;
            assert!(((high + low) / expected - 1.0).abs() < 1e-15, "{exponent}");
            assert_eq!(high.to_bits() & 0xff_ffff, 0, "29 bits: {exponent}");
        }
        // Each exponent is twice the one before, modulo 4.
        for exponent in 150..254 {
            let (h, l) = turns(exponent);
            let (h2, l2) = turns(exponent + 1);
            let difference = ((2.0 * h - h2) + (2.0 * l - l2)).rem_euclid(4.0);
            assert!(difference.min(4.0 - difference) < 1e-22, "{exponent}: {difference}");
        }
        assert!(turns(255).0.is_nan());
    }
}

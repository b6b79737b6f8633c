//! Floats of eight and four bits, which are stored as their bits in a `uint8` each.
//!
//! A format is a sign, an exponent and a mantissa, most significant first. All of them have
//! subnormal numbers; they differ in their exponents and in what the codes at the end of their range
//! mean. Decoding is a look-up. Encoding counts in units of the last bit: with `2^e` the largest power
//! of two that is at most the value (and not below the least normal one), the value is
//! `q * 2^(e - mantissa)`, and its code is `(e - least) * 2^mantissa + round(q)`, whether it is normal
//! or not and also where rounding carries.

use tilewright_ir::{DType, Expr, Intrin, Result, TensorFunc};

use crate::operand::{Operand, call, pointwise, require_float, unsupported_type};
use crate::te;

/// A format of floats of less than 16 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NarrowFloat {
    /// `float8_e4m3fn`: up to 448; no infinity.
    E4M3Fn,
    /// `float8_e4m3fnuz`: up to 240; no infinity, no negative zero.
    E4M3Fnuz,
    /// `float8_e5m2`: up to 57344, as `float16` cut off.
    E5M2,
    /// `float8_e5m2fnuz`: up to 57344; no infinity, no negative zero.
    E5M2Fnuz,
    /// `float4_e2m1fn`: up to 6; neither infinity nor NaN.
    E2M1,
    /// `float8_e8m0fnu`: powers of two without a sign; scales of blocks.
    E8M0,
}

/// The numbers of a format with a sign.
struct Format {
    mantissa: u32,
    /// The exponent of the least normal number.
    least: i32,
    /// The exponent of the largest number.
    most: i32,
    /// The sign's bit.
    sign: i64,
    /// The code of the largest number.
    largest: i64,
    infinity: Option<i64>,
    nan: Option<i64>,
    /// The code that NaN is rounded to where there is none.
    instead_of_nan: i64,
    negative_zero: bool,
}

impl NarrowFloat {
    fn format(self) -> Option<Format> {
        let byte = Format {
            mantissa: 3,
            least: -6,
            most: 8,
            sign: 0x80,
            largest: 0x7e,
            infinity: None,
            nan: Some(0x7f),
            instead_of_nan: 0,
            negative_zero: true,
        };
        Some(match self {
            NarrowFloat::E4M3Fn => byte,
            NarrowFloat::E4M3Fnuz => Format {
                least: -7,
                most: 7,
                largest: 0x7f,
                nan: Some(0x80),
                negative_zero: false,
                ..byte
            },
            NarrowFloat::E5M2 => Format {
                mantissa: 2,
                least: -14,
                most: 15,
                largest: 0x7b,
                infinity: Some(0x7c),
                nan: Some(0x7e),
                ..byte
            },
            NarrowFloat::E5M2Fnuz => Format {
                mantissa: 2,
                least: -15,
                most: 15,
                largest: 0x7f,
                nan: Some(0x80),
                negative_zero: false,
                ..byte
            },
            NarrowFloat::E2M1 => Format {
                mantissa: 1,
                least: 0,
                most: 2,
                sign: 0x8,
                largest: 0x7,
                infinity: None,
                nan: None,
                // As `ml_dtypes` has it, by which ONNX defines its cases.
                instead_of_nan: 0x8,
                negative_zero: true,
            },
            NarrowFloat::E8M0 => return None,
        })
    }

    /// The value of each code, in order: 256, or 16 for a format of four bits.
    pub fn values(self) -> Vec<f32> {
        let Some(f) = self.format() else {
            return (0..256)
                .map(|e| if e == 255 { f32::NAN } else { 2f64.powi(e - 127) as f32 })
                .collect();
        };
        (0..2 * f.sign).map(|code| value_of(code, &f)).collect()
    }
}

fn value_of(code: i64, f: &Format) -> f32 {
    let magnitude = code & (f.sign - 1);
    if f.nan == Some(code) || f.negative_zero && f.nan == Some(magnitude) {
        return f32::NAN;
    }
    let unit = 1i64 << f.mantissa;
    let (exponent, mantissa) = (magnitude / unit, magnitude % unit);
    let value = match exponent {
        0 => mantissa as f64 * 2f64.powi(f.least - f.mantissa as i32),
        e => (unit + mantissa) as f64 * 2f64.powi(f.least + e as i32 - 1 - f.mantissa as i32),
    };
    let value = match f.infinity {
        Some(infinity) if magnitude == infinity => f64::INFINITY,
        Some(infinity) if magnitude > infinity => f64::NAN,
        _ => value,
    };
    (if code & f.sign == 0 { value } else { -value }) as f32
}

/// The values of codes. Parameters: `x`, `uint8` codes; `table`, the [values](NarrowFloat::values) of
/// the format, as many as `codes`; the result, `float32` of the shape of `x`. Higher bits of a code
/// than the format has do not count.
pub fn decode(x: &Operand, codes: usize) -> Result<TensorFunc> {
    if x.dtype != DType::U8 {
        return Err(unsupported_type("decode", x.dtype, "uint8"));
    }
    let (t, table) = (x.placeholder("x"), te::placeholder("table", &[codes], DType::F32));
    let out = te::compute("decode", &x.shape, |i| {
        table.at([t.at(i).cast(DType::I32).floormod(codes as i64)])
    });
    te::func([&t, &table], [&out])
}

/// The codes of values, rounded to the nearest, ties to even. What is larger than the largest number
/// of the format becomes that with `saturate`, or where there is nothing else; otherwise infinity or
/// NaN. Parameters: `x`, of floats; the result, `uint8` of the shape of `x`.
///
/// # Errors
/// `Unsupported` for other types than floats, and for `E8M0`.
pub fn encode(x: &Operand, to: NarrowFloat, saturate: bool) -> Result<TensorFunc> {
    require_float("encode", x.dtype)?;
    let Some(f) = to.format() else {
        return Err(tilewright_ir::Error::unsupported(
            "conversions to float8_e8m0fnu are not supported",
        ));
    };
    pointwise("encode", x, |x| {
        let x = x.cast(DType::F32);
        // A power of two above all numbers stands for what is larger.
        let beyond = 2f64.powi(f.most + 2);
        let known = Expr::select(x.clone().equal(x.clone()), x.clone(), float64(0.0));
        let size = call(Intrin::Abs, known).min(float64(beyond));
        // Exponent, from the least one, and the reciprocal of the unit of the last bit.
        let (mut steps, mut scale) = (int32(0), float64(2f64.powi(f.mantissa as i32 - f.least)));
        for e in f.least + 1..=f.most + 2 {
            let reached = size.clone().greater_equal(float64(2f64.powi(e)));
            steps = Expr::select(reached.clone(), int32(i64::from(e - f.least)), steps);
            scale = Expr::select(reached, float64(2f64.powi(f.mantissa as i32 - e)), scale);
        }
        let units = call(Intrin::NearbyInt, size * scale).cast(DType::I32);
        let code = steps * (1i64 << f.mantissa) + units;
        let end = match (saturate, f.infinity, f.nan) {
            (false, Some(infinity), _) => infinity,
            (false, None, Some(nan)) => nan,
            _ => f.largest,
        };
        let code = Expr::select(code.clone().greater(int32(f.largest)), int32(end), code);
        let below = x.clone().less(float64(0.0));
        let negative = if f.negative_zero {
            let zero = x.clone().equal(float64(0.0));
            let reciprocal = float64(1.0) / x.clone();
            below.or(zero.and(reciprocal.less(float64(0.0))))
        } else {
            // Zero and NaN have no sign.
            below.and(code.clone().greater(int32(0))).and(code.clone().less(int32(f.sign)))
        };
        let signed = Expr::select(negative, code.clone() + f.sign, code);
        let nan = int32(f.nan.unwrap_or(f.instead_of_nan));
        Expr::select(x.clone().not_equal(x), nan, signed).cast(DType::U8)
    })
}

fn float64(n: f64) -> Expr {
    Expr::float(n, DType::F32)
}

fn int32(n: i64) -> Expr {
    Expr::int(n, DType::I32)
}

/// How a value between two powers of two becomes one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ScaleRounding {
    /// The power above.
    Up,
    /// The power below.
    Down,
    /// The nearer one; the one above where both are as near.
    Nearest,
}

/// The codes of magnitudes in `float8_e8m0fnu`, whose numbers are the powers of two from 2^-127 up to
/// 2^127. What is smaller or larger becomes the smallest or the largest of them with `saturate`,
/// otherwise NaN, as NaN does always. Signs do not count. Parameters: `x`, of floats; the result,
/// `uint8` of the shape of `x`. What is wider than `float32` is rounded to that first.
///
/// # Errors
/// `Unsupported` for other types than floats.
pub fn encode_scale(x: &Operand, rounding: ScaleRounding, saturate: bool) -> Result<TensorFunc> {
    require_float("encode_scale", x.dtype)?;
    pointwise("encode_scale", x, |x| {
        let bits = Expr::reinterpret(x.cast(DType::F32), DType::I32);
        let magnitude = Expr::intrin(Intrin::BitAnd, vec![bits, int32(0x7fff_ffff)]);
        let exponent = magnitude.clone().floordiv(1i64 << 23);
        let fraction = magnitude.clone().floormod(1i64 << 23);
        // Below 2^-126 a `float32` has no leading one: 2^-127 is a fraction of a half.
        let subnormal = exponent.clone().equal(int32(0));
        let one_above = |of: i64, of_subnormal: i64| {
            Expr::select(subnormal.clone(), int32(of_subnormal), int32(of))
        };
        let above = match rounding {
            ScaleRounding::Up => fraction.clone().greater(one_above(0, 1 << 22)),
            ScaleRounding::Down => Expr::bool(false),
            ScaleRounding::Nearest => {
                fraction.clone().greater_equal(one_above(1 << 22, (1 << 22) + (1 << 21)))
            }
        };
        let code = exponent.clone() + Expr::select(above, int32(1), int32(0));
        let nan = magnitude.clone().greater(int32(0xff << 23));
        let code = if saturate {
            Expr::select(nan, int32(255), code.min(int32(254)))
        } else {
            let below = magnitude.clone().less(int32(1 << 22));
            Expr::select(nan.or(below), int32(255), code.min(int32(255)))
        };
        code.cast(DType::U8)
    })
}

/// Integers of less than eight bits in a byte each: the lowest bits of integers, with their sign where
/// the format has one. Parameters: `x`, of integers; the result, `int8` or `uint8` of the shape of `x`.
pub fn low_bits(x: &Operand, bits: u32, signed: bool) -> Result<TensorFunc> {
    if !x.dtype.is_int() {
        return Err(unsupported_type("low_bits", x.dtype, "integers"));
    }
    pointwise("low_bits", x, |x| {
        let range = 1i64 << bits;
        let low = x.cast(DType::I32).floormod(range);
        if signed {
            let high = low.clone().greater_equal(range / 2);
            Expr::select(high, low.clone() - range, low).cast(DType::I8)
        } else {
            low.cast(DType::U8)
        }
    })
}

#[cfg(test)]
mod tests {
    use tilewright_interp::{Arg, RunOptions, run_func};
    use tilewright_ir::Tensor;

    use super::*;

    fn run(func: &TensorFunc, args: &[Tensor]) -> Tensor {
        let mut all: Vec<Arg> = args.iter().cloned().map(Arg::Tensor).collect();
        all.push(Arg::Fresh(None));
        let done = run_func(func, &all, &RunOptions::default()).expect("it runs");
        let out = done.outputs.into_iter().next_back().expect("a result");
        out.into_tensor().expect("it is written")
    }

    fn encoded(to: NarrowFloat, saturate: bool, x: &[f32]) -> Vec<u8> {
        let func = encode(&Operand::f32(&[x.len()]), to, saturate).expect("a function");
        let x = Tensor::from_slice(&[x.len()], x).expect("a tensor");
        run(&func, &[x]).as_slice::<u8>().expect("bytes").to_vec()
    }

    fn scales(rounding: ScaleRounding, saturate: bool, x: &[f32]) -> Vec<u8> {
        let func = encode_scale(&Operand::f32(&[x.len()]), rounding, saturate);
        let x = Tensor::from_slice(&[x.len()], x).expect("a tensor");
        run(&func.expect("a function"), &[x]).as_slice::<u8>().expect("bytes").to_vec()
    }

    #[test]
    fn scales_are_powers_of_two() {
        use ScaleRounding::{Down, Nearest, Up};
        for rounding in [Up, Down, Nearest] {
            let values = NarrowFloat::E8M0.values();
            let codes: Vec<u8> = (0..=254).collect();
            for saturate in [false, true] {
                assert_eq!(scales(rounding, saturate, &values[..255]), codes, "{rounding:?}");
            }
        }
        let between = [1.25f32, 1.5, 1.75, -3.0, 1.5 * 2f32.powi(-127), 1.1 * 2f32.powi(-127)];
        assert_eq!(scales(Up, true, &between), [128, 128, 128, 129, 1, 1]);
        assert_eq!(scales(Down, true, &between), [127, 127, 127, 128, 0, 0]);
        assert_eq!(scales(Nearest, true, &between), [127, 128, 128, 129, 1, 0]);
        let outside = [0.0, 1e-39, f32::MAX, f32::INFINITY, f32::NAN];
        assert_eq!(scales(Up, true, &outside), [0, 0, 254, 254, 255]);
        assert_eq!(scales(Nearest, false, &outside), [255, 255, 255, 255, 255]);
        assert_eq!(scales(Down, false, &outside), [255, 255, 254, 255, 255]);
    }

    const FORMATS: [NarrowFloat; 5] = [
        NarrowFloat::E4M3Fn,
        NarrowFloat::E4M3Fnuz,
        NarrowFloat::E5M2,
        NarrowFloat::E5M2Fnuz,
        NarrowFloat::E2M1,
    ];

    #[test]
    fn the_ends_of_the_formats() {
        assert_eq!(
            FORMATS.map(|f| f.values().into_iter().filter(|v| v.is_finite()).fold(0.0, f32::max)),
            [448.0, 240.0, 57344.0, 57344.0, 6.0]
        );
        let e8 = NarrowFloat::E8M0.values();
        assert_eq!((e8[127], e8[130], e8[255].is_nan()), (1.0, 8.0, true));
        assert_eq!(NarrowFloat::E2M1.values()[..8], [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]);
    }

    #[test]
    fn every_code_is_the_code_of_its_value() {
        for format in FORMATS {
            for (code, value) in format.values().into_iter().enumerate() {
                if value.is_finite() {
                    assert_eq!(encoded(format, true, &[value]), [code as u8], "{format:?} {value}");
                }
            }
        }
    }

    #[test]
    fn values_between_go_to_the_nearest_and_ties_to_even_codes() {
        for format in FORMATS {
            let values = format.values();
            let end = values.len() / 2;
            for code in 0..end - 1 {
                let (low, high) = (values[code], values[code + 1]);
                if !high.is_finite() {
                    continue;
                }
                let middle = (low + high) / 2.0;
                let even = code + code % 2;
                let above = middle + (high - low) / 64.0;
                assert_eq!(
                    encoded(format, true, &[middle, above]),
                    [even as u8, code as u8 + 1],
                    "{format:?} between {low} and {high}"
                );
            }
        }
    }

    #[test]
    fn what_is_too_large_saturates_or_is_infinity_or_nan() {
        let (big, inf) = (1e9f32, f32::INFINITY);
        for (format, saturated, not) in [
            (NarrowFloat::E4M3Fn, [0x7e, 0xfe, 0x7e], [0x7f, 0xff, 0x7f]),
            (NarrowFloat::E4M3Fnuz, [0x7f, 0xff, 0x7f], [0x80, 0x80, 0x80]),
            (NarrowFloat::E5M2, [0x7b, 0xfb, 0x7b], [0x7c, 0xfc, 0x7c]),
            (NarrowFloat::E5M2Fnuz, [0x7f, 0xff, 0x7f], [0x80, 0x80, 0x80]),
            (NarrowFloat::E2M1, [0x7, 0xf, 0x7], [0x7, 0xf, 0x7]),
        ] {
            assert_eq!(encoded(format, true, &[big, -big, inf]), saturated, "{format:?}");
            assert_eq!(encoded(format, false, &[big, -big, inf]), not, "{format:?}");
            let nan = if format == NarrowFloat::E2M1 {
                0x8
            } else {
                encoded(format, true, &[f32::NAN])[0]
            };
            assert_eq!(encoded(format, false, &[f32::NAN]), [nan]);
            assert!(format == NarrowFloat::E2M1 || format.values()[usize::from(nan)].is_nan());
        }
    }

    #[test]
    fn codes_are_decoded_and_integers_cut() {
        let table = NarrowFloat::E4M3Fn.values();
        let func = decode(&Operand::new(&[3], DType::U8), table.len()).expect("a function");
        let codes = Tensor::from_slice(&[3], &[0x38u8, 0xc0, 0x01]).expect("a tensor");
        let table = Tensor::from_slice(&[256], &table).expect("a tensor");
        let out = run(&func, &[codes, table]);
        assert_eq!(out.as_slice::<f32>(), Some(&[1.0, -2.0, 0.001953125][..]));
        let x = Tensor::from_slice(&[4], &[7i32, 8, -9, 31]).expect("a tensor");
        let func = low_bits(&Operand::new(&[4], DType::I32), 4, true).expect("a function");
        assert_eq!(run(&func, &[x]).as_slice::<i8>(), Some(&[7, -8, 7, -1][..]));
    }
}

//! Arithmetic on constants: quotients, wrap-around, rounding.

use tilewright_ir::scalar::{eval_int, round_to};
use tilewright_ir::{BinOp, DType};

#[test]
fn floor_and_trunc_differ_below_zero() {
    for a in -9..=9i64 {
        for b in [-4i64, -3, 3, 4] {
            let floor = (a as f64 / b as f64).floor() as i64;
            assert_eq!(value_of(BinOp::FloorDiv, a, b), Some(floor), "{a} // {b}");
            assert_eq!(value_of(BinOp::FloorMod, a, b), Some(a - b * floor), "{a} % {b}");
            assert_eq!(value_of(BinOp::TruncDiv, a, b), Some(a / b));
            assert_eq!(value_of(BinOp::TruncMod, a, b), Some(a % b));
        }
    }
    assert_eq!(value_of(BinOp::FloorDiv, 1, 0), None);
    assert_eq!(value_of(BinOp::Add, i64::from(i32::MAX), 1), Some(i64::from(i32::MIN)));
}

fn value_of(op: BinOp, a: i64, b: i64) -> Option<i64> {
    eval_int(op, a, b, DType::I32)
}

#[test]
fn halves_are_rounded_once() {
    // Just above the middle between 1 and the next half: in f32 it looks like the middle.
    let value = 1.0 + 0.5f64.powi(11) + 0.5f64.powi(40);
    assert_eq!(round_to(value, DType::F16), 1.0 + 0.5f64.powi(10));
    assert_eq!(round_to(-value, DType::F16), -1.0 - 0.5f64.powi(10));
    let value = 1.0 + 0.5f64.powi(8) + 0.5f64.powi(40);
    assert_eq!(round_to(value, DType::BF16), 1.0 + 0.5f64.powi(7));
    assert_eq!(round_to(1e300, DType::BF16), f64::INFINITY);
    assert_eq!(round_to(1e-300, DType::F16), 0.0);
    assert_eq!(round_to(65520.0, DType::F16), f64::INFINITY);
    assert_eq!(round_to(65519.99, DType::F16), 65504.0);
}

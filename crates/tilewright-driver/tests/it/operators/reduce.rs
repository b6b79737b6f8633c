//! Axes that go.

use tilewright_driver::DType;
use tilewright_ops::Operand;
use tilewright_ops::reduce::{Arg, Reduction, arg_reduce, cumsum, reduce, top_k};

use super::{RAGGED, check, check_with};

const ALL: [Reduction; 10] = [
    Reduction::Sum,
    Reduction::Mean,
    Reduction::Max,
    Reduction::Min,
    Reduction::Prod,
    Reduction::L1,
    Reduction::L2,
    Reduction::SumSquare,
    Reduction::LogSum,
    Reduction::LogSumExp,
];

#[test]
fn reductions_over_every_set_of_axes() {
    let x = Operand::f32(&[3, 5, 17]);
    for op in ALL {
        for axes in [&[0][..], &[1], &[2], &[0, 2], &[-1, -2], &[0, 1, 2], &[]] {
            for keepdims in [false, true] {
                check(&format!("{op:?} over {axes:?}, {keepdims}"), reduce(op, &x, axes, keepdims));
            }
        }
    }
}

#[test]
fn reductions_at_every_ragged_length() {
    for n in RAGGED {
        for op in [Reduction::Sum, Reduction::Max] {
            check(&format!("{op:?} of {n}"), reduce(op, &Operand::f32(&[4, n]), &[1], false));
            check(&format!("{op:?} to {n}"), reduce(op, &Operand::f32(&[9, n]), &[0], false));
        }
    }
}

#[test]
fn reductions_of_other_types() {
    for dtype in [DType::F64, DType::F16, DType::BF16, DType::I32, DType::I64, DType::U8, DType::I8]
    {
        let x = Operand::new(&[4, 11], dtype);
        for op in [Reduction::Sum, Reduction::Max, Reduction::Min, Reduction::Prod] {
            check(&format!("{op:?} of {x}"), reduce(op, &x, &[1], true));
        }
    }
}

#[test]
fn positions_sums_and_the_best() {
    for dtype in [DType::F32, DType::I64] {
        let x = Operand::new(&[3, 7, 5], dtype);
        for axis in [0, 1, -1] {
            for last in [false, true] {
                for op in [Arg::Max, Arg::Min] {
                    let what = format!("{op:?} of {x} along {axis}, {last}");
                    check(&what, arg_reduce(op, &x, axis, last, last));
                }
                check(&format!("sums of {x} along {axis}, {last}"), cumsum(&x, axis, last, false));
                check(&format!("back of {x} along {axis}, {last}"), cumsum(&x, axis, last, true));
            }
            check(&format!("best of {x} along {axis}"), top_k(&x, axis, 2, true));
            check(&format!("worst of {x} along {axis}"), top_k(&x, axis, 3, false));
        }
    }
}

#[test]
fn the_best_of_rows_with_ties_and_nan() {
    // Few different values, so that positions decide, and `NaN` among them.
    let row = |_: &str, shape: &[usize]| {
        let mut random = tilewright_driver::random::Random::new(shape.len() as u64);
        let value = |r: u64| if r.is_multiple_of(5) { f32::NAN } else { (r % 7) as f32 };
        let values: Vec<f32> =
            (0..shape.iter().product()).map(|_| value(random.bits() >> 7)).collect();
        tilewright_driver::Tensor::from_slice(shape, &values).ok()
    };
    for n in [1, 2, 7, 33] {
        for k in [0, 1, 2, 3, 8, 31, 32, 33].into_iter().filter(|&k| k <= n) {
            for largest in [true, false] {
                let of = Operand::f32(&[3, n, 2]);
                check_with(&format!("{k} of {n}"), top_k(&of, 1, k, largest), &row);
            }
        }
    }
}

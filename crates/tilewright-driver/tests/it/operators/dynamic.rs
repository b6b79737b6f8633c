//! Results whose sizes data decide.

use tilewright_driver::{DType, Tensor};
use tilewright_ops::Operand;
use tilewright_ops::dynamic::{count, indices};
use tilewright_ops::suppression::{Suppression, non_max_suppression};
use tilewright_ops::unique::unique_kinds;

use super::{RAGGED, check, check_with};

#[test]
fn kinds_of_rows() {
    for n in RAGGED {
        for dtype in [DType::I64, DType::F32, DType::F64, DType::U8] {
            for m in [1, 2] {
                let x = Operand::new(&[n, m], dtype);
                check(&format!("sorted kinds of {x}"), unique_kinds(&x, true));
                check(&format!("kinds of {x}"), unique_kinds(&x, false));
            }
        }
    }
}

#[test]
fn what_is_not_zero() {
    for n in RAGGED {
        for dtype in [DType::BOOL, DType::F32, DType::I64] {
            let x = Operand::new(&[n], dtype);
            check(&format!("those of {x}"), count(&x));
            // All but every third one.
            let values = |_: &str, shape: &[usize]| {
                let cells: usize = shape.iter().product();
                let values: Vec<f32> = (0..cells).map(|i| (i % 3) as f32).collect();
                Tensor::from_slice(shape, &values).ok()
            };
            let x = Operand::f32(&[3, n, 2]);
            let found = (0..6 * n).filter(|i| !i.is_multiple_of(3)).count();
            check_with(&format!("where {x} is not zero"), indices(&x, found.into()), &values);
        }
    }
}

#[test]
fn boxes_over_better_ones() {
    for n in RAGGED {
        for centred in [false, true] {
            let p = Suppression {
                boxes: Operand::f32(&[2, n, 4]),
                scores: Operand::f32(&[2, 3, n]),
                most: n.min(9).into(),
                centred,
            };
            check(&format!("{p:?}"), non_max_suppression(&p));
        }
    }
}

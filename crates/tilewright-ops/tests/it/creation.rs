use tilewright_ir::DType;
use tilewright_ops::creation::{eye, full, range};

use crate::nd::{Nd, check, refused};

#[test]
fn constants_ranges_and_diagonals() {
    for dtype in [DType::F32, DType::I64, DType::F16, DType::U8] {
        let expected = Nd::build(&[2, 3], |_| 7.0);
        check(full(&[2, 3], 7i64.into(), dtype), &[], &[(&expected, dtype)]);
        let expected = Nd::build(&[5], |i| 3.0 + 2.0 * i[0] as f64);
        check(range(3i64.into(), 2i64.into(), 5, dtype), &[], &[(&expected, dtype)]);
        for k in -4..=6 {
            let expected = Nd::build(&[3, 5], |i| f64::from(i[0] as i64 + k == i[1] as i64));
            check(eye(3, 5, k, dtype), &[], &[(&expected, dtype)]);
        }
    }
    let none = Nd::build(&[3, 5], |_| 0.0);
    for k in [i64::MIN, i64::MAX] {
        check(eye(3, 5, k, DType::F32), &[], &[(&none, DType::F32)]);
    }
    let down = Nd::build(&[4], |i| 1.5 - 0.25 * i[0] as f64);
    check(range(1.5.into(), (-0.25).into(), 4, DType::F64), &[], &[(&down, DType::F64)]);
    let truth = Nd::build(&[2], |_| 1.0);
    check(full(&[2], 1i64.into(), DType::BOOL), &[], &[(&truth, DType::BOOL)]);
    let scalar = Nd::build(&[], |_| -2.5);
    check(full::<usize>(&[], (-2.5).into(), DType::F32), &[], &[(&scalar, DType::F32)]);
    let empty = Nd::build(&[0, 3], |_| 0.0);
    check(full(&[0, 3], 1i64.into(), DType::I64), &[], &[(&empty, DType::I64)]);
}

#[test]
fn what_does_not_fit_is_refused() {
    let messages = [
        refused(full(&[1 << 16, 1 << 16], 1i64.into(), DType::F32)),
        refused(range(1i64.into(), 1i64.into(), 3, DType::BOOL)),
        refused(range(1i64.into(), 1i64.into(), 1 << 40, DType::F32)),
    ];
    expect_test::expect![[r#"
        input: tensor `full`: the shape [65536, 65536] has more than 2^31 - 1 elements
        unsupported: range: bool is not supported
        input: tensor `range`: the shape [1099511627776] has more than 2^31 - 1 elements
    "#]]
    .assert_eq(&(messages.join("\n") + "\n"));
}

use tilewright_ir::DType;
use tilewright_ops::Operand;
use tilewright_ops::quantize::{Quantization, dequantize_linear, matmul_integer, quantize_linear};

use crate::nd::{Nd, check, refused};

#[test]
fn quantize_and_dequantize() {
    let shape = [2, 5, 3];
    // Far outside of the integers' range too, and ties.
    let x = Nd::random(&shape, 1).map(|v| v * 40.0);
    for (axis, pairs) in [(None, vec![]), (Some(1), vec![5]), (Some(-1), vec![3])] {
        let scale = Nd::integers(&pairs, 2, 1, 4).map(|v| v / 4.0);
        for zero_point in [false, true] {
            for (to, low, high) in [(DType::U8, 0.0, 255.0), (DType::I8, -128.0, 127.0)] {
                let zero = Nd::integers(&pairs, 3, 0, 9);
                let at = |t: &Nd, i: &[usize]| match axis {
                    None => t.at(&[]),
                    Some(1) => t.at(&i[1..2]),
                    Some(_) => t.at(&i[2..]),
                };
                let offset = |i: &[usize]| if zero_point { at(&zero, i) } else { 0.0 };
                let q = Nd::build(&shape, |i| {
                    let value = (x.at(i) / at(&scale, i)).round_ties_even() + offset(i);
                    value.clamp(low, high)
                });
                let back = Nd::build(&shape, |i| (q.at(i) - offset(i)) * at(&scale, i));
                let p = Quantization { scale: DType::F32, axis, zero_point, bits: None };
                let zeros = zero_point.then(|| zero.tensor(to));
                let inputs: Vec<_> =
                    [x.f32(), scale.f32()].into_iter().chain(zeros.clone()).collect();
                let func = quantize_linear(&Operand::f32(&shape), &p, to);
                check(func, &inputs, &[(&q, to)]);
                let inputs: Vec<_> = [q.tensor(to), scale.f32()].into_iter().chain(zeros).collect();
                let func = dequantize_linear(&Operand::new(&shape, to), &p);
                check(func, &inputs, &[(&back, DType::F32)]);
            }
        }
    }
}

#[test]
fn matmul_of_integers_is_exact() {
    for (a_zero, b_zero) in
        [(None, None), (Some(vec![]), Some(vec![1])), (Some(vec![4]), Some(vec![3]))]
    {
        let (a, b) = (Nd::integers(&[2, 4, 5], 1, 0, 255), Nd::integers(&[5, 3], 2, -128, 127));
        let p = a_zero.as_ref().map(|s| Nd::integers(s, 3, 0, 255));
        let q = b_zero.as_ref().map(|s| Nd::integers(s, 4, -128, 127));
        let expected = Nd::build(&[2, 4, 3], |i| {
            let x = p.as_ref().map_or(0.0, |p| p.broadcast(&i[1..2]));
            let y = q.as_ref().map_or(0.0, |q| q.broadcast(&i[2..]));
            (0..5).map(|k| (a.at(&[i[0], i[1], k]) - x) * (b.at(&[k, i[2]]) - y)).sum()
        });
        let func = matmul_integer(
            &Operand::new(&a.shape, DType::U8),
            &Operand::new(&b.shape, DType::I8),
            a_zero.as_deref().map(tilewright_ir::dim::shape).as_deref(),
            b_zero.as_deref().map(tilewright_ir::dim::shape).as_deref(),
        );
        let zeros = p.map(|p| p.tensor(DType::U8)).into_iter();
        let zeros = zeros.chain(q.map(|q| q.tensor(DType::I8)));
        let inputs: Vec<_> =
            [a.tensor(DType::U8), b.tensor(DType::I8)].into_iter().chain(zeros).collect();
        check(func, &inputs, &[(&expected, DType::I32)]);
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let f = Operand::f32(&[2, 3]);
    let byte = |shape: &[usize]| Operand::new(shape, DType::U8);
    let q = Quantization { scale: DType::F32, axis: None, zero_point: true, bits: None };
    let at = |axis| Quantization { axis: Some(axis), ..q.clone() };
    let messages = [
        refused(quantize_linear(&byte(&[2]), &q, DType::U8)),
        refused(quantize_linear(&f, &q, DType::I32)),
        refused(quantize_linear(&f, &q, DType::F16)),
        refused(quantize_linear(&f, &at(2), DType::U8)),
        refused(dequantize_linear(&f, &q)),
        refused(dequantize_linear(&byte(&[2]), &at(-2))),
        refused(matmul_integer(&f, &f, None, None)),
        refused(matmul_integer(&byte(&[2, 3]), &byte(&[2, 3]), None, None)),
        refused(matmul_integer(&byte(&[3]), &byte(&[3, 2]), None, None)),
        refused(matmul_integer(&byte(&[2, 3]), &byte(&[3, 2]), Some(&[3.into()]), None)),
    ];
    expect_test::expect![[r#"
        unsupported: quantize_linear: uint8 is not supported
        unsupported: quantize_linear: int32 is not supported
        unsupported: quantize_linear: float16 is not supported
        input: quantize_linear: there is no axis 2 among 2 axes
        unsupported: dequantize_linear: float32 is not supported
        input: dequantize_linear: there is no axis -2 among 1 axes
        unsupported: matmul_integer: float32 is not supported
        input: matmul_integer: uint8[2, 3] times uint8[2, 3]: the inner extents 3 and 2 differ
        unsupported: matmul_integer: uint8[3] times uint8[3, 2]
        unsupported: matmul_integer: a zero point of shape [3]
    "#]]
    .assert_eq(&(messages.join("\n") + "\n"));
}

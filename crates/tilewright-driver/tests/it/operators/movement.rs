//! Data that only moves, images that are resized, tensors from nothing, quantisation.

use tilewright_driver::DType;
use tilewright_ops::movement::{
    DepthOrder, concat, copy, depth_to_space, expand, gather, gather_elements, gather_nd, one_hot,
    reshape, reverse_sequence, scatter_elements, scatter_nd, slice, space_to_depth, split, tile,
    transpose, trilu,
};
use tilewright_ops::pad::{PadMode, pad};
use tilewright_ops::quantize::{Quantization, dequantize_linear, quantize_linear};
use tilewright_ops::resize::{Coordinates, Interpolation, Nearest, Resize, resize};
use tilewright_ops::te::Reducer;
use tilewright_ops::{Operand, Scalar, creation};

use super::{check, check_with, indices};

#[test]
fn shapes_change() {
    let x = Operand::f32(&[3, 5, 7]);
    check("copy", copy(&x));
    check("reshape", reshape(&x, &[7, 15]));
    check("reshape to a vector", reshape(&x, &[105]));
    for perm in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        check(&format!("transpose {perm:?}"), transpose(&x, &perm));
    }
    check("expand", expand(&Operand::f32(&[3, 1, 7]), &[2, 3, 5, 7]));
    check("tile", tile(&x, &[2, 1, 3]));
    check("trilu", trilu(&x, 1, true));
    check("trilu, lower", trilu(&x, -1, false));
}

#[test]
fn parts_go_together_and_apart() {
    let parts = [[3, 2, 7], [3, 5, 7], [3, 1, 7]].map(|s| Operand::f32(&s));
    check("concat", concat(&parts, 1));
    check("concat of one", concat(&parts[..1], -1));
    check("split", split(&Operand::f32(&[3, 9, 7]), 1, &[4, 0, 5]));
    let x = Operand::f32(&[9, 11]);
    check("slice", slice(&x, &[2, -3], &[7, i64::MAX], &[0, 1], &[2, 1]));
    check("slice, backwards", slice(&x, &[-1, 8], &[i64::MIN, 1], &[1, 0], &[-3, -2]));
}

#[test]
fn padding_in_every_mode() {
    let x = Operand::f32(&[5, 7]);
    for mode in
        [PadMode::Constant(Scalar::Float(1.5)), PadMode::Edge, PadMode::Reflect, PadMode::Wrap]
    {
        check(&format!("{mode:?}"), pad(&x, &[2, 0], &[1, 3], mode));
        check(&format!("{mode:?}, cut"), pad(&x, &[-1, 2], &[0, -2], mode));
    }
}

#[test]
fn elements_are_looked_up() {
    let (x, i64s) = (Operand::f32(&[5, 6, 7]), |s: &[usize]| Operand::new(s, DType::I64));
    for (axis, extent) in [(0, 5), (1, 6), (-1, 7)] {
        let choose = |name: &str, s: &[usize]| (name == "indices").then(|| indices(s, extent));
        check_with(&format!("gather {axis}"), gather(&x, &i64s(&[3, 2]), axis), &choose);
        check_with(&format!("scalar {axis}"), gather(&x, &i64s(&[]), axis), &choose);
        let at = i64s(&[4, 5, 3]);
        check_with(&format!("elements {axis}"), gather_elements(&x, &at, axis), &choose);
        for mode in [None, Some(Reducer::Sum), Some(Reducer::Prod), Some(Reducer::Max)] {
            let what = format!("scatter {axis} {mode:?}");
            check_with(&what, scatter_elements(&x, &at, axis, mode), &choose);
        }
    }
    let choose = |name: &str, s: &[usize]| (name == "indices").then(|| indices(s, 5));
    check_with("tuples", gather_nd(&x, &i64s(&[3, 2]), 0), &choose);
    check_with("tuples in batches", gather_nd(&x, &i64s(&[5, 4, 1]), 1), &choose);
    check_with("scatter tuples", scatter_nd(&x, &i64s(&[3, 2]), Some(Reducer::Sum)), &choose);
    check_with("one hot", one_hot(&i64s(&[3, 4]), 5, 1, DType::F32), &choose);
    let lengths = |name: &str, s: &[usize]| (name == "lengths").then(|| indices(s, 3));
    check_with("reverse", reverse_sequence(&x, 0, 1), &lengths);
}

#[test]
fn depth_and_space() {
    let x = Operand::f32(&[2, 12, 3, 5]);
    check("block outermost", depth_to_space(&x, 2, DepthOrder::Dcr));
    check("block innermost", depth_to_space(&x, 2, DepthOrder::Crd));
    check("space", space_to_depth(&Operand::f32(&[1, 3, 6, 9]), 3));
}

#[test]
fn images_are_resized() {
    for mode in [
        Interpolation::Nearest(Nearest::RoundPreferFloor),
        Interpolation::Nearest(Nearest::Ceil),
        Interpolation::Linear,
        Interpolation::Cubic(-0.75),
    ] {
        for coordinates in
            [Coordinates::HalfPixel, Coordinates::AlignCorners, Coordinates::Asymmetric]
        {
            for sizes in [[1, 2, 13, 10], [1, 2, 3, 4]] {
                let p = Resize {
                    mode,
                    coordinates,
                    ..Resize::new(Operand::f32(&[1, 2, 7, 5]), &sizes)
                };
                let what = format!("{p:?}");
                let (func, tables) = resize(&p).unwrap_or_else(|e| panic!("{what}: {e}"));
                let names: Vec<_> = func.buffers().map(|b| b.name.clone()).collect();
                let table = |name: &str, _: &[usize]| {
                    let at = names.iter().position(|n| **n == *name)?;
                    tables.get(at.checked_sub(1)?).cloned()
                };
                check_with(&what, Ok(func), &table);
            }
        }
    }
}

#[test]
fn tensors_from_nothing() {
    for dtype in [DType::F32, DType::F16, DType::I64, DType::U8] {
        check("full", creation::full(&[3, 5], Scalar::Int(3), dtype));
        check("range", creation::range(Scalar::Int(2), Scalar::Int(3), 17, dtype));
        check("eye", creation::eye(5, 7, 1, dtype));
    }
}

#[test]
fn numbers_are_quantised() {
    let positive = |name: &str, shape: &[usize]| {
        let n: usize = shape.iter().product();
        let scale = tilewright_driver::Tensor::from_slice(shape, &vec![0.0625f32; n]);
        (name == "scale").then(|| scale.expect("a tensor"))
    };
    for axis in [None, Some(1)] {
        for zero_point in [false, true] {
            let q = Quantization { scale: DType::F32, axis, zero_point, bits: None };
            for dtype in [DType::U8, DType::I8] {
                let (x, y) = (Operand::f32(&[3, 7]), Operand::new(&[3, 7], dtype));
                let what = format!("{q:?} {dtype}");
                check_with(&what, quantize_linear(&x, &q, dtype), &positive);
                check_with(&what, dequantize_linear(&y, &q), &positive);
            }
        }
    }
}

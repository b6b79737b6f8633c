//! Softmax and the normalisations.

use tilewright_driver::DType;
use tilewright_driver::Tensor;
use tilewright_ir::dim;
use tilewright_ops::Operand;
use tilewright_ops::norm::{
    BatchNorm, LayerNorm, Lrn, batch_norm, group_norm, hardmax, instance_norm, layer_norm,
    log_softmax, log_softmax_from, lp_norm, lrn, mean_variance_norm, rms_norm, softmax,
    softmax_from,
};

use super::{RAGGED, check, check_with};

#[test]
fn softmax_along_every_axis() {
    let x = Operand::f32(&[3, 5, 17]);
    for axis in [0, 1, 2, -1] {
        check(&format!("softmax {axis}"), softmax(&x, axis));
        check(&format!("log softmax {axis}"), log_softmax(&x, axis));
        check(&format!("softmax from {axis}"), softmax_from(&x, axis));
        check(&format!("log softmax from {axis}"), log_softmax_from(&x, axis));
        check(&format!("hardmax {axis}"), hardmax(&x, axis));
    }
    for n in RAGGED {
        check(&format!("softmax of {n}"), softmax(&Operand::f32(&[4, n]), -1));
    }
    for dtype in [DType::F64, DType::F16, DType::BF16] {
        check(&format!("softmax of {dtype}"), softmax(&Operand::new(&[3, 19], dtype), 1));
    }
}

/// Variances are positive.
fn positive(name: &str, shape: &[usize]) -> Option<Tensor> {
    let n: usize = shape.iter().product();
    let values: Vec<f32> = (0..n).map(|i| 0.5 + i as f32 * 0.25).collect();
    name.contains("var").then(|| Tensor::from_slice(shape, &values).expect("a tensor"))
}

#[test]
fn normalisations() {
    let x = Operand::f32(&[2, 6, 5, 7]);
    check_with("batch", batch_norm(&BatchNorm::new(x.clone())), &positive);
    check("instance", instance_norm(&x, 1e-5));
    for groups in [1, 2, 3, 6] {
        check(&format!("group {groups}"), group_norm(&x, groups, 1e-5, false));
        check(&format!("group {groups}, per group"), group_norm(&x, groups, 1e-5, true));
    }
    check("mean and variance", mean_variance_norm(&x, &[0, 2, 3]));
    check("lp 1", lp_norm(&x, 1, 1));
    check("lp 2", lp_norm(&x, -1, 2));
    check("rms", rms_norm(&x, 2, &[5, 7], 1e-5));
    for size in [1, 3, 5] {
        check(&format!("lrn {size}"), lrn(&Lrn { alpha: 0.1, ..Lrn::new(x.clone(), size) }));
    }
}

#[test]
fn layer_norm_over_trailing_axes() {
    for (axis, scale) in [(-1, vec![17]), (1, vec![5, 17]), (0, vec![3, 5, 17])] {
        for statistics in [false, true] {
            let p = LayerNorm {
                x: Operand::f32(&[3, 5, 17]),
                axis,
                scale: dim::shape(&scale),
                bias: statistics.then(|| dim::shape(&scale)),
                epsilon: 1e-5,
                statistics,
            };
            check(&format!("{p:?}"), layer_norm(&p));
        }
    }
}

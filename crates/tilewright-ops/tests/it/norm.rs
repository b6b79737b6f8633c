use tilewright_ir::DType;
use tilewright_ops::Operand;
use tilewright_ops::norm::{
    BatchNorm, LayerNorm, Lrn, batch_norm, group_norm, hardmax, instance_norm, layer_norm,
    log_softmax, log_softmax_from, lp_norm, lrn, mean_variance_norm, rms_norm, softmax,
    softmax_from,
};

use crate::nd::{Nd, check, check_f32, refused};

/// What `f` makes of the elements that agree with each element outside of some axes: it takes
/// them and the place of the element among them.
fn along(x: &Nd, axes: &[usize], f: impl Fn(&[f64], usize) -> f64) -> Nd {
    Nd::build(&x.shape, |i| {
        let (mut all, mut place) = (Vec::new(), 0);
        Nd::build(&x.shape, |j| {
            if (0..i.len()).all(|a| axes.contains(&a) || i[a] == j[a]) {
                if i == j {
                    place = all.len();
                }
                all.push(x.at(j));
            }
            0.0
        });
        f(&all, place)
    })
}

fn soft(v: &[f64], k: usize) -> f64 {
    v[k].exp() / v.iter().map(|x| x.exp()).sum::<f64>()
}

fn normal(v: &[f64], k: usize, epsilon: f64) -> f64 {
    let mean = v.iter().sum::<f64>() / v.len() as f64;
    let var = v.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / v.len() as f64;
    (v[k] - mean) / (var + epsilon).sqrt()
}

#[test]
fn softmax_along_an_axis() {
    for shape in [vec![3, 5, 2], vec![7], vec![2, 1]] {
        let x = Nd::random(&shape, 1);
        for axis in 0..shape.len() {
            let expected = along(&x, &[axis], soft);
            for dtype in [DType::F32, DType::F64, DType::F16, DType::BF16] {
                let op = Operand::new(&shape, dtype);
                let negative = axis as i64 - shape.len() as i64;
                check(softmax(&op, negative), &[x.tensor(dtype)], &[(&expected, dtype)]);
                let log = expected.map(f64::ln);
                check(log_softmax(&op, axis as i64), &[x.tensor(dtype)], &[(&log, dtype)]);
            }
            let few = Nd::integers(&shape, 3, 0, 1);
            let first = along(&few, &[axis], |v, k| {
                let max = v.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                f64::from(v.iter().position(|&x| x == max) == Some(k))
            });
            check_f32(hardmax(&Operand::f32(&shape), axis as i64), &[few.f32()], &first);
        }
    }
}

#[test]
fn softmax_over_the_axes_from_one_on() {
    let shape = [2, 3, 4];
    let x = Nd::random(&shape, 1);
    for axis in 0..=3 {
        let axes: Vec<usize> = (axis..3).collect();
        let expected = along(&x, &axes, soft);
        check_f32(softmax_from(&Operand::f32(&shape), axis as i64), &[x.f32()], &expected);
        let log = expected.map(f64::ln);
        check_f32(log_softmax_from(&Operand::f32(&shape), axis as i64), &[x.f32()], &log);
    }
}

#[test]
fn softmax_of_large_values_does_not_overflow() {
    let x = Nd { shape: vec![3], data: vec![1e4, 1e4, -1e4] };
    let expected = Nd { shape: vec![3], data: vec![0.5, 0.5, 0.0] };
    check_f32(softmax(&Operand::f32(&[3]), 0), &[x.f32()], &expected);
    let log = Nd { shape: vec![3], data: vec![-(2f64.ln()), -(2f64.ln()), -2e4 - 2f64.ln()] };
    check_f32(log_softmax(&Operand::f32(&[3]), 0), &[x.f32()], &log);
}

#[test]
fn batch_norm_applies_known_statistics() {
    for shape in [vec![2, 3, 5, 4], vec![2, 3], vec![4]] {
        let c = if shape.len() > 1 { 3 } else { 1 };
        let x = Nd::random(&shape, 1);
        let (scale, bias, mean) = (Nd::random(&[c], 2), Nd::random(&[c], 3), Nd::random(&[c], 4));
        let var = Nd::random(&[c], 5).map(|v| v.abs() + 0.25);
        let expected = Nd::build(&shape, |i| {
            let c = [i.get(1).copied().unwrap_or(0)];
            let normal = (x.at(i) - mean.at(&c)) / (var.at(&c) + 1e-3).sqrt();
            normal * scale.at(&c) + bias.at(&c)
        });
        for (dtype, other) in
            [(DType::F32, DType::F32), (DType::F16, DType::F32), (DType::F64, DType::F64)]
        {
            let p = BatchNorm {
                x: Operand::new(&shape, dtype),
                scale: other,
                stats: other,
                epsilon: 1e-3,
            };
            let parameters = [&scale, &bias, &mean, &var].map(|t| t.tensor(other));
            let inputs: Vec<_> = [x.tensor(dtype)].into_iter().chain(parameters).collect();
            check(batch_norm(&p), &inputs, &[(&expected, dtype)]);
        }
    }
}

#[test]
fn layer_norm_over_trailing_axes() {
    let shape = [2, 3, 4];
    let x = Nd::random(&shape, 1);
    for (axis, scale_shape, bias_shape) in [
        (-1, vec![4], Some(vec![4])),
        (1, vec![3, 4], Some(vec![4])),
        (0, vec![1], None),
        (2, vec![3, 1], Some(vec![])),
    ] {
        let axes: Vec<usize> = (if axis < 0 { 2 } else { axis as usize }..3).collect();
        let scale = Nd::random(&scale_shape, 2);
        let bias = bias_shape.as_ref().map(|b| Nd::random(b, 3));
        let normals = along(&x, &axes, |v, k| normal(v, k, 1e-2));
        let expected = Nd::build(&shape, |i| {
            let scaled = normals.at(i) * scale.broadcast(i);
            scaled + bias.as_ref().map_or(0.0, |b| b.broadcast(i))
        });
        for (dtype, statistics) in [(DType::F32, false), (DType::F32, true), (DType::F16, true)] {
            let p = LayerNorm {
                x: Operand::new(&shape, dtype),
                axis,
                scale: tilewright_ir::dim::shape(&scale_shape),
                bias: bias_shape.as_deref().map(tilewright_ir::dim::shape),
                epsilon: 1e-2,
                statistics,
            };
            let mut kept = shape;
            kept[axes[0]..].fill(1);
            // A row's mean stands at the row's first element too.
            let means = along(&x, &axes, |v, _| v.iter().sum::<f64>() / v.len() as f64);
            let inverses = along(&x, &axes, |v, _| {
                let mean = v.iter().sum::<f64>() / v.len() as f64;
                let var = v.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / v.len() as f64;
                1.0 / (var + 1e-2).sqrt()
            });
            let [mean, inverse] = [means, inverses].map(|t| Nd::build(&kept, |i| t.at(i)));
            let mut outputs = vec![(&expected, dtype)];
            if statistics {
                outputs.extend([(&mean, DType::F32), (&inverse, DType::F32)]);
            }
            let inputs: Vec<_> =
                [&x, &scale].into_iter().chain(&bias).map(|t| t.tensor(dtype)).collect();
            check(layer_norm(&p), &inputs, &outputs);
        }
    }
}

#[test]
fn rms_norm_divides_by_the_root_mean_square() {
    let shape = [2, 3, 4];
    let x = Nd::random(&shape, 1);
    for (axis, scale_shape) in [(-1, vec![4]), (1, vec![3, 4])] {
        let axes: Vec<usize> = (if axis < 0 { 2 } else { axis as usize }..3).collect();
        let scale = Nd::random(&scale_shape, 2);
        let normals = along(&x, &axes, |v, k| {
            v[k] / (v.iter().map(|x| x * x).sum::<f64>() / v.len() as f64 + 1e-2).sqrt()
        });
        let expected = Nd::build(&shape, |i| normals.at(i) * scale.broadcast(i));
        let func = rms_norm(&Operand::f32(&shape), axis, &scale_shape, 1e-2);
        check_f32(func, &[x.f32(), scale.f32()], &expected);
    }
}

#[test]
fn instance_and_group_norm() {
    for shape in [vec![2, 6, 3, 2], vec![2, 6, 5], vec![1, 6, 1]] {
        let x = Nd::random(&shape, 1);
        let spatial: Vec<usize> = (2..shape.len()).collect();
        let (scale, bias) = (Nd::random(&[6], 2), Nd::random(&[6], 3));
        let normals = along(&x, &spatial, |v, k| normal(v, k, 1e-2));
        let expected =
            Nd::build(&shape, |i| normals.at(i) * scale.at(&i[1..2]) + bias.at(&i[1..2]));
        for dtype in [DType::F32, DType::F16] {
            let inputs = [&x, &scale, &bias].map(|t| t.tensor(dtype));
            let func = instance_norm(&Operand::new(&shape, dtype), 1e-2);
            check(func, &inputs, &[(&expected, dtype)]);
        }
        for groups in [1, 2, 3, 6] {
            // The same data with the channels of a group in an axis of their own.
            let members = 6 / groups;
            let split = [&[shape[0], groups, members], &shape[2..]].concat();
            let parts = Nd { shape: split.clone(), data: x.data.clone() };
            let axes: Vec<usize> = (2..split.len()).collect();
            let normals = along(&parts, &axes, |v, k| normal(v, k, 1e-2));
            let normals = Nd { shape: shape.clone(), data: normals.data };
            for per_group in [false, true] {
                let count = if per_group { groups } else { 6 };
                let (scale, bias) = (Nd::random(&[count], 2), Nd::random(&[count], 3));
                let expected = Nd::build(&shape, |i| {
                    let at = [if per_group { i[1] / members } else { i[1] }];
                    normals.at(i) * scale.at(&at) + bias.at(&at)
                });
                let func = group_norm(&Operand::f32(&shape), groups, 1e-2, per_group);
                check_f32(func, &[x.f32(), scale.f32(), bias.f32()], &expected);
            }
        }
    }
}

#[test]
fn mean_variance_and_lp_norm() {
    let shape = [2, 3, 4, 2];
    let x = Nd::random(&shape, 1);
    let expected = along(&x, &[0, 2, 3], |v, k| normal(v, k, 0.0));
    check_f32(mean_variance_norm(&Operand::f32(&shape), &[0, 2, 3]), &[x.f32()], &expected);
    for axis in 0..4 {
        for p in [1, 2] {
            let expected = along(&x, &[axis], |v, k| {
                let sum: f64 = v.iter().map(|x| x.abs().powi(p)).sum();
                v[k] / sum.powf(1.0 / f64::from(p))
            });
            for dtype in [DType::F32, DType::F16] {
                let func = lp_norm(&Operand::new(&shape, dtype), axis as i64, p as u32);
                check(func, &[x.tensor(dtype)], &[(&expected, dtype)]);
            }
        }
    }
    let zeros = Nd::build(&[2, 2], |_| 0.0);
    check_f32(lp_norm(&Operand::f32(&[2, 2]), 1, 2), &[zeros.f32()], &zeros);
}

#[test]
fn lrn_looks_at_neighbouring_channels() {
    for shape in [vec![2, 7, 3, 2], vec![1, 1, 4], vec![1, 4]] {
        let x = Nd::random(&shape, 1);
        for size in 1..=6 {
            for beta in [0.75, 0.5, 1.25] {
                let p = Lrn { alpha: 0.5, beta, bias: 2.0, ..Lrn::new(Operand::f32(&shape), size) };
                let expected = Nd::build(&shape, |i| {
                    let c = i[1] as i64;
                    let low = c - ((size - 1) as f64 / 2.0).floor() as i64;
                    let high = c + ((size - 1) as f64 / 2.0).ceil() as i64;
                    let square = |c: i64| {
                        let mut at: Vec<i64> = i.iter().map(|&v| v as i64).collect();
                        at[1] = c;
                        x.get(&at).unwrap_or(0.0).powi(2)
                    };
                    let sum: f64 = (low..=high).map(square).sum();
                    x.at(i) / (2.0 + 0.5 / size as f64 * sum).powf(beta)
                });
                check_f32(lrn(&p), &[x.f32()], &expected);
            }
        }
    }
}

#[test]
fn lrn_keeps_nan_and_infinity_in_their_windows() {
    let shape = [1, 9, 2];
    let mut x = Nd::random(&shape, 4);
    x.set(&[0, 2, 0], f64::NAN);
    x.set(&[0, 6, 1], f64::INFINITY);
    let near = |i: &[usize], at: usize| i[1].abs_diff(at) <= 1;
    let expected = Nd::build(&shape, |i| {
        let own = x.at(i);
        match i[2] {
            0 if near(i, 2) => f64::NAN,
            1 if i[1] == 6 => f64::NAN,
            1 if near(i, 6) => 0.0 * own,
            _ => {
                let squares = (i[1].saturating_sub(1)..=(i[1] + 1).min(8))
                    .map(|c| x.at(&[0, c, i[2]]).powi(2));
                own / (1.0 + 1e-4 / 3.0 * squares.sum::<f64>()).powf(0.75)
            }
        }
    });
    check_f32(lrn(&Lrn::new(Operand::f32(&shape), 3)), &[x.f32()], &expected);
}

#[test]
fn what_does_not_fit_is_refused() {
    let f = Operand::f32;
    let i = Operand::new(&[2, 3], DType::I32);
    let layer = LayerNorm {
        x: f(&[2, 3]),
        axis: 1,
        scale: vec![3.into()],
        bias: None,
        epsilon: 1e-5,
        statistics: false,
    };
    let messages = [
        refused(softmax(&f(&[2, 3]), 2)),
        refused(softmax(&i, 1)),
        refused(log_softmax(&f(&[]), 0)),
        refused(softmax_from(&f(&[2, 3]), 3)),
        refused(softmax_from(&f(&[2, 3]), -3)),
        refused(hardmax(&Operand::new(&[2], DType::BOOL), 0)),
        refused(batch_norm(&BatchNorm::new(f(&[])))),
        refused(batch_norm(&BatchNorm::new(i.clone()))),
        refused(layer_norm(&LayerNorm { axis: 2, ..layer.clone() })),
        refused(layer_norm(&LayerNorm { scale: vec![2.into()], ..layer.clone() })),
        refused(layer_norm(&LayerNorm {
            bias: Some([2, 2, 3].map(tilewright_ir::Dim::from).to_vec()),
            ..layer
        })),
        refused(rms_norm(&f(&[2, 3]), 1, &[2], 1e-5)),
        refused(instance_norm(&f(&[3]), 1e-5)),
        refused(group_norm(&f(&[6]), 2, 1e-5, false)),
        refused(group_norm(&f(&[1, 6]), 4, 1e-5, false)),
        refused(group_norm(&f(&[1, 6]), 0, 1e-5, false)),
        refused(mean_variance_norm(&f(&[1, 6]), &[0, 0])),
        refused(lp_norm(&f(&[3]), 0, 3)),
        refused(lrn(&Lrn::new(f(&[3]), 3))),
        refused(lrn(&Lrn::new(f(&[1, 3]), 0))),
        refused(lrn(&Lrn::new(f(&[1, 3]), usize::MAX))),
    ];
    expect_test::expect![[r#"
        input: softmax: there is no axis 2 among 2 axes
        unsupported: softmax: int32 is not supported
        input: log_softmax: there is no axis 0 among 0 axes
        input: softmax: there is no axis 3 among 2 axes
        input: softmax: there is no axis -3 among 2 axes
        unsupported: hardmax: bool is not supported
        input: batch_norm: float32[] must be [N, C, ...]
        unsupported: batch_norm: int32 is not supported
        input: layer_norm: there is no axis 2 among 2 axes
        input: layer_norm: the scale's shape [2] does not broadcast to [2, 3]
        input: layer_norm: the bias's shape [2, 2, 3] does not broadcast to [2, 3]
        input: rms_norm: the scale's shape [2] does not broadcast to [2, 3]
        input: instance_norm: float32[3] must be [N, C, ...]
        input: group_norm: float32[6] must be [N, C, ...]
        input: group_norm: 6 channels in 4 groups
        input: group_norm: 6 channels in 0 groups
        input: mean_variance_norm: the axis 0 comes twice
        unsupported: lp_norm: the 3-norm
        input: lrn: float32[3] must be [N, C, ...]
        input: lrn: a window of 0 channels
        input: lrn: a window of 18446744073709551615 channels
    "#]]
    .assert_eq(&(messages.join("\n") + "\n"));
}

use proptest::prelude::*;
use tilewright_ir::{DType, Tensor};
use tilewright_ops::Operand;
use tilewright_ops::contraction::{Conv, ConvTranspose, Gemm, conv, conv_transpose, gemm, matmul};
use tilewright_ops::subpixel::{Subpixel, subpixel};

use crate::nd::{Nd, check, check_f32, refused, run};

#[test]
fn matmul_follows_numpy() {
    let cases: [(&[usize], &[usize], &[usize]); 10] = [
        (&[5, 7], &[7, 3], &[5, 3]),
        (&[1, 1], &[1, 1], &[1, 1]),
        (&[7], &[7, 3], &[3]),
        (&[5, 7], &[7], &[5]),
        (&[7], &[7], &[]),
        (&[2, 5, 7], &[2, 7, 3], &[2, 5, 3]),
        (&[2, 5, 7], &[7, 3], &[2, 5, 3]),
        (&[2, 1, 5, 7], &[3, 7, 2], &[2, 3, 5, 2]),
        (&[7], &[2, 7, 3], &[2, 3]),
        (&[5, 0], &[0, 3], &[5, 3]),
    ];
    for dtype in [DType::F32, DType::F64, DType::I32, DType::I64] {
        for (a, b, out) in cases {
            let (x, y) = (Nd::integers(a, 1, -5, 5), Nd::integers(b, 2, -5, 5));
            let k = a[a.len() - 1];
            // Rows and columns of operands with one axis come back as axes of extent one.
            let rows = if a.len() == 1 { Nd { shape: vec![1, k], ..x.clone() } } else { x.clone() };
            let cols = if b.len() == 1 { Nd { shape: vec![k, 1], ..y.clone() } } else { y.clone() };
            let expected = Nd::build(out, |i| {
                let mut i = i.to_vec();
                if b.len() == 1 {
                    i.push(0);
                }
                if a.len() == 1 {
                    i.insert(i.len() - 1, 0);
                }
                let (batch, at) = i.split_at(i.len() - 2);
                let element = |k: usize| {
                    rows.broadcast(&[batch, &[at[0], k]].concat())
                        * cols.broadcast(&[batch, &[k, at[1]]].concat())
                };
                (0..k).map(element).sum()
            });
            let func = matmul(&Operand::new(a, dtype), &Operand::new(b, dtype));
            check(func, &[x.tensor(dtype), y.tensor(dtype)], &[(&expected, dtype)]);
        }
    }
}

#[test]
fn narrow_floats_accumulate_in_float32() {
    // The sum stays below 2048 only in a wider type: 1 is lost against 2048 in float16.
    let (x, y) = (Nd::build(&[1, 4096], |_| 1.0), Nd::build(&[4096, 1], |_| 1.0));
    let expected = Nd::build(&[1, 1], |_| 4096.0);
    let d = DType::F16;
    let func = matmul(&Operand::new(&[1, 4096], d), &Operand::new(&[4096, 1], d));
    check(func, &[x.tensor(d), y.tensor(d)], &[(&expected, d)]);
}

#[test]
fn gemm_transposes_scales_and_adds() {
    let (m, k, n) = (5, 7, 3);
    for case in 0..48 {
        let (trans_a, trans_b) = (case & 1 != 0, case & 2 != 0);
        let (alpha, beta) = [(1.0, 1.0), (2.0, 0.5), (0.25, 0.0), (1.0, 3.0)][case >> 2 & 3];
        let c = [None, Some(vec![3]), Some(vec![5, 1])][case >> 4 & 3].clone();
        let (a, b) = (if trans_a { [k, m] } else { [m, k] }, if trans_b { [n, k] } else { [k, n] });
        let (x, y) = (Nd::random(&a, 1), Nd::random(&b, 2));
        let z = c.as_ref().map(|c| Nd::random(c, 3));
        let expected = Nd::build(&[m, n], |i| {
            let xa = |k| if trans_a { x.at(&[k, i[0]]) } else { x.at(&[i[0], k]) };
            let yb = |k| if trans_b { y.at(&[i[1], k]) } else { y.at(&[k, i[1]]) };
            let product: f64 = (0..k).map(|k| xa(k) * yb(k)).sum();
            alpha * product + z.as_ref().map_or(0.0, |z| beta * z.broadcast(i))
        });
        for dtype in [DType::F32, DType::F16] {
            let p = Gemm {
                c: c.as_deref().map(tilewright_ir::dim::shape),
                trans_a,
                trans_b,
                alpha,
                beta,
                ..Gemm::new(Operand::new(&a, dtype), Operand::new(&b, dtype))
            };
            let inputs: Vec<_> = [&x, &y].into_iter().chain(&z).map(|t| t.tensor(dtype)).collect();
            check(gemm(&p), &inputs, &[(&expected, dtype)]);
        }
    }
    let (x, y) = (Nd::integers(&[m, k], 1, -5, 5), Nd::integers(&[k, n], 2, -5, 5));
    let expected = Nd::build(&[m, n], |i| {
        3.0 * (0..k).map(|k| x.at(&[i[0], k]) * y.at(&[k, i[1]])).sum::<f64>()
    });
    let d = DType::I64;
    let p = Gemm { alpha: 3.0, ..Gemm::new(Operand::new(&[m, k], d), Operand::new(&[k, n], d)) };
    check(gemm(&p), &[x.tensor(d), y.tensor(d)], &[(&expected, d)]);
}

/// A convolution by its definition.
fn reference(p: &Conv, x: &Nd, w: &Nd, bias: Option<&Nd>) -> Nd {
    let n = p.strides.len();
    let (m, icg) = (w.shape[0], w.shape[1]);
    let mut shape = vec![x.shape[0], m];
    for a in 0..n {
        let room = x.shape[2 + a] + p.pads_begin[a] + p.pads_end[a];
        shape.push((room - p.dilations[a] * (w.shape[2 + a] - 1) - 1) / p.strides[a] + 1);
    }
    Nd::build(&shape, |o| {
        let group = o[1] / (m / p.groups);
        let mut sum = bias.map_or(0.0, |b| b.at(&[o[1]]));
        Nd::build(&[&[icg], &w.shape[2..]].concat(), |k| {
            let mut at = vec![o[0] as i64, (group * icg + k[0]) as i64];
            for a in 0..n {
                let cell = o[2 + a] * p.strides[a] + k[1 + a] * p.dilations[a];
                at.push(cell as i64 - p.pads_begin[a] as i64);
            }
            sum += x.get(&at).unwrap_or(0.0) * w.at(&[&[o[1]], k].concat());
            0.0
        });
        sum
    })
}

fn check_conv(p: &Conv, dtype: DType) {
    let (x, w) = (Nd::random(&p.x.shape, 1), Nd::random(&p.w.shape, 2));
    let bias = p.bias.then(|| Nd::random(&[p.w.shape[0]], 3));
    let expected = reference(p, &x, &w, bias.as_ref());
    let typed = |o: &Operand| Operand::new(&o.shape, dtype);
    let p = Conv { x: typed(&p.x), w: typed(&p.w), ..p.clone() };
    let inputs: Vec<_> = [&x, &w].into_iter().chain(&bias).map(|t| t.tensor(dtype)).collect();
    check(conv(&p), &inputs, &[(&expected, dtype)]);
}

#[test]
fn conv_follows_its_definition() {
    let f = Operand::f32;
    let mut cases = vec![
        Conv::new(f(&[2, 3, 7]), f(&[5, 3, 2])),
        Conv::new(f(&[1, 3, 6, 5]), f(&[4, 3, 3, 2])),
        Conv::new(f(&[1, 3, 6, 5]), f(&[4, 3, 1, 1])),
        Conv::new(f(&[2, 2, 4, 5, 3]), f(&[3, 2, 2, 3, 1])),
        Conv::new(f(&[1, 1, 3, 3, 3, 3]), f(&[2, 1, 2, 2, 2, 2])),
        // Groups, a group a channel, and several outputs a group.
        Conv { groups: 2, ..Conv::new(f(&[2, 4, 5, 5]), f(&[6, 2, 3, 3])) },
        Conv { groups: 4, ..Conv::new(f(&[1, 4, 5, 5]), f(&[4, 1, 3, 3])) },
        Conv { groups: 3, ..Conv::new(f(&[1, 3, 5, 5]), f(&[6, 1, 3, 3])) },
        Conv { groups: 2, ..Conv::new(f(&[1, 6, 4]), f(&[2, 3, 2])) },
    ];
    // Steps, distances and padding, of which the windows do not always reach the end.
    for (strides, dilations, begin, end) in [
        ([2, 3], [1, 1], [0, 0], [0, 0]),
        ([1, 1], [2, 3], [0, 0], [0, 0]),
        ([1, 1], [1, 1], [1, 1], [1, 1]),
        ([1, 2], [2, 1], [0, 2], [3, 0]),
        ([3, 2], [1, 2], [2, 3], [1, 0]),
        ([2, 2], [1, 1], [0, 0], [1, 1]),
        ([4, 4], [1, 1], [0, 0], [1, 2]),
    ] {
        cases.push(Conv {
            strides: strides.into(),
            dilations: dilations.into(),
            pads_begin: begin.into(),
            pads_end: end.into(),
            ..Conv::new(f(&[1, 2, 9, 8]), f(&[3, 2, 3, 2]))
        });
    }
    // Padding alone holds the window.
    cases.push(Conv {
        pads_begin: vec![1],
        pads_end: vec![2],
        ..Conv::new(f(&[1, 2, 0]), f(&[3, 2, 3]))
    });
    cases.push(Conv::new(f(&[0, 2, 4]), f(&[3, 2, 3])));
    for p in &cases {
        check_conv(p, DType::F32);
        check_conv(&Conv { bias: true, ..p.clone() }, DType::F32);
    }
    check_conv(&Conv { bias: true, ..cases[1].clone() }, DType::F16);
    check_conv(&cases[5], DType::BF16);
    check_conv(&cases[1], DType::F64);
}

#[test]
fn ragged_convs_agree_at_every_size() {
    for extent in 3..=9 {
        for stride in 1..=3 {
            for pad in 0..=2 {
                let p = Conv {
                    strides: vec![stride],
                    pads_begin: vec![pad],
                    pads_end: vec![pad / 2],
                    bias: true,
                    ..Conv::new(Operand::f32(&[1, 3, extent]), Operand::f32(&[5, 3, 3]))
                };
                check_conv(&p, DType::F32);
            }
        }
    }
}

/// Convolutions of any number of axes, steps, distances, paddings and groups, whose windows fit.
fn any_conv() -> impl Strategy<Value = Conv> {
    let axis = (1..4usize, 1..4usize, 1..3usize, 0..3usize, 0..3usize, 0..5usize);
    let channels = (1..3usize, 1..4usize, 1..4usize, 1..4usize);
    (channels, prop::collection::vec(axis, 1..4), any::<bool>()).prop_map(
        |((n, groups, icg, ocg), axes, bias)| {
            let mut x = vec![n, groups * icg];
            let mut w = vec![groups * ocg, icg];
            for &(kernel, _, dilation, begin, end, more) in &axes {
                // Just enough for one window, and some more.
                let span = (kernel - 1) * dilation + 1;
                x.push(span.saturating_sub(begin + end) + more);
                w.push(kernel);
            }
            Conv {
                bias,
                groups,
                strides: axes.iter().map(|a| a.1).collect(),
                dilations: axes.iter().map(|a| a.2).collect(),
                pads_begin: axes.iter().map(|a| a.3).collect(),
                pads_end: axes.iter().map(|a| a.4).collect(),
                ..Conv::new(Operand::f32(&x), Operand::f32(&w))
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn any_conv_follows_its_definition(p in any_conv()) {
        check_conv(&p, DType::F32);
    }
}

/// A transposed convolution by its definition: every element spreads its window.
fn reference_transpose(p: &ConvTranspose, x: &Nd, w: &Nd, bias: Option<&Nd>) -> Nd {
    let n = p.strides.len();
    let (channels, ocg) = (w.shape[0], w.shape[1]);
    let mut shape = vec![x.shape[0], ocg * p.groups];
    for a in 0..n {
        let d = (x.shape[2 + a] as i64 - 1) * p.strides[a] as i64
            + p.output_padding[a] as i64
            + (w.shape[2 + a] as i64 - 1) * p.dilations[a] as i64
            + 1
            - p.pads_begin[a]
            - p.pads_end[a];
        shape.push(d as usize);
    }
    let mut out = Nd::build(&shape, |o| bias.map_or(0.0, |b| b.at(&[o[1]])));
    Nd::build(&x.shape, |i| {
        Nd::build(&[&[ocg], &w.shape[2..]].concat(), |k| {
            let group = i[1] / (channels / p.groups);
            let mut at = vec![i[0] as i64, (group * ocg + k[0]) as i64];
            for a in 0..n {
                let cell = i[2 + a] * p.strides[a] + k[1 + a] * p.dilations[a];
                at.push(cell as i64 - p.pads_begin[a]);
            }
            if let Some(old) = out.get(&at) {
                let at: Vec<usize> = at.iter().map(|&i| i as usize).collect();
                out.set(&at, old + x.at(i) * w.at(&[&[i[1]], k].concat()));
            }
            0.0
        });
        0.0
    });
    out
}

#[test]
fn conv_transpose_follows_its_definition() {
    let f = Operand::f32;
    let plain = ConvTranspose::new(f(&[1, 2, 4, 3]), f(&[2, 3, 3, 2]));
    let mut cases = vec![
        plain.clone(),
        ConvTranspose::new(f(&[2, 3, 5]), f(&[3, 2, 4])),
        ConvTranspose::new(f(&[1, 2, 2, 3, 2]), f(&[2, 2, 2, 1, 3])),
        ConvTranspose { groups: 2, ..ConvTranspose::new(f(&[1, 4, 3]), f(&[4, 3, 2])) },
        ConvTranspose { groups: 3, ..ConvTranspose::new(f(&[1, 3, 3]), f(&[3, 1, 2])) },
    ];
    for (strides, dilations, begin, end, extra) in [
        ([2, 3], [1, 1], [0, 0], [0, 0], [0, 0]),
        ([2, 2], [1, 1], [1, 0], [0, 1], [1, 0]),
        ([3, 2], [2, 1], [2, 1], [1, 1], [0, 1]),
        ([1, 1], [1, 1], [3, 2], [0, 0], [0, 0]),
        ([2, 2], [1, 3], [-1, 0], [0, -2], [1, 1]),
        ([3, 3], [1, 1], [4, 2], [2, 1], [2, 1]),
    ] {
        cases.push(ConvTranspose {
            strides: strides.into(),
            dilations: dilations.into(),
            pads_begin: begin.into(),
            pads_end: end.into(),
            output_padding: extra.into(),
            ..plain.clone()
        });
    }
    for p in &cases {
        for bias in [false, true] {
            let p = ConvTranspose { bias, ..p.clone() };
            let (x, w) = (Nd::random(&p.x.shape, 1), Nd::random(&p.w.shape, 2));
            let b = bias.then(|| Nd::random(&[p.w.shape[1] * p.groups], 3));
            let expected = reference_transpose(&p, &x, &w, b.as_ref());
            let inputs: Vec<_> = [&x, &w].into_iter().chain(&b).map(Nd::f32).collect();
            check_f32(conv_transpose(&p), &inputs, &expected);
            check_subpixel(&p);
        }
    }
}

/// A transposed convolution as an ordinary one is the same.
fn check_subpixel(p: &ConvTranspose) {
    let (x, w) = (Nd::random(&p.x.shape, 1), Nd::random(&p.w.shape, 2));
    let b = p.bias.then(|| Nd::random(&[p.w.shape[1].known().unwrap_or(0) * p.groups], 3));
    let parts = subpixel(p).expect("parameters that fit");
    let apart = p.dilations.iter().any(|d| *d != 1) || p.strides.iter().all(|s| *s == 1);
    assert_eq!(parts.is_none(), apart);
    let Some(Subpixel { weights, bias, conv: parameters, place }) = parts else { return };
    let one = |func, inputs: &[Tensor]| run(Ok(func), inputs).remove(0);
    let mut inputs = vec![x.f32(), one(weights, &[w.f32()])];
    inputs.extend(bias.zip(b.as_ref()).map(|(func, b)| one(func, &[b.f32()])));
    let phases = run(conv(&parameters), &inputs).remove(0);
    check_f32(Ok(place), &[phases], &reference_transpose(p, &x, &w, b.as_ref()));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn any_conv_transpose_is_an_ordinary_one(
        (groups, results, channels) in (1usize..3, 1usize..4, 1usize..4),
        axes in prop::collection::vec((1usize..7, 1usize..6, 1usize..5, -2i64..6, -2i64..6, 0usize..3), 1..3),
        bias in any::<bool>(),
    ) {
        let n = axes.len();
        let x = [vec![2, groups * channels], axes.iter().map(|a| a.0).collect()].concat();
        let kernel: Vec<usize> = axes.iter().map(|a| a.1).collect();
        let w = [vec![groups * channels, results], kernel].concat();
        let p = ConvTranspose {
            bias,
            groups,
            strides: axes.iter().map(|a| a.2).collect(),
            dilations: vec![1; n],
            pads_begin: axes.iter().map(|a| a.3).collect(),
            pads_end: axes.iter().map(|a| a.4).collect(),
            output_padding: axes.iter().map(|a| a.5).collect(),
            ..ConvTranspose::new(Operand::f32(&x), Operand::f32(&w))
        };
        if conv_transpose(&p).is_ok() {
            check_subpixel(&p);
        } else {
            prop_assert!(subpixel(&p).is_err());
        }
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let f = Operand::f32;
    let image = Conv::new(f(&[1, 4, 5, 5]), f(&[6, 4, 3, 3]));
    let up = ConvTranspose::new(f(&[1, 4, 5]), f(&[4, 6, 3]));
    let messages = [
        refused(matmul(&f(&[2, 3]), &f(&[4, 2]))),
        refused(matmul(&f(&[]), &f(&[4]))),
        refused(matmul(&f(&[2, 3, 4]), &f(&[3, 4, 5]))),
        refused(matmul(&f(&[2, 3]), &Operand::new(&[3, 2], DType::F16))),
        refused(matmul(&Operand::new(&[1], DType::BOOL), &Operand::new(&[1], DType::BOOL))),
        refused(gemm(&Gemm::new(f(&[2, 3]), f(&[2, 3])))),
        refused(gemm(&Gemm { trans_a: true, ..Gemm::new(f(&[2, 3]), f(&[3, 2])) })),
        refused(gemm(&Gemm::new(f(&[2, 3, 4]), f(&[2, 3])))),
        refused(gemm(&Gemm { c: Some(vec![3.into()]), ..Gemm::new(f(&[2, 3]), f(&[3, 2])) })),
        refused(gemm(&Gemm {
            c: Some(vec![1.into(), 1.into(), 2.into()]),
            ..Gemm::new(f(&[2, 3]), f(&[3, 2]))
        })),
        refused(gemm(&Gemm {
            alpha: 0.5,
            ..Gemm::new(Operand::new(&[2, 2], DType::I32), Operand::new(&[2, 2], DType::I32))
        })),
        refused(conv(&Conv::new(f(&[1, 4]), f(&[6, 4])))),
        refused(conv(&Conv::new(f(&[1, 4, 5]), f(&[6, 4, 3, 3])))),
        refused(conv(&Conv { groups: 2, ..image.clone() })),
        refused(conv(&Conv { groups: 0, ..image.clone() })),
        refused(conv(&Conv { strides: vec![1], ..image.clone() })),
        refused(conv(&Conv { strides: vec![0, 1], ..image.clone() })),
        refused(conv(&Conv { dilations: vec![3, 1], ..image.clone() })),
        refused(conv(&Conv { pads_end: vec![usize::MAX, 1], ..image.clone() })),
        refused(conv(&Conv { dilations: vec![usize::MAX, 1], ..image.clone() })),
        refused(conv_transpose(&ConvTranspose { groups: 3, ..up.clone() })),
        refused(conv_transpose(&ConvTranspose {
            groups: usize::MAX,
            ..ConvTranspose::new(f(&[1, 0, 5]), f(&[0, 6, 3]))
        })),
        refused(conv_transpose(&ConvTranspose { strides: vec![], ..up.clone() })),
        refused(conv_transpose(&ConvTranspose { strides: vec![0], ..up.clone() })),
        refused(conv_transpose(&ConvTranspose { pads_end: vec![7], ..up.clone() })),
        refused(conv_transpose(&ConvTranspose { pads_end: vec![i64::MIN], ..up.clone() })),
        refused(conv_transpose(&ConvTranspose { dilations: vec![usize::MAX], ..up.clone() })),
    ];
    expect_test::expect![[r#"
        input: matmul: float32[2, 3] times float32[4, 2]: the inner extents 3 and 4 differ
        input: matmul: float32[] times float32[4]: an operand has no axes
        input: matmul: the shapes [[2], [3]] do not broadcast together
        input: matmul: the types float32 and float16 differ
        unsupported: matmul: bool is not supported
        input: gemm: float32[2, 3] times float32[2, 3]: the inner extents 3 and 2 differ
        input: gemm: float32[2, 3] transposed times float32[3, 2]: the inner extents 2 and 3 differ
        input: gemm: float32[2, 3, 4] and float32[2, 3] must have two axes each
        input: gemm: the addend's shape [3] does not broadcast to [2, 2]
        input: gemm: the addend's shape [1, 1, 2] does not broadcast to [2, 2]
        unsupported: gemm: alpha = 0.5 for int32
        input: conv: data float32[1, 4] and weights float32[6, 4] do not fit
        input: conv: data float32[1, 4, 5] and weights float32[6, 4, 3, 3] do not fit
        input: conv: weights float32[6, 4, 3, 3] do not fit float32[1, 4, 5, 5] with 2 groups
        input: conv: weights float32[6, 4, 3, 3] do not fit float32[1, 4, 5, 5] with 0 groups
        input: conv: 1 strides for 2 spatial axes
        input: conv: zero among the strides
        input: conv: a window of 3 cells, 3 apart, does not fit into 5 cells of spatial axis 0
        input: conv: 18446744073709551615 among the pads at the end is too large
        input: conv: 18446744073709551615 among the dilations is too large
        input: conv_transpose: weights float32[4, 6, 3] do not fit float32[1, 4, 5] with 3 groups
        input: conv_transpose: 18446744073709551615 groups are too many
        input: conv_transpose: strides, dilations, pads and output padding must each have 1 numbers
        input: conv_transpose: no output along spatial axis 0: extent 5, kernel 3, stride 0, dilation 1, pads 0 and 0, output padding 0
        input: conv_transpose: no output along spatial axis 0: extent 5, kernel 3, stride 1, dilation 1, pads 0 and 7, output padding 0
        input: conv_transpose: no output along spatial axis 0: extent 5, kernel 3, stride 1, dilation 1, pads 0 and -9223372036854775808, output padding 0
        input: conv_transpose: no output along spatial axis 0: extent 5, kernel 3, stride 1, dilation 18446744073709551615, pads 0 and 0, output padding 0
    "#]].assert_eq(&(messages.join("\n") + "\n"));
}

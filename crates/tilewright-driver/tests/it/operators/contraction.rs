//! Sums of products.

use tilewright_driver::{DType, IoLayout};
use tilewright_ir::{Remarks, dim};
use tilewright_layout::ConvLayout;
use tilewright_ops::Operand;
use tilewright_ops::contraction::{Conv, ConvTranspose, Gemm, conv, conv_transpose, gemm, matmul};
use tilewright_ops::einsum::einsum;
use tilewright_ops::quantize::matmul_integer;

use super::{RAGGED, calling, check, compare_runs_of};

#[test]
fn matmul_at_ragged_sizes() {
    let check_sizes = |m: usize, n: usize, k: usize| {
        let (a, b) = (Operand::f32(&[m, k]), Operand::f32(&[k, n]));
        check(&format!("{a} times {b}"), matmul(&a, &b));
    };
    for n in RAGGED {
        check_sizes(13, n, 7);
        check_sizes(n, 17, 9);
        check_sizes(6, 19, n);
    }
    for n in [100, 129, 130] {
        check_sizes(n, n + 1, 37);
    }
    check_sizes(0, 4, 3);
}

#[test]
fn matmul_of_vectors_and_batches() {
    for (a, b) in [
        (&[7][..], &[7][..]),
        (&[7], &[7, 5]),
        (&[5, 7], &[7]),
        (&[3, 5, 7], &[3, 7, 2]),
        (&[3, 5, 7], &[7, 2]),
        (&[2, 1, 5, 7], &[3, 7, 9]),
    ] {
        let (a, b) = (Operand::f32(a), Operand::f32(b));
        check(&format!("{a} times {b}"), matmul(&a, &b));
    }
}

#[test]
fn matmul_of_every_type() {
    for dtype in [DType::F64, DType::F16, DType::BF16, DType::I32, DType::I64, DType::U32] {
        let (a, b) = (Operand::new(&[5, 11], dtype), Operand::new(&[11, 18], dtype));
        check(&format!("{a} times {b}"), matmul(&a, &b));
    }
    let (a, b) = (Operand::new(&[5, 11], DType::U8), Operand::new(&[11, 18], DType::I8));
    check("integers", matmul_integer(&a, &b, Some(&[]), Some(&[18.into()])));
}

#[test]
fn gemm_in_every_form() {
    for trans_a in [false, true] {
        for trans_b in [false, true] {
            for c in [None, Some(vec![]), Some(vec![19]), Some(vec![7, 1]), Some(vec![7, 19])] {
                let a = if trans_a { [11, 7] } else { [7, 11] };
                let b = if trans_b { [19, 11] } else { [11, 19] };
                let mut p = Gemm::new(Operand::f32(&a), Operand::f32(&b));
                (p.trans_a, p.trans_b, p.c) = (trans_a, trans_b, c.map(|c| dim::shape(&c)));
                (p.alpha, p.beta) = (0.5, 2.0);
                check(&format!("{p:?}"), gemm(&p));
            }
        }
    }
}

#[test]
fn conv_at_ragged_channels() {
    for channels in RAGGED {
        let into = Conv { bias: true, ..Conv::new(image(1, 5, 6, 7), image(channels, 5, 3, 3)) };
        check(&format!("5 to {channels} channels"), conv(&into));
        let from = Conv::new(image(2, channels, 5, 6), image(3, channels, 1, 1));
        check(&format!("{channels} to 3 channels"), conv(&from));
    }
    for width in RAGGED {
        let p = Conv {
            pads_begin: vec![1, 1],
            pads_end: vec![1, 1],
            ..Conv::new(image(1, 3, 4, width), image(6, 3, 3, 3))
        };
        check(&format!("width {width}"), conv(&p));
    }
}

fn image(n: usize, c: usize, h: usize, w: usize) -> Operand {
    Operand::f32(&[n, c, h, w])
}

#[test]
fn conv_with_every_option() {
    let plain = || Conv::new(image(2, 6, 11, 9), image(8, 6, 3, 2));
    for (what, p) in [
        ("strides", Conv { strides: vec![2, 3], ..plain() }),
        ("dilations", Conv { dilations: vec![3, 2], ..plain() }),
        ("pads", Conv { pads_begin: vec![2, 0], pads_end: vec![1, 3], ..plain() }),
        (
            "all",
            Conv {
                strides: vec![2, 2],
                dilations: vec![2, 1],
                pads_begin: vec![1, 2],
                pads_end: vec![0, 1],
                bias: true,
                ..plain()
            },
        ),
        ("groups", Conv { groups: 2, ..Conv::new(image(1, 6, 7, 7), image(10, 3, 3, 3)) }),
        ("depthwise", Conv { groups: 6, ..Conv::new(image(1, 6, 7, 9), image(6, 1, 3, 3)) }),
        ("depthwise twice", Conv { groups: 5, ..Conv::new(image(1, 5, 8, 7), image(10, 1, 3, 3)) }),
        ("the whole image", Conv::new(image(3, 4, 5, 6), image(7, 4, 5, 6))),
    ] {
        check(what, conv(&p));
    }
    let line = |s: &[usize]| Operand::f32(s);
    check("one axis", conv(&Conv::new(line(&[2, 3, 17]), line(&[5, 3, 4]))));
    check("three axes", conv(&Conv::new(line(&[1, 2, 5, 6, 7]), line(&[3, 2, 2, 3, 2]))));
}

#[test]
fn conv_transpose_with_every_option() {
    let plain = || ConvTranspose::new(image(2, 4, 5, 6), image(4, 3, 3, 2));
    for (what, p) in [
        ("plain", plain()),
        ("strides", ConvTranspose { strides: vec![2, 3], bias: true, ..plain() }),
        ("dilations", ConvTranspose { dilations: vec![2, 2], ..plain() }),
        ("pads", ConvTranspose { pads_begin: vec![1, 0], pads_end: vec![1, 1], ..plain() }),
        (
            "output padding",
            ConvTranspose { strides: vec![2, 2], output_padding: vec![1, 1], ..plain() },
        ),
        ("groups", ConvTranspose { groups: 2, ..plain() }),
    ] {
        check(what, conv_transpose(&p));
    }
}

#[test]
fn einsum_of_several_forms() {
    for (equation, shapes) in [
        ("ij,jk->ik", &[&[5, 7][..], &[7, 9]][..]),
        ("bij,bkj->bik", &[&[3, 5, 7], &[3, 4, 7]]),
        ("ii->i", &[&[6, 6]]),
        ("ij->", &[&[5, 7]]),
        ("i,j,k->kji", &[&[3], &[4], &[5]]),
        ("...ij,...jk->...ik", &[&[2, 1, 3, 4], &[5, 4, 2]]),
    ] {
        let operands: Vec<Operand> = shapes.iter().map(|s| Operand::f32(s)).collect();
        check(equation, einsum(equation, &operands));
    }
}

/// Groups may be smaller than a block, or no multiple of one: then the layout does not fit, and the
/// function stays as it is.
#[test]
fn grouped_convolutions_under_every_layout() {
    for (channels, out, groups) in [(4, 3, 2), (6, 2, 3), (16, 8, 2), (20, 5, 4), (6, 1, 6)] {
        let x = Operand::f32(&[1, channels, 4, 3]);
        let transposed = ConvTranspose {
            groups,
            strides: vec![2, 1],
            ..ConvTranspose::new(x.clone(), Operand::f32(&[channels, out, 3, 2]))
        };
        let weights = Operand::f32(&[out * groups, channels / groups, 3, 2]);
        let straight = Conv { groups, ..Conv::new(x, weights) };
        for (name, func) in
            [("transposed", conv_transpose(&transposed)), ("straight", conv(&straight))]
        {
            let module = calling(func.expect(name)).expect(name);
            for policy in
                [ConvLayout::Blocked(8), ConvLayout::Blocked(16), ConvLayout::ChannelsLast]
            {
                let what = format!("{name} {channels} to {out} x {groups}, {policy:?}");
                let laid = tilewright_driver::layout::apply(
                    &module,
                    policy,
                    IoLayout::Logical,
                    &mut Remarks::new(),
                );
                let (laid, _) = laid.unwrap_or_else(|e| panic!("{what}: {}", e.render()));
                compare_runs_of(&what, &module, &laid);
            }
        }
    }
}

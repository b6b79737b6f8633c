//! What reads an image at places that data say, and what has loops of its own.

use tilewright_driver::{DType, Tensor};
use tilewright_ops::Operand;
use tilewright_ops::matrix::det;
use tilewright_ops::pool::{Blocks, unite_blocks};
use tilewright_ops::reduce::cumprod;
use tilewright_ops::regions::{RoiAlign, max_roi_pool, roi_align};
use tilewright_ops::sample::{DeformConv, GridSample, Outside, Sampling, deform_conv, grid_sample};

use super::{RAGGED, check, check_with};

#[test]
fn grids() {
    for mode in [Sampling::Nearest, Sampling::Linear, Sampling::Cubic] {
        for outside in [Outside::Zeros, Outside::Border, Outside::Reflection] {
            let p = GridSample {
                x: Operand::f32(&[2, 3, 7, 9]),
                grid: Operand::f32(&[2, 5, 17, 2]),
                mode,
                outside,
                align_corners: mode == Sampling::Linear,
            };
            check(&format!("{p:?}"), grid_sample(&p));
        }
    }
}

#[test]
fn deformed_windows() {
    for channels in [1, 3, 8] {
        let p = DeformConv {
            x: Operand::f32(&[1, channels, 7, 8]),
            w: Operand::f32(&[5, channels, 3, 3]),
            offset: Operand::f32(&[1, 18, 5, 6]),
            bias: true,
            mask: channels > 1,
            strides: vec![1, 1],
            dilations: vec![1, 1],
            pads: vec![0, 0],
            groups: 1,
            offset_groups: 1,
        };
        check(&format!("{p:?}"), deform_conv(&p));
    }
}

#[test]
fn regions() {
    let corners = |name: &str, shape: &[usize]| {
        let data = [0.0f32, 0.5, 6.0, 5.0, 3.0, 1.0, 12.0, 2.0, -3.0, -3.0, 4.0, 9.0];
        (name == "regions").then(|| Tensor::from_slice(shape, &data).ok()).flatten()
    };
    for (samples, max) in [(0, false), (2, true)] {
        let p = RoiAlign {
            x: Operand::f32(&[2, 3, 6, 7]),
            regions: Operand::f32(&[3, 4]),
            examples: Operand::new(&[3], DType::I64),
            bins: [2, 3],
            samples,
            scale: 1.0,
            half_pixel: max,
            max,
        };
        check_with(&format!("{p:?}"), roi_align(&p), &corners);
    }
    let examples = |name: &str, shape: &[usize]| {
        let data = [0.0f32, 0.0, 0.0, 6.0, 5.0, 1.0, 2.0, 1.0, 3.0, 20.0];
        (name == "regions").then(|| Tensor::from_slice(shape, &data).ok()).flatten()
    };
    let (x, r) = (Operand::f32(&[2, 3, 6, 7]), Operand::f32(&[2, 5]));
    check_with("max_roi_pool", max_roi_pool(&x, &r, [3, 2], 0.5), &examples);
}

#[test]
fn blocks_products_and_determinants() {
    for n in RAGGED {
        let p = Blocks {
            x: Operand::f32(&[1, 2 * 6, n]),
            image: vec![2.into(), (n + 2).into()],
            block: vec![2, 3],
            strides: vec![1, 1],
            dilations: vec![1, 1],
            pads_begin: vec![0, 0],
            pads_end: vec![0, 0],
        };
        check(&format!("{p:?}"), unite_blocks(&p));
        check(
            &format!("cumprod of {n}"),
            cumprod(&Operand::new(&[3, n], DType::I32), 1, false, true),
        );
    }
    for n in [1, 2, 5, 9] {
        check(&format!("det of {n}"), det(&Operand::new(&[3, n, n], DType::F64)));
    }
}

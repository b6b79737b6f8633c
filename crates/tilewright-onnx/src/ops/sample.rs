//! Images looked up at positions that data say: grids, regions, deformed windows.

use tilewright_ir::{Dim, Error, Result, dim};
use tilewright_ops::matrix;
use tilewright_ops::pool::{self, Blocks};
use tilewright_ops::regions::{self, RoiAlign};
use tilewright_ops::sample::{self, DeformConv, GridSample, Outside, Sampling};

use super::compose::{Compose, int};
use super::{one, value, window};
use crate::build::Builder;
use crate::extents;
use crate::imported::{Imported, operand};
use crate::node::{Node, axes_or_all, required};
use crate::operator::{Operator, op};
use crate::sizes;

/// The operators that are imported here.
pub(crate) static OPERATORS: &[Operator] = &[
    op("AffineGrid", 20, 2, affine_grid),
    op("CenterCropPad", 18, 2, center_crop_pad),
    op("Col2Im", 18, 3, col2im),
    op("DeformConv", 19, 5, deform_conv),
    op("Det", 11, 1, det),
    op("GridSample", 16, 2, grid_sample),
    op("MaxRoiPool", 7, 2, max_roi_pool),
    op("MaxUnpool", 9, 3, max_unpool),
    op("RoiAlign", 10, 3, roi_align),
];

pub(crate) fn grid_sample(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let (x, grid) = (node.input(0)?, node.input(1)?);
    // The modes have other names since opset 20.
    let mode = match node.text_or("mode", "linear")? {
        "linear" | "bilinear" => Sampling::Linear,
        "nearest" => Sampling::Nearest,
        "cubic" | "bicubic" => Sampling::Cubic,
        other => return Err(node.unsupported_value("mode", other, "linear, nearest, cubic")),
    };
    let beyond = [
        ("zeros", Outside::Zeros),
        ("border", Outside::Border),
        ("reflection", Outside::Reflection),
    ];
    let outside = node.choice("padding_mode", "zeros", &beyond)?;
    let align_corners = node.flag("align_corners", false)?;
    let params = GridSample { x: operand(x), grid: operand(grid), mode, outside, align_corners };
    one(b.call("grid_sample", &params, [x, grid], || sample::grid_sample(&params))?)
}

/// Positions that a matrix makes of those of an image.
pub(crate) fn affine_grid(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let c = &mut Compose::new(node, b);
    let theta = node.input(0)?;
    let size = required(node.constant_ints(1, "size")?, "the input `size`")?;
    let size = extents::checked_shape(&size)?;
    let align = node.flag("align_corners", false)?;
    let [batch, _, extents @ ..] = size.as_slice() else {
        return Err(Error::model(format!("the size {size:?} is none of an image")));
    };
    let r = extents.len();
    if theta.shape() != [*batch, r, r + 1] || !(2..=3).contains(&r) {
        return Err(Error::model(format!("{} for the size {size:?}", operand(theta))));
    }
    let count: usize = extents.iter().product();
    // One column a cell: its position, the last axis first, and a one.
    let mut columns = vec![1.0; (r + 1) * count];
    for at in 0..count {
        let mut rest = at;
        for a in (0..r).rev() {
            let (d, i) = (extents[a] as f64, (rest % extents[a]) as f64);
            rest /= extents[a];
            columns[(r - 1 - a) * count + at] = match align {
                true if extents[a] > 1 => 2.0 * i / (d - 1.0) - 1.0,
                true => -1.0,
                false => (2.0 * i + 1.0) / d - 1.0,
            };
        }
    }
    let columns = value::constant(theta.dtype(), &[r + 1, count], &columns)?;
    let grid = c.op("MatMul", &[theta, &columns])?;
    let grid = c.transpose(&grid, &[0, 2, 1])?;
    let shape = [&[*batch], extents, &[r]].concat();
    one(c.reshape(&grid, &shape)?)
}

pub(crate) fn roi_align(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let (x, regions, examples) = (node.input(0)?, node.input(1)?, node.input(2)?);
    // The attribute came with opset 16; before, cells had no half.
    let half_pixel = match node.opset {
        ..16 => false,
        _ => {
            let all = [("half_pixel", true), ("output_half_pixel", false)];
            node.choice("coordinate_transformation_mode", "half_pixel", &all)?
        }
    };
    let max = node.choice("mode", "avg", &[("avg", false), ("max", true)])?;
    let params = RoiAlign {
        x: operand(x),
        regions: operand(regions),
        examples: operand(examples),
        bins: [node.size_or("output_height", 1)?, node.size_or("output_width", 1)?],
        samples: node.size_or("sampling_ratio", 0)?,
        scale: node.float_or("spatial_scale", 1.0)?.into(),
        half_pixel,
        max,
    };
    one(b.call("roi_align", &params, [x, regions, examples], || regions::roi_align(&params))?)
}

pub(crate) fn max_roi_pool(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let (x, regions) = (node.input(0)?, node.input(1)?);
    let bins = match node.ints("pooled_shape")?.as_deref() {
        Some(&[h, w]) => [h, w].map(usize::try_from),
        _ => return Err(Error::model("attribute `pooled_shape` must be two numbers")),
    };
    let [Ok(h), Ok(w)] = bins else {
        return Err(Error::model("attribute `pooled_shape` is negative"));
    };
    let scale = f64::from(node.float_or("spatial_scale", 1.0)?);
    one(b.call_on("max_roi_pool", [x, regions], (h, w, scale), |[x, regions]| {
        regions::max_roi_pool(x, regions, [h, w], scale)
    })?)
}

pub(crate) fn deform_conv(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let (x, w, offset) = (node.input(0)?, node.input(1)?, node.input(2)?);
    let (bias, mask) = (node.optional(3), node.optional(4));
    let n = x.rank().saturating_sub(2);
    node.ignore("kernel_shape");
    let (begin, _) = window::pads(node, n)?;
    let params = DeformConv {
        x: operand(x),
        w: operand(w),
        offset: operand(offset),
        bias: bias.is_some(),
        mask: mask.is_some(),
        strides: window::sizes(node, "strides", n, 1, 1)?,
        dilations: window::sizes(node, "dilations", n, 1, 1)?,
        pads: begin,
        groups: node.size_or("group", 1)?,
        offset_groups: node.size_or("offset_group", 1)?,
    };
    let args = [x, w, offset].into_iter().chain(bias).chain(mask);
    one(b.call("deform_conv", &params, args, || sample::deform_conv(&params))?)
}

pub(crate) fn col2im(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let x = node.input(0)?;
    let image = node.integers(1, "image_shape")?.unwrap_or_default();
    let image = extents::checked_dims(&image)?;
    let block = node.constant_ints(2, "block_shape")?.unwrap_or_default();
    let block = extents::checked_shape(&block)?;
    let n = image.len();
    let (pads_begin, pads_end) = window::pads(node, n)?;
    let params = Blocks {
        x: operand(x),
        strides: window::sizes(node, "strides", n, 1, 1)?,
        dilations: window::sizes(node, "dilations", n, 1, 1)?,
        image,
        block,
        pads_begin,
        pads_end,
    };
    one(b.call("col2im", &params, [x], || pool::unite_blocks(&params))?)
}

/// Elements put back where a pooling found them, zeros elsewhere.
pub(crate) fn max_unpool(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let c = &mut Compose::new(node, b);
    let (x, indices) = (node.input(0)?, node.input(1)?);
    let n = x.rank().saturating_sub(2);
    let kernel = window::sizes(node, "kernel_shape", n, 1, 1)?;
    let strides = window::sizes(node, "strides", n, 1, 1)?;
    let (begin, end) = window::pads(node, n)?;
    let extents = x.fixed(node)?;
    let mut shape = extents.clone();
    for a in 0..n {
        let cells = (shape[a + 2].max(1) - 1).checked_mul(strides[a]);
        let cells = cells.and_then(|d| d.checked_add(kernel[a]));
        let cells = cells.and_then(|d| d.checked_sub(begin[a].checked_add(end[a])?));
        shape[a + 2] = cells.ok_or_else(|| Error::model("the padding exceeds the window"))?;
    }
    extents::check_extents(&dim::shape(&shape))?;
    let total: usize = shape.iter().product();
    let zero = c.number(x.dtype(), 0.0)?;
    let zeros = c.expand(&zero, &[total])?;
    let count: usize = extents.iter().product();
    let (flat, at) = (c.reshape(x, &[count])?, c.reshape(indices, &[count])?);
    let all = c.with("ScatterElements", &[&zeros, &at, &flat], [int("axis", 0)])?;
    let mut y = c.reshape(&all, &shape)?;
    // A larger result is filled up with zeros.
    if let Some(wanted) = node.constant_ints(2, "output_shape")? {
        let wanted = extents::checked_shape(&wanted)?;
        if wanted.len() != shape.len() || wanted.iter().zip(&shape).any(|(w, d)| w < d) {
            return Err(Error::model(format!("the result {shape:?} does not fit {wanted:?}")));
        }
        let more = wanted.iter().zip(&shape).map(|(w, d)| (w - d) as i64);
        let pads: Vec<i64> = vec![0; shape.len()].into_iter().chain(more).collect();
        y = c.op("Pad", &[&y, &value::list(&pads)?])?;
    }
    one(y)
}

/// Crops or pads on both sides.
pub(crate) fn center_crop_pad(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let c = &mut Compose::new(node, b);
    let x = node.input(0)?;
    let wanted = required(node.integers(1, "shape")?, "the input `shape`")?;
    let wanted = extents::checked_dims(&wanted)?;
    let along = axes_or_all(node.ints("axes")?, x.rank())?;
    if along.len() != wanted.len() {
        return Err(Error::model(format!("{} extents for {} axes", wanted.len(), along.len())));
    }
    let mut y = x.clone();
    let none = Dim::from(0);
    let (mut before, mut after) = (vec![none; x.rank()], vec![none; x.rank()]);
    for (&a, &d) in along.iter().zip(&wanted) {
        let have = x.shape()[a];
        // One of both is zero.
        let (less, more) = (d.max(have) - d, d.max(have) - have);
        let from = less.floordiv(2);
        y = c.slice(&y, a, from, from + d.min(have))?;
        before[a] = more.floordiv(2);
        after[a] = more - before[a];
    }
    if before.iter().chain(&after).all(|d| *d == 0) {
        return one(y);
    }
    let pads = [before, after].concat();
    one(c.op("Pad", &[&y, &sizes::list(&pads)?])?)
}

pub(crate) fn det(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    one(b.call_on("det", [node.input(0)?], (), |[x]| matrix::det(x))?)
}

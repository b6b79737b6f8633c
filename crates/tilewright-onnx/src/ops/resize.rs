//! Resizing by interpolation.

use tilewright_ir::{Dim, Error, Result, Tensor, dim};
use tilewright_ops::resize::{self, Coordinates, Interpolation, Nearest, Resize};

use super::compose::Compose;
use super::one;
use crate::build::Builder;
use crate::extents::{self, check_extents};
use crate::imported::{Imported, operand};
use crate::node::{Node, axes_or_all, required};
use crate::operator::{Operator, op, until};

/// The operators that are imported here.
pub(crate) static OPERATORS: &[Operator] =
    &[op("Resize", 10, 4, resize), until(9, op("Upsample", 7, 2, old))];

/// Calls the function, whose tables are constants.
fn call(b: &mut Builder, x: &Imported, params: &Resize) -> Result<Vec<Imported>> {
    if params.crop.is_none() && params.sizes == x.shape() && params.scales.iter().all(|&s| s == 1.0)
    {
        return one(x.clone());
    }
    let (func, tables) = resize::resize(params)?;
    let tables: Vec<Imported> = tables.into_iter().map(Imported::Const).collect();
    one(b.call("resize", params, [x].into_iter().chain(&tables), || Ok(func))?)
}

/// Numbers of a constant input of floats; nothing where it is absent or empty.
fn floats(node: &Node, at: usize, what: &str) -> Result<Option<Vec<f64>>> {
    match node.constant(at, what)? {
        None => Ok(None),
        Some(t) if t.is_empty() => Ok(None),
        Some(t) if t.shape().len() == 1 && t.dtype().is_float() => {
            Ok(Some((0..t.len()).map(|i| t.get_f64(i)).collect()))
        }
        Some(t) => Err(Error::model(format!(
            "the input `{what}` must be a list of numbers, but is {} of shape {:?}",
            t.dtype(),
            t.shape()
        ))),
    }
}

/// The extents that scales lead to.
fn scaled(x: &Imported, scales: &[f64]) -> Result<Vec<Dim>> {
    if scales.iter().any(|s| s.is_nan() || *s <= 0.0) || scales.len() != x.rank() {
        return Err(Error::model(format!("the scales {scales:?} for the shape {:?}", x.shape())));
    }
    let extents = x.shape().iter().zip(scales).map(scaled_extent).collect::<Result<Vec<_>>>()?;
    check_extents(&extents)?;
    Ok(extents)
}

fn scaled_extent((&d, &s): (&Dim, &f64)) -> Result<Dim> {
    match d.known() {
        // In `float32`, as ONNX's own shape inference: 0.7 of 10 is 7.
        Some(d) => usize::try_from((d as f32 * s as f32).floor() as i64)
            .map(Dim::from)
            .map_err(|_| Error::model(format!("the scale {s} of {d} elements"))),
        // The fraction of small numbers that is meant.
        None => {
            match (1..=64usize)
                .map(|q| ((s * q as f64).round(), q))
                .find(|(p, q)| (p / *q as f64) as f32 == s as f32)
            {
                Some((p, q)) if p < 1e6 => Ok((d * p as usize).floordiv(q)),
                _ => d.fixed(&format!("a resize by {s}")).map(Dim::from),
            }
        }
    }
}

/// The operator before opset 11, which says less: coordinates are divided by the scale, and the
/// neighbour at the lower one (when shrinking at the upper one) is taken.
fn old(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let x = node.input(0)?;
    let scales: Vec<f64> = match node.opset {
        ..9 => {
            let list = required(node.floats("scales")?, "the attribute `scales`")?;
            list.into_iter().map(f64::from).collect()
        }
        _ => required(floats(node, 1, "scales")?, "the input `scales`")?,
    };
    let sizes = scaled(x, &scales)?;
    let shrinks = scales.iter().any(|&s| s < 1.0);
    let mode = match node.text_or("mode", "nearest")? {
        "nearest" if shrinks && scales.iter().any(|&s| s > 1.0) => {
            return Err(Error::unsupported(
                "shrinking and growing at once is not supported before opset 11",
            ));
        }
        "nearest" if shrinks => Interpolation::Nearest(Nearest::Ceil),
        "nearest" => Interpolation::Nearest(Nearest::Floor),
        "linear" => Interpolation::Linear,
        other => return Err(node.unsupported_value("mode", other, "nearest, linear")),
    };
    let coordinates = Coordinates::Asymmetric;
    call(b, x, &Resize { scales, mode, coordinates, ..Resize::new(operand(x), &sizes) })
}

pub(crate) fn resize(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    if node.opset < 11 {
        return old(node, b);
    }
    let x = node.input(0)?;
    let rank = x.rank();
    let along = axes_or_all(if node.opset >= 18 { node.ints("axes")? } else { None }, rank)?;
    let (sizes, scales) = sizes_and_scales(node, x, &along)?;
    let (coordinates, crop) = coordinates(node, rank, &along)?;
    let mode = interpolation(node)?;
    let beyond = f64::from(node.float_or("extrapolation_value", 0.0)?);
    let params = Resize {
        scales,
        mode,
        coordinates,
        exclude_outside: node.flag("exclude_outside", false)?,
        antialias: node.opset >= 18 && node.flag("antialias", false)?,
        crop,
        ..Resize::new(operand(x), &sizes)
    };
    let y = call(b, x, &params)?;
    match params.crop {
        Some(_) => extrapolated(node, b, y, &params, beyond),
        None => Ok(y),
    }
}

/// The extents of the result, and by what each is scaled: from one of both, given for some axes.
fn sizes_and_scales(node: &Node, x: &Imported, along: &[usize]) -> Result<(Vec<Dim>, Vec<f64>)> {
    let policy = match node.opset {
        18.. => node.text_or("keep_aspect_ratio_policy", "stretch")?,
        _ => "stretch",
    };
    let mut scales = vec![1.0; x.rank()];
    let mut sizes = x.shape();
    let given = node.integers(3, "sizes")?.filter(|s| !s.is_empty());
    match (floats(node, 2, "scales")?, given) {
        (Some(_), Some(_)) => return Err(Error::model("both scales and sizes are given")),
        (None, None) => return Err(Error::model("neither scales nor sizes are given")),
        (Some(list), None) => {
            check_count(list.len(), along)?;
            along.iter().zip(list).for_each(|(&a, s)| scales[a] = s);
            sizes = scaled(x, &scales)?;
        }
        (None, Some(list)) => {
            check_count(list.len(), along)?;
            let wanted = extents::checked_dims(&list)?;
            let extents: Vec<Dim> = along.iter().map(|&a| x.shape()[a]).collect();
            let common = common_scale(node, policy, &extents, &wanted)?;
            for ((&a, &d), &extent) in along.iter().zip(&wanted).zip(&extents) {
                (sizes[a], scales[a]) = match (common, extent.known()) {
                    (Some(s), Some(extent)) => {
                        (Dim::from((s * extent as f64 + 0.5).floor() as usize), s)
                    }
                    _ => (d, resize::ratio(d, extent)),
                };
            }
        }
    }
    Ok((sizes, scales))
}

fn check_count(count: usize, along: &[usize]) -> Result<()> {
    if count == along.len() {
        Ok(())
    } else {
        Err(Error::model(format!("{count} sizes or scales for {} axes", along.len())))
    }
}

/// One scale for all axes, that of the tightest or the loosest, where their ratio is kept.
fn common_scale(node: &Node, policy: &str, extents: &[Dim], wanted: &[Dim]) -> Result<Option<f64>> {
    Ok(match policy {
        "stretch" => None,
        "not_larger" => Some(ratios_of(extents, wanted)?.into_iter().fold(f64::INFINITY, f64::min)),
        "not_smaller" => Some(ratios_of(extents, wanted)?.into_iter().fold(0.0, f64::max)),
        other => {
            return Err(node.unsupported_value(
                "keep_aspect_ratio_policy",
                other,
                "stretch, not_larger, not_smaller",
            ));
        }
    })
}

fn ratios_of(extents: &[Dim], wanted: &[Dim]) -> Result<Vec<f64>> {
    let what = "a resize that keeps the ratio of the axes";
    let (from, to) = (dim::fixed(extents, what)?, dim::fixed(wanted, what)?);
    Ok(to.iter().zip(&from).map(|(&d, &e)| d as f64 / e as f64).collect())
}

/// The first and the last place of each axis that count, as fractions of the axis.
type Crop = Vec<[f64; 2]>;

/// Where an element of the result lies in the input; and the crop, if there is one.
fn coordinates(node: &Node, rank: usize, along: &[usize]) -> Result<(Coordinates, Option<Crop>)> {
    let coordinates = match node.text_or("coordinate_transformation_mode", "half_pixel")? {
        "half_pixel" => Coordinates::HalfPixel,
        "half_pixel_symmetric" if node.opset >= 19 => Coordinates::HalfPixelSymmetric,
        "pytorch_half_pixel" => Coordinates::PytorchHalfPixel,
        "align_corners" => Coordinates::AlignCorners,
        "asymmetric" => Coordinates::Asymmetric,
        // The specification has it until opset 12; files have it later, too.
        "tf_half_pixel_for_nn" => Coordinates::Middle,
        "tf_crop_and_resize" => {
            let roi = floats(node, 1, "roi")?
                .ok_or_else(|| Error::model("the input `roi` is missing, or empty"))?;
            if roi.len() != 2 * along.len() {
                return Err(Error::model(format!(
                    "the input `roi` has {} numbers for {} axes",
                    roi.len(),
                    along.len()
                )));
            }
            let mut all = vec![[0.0, 1.0]; rank];
            let (first, last) = roi.split_at(along.len());
            along.iter().zip(first.iter().zip(last)).for_each(|(&a, (f, l))| all[a] = [*f, *l]);
            return Ok((Coordinates::Asymmetric, Some(all)));
        }
        other => {
            return Err(node.unsupported_value(
                "coordinate_transformation_mode",
                other,
                "half_pixel, half_pixel_symmetric from opset 19 on, pytorch_half_pixel, align_corners, asymmetric, tf_half_pixel_for_nn, tf_crop_and_resize",
            ));
        }
    };
    Ok((coordinates, None))
}

/// How elements between those of the input are computed.
fn interpolation(node: &Node) -> Result<Interpolation> {
    let neighbours = [
        ("round_prefer_floor", Nearest::RoundPreferFloor),
        ("round_prefer_ceil", Nearest::RoundPreferCeil),
        ("floor", Nearest::Floor),
        ("ceil", Nearest::Ceil),
    ];
    let nearest = node.choice("nearest_mode", "round_prefer_floor", &neighbours)?;
    let cubic = f64::from(node.float_or("cubic_coeff_a", -0.75)?);
    let modes = [
        ("nearest", Interpolation::Nearest(nearest)),
        ("linear", Interpolation::Linear),
        ("cubic", Interpolation::Cubic(cubic)),
    ];
    node.choice("mode", "nearest", &modes)
}

/// A number in the cells that lie outside of the elements.
fn extrapolated(
    node: &Node,
    b: &mut Builder,
    mut y: Vec<Imported>,
    params: &Resize,
    value: f64,
) -> Result<Vec<Imported>> {
    let mut c = Compose::new(node, b);
    for axis in 0..params.sizes.len() {
        let outside = params.outside(axis);
        if !outside.contains(&true) {
            continue;
        }
        let mut shape = vec![1; params.sizes.len()];
        shape[axis] = outside.len();
        let mask = Imported::Const(Tensor::from_bools(&shape, &outside)?);
        for part in &mut y {
            let value = c.number(part.dtype(), value)?;
            *part = c.op("Where", &[&mask, &value, part])?;
        }
    }
    Ok(y)
}

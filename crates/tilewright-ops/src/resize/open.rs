//! The tables of an axis of open extent, as stages that compute them.

use tilewright_ir::{DType, Dim, Error, Expr, Intrin, Result};

use super::parameters::{
    Coordinates, HALF_WIDTH, Interpolation, Nearest, Resize, TABLE_LIMIT, Tables, tap_range,
};
use crate::operand::{call, float_size};
use crate::te::{self, Reducer};

fn number(v: f64) -> Expr {
    Expr::float(v, DType::F64)
}

/// The type in which coordinates are computed: see [`Resize::coordinate`].
fn coordinate_type(p: &Resize) -> DType {
    match p.mode {
        Interpolation::Nearest(_) => DType::F32,
        _ => DType::F64,
    }
}

/// The tables of an axis. A scale that is not a number is the quotient of the sizes.
pub(super) fn tables(p: &Resize, axis: usize) -> Result<Tables> {
    let (extent, length) = (p.x.shape[axis], p.sizes[axis]);
    let last = float_size(extent, DType::F64) - number(1.0);
    // Positions are bounded as numbers first, so that they are integers at all.
    if let Interpolation::Nearest(nearest) = p.mode {
        let index = te::compute(format!("index_{axis}"), &[length], |i| {
            table_element(neighbour(nearest, coordinate(p, axis, &i[0]).cast(DType::F64)), &last)
        });
        return Ok(Tables { index, weight: None });
    }
    let (count, squeeze) = taps(p, axis)?;
    let shape = [count, length];
    // Half of them are above the coordinate.
    let first = number(1.0) - float_size(count.floordiv(2), DType::F64);

    let index = te::compute(format!("index_{axis}"), &shape, |i| {
        table_element(call(Intrin::Floor, coordinate(p, axis, &i[1])) + tap(&i[0], &first), &last)
    });
    let shares = p.antialias || p.exclude_outside;
    let work = p.work();
    let (name, dtype) = if shares {
        (format!("share_{axis}"), DType::F64)
    } else {
        (format!("weight_{axis}"), work)
    };
    let mut weight = te::compute(name, &shape, |i| {
        let x = coordinate(p, axis, &i[1]);
        let base = call(Intrin::Floor, x.clone());
        let weight = filter(p, (tap(&i[0], &first) - (x - &base)) * squeeze.clone());
        let at = base + tap(&i[0], &first);
        let outside = at.clone().less(number(0.0)).or(last.clone().less(at));
        (if p.exclude_outside { Expr::select(outside, number(0.0), weight) } else { weight })
            .cast(dtype)
    });
    if shares {
        let each = te::reduce_axis(count, "tap");
        let total = te::compute(format!("total_{axis}"), &shape[1..], |i| {
            te::reduce(Reducer::Sum, weight.at([each.expr(), i[0].clone()]), [&each])
        });
        weight = te::compute(format!("weight_{axis}"), &shape, |i| {
            let total = total.at([&i[1]]);
            let total = Expr::select(total.clone().equal(number(0.0)), number(1.0), total);
            (weight.at(i) / total).cast(work)
        });
    }
    Ok(Tables { index, weight: Some(weight) })
}

/// The distance of a tap from the element below the coordinate.
fn tap(number: &Expr, first: &Expr) -> Expr {
    number.clone().cast(DType::F64) + first.clone()
}

fn table_element(at: Expr, last: &Expr) -> Expr {
    at.max(number(0.0)).min(last.clone()).cast(DType::I32)
}

/// How many taps a coordinate has, and how far the filter is widened, as [`tap_range`] and
/// [`Resize::squeeze`] say it.
fn taps(p: &Resize, axis: usize) -> Result<(Dim, Expr)> {
    let (extent, length, scale) = (p.x.shape[axis], p.sizes[axis], p.scales[axis]);
    if p.antialias && scale.is_nan() {
        // The reach is a whole number, and shrinking widens it.
        let reach = p.reach() as usize;
        let half = (extent * reach).ceildiv(length).max(reach);
        let ratio = float_size(length, DType::F64) / float_size(extent, DType::F64);
        return Ok((half * 2, ratio.min(number(1.0))));
    }
    let squeeze = p.squeeze(axis);
    let taps = tap_range(squeeze, p.reach());
    let count = (taps.end - taps.start) as usize;
    if count as f64 > TABLE_LIMIT.sqrt() {
        return Err(Error::input(format!("resize: axis {axis}: the scale {scale:e} is too small")));
    }
    Ok((count.into(), number(squeeze)))
}

/// [`Resize::coordinate`] as an expression.
fn coordinate(p: &Resize, axis: usize, o: &Expr) -> Expr {
    let dtype = coordinate_type(p);
    let number = |v: f64| Expr::float(v, dtype);
    let (extent, length) = (float_size(p.x.shape[axis], dtype), float_size(p.sizes[axis], dtype));
    let scale = match p.scales[axis] {
        s if s.is_nan() => length.clone() / extent.clone(),
        s => number(s),
    };
    let o = o.clone().cast(dtype);
    let middle = (o.clone() + number(0.5)) / scale.clone();
    let half = middle.clone() - number(0.5);
    let width = scale.clone() * extent.clone();
    let one = length.clone().less_equal(number(1.0));
    match p.coordinates {
        Coordinates::HalfPixel => half,
        Coordinates::PytorchHalfPixel => Expr::select(one, number(0.0), half),
        Coordinates::HalfPixelSymmetric => {
            extent / number(2.0) * (number(1.0) - length / width) + half
        }
        Coordinates::AlignCorners => {
            let flat = one.or(width.clone().equal(number(1.0)));
            let below = Expr::select(flat.clone(), number(1.0), width - number(1.0));
            Expr::select(flat, number(0.0), o * (extent - number(1.0)) / below)
        }
        Coordinates::Asymmetric => o / scale,
        Coordinates::Middle => middle,
    }
}

/// [`Nearest::round`] as an expression.
fn neighbour(nearest: Nearest, x: Expr) -> Expr {
    match nearest {
        Nearest::RoundPreferFloor => call(Intrin::Ceil, x - number(0.5 + HALF_WIDTH)),
        Nearest::RoundPreferCeil => call(Intrin::Floor, x + number(0.5 + HALF_WIDTH)),
        Nearest::Floor => call(Intrin::Floor, x),
        Nearest::Ceil => call(Intrin::Ceil, x),
    }
}

/// [`Resize::filter`] as an expression.
fn filter(p: &Resize, distance: Expr) -> Expr {
    let d = call(Intrin::Abs, distance);
    let Interpolation::Cubic(a) = p.mode else {
        return (number(1.0) - d).max(number(0.0));
    };
    let near = (number(a + 2.0) * &d - number(a + 3.0)) * &d * &d + number(1.0);
    let far = ((number(a) * &d - number(5.0 * a)) * &d + number(8.0 * a)) * &d - number(4.0 * a);
    let far = Expr::select(d.clone().less(number(2.0)), far, number(0.0));
    Expr::select(d.less_equal(number(1.0)), near, far)
}

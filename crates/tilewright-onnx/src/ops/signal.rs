//! Spectra and the windows that they are taken through.
//!
//! A discrete Fourier transform is a product with a matrix of sines and cosines, which is a constant.
//! One of many points is made of two of fewer points each (Cooley and Tukey, 1965): their product is
//! the number of points, and what stands between is a factor for each point. Of an open number of points the matrix
//! is computed when the model runs, and all are one product.

use std::f64::consts::PI;

use tilewright_ir::{DType, Dim, Error, Result, dim};

use super::compose::{Compose, int};
use super::{one, value};
use crate::build::Builder;
use crate::data;
use crate::extents::check_extents;
use crate::imported::{Imported, operand};
use crate::node::{Node, axis, required};
use crate::operator::{Operator, op};
use tilewright_ops::Operand;

/// The operators that are imported here.
pub(crate) static OPERATORS: &[Operator] = &[
    op("BlackmanWindow", 17, 1, |n, b| cosines(n, b, &[0.42, -0.5, 0.08])),
    op("DFT", 17, 3, dft),
    op("HammingWindow", 17, 1, |n, b| cosines(n, b, &[25.0 / 46.0, 25.0 / 46.0 - 1.0])),
    op("HannWindow", 17, 1, |n, b| cosines(n, b, &[0.5, -0.5])),
    op("MelWeightMatrix", 17, 5, mel_weight_matrix),
    op("STFT", 17, 4, stft),
];

/// Most points of a transform that is one product.
const DIRECT: usize = 256;

/// Most elements of a matrix of sines and cosines.
const MATRIX: usize = 1 << 24;

/// The cosine and sine of a fraction of a turn, exact in the number of turns.
fn turn(part: usize, whole: usize) -> (f64, f64) {
    let angle = 2.0 * PI * (part % whole) as f64 / whole as f64;
    (angle.cos(), angle.sin())
}

/// A transform of `points` points of rows, `[rows, points, 1]` (real) or `[rows, points, 2]`, to
/// `[rows, bins, 2]`: the first `bins` of the spectrum, each multiplied by `factor`.
fn spectrum(
    c: &mut Compose,
    x: &Imported,
    points: usize,
    bins: usize,
    inverse: bool,
    factor: f64,
) -> Result<Imported> {
    let [rows, _, parts] = x.shape()[..] else {
        return Err(Error::internal("a transform of rows"));
    };
    let parts = parts.fixed("a Fourier transform")?;
    let divisor = (2..=points.isqrt()).rev().find(|d| points.is_multiple_of(*d));
    if let (Some(first), true) = (divisor, points > DIRECT) {
        let second = points / first;
        let of = |x: &Imported, c: &mut Compose, shape: [usize; 3], turned: [usize; 2]| {
            let [a, b, parts] = shape.map(Dim::from);
            let x = c.reshape(x, &[rows, a, b, parts])?;
            let x = c.transpose(&x, &[0, 2, 1, 3])?;
            c.reshape(&x, &[rows * turned[0], turned[1].into(), parts])
        };
        let columns = of(x, c, [first, second, parts], [second, first])?;
        let columns = spectrum(c, &columns, first, first, inverse, 1.0)?;
        // The factors between: one for each point.
        let (mut cosines, mut sines) = (vec![0.0; points], vec![0.0; points]);
        for at in 0..points {
            let (cos, sin) = turn((at / first) * (at % first), points);
            cosines[at] = cos * factor;
            sines[at] = if inverse { sin } else { -sin } * factor;
        }
        let dtype = x.dtype();
        let cosines = value::constant(dtype, &[1, second, first, 1], &cosines)?;
        let sines = value::constant(dtype, &[1, second, first, 1], &sines)?;
        let columns = c.reshape(&columns, &[rows, second.into(), first.into(), 2.into()])?;
        let real = c.slice(&columns, 3, 0, 1)?;
        let imaginary = c.slice(&columns, 3, 1, 2)?;
        let (re, im) = c.turned([&real, &imaginary], [&cosines, &sines])?;
        let turned = c.concat(&[&re, &im], 3)?;
        let lines = of(&turned, c, [second, first, 2], [first, second])?;
        let lines = spectrum(c, &lines, second, second, inverse, 1.0)?;
        let all = of(&lines, c, [first, second, 2], [1, points])?;
        return c.slice(&all, 1, 0, bins);
    }
    let (height, width) = (points * parts, bins * 2);
    if height.saturating_mul(width) > MATRIX {
        return Err(Error::unsupported(format!(
            "a Fourier transform of {points} points is not supported: the number has no divisors"
        )));
    }
    let mut matrix = vec![0.0; height * width];
    for n in 0..points {
        for k in 0..bins {
            let (cos, sin) = turn(n * k, points);
            let sin = if inverse { -sin } else { sin };
            let (row, column) = (n * parts * width, 2 * k);
            matrix[row + column] = cos * factor;
            matrix[row + column + 1] = -sin * factor;
            if parts == 2 {
                matrix[row + width + column] = sin * factor;
                matrix[row + width + column + 1] = cos * factor;
            }
        }
    }
    let matrix = value::constant(x.dtype(), &[height, width], &matrix)?;
    let flat = c.reshape(x, &[rows, height.into()])?;
    let y = c.op("MatMul", &[&flat, &matrix])?;
    c.reshape(&y, &[rows, bins.into(), 2.into()])
}

/// [`spectrum`] of an open number of points, `[rows, points, 1]` or `[rows, points, 2]` to `[rows, bins, 2]`: a
/// product with a matrix of sines and cosines that the run computes in doubles.
fn open_spectrum(
    c: &mut Compose,
    x: &Imported,
    [points, bins]: [Dim; 2],
    inverse: bool,
) -> Result<Imported> {
    let [rows, _, parts] = x.shape()[..] else {
        return Err(Error::internal("a transform of rows"));
    };
    let (n, k) = (c.positions(points)?, c.positions(bins)?);
    let n = c.reshape(&n, &[points, 1.into(), 1.into(), 1.into()])?;
    let k = c.reshape(&k, &[1.into(), 1.into(), bins, 1.into()])?;
    let whole = c.size(points)?;
    let part = c.op("Mul", &[&n, &k])?;
    // Whole turns go while they are exact.
    let part = c.op("Mod", &[&part, &whole])?;
    let part = c.cast(&part, DType::F64)?;
    let (turn, count) = (c.number(DType::F64, 2.0 * PI)?, c.cast(&whole, DType::F64)?);
    let angle = c.op("Mul", &[&part, &turn])?;
    let angle = c.op("Div", &[&angle, &count])?;
    let mut of_angle = |f: &str| {
        let value = c.op(f, &[&angle])?;
        c.cast(&value, x.dtype())
    };
    let (cos, sin) = (of_angle("Cos")?, of_angle("Sin")?);
    let back = c.op("Neg", &[&sin])?;
    let (to_imaginary, to_real) = if inverse { (&sin, &back) } else { (&back, &sin) };
    let mut matrix = c.concat(&[&cos, to_imaginary], 3)?;
    if parts == 2 {
        let imaginary = c.concat(&[to_real, &cos], 3)?;
        matrix = c.concat(&[&matrix, &imaginary], 1)?;
    }
    let matrix = c.reshape(&matrix, &[points * parts, bins * 2])?;
    let flat = c.reshape(x, &[rows, points * parts])?;
    let mut y = c.op("MatMul", &[&flat, &matrix])?;
    if inverse {
        let count = c.cast(&whole, x.dtype())?;
        y = c.op("Div", &[&y, &count])?;
    }
    c.reshape(&y, &[rows, bins, 2.into()])
}

/// The real signal of `points` points whose spectrum's first half is given: `[rows, bins, 2]` to
/// `[rows, points, 1]`.
fn real_signal(c: &mut Compose, x: &Imported, points: usize) -> Result<Imported> {
    let (rows, bins) = match x.shape()[..] {
        [rows, bins, parts] if parts == 2 => (rows, bins.fixed("a Fourier transform")?),
        _ => return Err(Error::model(format!("{} is no spectrum of complex numbers", operand(x)))),
    };
    if (bins * 2).saturating_mul(points) > MATRIX {
        return Err(Error::unsupported(format!(
            "an inverse Fourier transform to {points} real points is not supported"
        )));
    }
    let mut matrix = vec![0.0; bins * 2 * points];
    for k in 0..bins.min(points / 2 + 1) {
        // All others stand for their mirrored ones too.
        let weight = if k == 0 || 2 * k == points { 1.0 } else { 2.0 } / points as f64;
        for n in 0..points {
            let (cos, sin) = turn(n * k, points);
            matrix[2 * k * points + n] = weight * cos;
            matrix[(2 * k + 1) * points + n] = -weight * sin;
        }
    }
    let matrix = value::constant(x.dtype(), &[bins * 2, points], &matrix)?;
    let flat = c.reshape(x, &[rows, (bins * 2).into()])?;
    let y = c.op("MatMul", &[&flat, &matrix])?;
    c.reshape(&y, &[rows, points.into(), 1.into()])
}

fn known_size(node: &Node, at: usize, what: &str) -> Result<Option<usize>> {
    node.constant_int(at, what)?
        .map(|v| usize::try_from(v).map_err(|_| Error::model(format!("the input `{what}` is {v}"))))
        .transpose()
}

/// Rows with as many points as are wanted: the first ones, or zeros behind them.
fn fitted(c: &mut Compose, rows: &Imported, wanted: usize) -> Result<Imported> {
    let have = rows.shape()[1].known();
    if have == Some(wanted) {
        return Ok(rows.clone());
    }
    if have.is_some_and(|have| have > wanted) {
        return c.slice(rows, 1, 0, wanted);
    }
    let pads = value::list(&[0, 0, 0, 0, (wanted - have.unwrap_or(0)) as i64, 0])?;
    let padded = c.op("Pad", &[rows, &pads])?;
    if have.is_some() { Ok(padded) } else { c.slice(&padded, 1, 0, wanted) }
}

pub(crate) fn dft(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let c = &mut Compose::new(node, b);
    let x = node.input(0)?;
    // The axis became an input.
    let at = match node.opset {
        ..20 => node.int_or("axis", 1)?,
        _ => node.constant_int(2, "axis")?.unwrap_or(-2),
    };
    let (inverse, onesided) = (node.flag("inverse", false)?, node.flag("onesided", false)?);
    let rank = x.rank();
    let at = axis(at, rank)?;
    let extents = x.shape();
    if at + 1 == rank || !extents.last().is_some_and(|d| *d == 1 || *d == 2) {
        return Err(Error::model(format!(
            "{} has no complex numbers behind axis {at}",
            operand(x)
        )));
    }
    let to_real = inverse && onesided;
    let have = extents[at];
    let points = match known_size(node, 1, "dft_length")? {
        Some(points) => points.into(),
        None if to_real => (have.fixed(node.op())?.saturating_sub(1) * 2).into(),
        None => have,
    };
    if points == 0 {
        return Err(Error::model("a transform of no points"));
    }
    // The axis goes behind all others.
    let mut order: Vec<usize> = (0..rank - 1).filter(|&a| a != at).collect();
    order.extend([at, rank - 1]);
    let turned = c.transpose(x, &order)?;
    let lead = turned.shape()[..rank - 2].to_vec();
    let rows = dim::product(lead.iter().copied());
    let flat = c.reshape(&turned, &[rows, have, extents[rank - 1]])?;
    let bins = if onesided { points.floordiv(2) + 1 } else { points };
    let y = match points.known() {
        Some(points) => {
            let wanted = if to_real { points / 2 + 1 } else { points };
            let fitted = fitted(c, &flat, wanted)?;
            if to_real {
                real_signal(c, &fitted, points)?
            } else {
                let factor = if inverse { 1.0 / points as f64 } else { 1.0 };
                spectrum(c, &fitted, points, bins.fixed(node.op())?, inverse, factor)?
            }
        }
        None => open_spectrum(c, &flat, [points, bins], inverse)?,
    };
    let shape = [&lead[..], &y.shape()[1..]].concat();
    let y = c.reshape(&y, &shape)?;
    let mut back = vec![0; rank];
    for (new, &old) in order.iter().enumerate() {
        back[old] = new;
    }
    one(c.transpose(&y, &back)?)
}

/// Spectra of pieces of a signal, one a step.
pub(crate) fn stft(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let c = &mut Compose::new(node, b);
    let (signal, window) = (node.input(0)?, node.optional(2));
    let signal = match signal.shape()[..] {
        [batch, length] => c.reshape(signal, &[batch, length, 1.into()])?,
        _ => signal.clone(),
    };
    let (batch, length, parts) = match signal.shape()[..] {
        [batch, length, parts] if parts == 1 || parts == 2 => (batch, length, parts),
        _ => return Err(Error::model(format!("{} is no signal", operand(&signal)))),
    };
    let step = known_size(node, 1, "frame_step")?.unwrap_or(0);
    let points = match (known_size(node, 3, "frame_length")?, window) {
        (Some(points), _) => points,
        (None, Some(window)) => window.fixed(node)?.first().copied().unwrap_or(0),
        (None, None) => length.fixed(node.op())?,
    };
    let too_long = length.known().is_some_and(|length| points > length);
    if step == 0 || points == 0 || too_long {
        return Err(Error::model(format!(
            "frames of {points} elements, one every {step}, of a signal of {length}"
        )));
    }
    if let Some(window) = window
        && (window.shape() != [points] || window.dtype() != signal.dtype())
    {
        return Err(Error::model(format!("the window {} for {points} points", operand(window))));
    }
    let frames = (length - points).floordiv(step) + 1;
    check_extents(&[batch, frames, points.into(), 2.into()])?;
    let starts = c.positions(frames)?;
    let starts = c.op("Mul", &[&starts, &value::list(&[step as i64])?])?;
    let starts = c.reshape(&starts, &[frames, 1.into()])?;
    let within = c.positions(points)?;
    let places = c.op("Add", &[&starts, &within])?;
    let mut pieces = c.with("Gather", &[&signal, &places], [int("axis", 1)])?;
    if let Some(window) = window {
        let window = c.reshape(window, &[points, 1])?;
        pieces = c.op("Mul", &[&pieces, &window])?;
    }
    let onesided = node.flag("onesided", true)? && parts == 1;
    let points_of = Dim::from(points);
    let bins = if onesided { points / 2 + 1 } else { points };
    let rows = c.reshape(&pieces, &[batch * frames, points_of, parts])?;
    let y = spectrum(c, &rows, points, bins, false, 1.0)?;
    one(c.reshape(&y, &[batch, frames, bins.into(), 2.into()])?)
}

/// The element type that the attribute of a generated tensor names.
fn output_type(node: &Node) -> Result<DType> {
    Ok(node.element("output_datatype", data::element_type)?.unwrap_or(DType::F32))
}

/// A constant from numbers, within the budget.
fn made(b: &mut Builder, shape: &[usize], dtype: DType, values: &[f64]) -> Result<Vec<Imported>> {
    b.budget.charge(&Operand::new(shape, dtype))?;
    one(value::constant(dtype, shape, values)?)
}

/// A sum of cosines: element `n` of `N` is the sum of `factors[k] * cos(2 pi k n / N)`.
pub(crate) fn cosines(node: &Node, b: &mut Builder, factors: &[f64]) -> Result<Vec<Imported>> {
    let size = required(known_size(node, 0, "size")?, "the input `size`")?;
    let dtype = output_type(node)?;
    check_extents(&dim::shape(&[size]))?;
    b.budget.charge(&Operand::new(&[size], DType::F64))?;
    let whole = if node.flag("periodic", true)? { size } else { size.saturating_sub(1) }.max(1);
    let values: Vec<f64> = (0..size)
        .map(|n| factors.iter().enumerate().map(|(k, f)| f * turn(k * n, whole).0).sum())
        .collect();
    made(b, &[size], dtype, &values)
}

fn mel_from_hertz(hertz: f64) -> f64 {
    2595.0 * (1.0 + hertz / 700.0).log10()
}

fn hertz_from_mel(mel: f64) -> f64 {
    700.0 * (10f64.powf(mel / 2595.0) - 1.0)
}

/// Triangles over the bins of a spectrum, equally far from each other as one hears them.
pub(crate) fn mel_weight_matrix(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let (bands, points) = (size_at(0, "num_mel_bins", node)?, size_at(1, "dft_length", node)?);
    let rate = size_at(2, "sample_rate", node)?;
    let (low, high) =
        (edge_at(3, "lower_edge_hertz", node)?, edge_at(4, "upper_edge_hertz", node)?);
    let dtype = output_type(node)?;
    let bins = points / 2 + 1;
    check_extents(&dim::shape(&[bins, bands]))?;
    b.budget.charge(&Operand::new(&[bins, bands], DType::F64))?;

    if rate == 0 || bands == 0 {
        return Err(Error::model("the sample rate and the number of bands must not be zero"));
    }
    let (low, high) = (mel_from_hertz(low), mel_from_hertz(high));
    let step = (high - low) / (bands + 2) as f64;
    let mut values = vec![0.0; bins * bands];
    for band in 0..bands {
        let [left, top, right] = [band, band + 1, band + 2].map(|k| {
            let hertz = hertz_from_mel(low + k as f64 * step);
            let at = hertz * (points + 1) as f64 / rate as f64;
            at.floor().clamp(0.0, bins as f64) as usize
        });
        for bin in left..(top + 1).min(bins) {
            let width = top - left;
            values[bin * bands + band] =
                if width == 0 { 1.0 } else { (bin - left) as f64 / width as f64 };
        }
        for bin in top..right.min(bins) {
            values[bin * bands + band] = (right - bin) as f64 / (right - top) as f64;
        }
    }
    made(b, &[bins, bands], dtype, &values)
}

fn size_at(at: usize, what: &str, node: &Node<'_>) -> Result<usize> {
    required(known_size(node, at, what)?, &format!("the input `{what}`"))
}

fn edge_at(at: usize, what: &str, node: &Node<'_>) -> Result<f64> {
    let edge = required(node.constant_scalar(at, what)?, &format!("the input `{what}`"))?;
    Ok(edge.get_f64(0))
}

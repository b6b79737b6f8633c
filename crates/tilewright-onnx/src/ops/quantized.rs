//! Operators that compute on quantised integers, exact in `int32`.

use tilewright_ir::{DType, Dim, Error, Result, dim};
use tilewright_ops::contraction::{ConvInteger, conv_integer as conv_integer_of};

use super::compose::Compose;
use super::quantize::{nonzero, zero_point};
use super::{contraction, one, window};
use crate::build::Builder;
use crate::imported::{Imported, operand};
use crate::node::Node;
use crate::operator::{Operator, op};

/// The operators that are imported here.
pub(crate) static OPERATORS: &[Operator] = &[
    op("ConvInteger", 10, 4, conv_integer),
    op("DynamicQuantizeLinear", 11, 1, dynamic_quantize),
    op("QLinearConv", 10, 9, qlinear_conv),
    op("QLinearMatMul", 10, 8, qlinear_matmul),
];

/// Integers less their zero point, in `int32`. The zero point is one number, or one for each position
/// along an axis.
fn centred(
    c: &mut Compose,
    x: &Imported,
    zero: Option<&Imported>,
    axis: usize,
) -> Result<Imported> {
    if !x.dtype().is_int() || x.dtype().bits != 8 {
        return Err(Error::unsupported(format!("{} is not supported", x.dtype()))
            .help("it takes int8 and uint8"));
    }
    let wide = c.cast(x, DType::I32)?;
    let Some(zero) = nonzero(x, zero)? else { return Ok(wide) };
    let zero = along(c, x, zero, axis)?;
    let zero = c.cast(&zero, DType::I32)?;
    c.op("Sub", &[&wide, &zero])
}

/// A parameter of a quantisation in a shape that broadcasts to the data: one number, or one for each
/// position along an axis.
fn along(c: &mut Compose, x: &Imported, value: &Imported, axis: usize) -> Result<Imported> {
    let count = dim::product(value.shape());
    let mut shape = vec![Dim::from(1); x.rank().saturating_sub(axis)];
    match (value.rank(), shape.first_mut()) {
        _ if count == 1 => c.reshape::<Dim>(value, &[]),
        (1, Some(first)) if x.shape()[axis] == count => {
            *first = count;
            c.reshape(value, &shape)
        }
        _ => Err(Error::model(format!(
            "a scale or zero point of shape {:?} for {}",
            value.shape(),
            operand(x)
        ))),
    }
}

pub(crate) fn conv_integer(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let (x, w) = (node.input(0)?, node.input(1)?);
    let x_zero = zero_point(b, node, x, node.optional(2))?;
    let w_zero = zero_point(b, node, w, node.optional(3))?;
    let params = ConvInteger {
        conv: contraction::convolution(node, x, w)?,
        x_zero: x_zero.as_ref().map(Imported::shape),
        w_zero: w_zero.as_ref().map(Imported::shape),
    };
    let args = [x, w].into_iter().chain(&x_zero).chain(&w_zero);
    one(b.call("conv_integer", &params, args, || conv_integer_of(&params))?)
}

/// Sums in `int32` as integers of another scale: `round(sum * factor) + zero`, saturated.
fn requantized(
    c: &mut Compose,
    sum: &Imported,
    factor: &Imported,
    zero: &Imported,
) -> Result<Imported> {
    let wide = c.cast(sum, DType::F32)?;
    let scaled = c.op("Mul", &[&wide, factor])?;
    let unit = c.number(DType::F32, 1.0)?;
    let zero = c.reshape::<Dim>(zero, &[])?;
    c.op("QuantizeLinear", &[&scaled, &unit, &zero])
}

/// The factor from the scale of products to the scale of the result.
fn factor(c: &mut Compose, x: &Imported, y: &Imported, result: &Imported) -> Result<Imported> {
    let [x, y, result] = [x, y, result].map(|v| c.cast(v, DType::F32));
    let product = c.op("Mul", &[&x?, &y?])?;
    let result = c.reshape::<Dim>(&result?, &[])?;
    c.op("Div", &[&product, &result])
}

/// The product of floats, which are quantised by the largest and the smallest of them, with integers of
/// a scale and a zero point.
pub(super) fn dynamic_product(
    c: &mut Compose,
    x: &Imported,
    w: &Imported,
    scale: &Imported,
    zero: Option<&Imported>,
) -> Result<Imported> {
    let quantised = c.all("DynamicQuantizeLinear", &[Some(x)], [], 3)?;
    let [q, x_scale, x_zero] = &quantised[..] else {
        return Err(Error::internal("a quantised value has three parts"));
    };
    scaled_product(c, [q, w], [x_scale, scale], [Some(x_zero), zero])
}

/// The product of the floats that integers of scales and zero points stand for.
pub(super) fn scaled_product(
    c: &mut Compose,
    [x, w]: [&Imported; 2],
    scales: [&Imported; 2],
    [x_zero, w_zero]: [Option<&Imported>; 2],
) -> Result<Imported> {
    let sums = c.first("MatMulInteger", &[Some(x), Some(w), x_zero, w_zero], [])?;
    let sums = c.cast(&sums, scales[0].dtype())?;
    let scale = c.op("Mul", &scales)?;
    c.op("Mul", &[&sums, &scale])
}

pub(crate) fn qlinear_conv(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let c = &mut Compose::new(node, b);
    let (x, w) = (node.input(0)?, node.input(3)?);
    let inputs = [x, w, node.input(2)?, node.input(5)?];
    let mut sum = c.with("ConvInteger", &inputs, node.attributes(&window::ATTRIBUTES))?;
    if let Some(bias) = node.optional(8) {
        let bias = along(c, &sum, bias, 1)?;
        sum = c.op("Add", &[&sum, &bias])?;
    }
    let x_scale = c.reshape::<Dim>(node.input(1)?, &[])?;
    let w_scale = along(c, &sum, node.input(4)?, 1)?;
    let factor = factor(c, &x_scale, &w_scale, node.input(6)?)?;
    one(requantized(c, &sum, &factor, node.input(7)?)?)
}

pub(crate) fn qlinear_matmul(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let c = &mut Compose::new(node, b);
    let (x, y) = (node.input(0)?, node.input(3)?);
    let (rows, columns) = (x.rank().saturating_sub(2), y.rank().saturating_sub(1));
    let (x_zero, y_zero) = (node.input(2)?, node.input(5)?);
    // Operands with one axis, and other zero points, are rare: their products are those of `int32`.
    let plain = x.rank() > 1 && y.rank() > 1 && is_listed(x_zero) && is_listed(y_zero);
    let sum = if plain {
        c.op("MatMulInteger", &[x, y, x_zero, y_zero])?
    } else {
        let left = centred(c, x, Some(x_zero), rows)?;
        let right = centred(c, y, Some(y_zero), columns)?;
        c.op("MatMul", &[&left, &right])?
    };
    let x_scale = along(c, x, node.input(1)?, rows)?;
    let y_scale = along(c, y, node.input(4)?, columns)?;
    let factor = factor(c, &x_scale, &y_scale, node.input(6)?)?;
    one(requantized(c, &sum, &factor, node.input(7)?)?)
}

fn is_listed(zero: &Imported) -> bool {
    zero.rank() < 2 || dim::product(zero.shape()) == 1
}

/// Integers that stand for what a model computed, with a scale and a zero point that fit it.
pub(crate) fn dynamic_quantize(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let c = &mut Compose::new(node, b);
    let x = node.input(0)?;
    let all: Vec<usize> = (0..x.rank()).collect();
    let zero = c.number(x.dtype(), 0.0)?;
    let low = c.reduce("ReduceMin", x, &all, false)?;
    let low = c.op("Min", &[&low, &zero])?;
    let high = c.reduce("ReduceMax", x, &all, false)?;
    let high = c.op("Max", &[&high, &zero])?;
    let range = c.op("Sub", &[&high, &low])?;
    let most = c.number(x.dtype(), 255.0)?;
    let scale = c.op("Div", &[&range, &most])?;
    // Where all are zero any scale will do.
    let flat = c.op("Equal", &[&scale, &zero])?;
    let one = c.number(x.dtype(), 1.0)?;
    let divisor = c.op("Where", &[&flat, &one, &scale])?;
    let start = c.op("Neg", &[&low])?;
    let start = c.op("Div", &[&start, &divisor])?;
    let start = c.op("Round", &[&start])?;
    let start = c.op("Clip", &[&start, &zero, &most])?;
    let start = c.cast(&start, DType::U8)?;
    let y = c.op("QuantizeLinear", &[x, &divisor, &start])?;
    Ok(vec![y, divisor, start])
}

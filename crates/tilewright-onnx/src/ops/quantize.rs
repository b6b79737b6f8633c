//! Integers that stand for numbers.

use tilewright_ir::{DType, Dim, Error, Result, Tensor, dim};
use tilewright_ops::quantize::{self, Quantization};
use tilewright_ops::{unequal, unequal_shapes};

use super::compose::Compose;
use super::narrow;
use super::{indexed, one, value};
use crate::build::{Blocked, Builder};
use crate::data::Element;
use crate::fold::{self, View};
use crate::imported::{Imported, operand};
use crate::narrow::Narrow;
use crate::node::{Node, axis};
use crate::operator::{Operator, op};

/// The operators that are imported here.
pub(crate) static OPERATORS: &[Operator] = &[
    op("DequantizeLinear", 10, 3, dequantize_linear),
    op("MatMulInteger", 10, 4, matmul_integer),
    op("QuantizeLinear", 10, 3, quantize_linear),
];

/// Inputs of a quantisation in the form that the operators take.
struct Inputs {
    x: Imported,
    scale: Imported,
    zero: Option<Imported>,
    quantization: Quantization,
    /// The shape of the result, where `x` was flattened.
    shape: Vec<Dim>,
}

/// Reads scale and zero point: for the whole tensor, for each position of an axis (from opset 13
/// on), or for blocks along an axis (from opset 21 on). Blocks become one pair an element.
fn inputs(node: &Node, b: &mut Builder) -> Result<Inputs> {
    let (x, scale, zero) = (node.input(0)?, node.input(1)?, node.optional(2));
    if let Some(zero) = zero
        && zero.shape() != scale.shape()
        && !(is_one_pair(zero) && is_one_pair(scale))
    {
        let error = Error::model(format!(
            "the scale has the shape {:?}, the zero point {:?}",
            scale.shape(),
            zero.shape()
        ));
        return Err(unequal_shapes(error, &scale.shape(), &zero.shape()));
    }
    let at = if node.opset >= 13 { node.int_or("axis", 1)? } else { 1 };
    let block = if node.opset >= 21 { node.int_or("block_size", 0)? } else { 0 };
    let quantization = |along| Quantization {
        scale: scale.dtype(),
        axis: along,
        zero_point: zero.is_some(),
        bits: None,
    };
    let shape = x.shape();
    if is_one_pair(scale) {
        let zero = zero.map(|z| value::reshape_to::<Dim>(b, z, &[])).transpose()?;
        let scale = value::reshape_to::<Dim>(b, scale, &[])?;
        return Ok(Inputs { x: x.clone(), scale, zero, quantization: quantization(None), shape });
    }
    let at = axis(at, x.rank())?;
    if scale.rank() == 1 && node.opset >= 13 && block == 0 {
        let (own, count) = (scale.shape()[0], shape[at]);
        if own != count {
            let error = Error::model(format!("{own} scales for data of shape {shape:?}"));
            return Err(unequal(error, [(own, count)]));
        }
        return Ok(Inputs {
            x: x.clone(),
            scale: scale.clone(),
            zero: zero.cloned(),
            quantization: quantization(Some(at as i64)),
            shape,
        });
    }
    let mut blocks = shape.clone();
    let size = match usize::try_from(block) {
        Ok(size @ 1..) => size,
        _ => {
            return Err(Error::model(format!(
                "a scale of shape {:?} for data of shape {shape:?}",
                scale.shape()
            )));
        }
    };
    blocks[at] = shape[at].ceildiv(size);
    if scale.shape() != blocks {
        return Err(Error::model(format!(
            "a scale of shape {:?} for data of shape {shape:?} in blocks of {size} along axis {at}",
            scale.shape()
        )));
    }
    let zero = zero.cloned();
    one_pair_an_element(b, Pairs { x: x.clone(), scale: scale.clone(), zero, at, block: size })
}

/// Data with a scale and a zero point for each block along an axis.
pub(super) struct Pairs {
    pub(super) x: Imported,
    pub(super) scale: Imported,
    pub(super) zero: Option<Imported>,
    pub(super) at: usize,
    pub(super) block: usize,
}

/// Flattened data with a scale and a zero point for each element.
fn one_pair_an_element(b: &mut Builder, pairs: Pairs) -> Result<Inputs> {
    let Pairs { x, scale, zero, at, block } = pairs;
    let shape = x.shape();
    let quantization = Quantization {
        scale: scale.dtype(),
        axis: Some(0),
        zero_point: zero.is_some(),
        bits: None,
    };
    let count = dim::product(shape.iter().copied());
    let extent = shape[at].fixed("blocks")?;
    let indices: Vec<i64> = (0..extent).map(|i| (i / block) as i64).collect();
    let indices = Imported::Const(Tensor::from_slice(&[extent], &indices)?);
    let mut repeated = |value: &Imported| {
        let all = indexed::gather_along(b, value, &indices, at)?;
        value::reshape_to(b, &all, &[count])
    };
    let scale = repeated(&scale)?;
    let zero = zero.as_ref().map(&mut repeated).transpose()?;
    let x = value::reshape_to(b, &x, &[count])?;
    Ok(Inputs { x, scale, zero, quantization, shape })
}

fn is_one_pair(v: &Imported) -> bool {
    v.rank() <= 1 && v.shape().iter().all(|d| *d == 1)
}

/// The type that an attribute names; 0 is none.
fn named_type(node: &Node, name: &'static str) -> Result<Option<Element>> {
    match node.int_or(name, 0)? {
        0 => Ok(None),
        _ => node.element(name, Element::from_number),
    }
}

/// The element type of the zero point, where there is one.
fn zero_type(node: &Node, b: &Builder) -> Result<Option<Element>> {
    node.optional(2).map(|_| b.input_type(node, 2)).transpose()
}

/// Floats have no zero point but zero.
fn no_zero_point(node: &Node) -> Result<()> {
    match node.constant(2, "zero point")? {
        Some(zero) if zero.bytes().iter().any(|code| *code != 0) => {
            Err(Error::model("the zero point of floats must be zero"))
        }
        _ => Ok(()),
    }
}

pub(crate) fn quantize_linear(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let saturate = node.int_or("saturate", 1)? != 0;
    let mut p = inputs(node, b)?;
    let zero = zero_type(node, b)?;
    let stated = if node.opset >= 21 { named_type(node, "output_dtype")? } else { None };
    let to = match (zero, stated) {
        (Some(zero), Some(to)) if to != zero => {
            return Err(Error::model(format!(
                "attribute `output_dtype` is {}, but the zero point is {}",
                to.name(),
                zero.name()
            )));
        }
        (Some(zero), _) => zero,
        (None, stated) => stated.unwrap_or(Element::Plain(DType::U8)),
    };
    if node.opset >= 23
        && let Some(precision) = named_type(node, "precision")?
        && precision != Element::Plain(DType::F32)
    {
        return Err(node.unsupported_value("precision", precision.name(), "float32"));
    }
    let stored = match to {
        Element::Plain(dtype) => dtype,
        Element::Narrow(narrow) => {
            b.narrow.results_are(narrow);
            narrow.stored()
        }
    };
    let of = operand(&p.x);
    if let Element::Narrow(Narrow::Float(format)) = to {
        no_zero_point(node)?;
        let q = p.quantization;
        let ratio = b.call("divide_by_scale", &(&of, &q), [&p.x, &p.scale], || {
            quantize::divide_by_scale(&of, &q)
        })?;
        let y = narrow::encode(b, &ratio, format, saturate)?;
        return one(value::reshape_to(b, &y, &p.shape)?);
    }
    if let Element::Narrow(Narrow::Int { bits, .. }) = to {
        p.quantization.bits = Some(bits);
    }
    let args = [&p.x, &p.scale].into_iter().chain(&p.zero);
    let y = b.call("quantize_linear", &(&of, &p.quantization, stored), args, || {
        quantize::quantize_linear(&of, &p.quantization, stored)
    })?;
    one(value::reshape_to(b, &y, &p.shape)?)
}

/// Integers in a block where the model has none.
const BLOCK: usize = 64;

/// Constants that products alone read, as their integers in blocks.
fn weights_in_blocks(node: &Node, b: &Builder) -> Result<Option<Blocked>> {
    let (x, scales) = (node.input(0)?.constant(), node.input(1)?.constant());
    let (Some(x), Some(scales), 1..) = (x, scales, b.products) else { return Ok(None) };
    let zeros = match node.optional(2) {
        Some(zeros) if zeros.constant().is_none() => return Ok(None),
        zeros => zeros.and_then(Imported::constant),
    };
    let bits = match b.input_type(node, 0)? {
        Element::Narrow(Narrow::Int { bits, .. }) => bits,
        Element::Plain(DType::I8 | DType::U8) => 8,
        _ => return Ok(None),
    };
    let stated = node.opset < 23 || named_type(node, "output_dtype")?.is_none();
    let block = if node.opset < 21 { 0 } else { node.int_or("block_size", 0)? };
    let (Ok(block), &[_, _], true) = (usize::try_from(block), x.shape(), stated) else {
        return Ok(None);
    };
    let along = axis(node.int_or("axis", 1)?, 2)?;
    let same = zeros.is_none_or(|z| z.dtype() == x.dtype() && z.shape() == scales.shape());
    if !same || !scales.dtype().is_float() || x.is_empty() {
        return Ok(None);
    }
    let mut of = Blocked {
        integers: x.clone(),
        scales: scales.clone(),
        zeros: zeros.cloned(),
        bits,
        axis: along,
        block,
        transposed: false,
        uses: b.products,
    };
    let mut blocks = x.shape().to_vec();
    match scales.shape() {
        _ if block > 0 => {
            blocks[along] = blocks[along].div_ceil(block);
            return Ok((scales.shape() == blocks).then_some(of));
        }
        // Those of a column, or of all, are those of each of its blocks.
        [count] if b.of_numbers && *count == x.shape()[along] => of.axis = 1 - along,
        shape if b.of_numbers && shape.iter().all(|n| *n == 1) => of.axis = 0,
        _ => return Ok(None),
    }
    of.block = BLOCK;
    blocks[of.axis] = blocks[of.axis].div_ceil(BLOCK);
    let steps = (0..2).map(|k| i64::from(k != of.axis && scales.len() > 1)).collect();
    let view = View { offset: 0, shape: blocks, steps };
    of.scales = fold::materialize(scales, &view)?;
    of.zeros = zeros.map(|zeros| fold::materialize(zeros, &view)).transpose()?;
    Ok(Some(of))
}

/// The numbers of weights in blocks, as a constant.
pub(super) fn numbers_of(b: &mut Builder, of: Blocked) -> Result<Imported> {
    let (transposed, [x, scale]) = (of.transposed, [of.integers, of.scales].map(Imported::Const));
    let zero = of.zeros.map(Imported::Const);
    let pairs = Pairs { x, scale, zero, at: of.axis, block: of.block };
    let p = one_pair_an_element(b, pairs)?;
    let shape = p.shape.clone();
    let y = dequantized(b, p)?;
    let y = value::reshape_to(b, &y, &shape)?;
    if transposed { value::transpose_by(b, &y, &[1, 0]) } else { Ok(y) }
}

/// The numbers that integers stand for.
fn dequantized(b: &mut Builder, p: Inputs) -> Result<Imported> {
    let of = operand(&p.x);
    let args: Vec<Imported> = [p.x, p.scale].into_iter().chain(p.zero).collect();
    let (name, key) = ("dequantize_linear", (&of, &p.quantization));
    let y = b.call(name, &key, &args, || quantize::dequantize_linear(&of, &p.quantization))?;
    // Products with weights are those of their integers.
    b.keep_origin(&y, name, &key, &args, || quantize::dequantize_linear(&of, &p.quantization))?;
    Ok(y)
}

pub(crate) fn dequantize_linear(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    if let Some(weights) = weights_in_blocks(node, b)? {
        return one(b.blocked(weights));
    }
    let p = inputs(node, b)?;
    let from = b.input_type(node, 0)?;
    if let Some(zero) = zero_type(node, b)?.filter(|zero| *zero != from) {
        return Err(Error::model(format!(
            "the data are {}, the zero point is {}",
            from.name(),
            zero.name()
        )));
    }
    let to = if node.opset >= 23 { named_type(node, "output_dtype")? } else { None };
    let y = match from {
        Element::Narrow(narrow @ Narrow::Float(_)) => {
            no_zero_point(node)?;
            let x = narrow::widen(b, &p.x, narrow)?;
            let (of, q) = (operand(&x), Quantization { zero_point: false, ..p.quantization });
            b.call("multiply_by_scale", &(&of, &q), [&x, &p.scale], || {
                quantize::multiply_by_scale(&of, &q)
            })?
        }
        _ => {
            let shape = p.shape.clone();
            let y = dequantized(b, p)?;
            return numbers_as(node, b, &y, &shape, to);
        }
    };
    numbers_as(node, b, &y, &p.shape, to)
}

/// Numbers in a shape, and in the type that is asked for.
fn numbers_as(
    node: &Node,
    b: &mut Builder,
    y: &Imported,
    shape: &[Dim],
    to: Option<Element>,
) -> Result<Vec<Imported>> {
    let y = value::reshape_to(b, y, shape)?;
    let from = Element::Plain(y.dtype());
    one(narrow::cast(node, b, &y, from, to.unwrap_or(from))?)
}

pub(crate) fn matmul_integer(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let (x, y) = (node.input(0)?, node.input(1)?);
    let x_zero = zero_point(b, node, x, node.optional(2))?;
    let y_zero = zero_point(b, node, y, node.optional(3))?;
    let (of, with) = (operand(x), operand(y));
    let of_zero = x_zero.as_ref().map(Imported::shape);
    let with_zero = y_zero.as_ref().map(Imported::shape);
    let args = [x, y].into_iter().chain(&x_zero).chain(&y_zero);
    one(b.call("matmul_integer", &(&of, &with, &of_zero, &with_zero), args, || {
        quantize::matmul_integer(&of, &with, of_zero.as_deref(), with_zero.as_deref())
    })?)
}

/// A zero point as an argument of an operator: of the type of the data, one number or a list; nothing
/// where it is zero.
pub(super) fn zero_point(
    b: &mut Builder,
    node: &Node,
    x: &Imported,
    zero: Option<&Imported>,
) -> Result<Option<Imported>> {
    let Some(zero) = nonzero(x, zero)? else { return Ok(None) };
    if zero.rank() > 1 && dim::product(zero.shape()) == 1 {
        Compose::new(node, b).reshape::<Dim>(zero, &[]).map(Some)
    } else {
        Ok(Some(zero.clone()))
    }
}

/// A zero point of some data, which has their type; `None` where it is zero.
pub(super) fn nonzero<'a>(
    x: &Imported,
    zero: Option<&'a Imported>,
) -> Result<Option<&'a Imported>> {
    let Some(zero) = zero else { return Ok(None) };
    if zero.dtype() != x.dtype() {
        return Err(Error::model(format!(
            "the data are {}, the zero point is {}",
            x.dtype(),
            zero.dtype()
        )));
    }
    Ok(Some(zero)
        .filter(|zero| !zero.constant().is_some_and(|t| (0..t.len()).all(|i| t.get_i128(i) == 0))))
}

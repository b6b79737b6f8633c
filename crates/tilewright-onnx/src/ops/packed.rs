//! Weights of a few bits in blocks, each with a scale and a zero point: they stay packed.

use tilewright_ir::{DType, Dim, Error, Result, Tensor, dim};
use tilewright_ops::blocks::{self, Rows, Weights};

use super::compose::{Compose, int};
use super::one;
use crate::build::{Blocked, Builder};
use crate::data::Element;
use crate::imported::{Imported, operand};
use crate::narrow::Narrow;
use crate::node::{Node, axis};
use crate::operator::{Operator, op};

/// Of the domain `com.microsoft`.
pub(crate) static OPERATORS: &[Operator] =
    &[op("GatherBlockQuantized", 9, 4, gather_blocks), op("MatMulNBits", 9, 6, matmul_nbits)];

/// A product with weights of 2, 4 or 8 bits in blocks, each with a scale and a zero point. The weights stay
/// packed. At accuracy level 4 the other operand becomes integers, too, by blocks.
pub(crate) fn matmul_nbits(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let c = &mut Compose::new(node, b);
    let (x, w, scales) = (node.input(0)?, node.input(1)?, node.input(2)?);
    let (k, n) = (node.size_or("K", 0)?, node.size_or("N", 0)?);
    let (bits, block) = (node.size_or("bits", 4)?, node.size_or("block_size", 32)?);
    let level = node.int_or("accuracy_level", 0)?;
    // Weights in the order of another machine's kernels.
    let prepacked = node.int_or("weight_prepacked", 0)?;
    if prepacked != 0 {
        return Err(node.unsupported_value("weight_prepacked", prepacked, "0"));
    }
    let bits = match bits {
        2 | 4 | 8 => bits as u32,
        _ => return Err(node.unsupported_value("bits", bits, "2, 4, 8")),
    };
    if block == 0 || k == 0 || n == 0 || x.shape().last() != Some(&Dim::from(k)) {
        return Err(Error::model(format!(
            "blocks of {block} for {k} x {n} weights and {}",
            operand(x)
        )));
    }
    let mut weights =
        Weights { n, k, bits, block, scale: scales.dtype(), zero: blocks::Zero::Middle };
    let groups = weights.blocks();
    let order = order_of_rows(node, &weights)?;
    let zero = match node.optional(3) {
        None => None,
        Some(zero) if zero.dtype() == DType::U8 => {
            let bytes = weights.zero_bytes();
            weights.zero = blocks::Zero::Packed(bytes);
            Some(held(c, zero, &[n, bytes], "zero points")?)
        }
        Some(zero) => {
            weights.zero = blocks::Zero::Float(zero.dtype());
            Some(held(c, zero, &[n, groups], "zero points")?)
        }
    };
    if w.dtype() != DType::U8 {
        return Err(Error::model(format!("{} does not hold packed weights", operand(w))));
    }
    let mut w = held(c, w, &[n, groups, block / weights.per_byte()], "weights")?;
    let mut x = x.clone();
    if let Some(order) = order {
        let packed = w.constant().ok_or_else(unknown_groups)?;
        w = Imported::Const(reordered(packed, &weights, &order)?);
        let places: Vec<i64> = order.iter().map(|at| *at as i64).collect();
        let places = Imported::Const(Tensor::from_slice(&[k], &places)?);
        x = c.with("Gather", &[&x, &places], [int("axis", -1)])?;
    }
    let scales = held(c, scales, &[n, groups], "scales")?;
    let given: Vec<Imported> = [w, scales].into_iter().chain(zero).collect();
    one(product_of_rows(c, &x, &weights, &given, level == 4, node.optional(5))?)
}

/// The product of rows along the last axis with packed weights and their tables, and a bias added to it, in the type
/// of the rows: of their integers by blocks, or of numbers.
pub(super) fn product_of_rows(
    c: &mut Compose,
    x: &Imported,
    weights: &Weights,
    given: &[Imported],
    in_integers: bool,
    bias: Option<&Imported>,
) -> Result<Imported> {
    let Weights { n, k, block, .. } = *weights;
    let shape = x.shape();
    let outer = &shape[..x.rank() - 1];
    let rows = dim::product(outer.iter().copied());
    let flat = c.reshape(x, &[rows, k.into()])?;
    let of = operand(&flat);
    let y = if in_integers {
        let quantized = c.b.call_many("quantize_blocks", &(&of, block), [&flat], || {
            blocks::quantize(&of, block)
        })?;
        let (key, args) = ((rows, weights), quantized.iter().chain(given));
        c.b.call("integer_product_of_blocks", &key, args, || {
            blocks::integer_product(rows, weights)
        })?
    } else {
        let args = [&flat].into_iter().chain(given);
        c.b.call("product_of_blocks", &(&of, weights), args, || blocks::product(&of, weights))?
    };
    let bias = bias.map(|bias| c.cast(bias, DType::F32)).transpose()?;
    let y = bias.map_or(Ok(y.clone()), |bias| c.op("Add", &[&y, &bias]))?;
    let y = c.cast(&y, x.dtype())?;
    let shape: Vec<Dim> = outer.iter().copied().chain([Dim::from(n)]).collect();
    c.reshape(&y, &shape)
}

/// A product with weights in blocks, which stay packed; `None` where blocks do not lie along the axis that is summed
/// up, or the operands do not fit each other.
pub(super) fn product_with_blocked(
    node: &Node,
    b: &mut Builder,
    x: &Imported,
    weights: &Blocked,
) -> Result<Option<Imported>> {
    let Some((packed, tensors)) = weights.packed()? else { return Ok(None) };
    if x.dtype() != weights.dtype() || x.shape().last() != Some(&Dim::from(packed.k)) {
        return Ok(None);
    }
    let given: Vec<Imported> = tensors.into_iter().map(Imported::Const).collect();
    let c = &mut Compose::new(node, b);
    product_of_rows(c, x, &packed, &given, false, None).map(Some)
}

/// A tensor of a packed product in the shape that it has there.
pub(super) fn held(c: &mut Compose, x: &Imported, shape: &[usize], what: &str) -> Result<Imported> {
    let count: usize = shape.iter().product();
    if dim::product(x.shape()) == count {
        c.reshape(x, shape)
    } else {
        Err(Error::model(format!("{} does not hold the {what} {shape:?}", operand(x))))
    }
}

/// The rows of weights in the order of their groups (`g_idx`), where that is another one than their own: a layout in
/// which each group fills a block.
fn order_of_rows(node: &Node, weights: &Weights) -> Result<Option<Vec<usize>>> {
    let Some(groups) = node.optional(4) else { return Ok(None) };
    let of = groups.constant().filter(|t| t.len() >= weights.k).ok_or_else(unknown_groups)?;
    let mut order: Vec<usize> = (0..weights.k).collect();
    order.sort_by_key(|at| of.get_i128(*at));
    let fills = |(place, at): (usize, &usize)| of.get_i128(*at) == (place / weights.block) as i128;
    if order.iter().enumerate().all(fills) {
        Ok((!order.is_sorted()).then_some(order))
    } else {
        Err(unknown_groups())
    }
}

fn unknown_groups() -> Error {
    Error::unsupported("these groups of weights (`g_idx`) are not supported").help(
        "groups that are known when the model is read, each of as many rows as a block has, are",
    )
}

/// Packed weights with their rows in another order.
fn reordered(packed: &Tensor, weights: &Weights, order: &[usize]) -> Result<Tensor> {
    let (per_byte, bits) = (weights.per_byte(), weights.bits as usize);
    let mask = u8::MAX >> (8 - bits);
    let row = weights.blocks() * weights.block / per_byte;
    let mut all = vec![0; packed.bytes().len()];
    for (old, new) in packed.bytes().chunks(row).zip(all.chunks_mut(row)) {
        for (place, at) in order.iter().enumerate() {
            let value = (old[at / per_byte] >> (at % per_byte * bits)) & mask;
            new[place / per_byte] |= value << (place % per_byte * bits);
        }
    }
    Tensor::from_bytes(packed.dtype(), packed.shape(), &all)
}

/// Rows of a table of integers in blocks, as numbers.
pub(crate) fn gather_blocks(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let element = b.input_type(node, 0)?;
    let c = &mut Compose::new(node, b);
    let (x, at, scales) = (node.input(0)?, node.input(1)?, node.input(2)?);
    let from = axis(node.int_or("gather_axis", 0)?, x.rank())?;
    let along = axis(node.int_or("quantize_axis", 1)?, x.rank())?;
    if along + 1 != x.rank() || from == along {
        return Err(Error::unsupported(format!(
            "blocks along axis {along} of {}, with rows along axis {from}, are not supported",
            operand(x)
        ))
        .help("blocks are along the last axis, and rows along another one"));
    }
    let stated = node.size_or("bits", 4)?;
    // Narrow elements have a byte each here.
    let (bits, packed) = match element {
        Element::Narrow(Narrow::Int { bits, .. }) => (bits, false),
        _ => (u32::try_from(stated).unwrap_or(0), x.dtype() == DType::U8),
    };
    let block = node.size_or("block_size", 128)?;
    let mut gathered = |t: &Imported| c.with("Gather", &[t, at], [int("axis", from as i64)]);
    let (x, scales) = (gathered(x)?, gathered(scales)?);
    let zero = node.optional(3).map(gathered).transpose()?;
    let rows = Rows {
        integers: operand(&x),
        scales: operand(&scales),
        zero: zero.as_ref().map(operand),
        bits,
        packed,
        block,
        middle: packed,
    };
    let args = [&x, &scales].into_iter().chain(&zero);
    one(c.b.call("numbers_of_blocks", &rows, args, || blocks::numbers(&rows))?)
}

//! Conversions from and to element types that modules do not have ([`crate::narrow`]).

use tilewright_ir::{DType, Error, Result, Tensor};
use tilewright_ops::elementwise;
use tilewright_ops::narrow::{self, NarrowFloat, ScaleRounding};

use super::one;
use super::value::convert;
use crate::build::Builder;
use crate::data::Element;
use crate::imported::Imported;
use crate::narrow::Narrow;
use crate::node::{Node, required};
use crate::operator::{Operator, op};

/// The operators that are imported here.
pub(crate) static OPERATORS: &[Operator] = &[op("BitCast", 26, 1, bit_cast)];

/// Elements as a type of modules: integers as they are, floats as `float32`.
pub(crate) fn widen(b: &mut Builder, x: &Imported, of: Narrow) -> Result<Imported> {
    let Narrow::Float(format) = of else { return Ok(x.clone()) };
    let values = format.values();
    let table = Imported::Const(Tensor::from_slice(&[values.len()], &values)?);
    let codes = values.len();
    b.call_on("decode", [x, &table], (), |[x, _]| narrow::decode(x, codes))
}

/// Floats as the bits of a format.
pub(crate) fn encode(
    b: &mut Builder,
    x: &Imported,
    to: NarrowFloat,
    saturate: bool,
) -> Result<Imported> {
    let x = &as_float(b, x)?;
    b.call_on("encode", [x], (to, saturate), |[x]| narrow::encode(x, to, saturate))
}

/// Floats as they are, other numbers as `float32`.
fn as_float(b: &mut Builder, x: &Imported) -> Result<Imported> {
    if x.dtype().is_float() { Ok(x.clone()) } else { convert(b, x, DType::F32) }
}

/// A value in another element type, from the type that it has. Results of the current node have that
/// type then.
pub(crate) fn cast(
    node: &Node,
    b: &mut Builder,
    x: &Imported,
    from: Element,
    to: Element,
) -> Result<Imported> {
    let saturate = node.int_or("saturate", 1)? != 0;
    let roundings = [
        ("up", ScaleRounding::Up),
        ("down", ScaleRounding::Down),
        ("nearest", ScaleRounding::Nearest),
    ];
    let rounding = node.choice("round_mode", "up", &roundings)?;
    if from == to {
        if let Element::Narrow(narrow) = to {
            b.narrow.results_are(narrow);
        }
        return Ok(x.clone());
    }
    let x = match from {
        Element::Plain(_) => x.clone(),
        Element::Narrow(narrow) => widen(b, x, narrow)?,
    };
    let Element::Narrow(narrow) = to else {
        let Element::Plain(dtype) = to else { return Err(Error::internal("no other type")) };
        return convert(b, &x, dtype);
    };
    b.narrow.results_are(narrow);
    match narrow {
        Narrow::Float(NarrowFloat::E8M0) => {
            let x = &as_float(b, &x)?;
            b.call_on("encode_scale", [x], (rounding, saturate), |[x]| {
                narrow::encode_scale(x, rounding, saturate)
            })
        }
        Narrow::Float(format) => encode(b, &x, format, saturate),
        Narrow::Int { bits, signed } => {
            let x = if x.dtype().is_int() { x } else { convert(b, &x, DType::I32)? };
            low_bits(b, &x, bits, signed)
        }
    }
}

/// Integers of a few bits from the lowest ones of integers.
fn low_bits(b: &mut Builder, x: &Imported, bits: u32, signed: bool) -> Result<Imported> {
    b.call_on("low_bits", [x], (bits, signed), |[x]| narrow::low_bits(x, bits, signed))
}

/// The bits of a value as one of another element type.
pub(crate) fn bit_cast(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let to = required(node.element("to", Element::from_number)?, "attribute `to`")?;
    let from = b.input_type(node, 0)?;
    let x = node.input(0)?;
    if from.bits() != to.bits() {
        return Err(Error::model(format!(
            "an element of type {} has {} bits, one of type {} has {}",
            from.name(),
            from.bits(),
            to.name(),
            to.bits()
        )));
    }
    if let Element::Narrow(narrow) = to {
        b.narrow.results_are(narrow);
    }
    if to.bits() < 8 {
        let signed = to.stored() == DType::I8;
        return one(low_bits(b, x, to.bits() as u32, signed)?);
    }
    // A `bool` is a byte that is 0 or 1.
    let x = if from.stored().is_bool() { convert(b, x, DType::U8)? } else { x.clone() };
    let number = if to.stored().is_bool() { DType::U8 } else { to.stored() };
    let y = if x.dtype() == number {
        x
    } else {
        b.call_on("reinterpret", [&x], number, |[x]| elementwise::reinterpret(x, number))?
    };
    one(if to.stored().is_bool() { convert(b, &y, DType::BOOL)? } else { y })
}

//! Conversions from and to element types that modules do not have ([`crate::narrow`]).

use tilewright_ir::{DType, Error, Result, Tensor};
use tilewright_ops::elementwise;
use tilewright_ops::narrow::{self, NarrowFloat, ScaleRounding};

use super::one;
use super::value::convert;
use crate::build::Builder;
use crate::data;
use crate::imported::{Imported, operand};
use crate::narrow::Narrow;
use crate::node::Node;
use crate::operator::{Operator, op};

/// The operators that are imported here.
pub(crate) static OPERATORS: &[Operator] = &[op("BitCast", 26, 1, bit_cast)];

/// An element type of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Element {
    /// One that modules have.
    Plain(DType),
    /// One that they do not have.
    Narrow(Narrow),
}

impl Element {
    /// The type of this number in the file.
    ///
    /// # Errors
    /// As [`data::element_type`].
    pub(crate) fn of(number: i32) -> Result<Element> {
        match Narrow::of(number) {
            Some(narrow) => Ok(Element::Narrow(narrow)),
            None => data::element_type(number).map(Element::Plain),
        }
    }

    /// The type of an input of a node, which must be there.
    pub(crate) fn of_input(node: &Node, b: &Builder, at: usize) -> Result<Element> {
        Ok(match b.narrow.input(node.proto(), at) {
            Some(narrow) => Element::Narrow(narrow),
            None => Element::Plain(node.input(at)?.dtype()),
        })
    }

    /// The type in which elements are kept.
    fn stored(self) -> DType {
        match self {
            Element::Plain(dtype) => dtype,
            Element::Narrow(narrow) => narrow.stored(),
        }
    }

    /// How many bits an element has.
    fn bits(self) -> usize {
        match self {
            Element::Plain(dtype) if dtype.is_bool() => 8,
            Element::Plain(dtype) => usize::from(dtype.bits),
            Element::Narrow(narrow) => narrow.bits(),
        }
    }

    pub(crate) fn name(self) -> String {
        match self {
            Element::Plain(dtype) => dtype.to_string(),
            Element::Narrow(narrow) => narrow.name().to_owned(),
        }
    }
}

/// Elements as a type of modules: integers as they are, floats as `float32`.
pub(crate) fn widen(b: &mut Builder, x: &Imported, of: Narrow) -> Result<Imported> {
    let Narrow::Float(format) = of else { return Ok(x.clone()) };
    let values = format.values();
    let table = Imported::Const(Tensor::from_slice(&[values.len()], &values)?);
    let (of, codes) = (operand(x), values.len());
    b.call("decode", &(&of, codes), &[x.clone(), table], || narrow::decode(&of, codes))
}

/// Floats as the bits of a format.
pub(crate) fn encode(
    b: &mut Builder,
    x: &Imported,
    to: NarrowFloat,
    saturate: bool,
) -> Result<Imported> {
    let x = match x.dtype().is_float() {
        true => x.clone(),
        false => convert(b, x, DType::F32)?,
    };
    let of = operand(&x);
    let args = std::slice::from_ref(&x);
    b.call("encode", &(&of, to, saturate), args, || narrow::encode(&of, to, saturate))
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
    let rounding = match node.text_or("round_mode", "up")? {
        "up" => ScaleRounding::Up,
        "down" => ScaleRounding::Down,
        "nearest" => ScaleRounding::Nearest,
        other => {
            return Err(node.unsupported_value("round_mode", other, "up, down, nearest"));
        }
    };
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
            let x = match x.dtype().is_float() {
                true => x,
                false => convert(b, &x, DType::F32)?,
            };
            let of = operand(&x);
            let args = std::slice::from_ref(&x);
            b.call("encode_scale", &(&of, rounding, saturate), args, || {
                narrow::encode_scale(&of, rounding, saturate)
            })
        }
        Narrow::Float(format) => encode(b, &x, format, saturate),
        Narrow::Int { bits, signed } => {
            let x = match x.dtype().is_int() {
                true => x,
                false => convert(b, &x, DType::I32)?,
            };
            low_bits(b, &x, bits, signed)
        }
    }
}

/// Integers of a few bits from the lowest ones of integers.
fn low_bits(b: &mut Builder, x: &Imported, bits: u32, signed: bool) -> Result<Imported> {
    let of = operand(x);
    let args = std::slice::from_ref(x);
    b.call("low_bits", &(&of, bits, signed), args, || narrow::low_bits(&of, bits, signed))
}

/// The bits of a value as one of another element type.
pub(crate) fn bit_cast(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let to = node.int("to")?.ok_or_else(|| Error::model("attribute `to` is missing"))?;
    let to =
        Element::of(i32::try_from(to).unwrap_or(-1)).map_err(|e| e.context("attribute `to`"))?;
    let from = Element::of_input(node, b, 0)?;
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
    let of = operand(&x);
    let number = if to.stored().is_bool() { DType::U8 } else { to.stored() };
    let y = match of.dtype == number {
        true => x,
        false => b.call("reinterpret", &(&of, number), std::slice::from_ref(&x), || {
            elementwise::reinterpret(&of, number)
        })?,
    };
    one(if to.stored().is_bool() { convert(b, &y, DType::BOOL)? } else { y })
}

//! Conversions from and to element types that modules do not have ([`crate::narrow`]).

use tilewright_ir::{DType, Error, Result, Tensor};
use tilewright_ops::narrow::{self, NarrowFloat};

use super::arithmetic::convert;
use crate::build::{Builder, operand};
use crate::data;
use crate::narrow::Narrow;
use crate::node::{Imported, Node};

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
    node.ignore("round_mode");
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
        Narrow::Float(format) => encode(b, &x, format, saturate),
        Narrow::Int { bits, signed } => {
            let x = match x.dtype().is_int() {
                true => x,
                false => convert(b, &x, DType::I32)?,
            };
            let of = operand(&x);
            let args = std::slice::from_ref(&x);
            b.call("low_bits", &(&of, bits, signed), args, || narrow::low_bits(&of, bits, signed))
        }
    }
}

//! The importers, grouped like the operators that they call.
//!
//! An importer reads a node's attributes and inputs for the node's opset, and calls functions of
//! `tilewright_ops`. What depends only on constants it may compute on the spot.

pub(crate) mod arithmetic;
pub(crate) mod attention;
pub(crate) mod channels;
pub(crate) mod check;
pub(crate) mod compose;
pub(crate) mod constants;
pub(crate) mod contraction;
pub(crate) mod dynamic;
pub(crate) mod experts;
pub(crate) mod features;
pub(crate) mod grouped;
pub(crate) mod indexed;
pub(crate) mod linear;
pub(crate) mod list;
pub(crate) mod loss;
pub(crate) mod maps;
pub(crate) mod microsoft;
pub(crate) mod ml;
pub(crate) mod movement;
pub(crate) mod narrow;
pub(crate) mod nchwc;
pub(crate) mod nested;
pub(crate) mod norm;
pub(crate) mod packed;
pub(crate) mod pool;
pub(crate) mod qlinear;
pub(crate) mod quantize;
pub(crate) mod quantized;
pub(crate) mod quantized_recurrent;
pub(crate) mod random;
pub(crate) mod recurrent;
pub(crate) mod reduce;
pub(crate) mod resize;
pub(crate) mod sample;
pub(crate) mod scores;
pub(crate) mod signal;
pub(crate) mod text;
pub(crate) mod tokenizer;
pub(crate) mod trees;
pub(crate) mod value;
pub(crate) mod window;

use tilewright_ir::Result;

use crate::imported::Imported;

/// The one result of an operator.
pub(crate) fn one(value: Imported) -> Result<Vec<Imported>> {
    Ok(vec![value])
}

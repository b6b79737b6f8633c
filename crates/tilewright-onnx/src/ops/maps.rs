//! Operators of `ai.onnx.ml` on maps from keys to numbers.
//!
//! A map is its keys and its numbers, two tensors; of a sequence of maps, which have the same keys here,
//! the numbers of each map are a row.

use tilewright_ir::hash::HashMap;

use tilewright_ir::{DType, Dim, Error, Result};

use super::compose::{Compose, int};
use super::scores::Labels;
use super::{one, value};
use crate::build::Builder;
use crate::imported::{Imported, operand};
use crate::node::Node;
use crate::operator::{Operator, maps, op, until};

/// Those of the domain `ai.onnx.ml`; their versions are those of the domain.
pub(crate) static OPERATORS: &[Operator] = &[
    until(5, maps(op("DictVectorizer", 1, 1, dict_vectorizer))),
    until(5, op("ZipMap", 1, 1, zip_map)),
];

/// A map for each row, from the classes to the scores of the row.
pub(crate) fn zip_map(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let labels = Labels::read(node, ["classlabels_strings", "classlabels_int64s"])?;
    let x = node.input(0)?;
    let mut c = Compose::new(node, b);
    let values = match x.shape()[..] {
        [count] => c.reshape(x, &[Dim::from(1), count])?,
        [_, _] => x.clone(),
        _ => return Err(Error::model(format!("{} has neither one axis nor two", operand(x)))),
    };
    let (count, classes) = (values.shape()[1], labels.len());
    if count != classes {
        return Err(Error::model(format!("{count} scores in a row, and {classes} classes")));
    }
    let keys = match labels {
        Labels::Numbers(list) => value::list(&list)?,
        Labels::Texts(texts) => Imported::Text(texts),
    };
    one(Imported::Map { keys: Box::new(keys), values: Box::new(values) })
}

/// The numbers of a map at the keys of a vocabulary, zero for a key that is not there.
pub(crate) fn dict_vectorizer(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let vocabulary = Labels::read(node, ["string_vocabulary", "int64_vocabulary"])?;
    let Imported::Map { keys, values } = node.input(0)? else {
        return Err(Error::model("the input is no map"));
    };
    let &[count] = &values.shape()[..] else {
        return Err(Error::model("the input is a sequence of maps, and one map is needed"));
    };
    let mut c = Compose::new(node, b);
    let places = match (&vocabulary, &**keys) {
        (Labels::Texts(vocabulary), Imported::Text(keys)) => {
            let at: HashMap<&String, i64> = keys.values().iter().zip(1..).collect();
            let words = vocabulary.values().iter();
            let places = words.map(|word| at.get(word).copied().unwrap_or(0));
            value::list(&places.collect::<Vec<_>>())?
        }
        (Labels::Numbers(vocabulary), keys) if keys.dtype() == DType::I64 => {
            places_of_numbers(&mut c, vocabulary, keys, count)?
        }
        _ => return Err(Error::model("the keys of the map have another type than the vocabulary")),
    };
    // The number of a key that is not there stands before the others.
    let none = value::constant(values.dtype(), &[1], &[0.0])?;
    let table = c.concat(&[&none, values], 0)?;
    let found = c.with("Gather", &[&table, &places], [int("axis", 0)])?;
    one(c.reshape(&found, &[1, vocabulary.len()])?)
}

/// For each number of a list one more than its place among the keys, or zero.
fn places_of_numbers(
    c: &mut Compose,
    list: &[i64],
    keys: &Imported,
    count: Dim,
) -> Result<Imported> {
    if count == 0 {
        return value::list(&vec![0; list.len()]);
    }
    let column = value::list(list)?;
    let column = c.reshape(&column, &[list.len(), 1])?;
    let same = c.op("Equal", &[&column, keys])?;
    let (unit, zero) = (c.number(DType::I64, 1.0)?, c.number(DType::I64, 0.0)?);
    let positions = c.positions(count)?;
    let positions = c.op("Add", &[&positions, &unit])?;
    let places = c.op("Where", &[&same, &positions, &zero])?;
    c.reduce("ReduceMax", &places, &[1], false)
}

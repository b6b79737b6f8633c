//! Operators of `ai.onnx.ml` that prepare features: scaled, normalised, filled in, as one of several.

use tilewright_ir::{DType, Dim, Error, Result, Tensor};
use tilewright_ops::check::Need;

use super::check::demand;
use super::compose::Compose;
use super::scores::{Labels, row};
use super::{ml, one, value};
use crate::build::Builder;
use crate::imported::{Imported, operand};
use crate::node::{Node, required};
use crate::operator::{MANY, Operator, op, texts, until};

/// Those of the domain `ai.onnx.ml`; their versions are those of the domain.
pub(crate) static OPERATORS: &[Operator] = &[
    until(5, texts(op("CategoryMapper", 1, 1, category_mapper))),
    until(5, op("FeatureVectorizer", 1, MANY, feature_vectorizer)),
    until(5, op("Imputer", 1, 1, imputer)),
    until(5, op("Normalizer", 1, 1, normalizer)),
    until(5, texts(op("OneHotEncoder", 1, 1, one_hot_encoder))),
    until(5, op("Scaler", 1, 1, scaler)),
];

/// Refuses a list that has neither one number nor one for each feature of the last axis.
fn fits(x: &Imported, name: &str, count: usize) -> Result<()> {
    let features = x.shape().last().copied().unwrap_or(Dim::from(1));
    if count == 1 || features == count {
        Ok(())
    } else {
        Err(Error::model(format!(
            "attribute `{name}` has {count} numbers for {features} features of {}",
            operand(x)
        )))
    }
}

/// `(x - offset) * scale`, in `float32`.
pub(crate) fn scaler(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let c = &mut Compose::new(node, b);
    let x = node.input(0)?;
    let mut y = c.cast(x, DType::F32)?;
    for (name, op) in [("offset", "Sub"), ("scale", "Mul")] {
        let list = required(node.floats(name)?, &format!("the attribute `{name}`"))?;
        fits(x, name, list.len())?;
        let list = Imported::Const(Tensor::from_slice(&[list.len()], &list)?);
        y = c.op(op, &[&y, &list])?;
    }
    one(y)
}

/// Rows over their largest number, the sum of their magnitudes, or their length. Rows without any stay.
pub(crate) fn normalizer(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let c = &mut Compose::new(node, b);
    let x = c.cast(node.input(0)?, DType::F32)?;
    let Some(axis) = x.rank().checked_sub(1) else {
        return Err(Error::model("there is no row of features"));
    };
    let norms = [("MAX", "ReduceMax"), ("L1", "ReduceL1"), ("L2", "ReduceL2")];
    let norm = node.choice("norm", "MAX", &norms)?;
    let size = c.reduce(norm, &x, &[axis], true)?;
    let (zero, unit) = (c.number(DType::F32, 0.0)?, c.number(DType::F32, 1.0)?);
    let none = c.op("Equal", &[&size, &zero])?;
    let by = c.op("Where", &[&none, &unit, &size])?;
    one(c.op("Div", &[&x, &by])?)
}

/// Numbers in the place of one that stands for a missing one, `NaN` too.
pub(crate) fn imputer(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let c = &mut Compose::new(node, b);
    let x = node.input(0)?;
    let (floats, ints) = (node.floats("imputed_value_floats")?, node.ints("imputed_value_int64s")?);
    let (replaced, whole) =
        (node.float_or("replaced_value_float", 0.0)?, node.int_or("replaced_value_int64", 0)?);
    let (values, old) = if x.dtype().is_float() {
        let list = required(floats, "the attribute `imputed_value_floats`")?;
        fits(x, "imputed_value_floats", list.len())?;
        (row(x.dtype(), &list)?, c.number(x.dtype(), replaced.into())?)
    } else {
        let list = required(ints, "the attribute `imputed_value_int64s`")?;
        fits(x, "imputed_value_int64s", list.len())?;
        let list = c.cast(&value::list(&list)?, x.dtype())?;
        let old = c.cast(&Imported::Const(Tensor::from_slice(&[], &[whole])?), x.dtype())?;
        (list, old)
    };
    let count = tilewright_ir::dim::product(values.shape());
    let values = c.reshape(&values, &[count])?;
    let missing = if x.dtype().is_float() && replaced.is_nan() {
        c.op("IsNaN", &[x])?
    } else {
        c.op("Equal", &[x, &old])?
    };
    one(c.op("Where", &[&missing, &values, x])?)
}

/// For each element a row with a one at the place of its category.
pub(crate) fn one_hot_encoder(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let categories = Labels::read(node, ["cats_strings", "cats_int64s"])?;
    let strict = !node.flag("zeros", true)?;
    let x = node.input(0)?;
    // The place of each element among the categories, and one more for what is none.
    let places = match (&categories, x) {
        (Labels::Texts(list), Imported::Text(_) | Imported::Chosen { .. }) => {
            ml::places_of_texts(node, b, list)?
        }
        (Labels::Numbers(list), _) if !x.dtype().is_bool() => {
            let whole = Compose::new(node, b).cast(x, DType::I64)?;
            let keys = Tensor::from_slice(&[list.len()], list)?;
            ml::places_of(node, b, &whole, &keys)?
        }
        _ => return Err(Error::model("the categories are strings, or the input is, and not both")),
    };
    let places = if strict {
        let all = Need::Within(vec![(1.into(), (categories.len() as i64).into())]);
        demand(node, b, "place of a category", &places, &all)?
    } else {
        places
    };
    let c = &mut Compose::new(node, b);
    let wide: Vec<Dim> = places.shape().into_iter().chain([Dim::from(1)]).collect();
    let places = c.reshape(&places, &wide)?;
    let each: Vec<i64> = (1..=categories.len() as i64).collect();
    let is = c.op("Equal", &[&places, &value::list(&each)?])?;
    one(c.cast(&is, DType::F32)?)
}

/// The features of all inputs side by side, in `float32`; what an input has less than is said is zero.
pub(crate) fn feature_vectorizer(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let c = &mut Compose::new(node, b);
    let widths = node.ints("inputdimensions")?;
    let mut parts = Vec::new();
    for (k, x) in node.all_inputs()?.iter().enumerate() {
        let (rows, have) = match x.shape()[..] {
            [rows] => (rows, Dim::from(1)),
            [rows, ..] => (rows, tilewright_ir::dim::product(x.shape()[1..].iter().copied())),
            [] => return Err(Error::model(format!("input {k} has no rows"))),
        };
        let x = c.reshape(x, &[rows, have])?;
        let x = c.cast(&x, DType::F32)?;
        let want = match widths.as_ref().map(|w| w.get(k)) {
            None => have,
            Some(Some(&w)) if w >= 0 => Dim::from(w as usize),
            Some(_) => {
                return Err(Error::model(format!("attribute `inputdimensions` = {widths:?}")));
            }
        };
        let part = if want == have {
            x
        } else {
            let (want, have) = (want.fixed(node.op())?, have.fixed(node.op())?);
            let cut = c.slice(&x, 1, 0, want.min(have))?;
            let more = want.saturating_sub(have) as i64;
            c.op("Pad", &[&cut, &value::list(&[0, 0, 0, more])?])?
        };
        parts.push(part);
    }
    one(c.concat(&parts.iter().collect::<Vec<_>>(), 1)?)
}

/// Numbers for strings, or strings for numbers.
pub(crate) fn category_mapper(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let texts = required(node.texts("cats_strings")?, "the attribute `cats_strings`")?;
    let numbers = required(node.ints("cats_int64s")?, "the attribute `cats_int64s`")?;
    ml::categories(node, b, texts, numbers)
}

//! Values that follow from shapes and parameters alone.

use tilewright_ir::dim::{self, Integer};
use tilewright_ir::{DType, Dim, Error, Result, Tensor};
use tilewright_ops::{Scalar, creation};

use super::one;
use super::value::{called_range, full, scalar};
use crate::build::Builder;
use crate::data;
use crate::extents;
use crate::imported::Imported;
use crate::node::{Node, required};
use crate::operator::{Operator, op, texts};
use crate::sizes;
use crate::texts::Texts;

/// The operators that are imported here.
pub(crate) static OPERATORS: &[Operator] = &[
    op("Constant", 7, 0, constant),
    op("ConstantOfShape", 9, 1, constant_of_shape),
    op("EyeLike", 9, 1, eye_like),
    op("Range", 11, 3, range),
    texts(op("Shape", 1, 1, shape)),
    texts(op("Size", 1, 1, size)),
];

pub(crate) fn constant(node: &Node, _: &mut Builder) -> Result<Vec<Imported>> {
    let text = node.text_or("value_string", "")?;
    let text = node.has("value_string").then(|| Texts::new(&[], vec![text.to_owned()]));
    let list = node.texts("value_strings")?.map(|list| Texts::new(&[list.len()], list));
    let texts = [node.text_tensor("value")?.map(Ok), text, list];
    if let Some(texts) = texts.into_iter().flatten().next() {
        node.finish()?;
        return one(Imported::Text(texts?));
    }
    let tensor = node.tensor("value")?;
    let floats = node.floats("value_floats")?;
    let ints = node.ints("value_ints")?;
    let given = [
        tensor,
        node.float("value_float")?.map(|v| Tensor::from_slice(&[], &[v])).transpose()?,
        node.int("value_int")?.map(|v| Tensor::from_slice(&[], &[v])).transpose()?,
        floats.map(|v| Tensor::from_slice(&[v.len()], &v)).transpose()?,
        ints.map(|v| Tensor::from_slice(&[v.len()], &v)).transpose()?,
    ];
    let mut given = given.into_iter().flatten();
    match (given.next(), given.next()) {
        (Some(t), None) => one(Imported::Const(t)),
        (Some(_), Some(_)) => Err(Error::model("several values are given")),
        // An attribute with a value of another kind is refused by its name.
        (None, _) => match node.finish() {
            Err(e) => Err(e),
            Ok(()) => Err(Error::model("no value is given")),
        },
    }
}

pub(crate) fn constant_of_shape(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let shape = required(node.integers(0, "input")?, "input 0")?;
    let shape = extents::checked_dims(&shape)?;
    let zero = Tensor::zeros(DType::F32, &[1])?;
    let value = node.tensor("value")?.unwrap_or(zero);
    if value.len() != 1 {
        return Err(Error::model(format!(
            "attribute `value` must be one number, but has the shape {:?}",
            value.shape()
        )));
    }
    one(full(b, &shape, &value)?)
}

pub(crate) fn shape(node: &Node, _: &mut Builder) -> Result<Vec<Imported>> {
    let shape = node.input(0)?.shape();
    let rank = shape.len() as i64;
    let (mut start, mut end) = (0, rank);
    if node.opset >= 15 {
        start = place_of(node.int_or("start", 0)?, rank);
        end = place_of(node.int_or("end", rank)?, rank);
    }
    let part = shape.get(start as usize..end as usize).unwrap_or_default();
    one(sizes::list(part)?)
}

fn place_of(v: i64, rank: i64) -> i64 {
    (if v < 0 { v.saturating_add(rank) } else { v }).clamp(0, rank)
}

pub(crate) fn size(node: &Node, _: &mut Builder) -> Result<Vec<Imported>> {
    let count = dim::product(node.input(0)?.shape());
    one(sizes::value(&[], vec![count.into()], DType::I64)?)
}

/// As many numbers as lie between start and limit.
pub(crate) fn range(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    if node.opset >= 27 {
        // How narrow floats are summed; here each element is computed by itself.
        node.ignore("stash_type");
    }
    if let Some(result) = open_range(node, b)? {
        return one(result);
    }
    if (0..3).any(|at| matches!(node.optional(at), Some(Imported::Var { .. }))) {
        return super::dynamic::range(node, b);
    }
    let start = required(node.constant_scalar(0, "start")?, "the input `start`")?;
    let limit = required(node.constant_scalar(1, "limit")?, "the input `limit`")?;
    let delta = required(node.constant_scalar(2, "delta")?, "the input `delta`")?;
    let dtype = start.dtype();
    if limit.dtype() != dtype || delta.dtype() != dtype {
        return Err(Error::model("start, limit and delta must have one type"));
    }
    let count = if dtype.is_float() {
        let count = ((limit.get_f64(0) - start.get_f64(0)) / delta.get_f64(0)).ceil();
        (count < 2f64.powi(31)).then_some(count.max(0.0) as usize)
    } else {
        let [start, limit, delta] = [start, limit, delta].map(|t| t.get_i128(0));
        let span = limit - start;
        match delta {
            0 => None,
            _ if (span < 0) != (delta < 0) => Some(0),
            _ => usize::try_from((span.abs() + delta.abs() - 1) / delta.abs()).ok(),
        }
    };
    let count = count.filter(|&c| c < 1 << 31).ok_or_else(|| {
        Error::model(format!(
            "a range from {} to {} in steps of {} is too long",
            start.get_f64(0),
            limit.get_f64(0),
            delta.get_f64(0)
        ))
    })?;
    let (start, delta) = (scalar(start), scalar(delta));
    one(called_range(b, start, delta, count, dtype)?)
}

/// A range of which a bound is an open size; nothing where all are numbers.
fn open_range(node: &Node, b: &mut Builder) -> Result<Option<Imported>> {
    if !(0..3).any(|at| matches!(node.optional(at), Some(Imported::Sizes(_)))) {
        return Ok(None);
    }
    let inputs = [node.input(0)?, node.input(1)?, node.input(2)?];
    let dtype = inputs[0].dtype();
    if inputs.iter().any(|v| v.dtype() != dtype) {
        return Err(Error::model("start, limit and delta must have one type"));
    }
    let mut parts = Vec::with_capacity(3);
    for (at, what) in ["start", "limit", "delta"].into_iter().enumerate() {
        parts.push(required(node.integer(at, what)?, &format!("the input `{what}`"))?);
    }
    let (start, limit) = (parts[0], parts[1]);
    let delta = parts[2].fixed("the input `delta`")?;
    let span = match delta {
        0 => return Err(Error::model("a range in steps of 0")),
        1.. => limit.minus(start),
        _ => start.minus(limit),
    };
    let span = span.ok_or_else(|| Error::model("a range is too long"))?;
    let span = match (span.is_less(0), span.dim()) {
        (Some(true), _) | (_, None) => Dim::from(0),
        (Some(false), Some(span)) => span,
        (None, Some(span)) => span.max(0),
    };
    let step = usize::try_from(delta.unsigned_abs()).unwrap_or(usize::MAX);
    let count = span.ceildiv(step);
    let start = match start {
        Integer::Number(n) => Scalar::Int(n),
        Integer::Open(size) => Scalar::Size(size),
    };
    called_range(b, start, Scalar::Int(delta), count, dtype).map(Some)
}

pub(crate) fn eye_like(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let x = node.input(0)?;
    let [rows, columns] = x.shape()[..] else {
        return Err(Error::model(format!(
            "the input must be a matrix, but has the shape {:?}",
            x.shape()
        )));
    };
    let dtype = node.element("dtype", data::element_type)?.unwrap_or(x.dtype());
    let k = node.int_or("k", 0)?;
    one(b.call("eye", &(rows, columns, k, dtype), [], || creation::eye(rows, columns, k, dtype))?)
}

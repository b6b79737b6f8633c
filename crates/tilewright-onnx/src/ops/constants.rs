//! Values that follow from shapes and parameters alone.

use tilewright_ir::{DType, Error, Result, Tensor};
use tilewright_ops::{Operand, creation};

use super::arithmetic::scalar;
use super::{movement, one};
use crate::build::Builder;
use crate::data;
use crate::fold;
use crate::node::{Imported, Node};

/// A list of numbers that the import has computed.
pub(crate) fn list(values: &[i64]) -> Result<Imported> {
    Tensor::from_slice(&[values.len()], values).map(Imported::Const)
}

pub(crate) fn constant(node: &Node, _: &mut Builder) -> Result<Vec<Imported>> {
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
    let shape =
        node.constant_ints(0, "input")?.ok_or_else(|| Error::model("input 0 is missing"))?;
    let shape = movement::checked_shape(&shape)?;
    let zero = Tensor::zeros(DType::F32, &[1])?;
    let value = node.tensor("value")?.unwrap_or(zero);
    if value.len() != 1 {
        return Err(Error::model(format!(
            "attribute `value` must be one number, but has the shape {:?}",
            value.shape()
        )));
    }
    b.budget.charge(&Operand::new(&shape, value.dtype()))?;
    one(Imported::Const(fold::full(value.dtype(), &shape, value.bytes())?))
}

pub(crate) fn shape(node: &Node, _: &mut Builder) -> Result<Vec<Imported>> {
    let shape = node.input(0)?.shape();
    let rank = shape.len() as i64;
    let (mut start, mut end) = (0, rank);
    if node.opset >= 15 {
        let place = |v: i64| (if v < 0 { v.saturating_add(rank) } else { v }).clamp(0, rank);
        start = place(node.int_or("start", 0)?);
        end = place(node.int_or("end", rank)?);
    }
    let part = shape.get(start as usize..end as usize).unwrap_or_default();
    one(list(&part.iter().map(|&d| d as i64).collect::<Vec<_>>())?)
}

pub(crate) fn size(node: &Node, _: &mut Builder) -> Result<Vec<Imported>> {
    let count: usize = node.input(0)?.shape().iter().product();
    one(Imported::Const(Tensor::from_slice(&[], &[count as i64])?))
}

/// As many numbers as lie between start and limit.
pub(crate) fn range(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    if node.opset >= 27 {
        // How narrow floats are summed; here each element is computed by itself.
        node.ignore("stash_type");
    }
    let part = |at, what| {
        node.constant_scalar(at, what)?
            .ok_or_else(|| Error::model(format!("the input `{what}` is missing")))
    };
    let (start, limit, delta) = (part(0, "start")?, part(1, "limit")?, part(2, "delta")?);
    let dtype = start.dtype();
    if limit.dtype() != dtype || delta.dtype() != dtype {
        return Err(Error::model("start, limit and delta must have one type"));
    }
    let count = match dtype.is_float() {
        true => {
            let count = ((limit.get_f64(0) - start.get_f64(0)) / delta.get_f64(0)).ceil();
            (count < 2f64.powi(31)).then_some(count.max(0.0) as usize)
        }
        false => {
            let [start, limit, delta] = [start, limit, delta].map(|t| t.get_i128(0));
            let span = limit - start;
            match delta {
                0 => None,
                _ if (span < 0) != (delta < 0) => Some(0),
                _ => usize::try_from((span.abs() + delta.abs() - 1) / delta.abs()).ok(),
            }
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
    one(b.call("range", &(start, delta, count, dtype), &[], || {
        creation::range(start, delta, count, dtype)
    })?)
}

pub(crate) fn eye_like(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let x = node.input(0)?;
    let &[rows, columns] = x.shape() else {
        return Err(Error::model(format!(
            "the input must be a matrix, but has the shape {:?}",
            x.shape()
        )));
    };
    let dtype = match node.int("dtype")? {
        None => x.dtype(),
        Some(number) => data::element_type(i32::try_from(number).unwrap_or(-1))
            .map_err(|e| e.context("attribute `dtype`"))?,
    };
    let k = node.int_or("k", 0)?;
    one(b.call("eye", &(rows, columns, k, dtype), &[], || creation::eye(rows, columns, k, dtype))?)
}

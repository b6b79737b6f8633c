//! Operators that read or write where indices say, which are data: gathers and scatters.
//!
//! Indices are checked before they are used.

use tilewright_ir::{Error, Result};
use tilewright_ops::check::Need;
use tilewright_ops::movement;
use tilewright_ops::te::Reducer;
use tilewright_ops::unequal_shapes;

use super::check::demand;
use super::one;
use crate::build::Builder;
use crate::extents::{MAX_RANK, check_rank};
use crate::imported::Imported;
use crate::node::{Node, axis};
use crate::operator::{Operator, moves, op, until};

/// The operators that are imported here.
pub(crate) static OPERATORS: &[Operator] = &[
    moves(op("Gather", 7, 2, gather)),
    op("GatherElements", 11, 2, gather_elements),
    op("GatherND", 11, 2, gather_nd),
    until(10, op("Scatter", 9, 3, scatter_elements)),
    op("ScatterElements", 11, 3, scatter_elements),
    op("ScatterND", 11, 3, scatter_nd),
];

/// Slices of a value along an axis.
pub(crate) fn gather_along(
    b: &mut Builder,
    x: &Imported,
    indices: &Imported,
    at: usize,
) -> Result<Imported> {
    let at = at as i64;
    b.call_on("gather", [x, indices], at, |[x, indices]| movement::gather(x, indices, at))
}

pub(crate) fn gather(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let (x, indices) = (node.input(0)?, node.input(1)?);
    let at = axis(node.int_or("axis", 0)?, x.rank())?;
    check_rank(x.rank() + indices.rank() - 1)?;
    let indices = demand(node, b, "index", indices, &Need::position(x.shape()[at]))?;
    one(gather_along(b, x, &indices, at)?)
}

pub(crate) fn gather_elements(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let (x, indices) = (node.input(0)?, node.input(1)?);
    let at = axis(node.int_or("axis", 0)?, x.rank())?;
    let indices = demand(node, b, "index", indices, &Need::position(x.shape()[at]))?;
    let at = at as i64;
    one(b.call_on("gather_elements", [x, &indices], at, |[x, indices]| {
        movement::gather_elements(x, indices, at)
    })?)
}

pub(crate) fn gather_nd(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let (x, indices) = (node.input(0)?, node.input(1)?);
    let batch = if node.opset >= 12 { node.int_or("batch_dims", 0)? } else { 0 };
    let batch = usize::try_from(batch)
        .ok()
        .filter(|&n| n < x.rank().min(indices.rank()))
        .ok_or_else(|| Error::model(format!("attribute `batch_dims` is {batch}")))?;
    if x.rank() + indices.rank() > 2 * MAX_RANK {
        check_rank(x.rank() + indices.rank())?;
    }
    let indices = demand_tuples(node, b, x, indices, batch)?;
    one(b.call_on("gather_nd", [x, &indices], batch, |[x, indices]| {
        movement::gather_nd(x, indices, batch)
    })?)
}

/// Indices whose last axis holds positions along the axes of `x` from `batch` on, checked.
fn demand_tuples(
    node: &Node,
    b: &mut Builder,
    x: &Imported,
    indices: &Imported,
    batch: usize,
) -> Result<Imported> {
    let depth = indices.shape().last().map_or(Ok(0), |d| d.fixed("the length of an index"))?;
    let shape = x.shape();
    let extents = shape.get(batch..).and_then(|rest| rest.get(..depth));
    match extents {
        Some(extents) if depth > 0 => demand(node, b, "index", indices, &Need::positions(extents)),
        // Nothing is looked up, or the shapes do not fit, which the operator says.
        _ => Ok(indices.clone()),
    }
}

/// How a scatter combines: replacing until opset 15, more since. Files of opset 16 and 17 have minima and maxima,
/// which the specification adds in opset 18, too.
fn scatter_mode(node: &Node) -> Result<Option<Reducer>> {
    if node.opset < 16 {
        return Ok(None);
    }
    match node.text_or("reduction", "none")? {
        "none" => Ok(None),
        "add" => Ok(Some(Reducer::Sum)),
        "mul" => Ok(Some(Reducer::Prod)),
        "min" => Ok(Some(Reducer::Min)),
        "max" => Ok(Some(Reducer::Max)),
        other => Err(node.unsupported_value("reduction", other, "none, add, mul, min, max")),
    }
}

/// The updates must have the type of the data.
fn scatter_inputs<'a>(node: &'a Node) -> Result<[&'a Imported; 3]> {
    let inputs = [node.input(0)?, node.input(1)?, node.input(2)?];
    if inputs[2].dtype() == inputs[0].dtype() {
        Ok(inputs)
    } else {
        Err(Error::model(format!(
            "the data are {}, the updates {}",
            inputs[0].dtype(),
            inputs[2].dtype()
        )))
    }
}

pub(crate) fn scatter_elements(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let [x, indices, updates] = scatter_inputs(node)?;
    let at = axis(node.int_or("axis", 0)?, x.rank())?;
    let [indices, updates] = &b.alike(indices, updates, x.rank());
    if updates.shape() != indices.shape() {
        let error = Error::model(format!(
            "indices of shape {:?} and updates of shape {:?}",
            indices.shape(),
            updates.shape()
        ));
        return Err(unequal_shapes(error, &indices.shape(), &updates.shape()));
    }
    let mode = scatter_mode(node)?;
    let indices = demand(node, b, "index", indices, &Need::position(x.shape()[at]))?;
    let at = at as i64;
    one(b.call_on("scatter_elements", [x, &indices, updates], (at, mode), |[x, indices, _]| {
        movement::scatter_elements(x, indices, at, mode)
    })?)
}

pub(crate) fn scatter_nd(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let [x, indices, updates] = scatter_inputs(node)?;
    let depth = indices.shape().last().map_or(Ok(0), |d| d.fixed("the length of an index"))?;
    let [indices, updates] = &b.alike(indices, updates, indices.rank().saturating_sub(1));
    let (of_indices, of_data) = (indices.shape(), x.shape());
    let outer = of_indices.split_last().map_or(&[][..], |(_, outer)| outer);
    let inner = of_data.get(depth..).unwrap_or_default();
    let needed = [outer, inner].concat();
    if updates.shape() != needed {
        let error = Error::model(format!(
            "updates of shape {:?} do not fit data of shape {:?} and indices of shape {:?}",
            updates.shape(),
            x.shape(),
            indices.shape()
        ));
        return Err(unequal_shapes(error, &updates.shape(), &needed));
    }
    let mode = scatter_mode(node)?;
    let indices = demand_tuples(node, b, x, indices, 0)?;
    one(b.call_on("scatter_nd", [x, &indices, updates], mode, |[x, indices, _]| {
        movement::scatter_nd(x, indices, mode)
    })?)
}

//! Joins: functions that copy each of their inputs, as it is, into a box of their result.
//!
//! Found from stages and loads: each stage copies one whole input, and moves each of its axes by a
//! number. That the boxes are disjoint and cover the result is proven from their corners and extents.

use std::collections::BTreeSet;

use tilewright_analysis::open_stages;
use tilewright_ir::{Buffer, Dim, Error, ExprKind, Result, TensorFunc, dim};

use tilewright_graph::marks::{PARTS, VIEW, items, numbers};
use tilewright_graph::view::is_compact;

/// A function that copies its inputs into disjoint boxes, which together are its result.
pub(crate) struct Join {
    /// The least indices of each box.
    pub(super) corners: Vec<Vec<usize>>,
}

impl Join {
    /// The join that a function in canonical form is.
    pub(crate) fn recognise(func: &TensorFunc) -> Option<Join> {
        if func.attrs.contains_key(VIEW) || func.attrs.contains_key(PARTS) || func.ret.is_some() {
            return None;
        }
        let buffers: Vec<&Buffer> = func.buffers().collect();
        let (whole, parts) = buffers.split_last()?;
        let (allocs, _) = func.root_parts();
        if parts.len() < 2 || !allocs.is_empty() || !buffers.iter().all(|b| is_compact(b)) {
            return None;
        }
        let stages = open_stages(func).filter(|stages| stages.len() == parts.len())?;
        let mut corners = vec![None; parts.len()];
        for stage in &stages {
            let ExprKind::Load(from, at) = stage.value.kind() else { return None };
            let part = parts.iter().position(|b| *b == from)?;
            let shape = dim::of_shape(&from.shape)?;
            let plain = stage.buffer == **whole && !stage.is_reduction() && corners[part].is_none();
            if !plain || stage.loops.len() != shape.len() || at.len() != shape.len() {
                return None;
            }
            let mut corner = Vec::with_capacity(shape.len());
            let mut left: Vec<_> = stage.dims().map(|(v, extent, _)| (v.clone(), extent)).collect();
            for ((read, written), extent) in at.iter().zip(&stage.indices).zip(&shape) {
                // Each axis of the part is walked by a variable of its own, and moved by a number.
                let var = read.as_var()?;
                let known = left.iter().position(|(v, e)| v == var && e == extent)?;
                left.swap_remove(known);
                let moved = Dim::from_expr(&(written.clone() - var.expr()))?;
                corner.push(moved.known()?);
            }
            corners[part] = Some(corner);
        }
        let corners: Vec<Vec<usize>> = corners.into_iter().collect::<Option<_>>()?;
        let shapes: Vec<Vec<Dim>> =
            parts.iter().map(|b| dim::of_shape(&b.shape)).collect::<Option<_>>()?;
        let shape = dim::of_shape(&whole.shape)?;
        let types = parts.iter().all(|b| b.dtype() == whole.dtype());
        (types && is_partition(&shape, &shapes, &corners)).then_some(Join { corners })
    }

    /// The axes along which inputs are beside one another.
    pub(super) fn axes(&self) -> BTreeSet<usize> {
        let corners = self.corners.iter().flat_map(|corner| corner.iter().enumerate());
        corners.filter(|(_, at)| **at != 0).map(|(axis, _)| axis).collect()
    }

    /// The corners that a function says which was placed.
    ///
    /// # Errors
    /// `Malformed` where they are not boxes of the result for its inputs.
    pub(crate) fn placed(func: &TensorFunc) -> Result<Option<Vec<Vec<usize>>>> {
        let Some(attr) = func.attrs.get(PARTS) else { return Ok(None) };
        match items(attr, numbers).and_then(|corners| boxes_of(corners, func)) {
            Some(corners) => Ok(Some(corners)),
            None => Err(Error::malformed(format!(
                "the attribute `{PARTS}` does not say where each input lies in the result"
            ))
            .at(func.span)),
        }
    }
}

fn boxes_of(corners: Vec<Vec<usize>>, func: &TensorFunc) -> Option<Vec<Vec<usize>>> {
    let buffers: Vec<&Buffer> = func.buffers().collect();
    let (whole, parts) = buffers.split_last()?;
    let shapes = parts.iter().map(|b| dim::of_shape(&b.shape)).collect::<Option<Vec<_>>>();
    let shape = dim::of_shape(&whole.shape)?;
    is_partition(&shape, &shapes?, &corners).then_some(corners)
}

/// Whether boxes at corners are disjoint and together are a box of a shape.
fn is_partition(shape: &[Dim], parts: &[Vec<Dim>], corners: &[Vec<usize>]) -> bool {
    let rank = shape.len();
    if parts.len() != corners.len()
        || parts.iter().any(|p| p.len() != rank)
        || corners.iter().any(|c| c.len() != rank)
    {
        return false;
    }
    let sum = parts.iter().fold(Dim::from(0), |sum, p| sum + dim::product(p.iter().copied()));
    parts.iter().zip(corners).all(|(part, corner)| {
        let mut axes = part.iter().zip(corner).zip(shape);
        axes.all(|((extent, at), all)| {
            let ends = (extent.known(), all.known());
            let open = *at == 0 && extent == all;
            open || matches!(ends, (Some(n), Some(all)) if at.checked_add(n).is_some_and(|e| e <= all))
        })
    })
        && (0..parts.len()).all(|a| (0..a).all(|b| are_disjoint(a, b, rank, parts, corners)))
        && sum == dim::product(shape.iter().copied())
}

fn ends_before(
    a: usize,
    b: usize,
    axis: usize,
    parts: &[Vec<Dim>],
    corners: &[Vec<usize>],
) -> bool {
    parts[a][axis].known().is_some_and(|n| corners[a][axis] + n <= corners[b][axis])
}

/// Along some axis one ends before the other begins.
fn are_disjoint(
    a: usize,
    b: usize,
    rank: usize,
    parts: &[Vec<Dim>],
    corners: &[Vec<usize>],
) -> bool {
    (0..rank).any(|axis| {
        ends_before(a, b, axis, parts, corners) || ends_before(b, a, axis, parts, corners)
    })
}

//! Joins: functions that copy each of their inputs, as it is, into a box of their result.
//!
//! Found from stages and loads: each stage copies one whole input, and moves each of its axes by a
//! number, or to where another input ends along that axis, which may be an open size. So corners say
//! the same of the sizes of the function and of those of a call. That the boxes are disjoint and cover
//! the result is proven from their corners and extents.

use std::collections::BTreeSet;

use tilewright_analysis::open_stages;
use tilewright_ir::{Attr, Buffer, Dim, Error, ExprKind, Result, TensorFunc, dim};

use tilewright_graph::marks::{PARTS, VIEW, items, list};
use tilewright_graph::view::is_compact;

/// Where the box of an input begins along an axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Start {
    /// At this index.
    At(usize),
    /// Where the box of this input ends.
    Behind(usize),
}

/// A function that copies its inputs into disjoint boxes, which together are its result.
pub(crate) struct Join {
    /// Where each box begins along each axis.
    starts: Vec<Vec<Start>>,
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
                // Each axis of the part is walked by a variable of its own, and moved by a size.
                let var = read.as_var()?;
                let known = left.iter().position(|(v, e)| v == var && e == extent)?;
                left.swap_remove(known);
                corner.push(Dim::from_expr(&(written.clone() - var.expr()))?);
            }
            corners[part] = Some(corner);
        }
        let corners: Vec<Vec<Dim>> = corners.into_iter().collect::<Option<_>>()?;
        let shapes: Vec<Vec<Dim>> =
            parts.iter().map(|b| dim::of_shape(&b.shape)).collect::<Option<_>>()?;
        let shape = dim::of_shape(&whole.shape)?;
        let types = parts.iter().all(|b| b.dtype() == whole.dtype());
        let starts = starts(&corners, &shapes).filter(|_| types)?;
        is_partition(&shape, &shapes, &corners).then_some(Join { starts })
    }

    /// The axes along which inputs are beside one another.
    pub(super) fn axes(&self) -> BTreeSet<usize> {
        let starts = self.starts.iter().flat_map(|starts| starts.iter().enumerate());
        starts.filter(|(_, at)| **at != Start::At(0)).map(|(axis, _)| axis).collect()
    }

    /// The least indices of each box, for inputs of these shapes.
    pub(super) fn corners(&self, shapes: &[Vec<Dim>]) -> Option<Vec<Vec<Dim>>> {
        corners(&self.starts, shapes)
    }

    /// The join that a function says it is which was placed.
    ///
    /// # Errors
    /// `Malformed` where that does not make boxes of the result of its inputs.
    pub(crate) fn placed(func: &TensorFunc) -> Result<Option<Join>> {
        let Some(attr) = func.attrs.get(PARTS) else { return Ok(None) };
        let starts = items(attr, |of_box| items(of_box, Start::read));
        match starts.filter(|starts| are_boxes(starts, func)) {
            Some(starts) => Ok(Some(Join { starts })),
            None => Err(Error::malformed(format!(
                "the attribute `{PARTS}` does not say where each input lies in the result"
            ))
            .at(func.span)),
        }
    }

    /// The least indices of each box, for arguments of these shapes, which are those of the function.
    ///
    /// # Errors
    /// `Internal` where the inputs are others.
    pub(crate) fn corners_of(&self, shapes: &[Vec<Dim>]) -> Result<Vec<Vec<Dim>>> {
        let corners = self.corners(shapes);
        corners.ok_or_else(|| Error::internal("a join of other inputs than its function has"))
    }
}

impl Start {
    fn read(a: &Attr) -> Option<Start> {
        match a {
            Attr::Int(at) => usize::try_from(*at).ok().map(Start::At),
            Attr::List(before) => match before[..] {
                [Attr::Int(k)] => usize::try_from(k).ok().map(Start::Behind),
                _ => None,
            },
            _ => None,
        }
    }

    fn attr(self) -> Attr {
        match self {
            Start::At(at) => Attr::Int(at as i64),
            Start::Behind(k) => list(&[k]),
        }
    }
}

/// Boxes of these shapes at these corners, as the attribute [`PARTS`].
pub(super) fn parts_attr(corners: &[Vec<Dim>], shapes: &[Vec<Dim>]) -> Option<Attr> {
    let of_box = |starts: Vec<Start>| Attr::List(starts.into_iter().map(Start::attr).collect());
    Some(Attr::List(starts(corners, shapes)?.into_iter().map(of_box).collect()))
}

/// Where boxes of these shapes begin; `None` where one begins at an open place at which none ends.
fn starts(corners: &[Vec<Dim>], shapes: &[Vec<Dim>]) -> Option<Vec<Vec<Start>>> {
    let start = |axis: usize, at: Dim| match at.known() {
        Some(at) => Some(Start::At(at)),
        None => {
            let mut ends = corners.iter().zip(shapes).map(|(c, shape)| c[axis] + shape[axis]);
            ends.position(|end| end == at).map(Start::Behind)
        }
    };
    let of_box =
        |corner: &Vec<Dim>| corner.iter().enumerate().map(|(k, at)| start(k, *at)).collect();
    corners.iter().map(of_box).collect()
}

/// The least indices of boxes of these shapes; `None` where a box begins behind itself.
fn corners(starts: &[Vec<Start>], shapes: &[Vec<Dim>]) -> Option<Vec<Vec<Dim>>> {
    let corner = |k: usize, axis: usize| {
        let (mut k, mut sum) = (k, Dim::from(0));
        for _ in starts {
            match starts.get(k)?.get(axis)? {
                Start::At(at) => return Some(sum + *at),
                Start::Behind(before) => {
                    k = *before;
                    sum = sum + *shapes.get(k)?.get(axis)?;
                }
            }
        }
        None
    };
    let of_box = |k: usize| (0..starts[k].len()).map(|axis| corner(k, axis)).collect();
    (0..starts.len()).map(of_box).collect()
}

fn are_boxes(starts: &[Vec<Start>], func: &TensorFunc) -> bool {
    let buffers: Vec<&Buffer> = func.buffers().collect();
    let Some((whole, parts)) = buffers.split_last() else { return false };
    let shapes = parts.iter().map(|b| dim::of_shape(&b.shape)).collect::<Option<Vec<_>>>();
    let (Some(shape), Some(shapes)) = (dim::of_shape(&whole.shape), shapes) else { return false };
    corners(starts, &shapes).is_some_and(|corners| is_partition(&shape, &shapes, &corners))
}

/// Whether boxes at corners are disjoint and together are a box of a shape.
fn is_partition(shape: &[Dim], parts: &[Vec<Dim>], corners: &[Vec<Dim>]) -> bool {
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
        axes.all(|((extent, at), all)| all.at_least(*at + *extent))
    }) && (0..parts.len()).all(|a| (0..a).all(|b| are_disjoint(a, b, rank, parts, corners)))
        && sum == dim::product(shape.iter().copied())
}

/// Along some axis one ends before the other begins.
fn are_disjoint(a: usize, b: usize, rank: usize, parts: &[Vec<Dim>], corners: &[Vec<Dim>]) -> bool {
    let ends_before =
        |a: usize, b: usize, k: usize| corners[b][k].at_least(corners[a][k] + parts[a][k]);
    (0..rank).any(|axis| ends_before(a, b, axis) || ends_before(b, a, axis))
}

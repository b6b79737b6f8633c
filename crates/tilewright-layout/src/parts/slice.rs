//! Slices: functions whose results are cells of an input, at distances that strides say.
//!
//! Found from stages and loads: a result is one load, and each of its indices is a number plus
//! multiples of the variables of the result's axes. So slices with steps, splits, reads at constant
//! places and permutations of axes are slices, whatever the operator was. With `T` the strides of the
//! input, the axis `i` of the result has the stride `sum_j steps[i][j] * T[j]`, and it begins
//! `sum_j start[j] * T[j]` elements further.

use std::collections::BTreeSet;

use tilewright_analysis::{Stage, open_stages};
use tilewright_ir::index::Linear;
use tilewright_ir::{Attr, Buffer, Dim, Error, Expr, ExprKind, Result, TensorFunc, dim};

use super::strides::{Strides, moving};
use crate::padding::same_extent;
use tilewright_graph::marks::{COPY, PARTS, SLICE, VIEW, items, list, numbers};
use tilewright_graph::stages::{fresh, function};
use tilewright_graph::view::is_compact;

/// How a result lies in an input.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Slice {
    /// The index of its first cell.
    start: Vec<usize>,
    /// For each axis of the result, how far a step of it goes along each axis of the input.
    steps: Vec<Vec<usize>>,
}

/// A function that is a slice for some of its results.
pub(super) struct Sliced {
    /// For each result the position of the input, how it lies there, and the stage that copies it.
    pub(super) results: Vec<(usize, Slice, Stage)>,
}

impl Sliced {
    /// The slices that a function in canonical form is; otherwise the fact that is missed, where it
    /// copies at all.
    pub(super) fn recognise(func: &TensorFunc) -> std::result::Result<Sliced, Option<String>> {
        let marked = [VIEW, PARTS, SLICE, COPY].iter().any(|key| func.attrs.contains_key(*key));
        let stages = open_stages(func).filter(|_| !marked && func.ret.is_none()).ok_or(None)?;
        let buffers: Vec<&Buffer> = func.buffers().collect();
        let inputs = buffers.len().checked_sub(stages.len()).ok_or(None)?;
        let (given, results) = buffers.split_at(inputs);
        let loads = stages.iter().all(|s| matches!(s.value.kind(), ExprKind::Load(..)));
        if !loads || !func.root_parts().0.is_empty() || !buffers.iter().all(|b| is_compact(b)) {
            return Err(None);
        }
        let mut found = Vec::with_capacity(results.len());
        for result in results {
            let mut own = stages.iter().filter(|s| s.buffer == **result);
            let (Some(stage), None) = (own.next(), own.next()) else { return Err(None) };
            let ExprKind::Load(from, _) = stage.value.kind() else { return Err(None) };
            let input = given.iter().position(|b| *b == from).ok_or(None)?;
            if from.dtype() != result.dtype() || stage.is_reduction() {
                return Err(None);
            }
            let slice = Slice::recognise(stage, from)?;
            if slice.is_inside(from, result) != Some(true) {
                let missed =
                    format!("nothing says that `{}` ends inside of `{}`", result.name, from.name);
                return Err(Some(missed));
            }
            found.push((input, slice, stage.clone()));
        }
        Ok(Sliced { results: found })
    }

    /// For each result the axes along which it is a part of a box, apart from the ones before; `None` where it is no
    /// box of its input.
    pub(super) fn axes(&self) -> Vec<Option<BTreeSet<usize>>> {
        let of_result = |(_, slice, stage): &(usize, Slice, Stage)| {
            let ExprKind::Load(from, _) = stage.value.kind() else { return None };
            slice.corner()?;
            let extents = from.shape.iter().zip(&stage.buffer.shape).enumerate();
            Some(extents.filter(|(_, (of, own))| !same_extent(of, own)).map(|e| e.0).collect())
        };
        self.results.iter().map(of_result).collect()
    }

    /// The function for one of the results.
    pub(super) fn alone(&self, func: &TensorFunc, result: usize) -> Option<TensorFunc> {
        let (input, _, stage) = self.results.get(result)?;
        let input = func.buffers().nth(*input)?.clone();
        let params = [input, stage.buffer.clone()];
        Some(function(func, &params, Vec::new(), vec![fresh(stage)]))
    }
}

impl Slice {
    fn recognise(stage: &Stage, from: &Buffer) -> std::result::Result<Slice, Option<String>> {
        let ExprKind::Load(_, at) = stage.value.kind() else { return Err(None) };
        let axes = stage.covers_buffer().ok_or(None)?;
        let mut start = Vec::with_capacity(at.len());
        let mut steps = vec![Vec::with_capacity(at.len()); axes.len()];
        for index in at {
            let no_sum = unmatched_index("is no sum of multiples of axes", from, index);
            let Some(mut rest) = Linear::from_expr(index) else { return Err(no_sum) };
            for (axis, steps) in axes.iter().zip(&mut steps) {
                let step = axis.as_ref().map_or(Some(0), |var| rest.coefficient(var));
                let Some(step) = step else { return Err(no_sum) };
                steps.push(
                    usize::try_from(step).map_err(|_| unmatched_index("goes down", from, index))?,
                );
            }
            // Variables that no axis follows have the one value zero.
            rest.terms.retain(|(atom, _)| {
                !atom.as_var().is_some_and(|v| stage.dims().any(|(own, _, _)| own == v))
            });
            let first = rest
                .as_constant()
                .ok_or_else(|| unmatched_index("begins at an open place", from, index))?;
            start.push(
                usize::try_from(first)
                    .map_err(|_| unmatched_index("begins below zero", from, index))?,
            );
        }
        Ok(Slice { start, steps })
    }

    /// Where the result begins in an input of these strides, and its own strides.
    pub(crate) fn lies(&self, shape: &[Dim], from: &[Dim]) -> (Dim, Strides) {
        let strides: Strides = self.steps.iter().map(|steps| offset_along(steps, from)).collect();
        (offset_along(&self.start, from), moving(shape, &strides))
    }

    /// The corner of the result, where it is a box of the input: its axes are those of the input.
    pub(super) fn corner(&self) -> Option<&[usize]> {
        self.steps
            .iter()
            .enumerate()
            .all(|(i, steps)| {
                steps.len() == self.steps.len()
                    && steps.iter().enumerate().all(|(j, n)| *n == usize::from(i == j))
            })
            .then_some(&self.start)
    }

    /// As the attribute [`SLICE`].
    pub(super) fn attr(&self) -> Attr {
        let steps = self.steps.iter().map(|steps| list(steps)).collect();
        Attr::List(vec![list(&self.start), Attr::List(steps)])
    }

    /// How the result of a function that was placed lies in its input, as the function says.
    ///
    /// # Errors
    /// `Malformed` where that is not inside of the input.
    pub(crate) fn placed(func: &TensorFunc) -> Result<Option<Slice>> {
        let Some(attr) = func.attrs.get(SLICE) else { return Ok(None) };
        let buffers: Vec<&Buffer> = func.buffers().collect();
        let slice = Slice::read(attr).filter(|slice| match buffers[..] {
            [from, to] => slice.is_inside(from, to).unwrap_or(false),
            _ => false,
        });
        match slice {
            Some(slice) => Ok(Some(slice)),
            None => Err(Error::malformed(format!(
                "the attribute `{SLICE}` does not say where the result lies in the input"
            ))
            .at(func.span)),
        }
    }

    fn read(attr: &Attr) -> Option<Slice> {
        let Attr::List(list) = attr else { return None };
        let [start, steps] = &list[..] else { return None };
        Some(Slice { start: numbers(start)?, steps: items(steps, numbers)? })
    }

    fn is_inside(&self, from: &Buffer, to: &Buffer) -> Option<bool> {
        let (shape, own) = (dim::of_shape(&from.shape)?, dim::of_shape(&to.shape)?);
        let axes = self.start.len() == shape.len() && self.steps.len() == own.len();
        if !axes || self.steps.iter().any(|s| s.len() != shape.len()) || from.dtype() != to.dtype()
        {
            return Some(false);
        }
        Some(shape.iter().enumerate().all(|(j, extent)| {
            let steps = self.steps.iter().zip(&own).map(|(s, n)| (*n - 1) * s[j]);
            let last = steps.fold(Dim::from(self.start[j]), |sum, d| sum + d);
            extent.at_least(last + 1)
        }))
    }
}

fn unmatched_index(what: &str, from: &Buffer, index: &Expr) -> Option<String> {
    Some(format!("the index `{index}` of `{}` {what}", from.name))
}

fn offset_along(steps: &[usize], from: &[Dim]) -> Dim {
    steps.iter().zip(from).fold(Dim::from(0), |sum, (n, s)| sum + *s * *n)
}

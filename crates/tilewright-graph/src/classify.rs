//! What a tensor function is to its neighbours, from its accesses, never from its name.
//!
//! A *map* computes each element of its result on its own: one spatial stage over the whole
//! result. A *source* is anything else in canonical form whose last stage, and no other, writes
//! the result: contractions, pooling, softmax. A map may follow a source in one function, or come
//! before it where the source reads nothing twice; other functions stay alone.

use std::sync::Arc;

use tilewright_analysis::cost::Cost;
use tilewright_analysis::index::same_all;
use tilewright_analysis::{Stage, open_stages};
use tilewright_ir::{Attr, Buffer, Dim, Expr, Param, TensorFunc, Var, dim};
use tilewright_transform::inline_spatial;

use crate::marks::{COPY, VIEW};
use crate::view::relabels;

/// What kind of computation a stage is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StageKind {
    /// Every load is at the stored element's own indices, up to broadcasting.
    Elementwise,
    /// Each element once, from elements anywhere: transposition, slicing, padding, gathering.
    Injective,
    /// Combines elements with one operator: `B[i] = op(B[i], value)`.
    Reduction,
    /// Anything else.
    Other,
}

/// How a stage reads an element of a buffer, compared with where it writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// At the same indices, in a buffer of the same shape.
    Same,
    /// At some of the indices, in the same order, or at zero along axes of extent one.
    Broadcast,
    /// Anywhere.
    Other,
}

/// The kind of a stage.
fn stage_kind(stage: &Stage) -> StageKind {
    if stage.is_reduction() {
        let update = stage.reduction().is_some();
        return if update { StageKind::Reduction } else { StageKind::Other };
    }
    if stage.covers_buffer().is_none() || stage.value.effects().impure() {
        return StageKind::Other;
    }
    let loads = stage.loads();
    match loads.iter().all(|(b, at)| access(stage, b, at) != Access::Other) {
        true => StageKind::Elementwise,
        false if loads.iter().any(|(b, _)| *b == stage.buffer) => StageKind::Other,
        false => StageKind::Injective,
    }
}

/// How `stage` reads `buffer[at]`.
pub fn access(stage: &Stage, buffer: &Buffer, at: &[Expr]) -> Access {
    let Some(axes) = stage.covers_buffer() else { return Access::Other };
    let (shape, own) = (dim::of_shape(&buffer.shape), dim::of_shape(&stage.buffer.shape));
    let matches = |index: &Expr, axis: &Option<Var>, extent: Dim| match (index.as_var(), axis) {
        (Some(v), Some(axis)) => v == axis,
        _ => extent == 1 && (index.as_int() == Some(0) || index.as_var().is_some()),
    };
    if let (Some(shape), Some(own)) = (&shape, &own)
        && shape == own
        && at.len() == axes.len()
        && at.iter().zip(&axes).zip(shape).all(|((i, a), e)| matches(i, a, *e))
    {
        return Access::Same;
    }
    // Each index is zero or the next axis that has not been passed over.
    let mut left = axes.iter().flatten();
    let follows = |index: &Expr| match (index.as_var(), index.as_int()) {
        (Some(v), _) => left.any(|axis| axis == v),
        (None, Some(0)) => true,
        _ => false,
    };
    if at.iter().all(follows) { Access::Broadcast } else { Access::Other }
}

/// What fusion knows of a tensor function. Functions that it knows nothing of stay alone.
#[derive(Clone, Debug)]
pub struct Facts {
    /// The function, with its own spatial stages inlined.
    pub func: Arc<TensorFunc>,
    /// What it is to its neighbours.
    pub role: Role,
    /// Number of elements of the result, for decisions about speed.
    pub cells: i128,
    /// Size of the value that the last stage stores, in nodes.
    pub nodes: usize,
}

/// What a function is to its neighbours.
#[derive(Clone, Debug)]
pub enum Role {
    /// One spatial stage that covers the result.
    Map {
        /// How each input is read: one entry a load.
        reads: Vec<Vec<Access>>,
        /// Computes nothing: loads, constants, and selection by index.
        moves: bool,
        /// A load's index has a division or remainder.
        divides: bool,
        /// Chooses lazily, as padding does.
        branches: bool,
        /// The result is the input in row-major order, under another shape.
        view: bool,
    },
    /// A reduction or several stages, of which only the last one writes the result.
    Source {
        /// For each input, the one place that reads it, where each cell is read at most once.
        inlets: Vec<Option<Inlet>>,
    },
}

/// A stage inside of a function that reads an input, no cell more than once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inlet {
    /// Number of cells that are read, for decisions about speed.
    pub cells: i128,
    /// The stage is a reduction.
    pub reduction: bool,
}

impl Inlet {
    fn of(stages: &[Stage], input: &Buffer) -> Option<Inlet> {
        let mut reading = stages.iter().filter(|s| s.loads().iter().any(|l| l.0 == *input));
        let (Some(stage), None) = (reading.next(), reading.next()) else { return None };
        let from_init = stage.init.as_ref().is_some_and(|e| e.effects().loads);
        let mut loads = stage.loads().into_iter().filter(|l| l.0 == *input).map(|l| l.1);
        let first = loads.next()?;
        let cells: i128 = dim::product(stage.loops.iter().map(|l| l.1)).estimate().into();
        let all: i128 = dim::product(dim::of_shape(&input.shape)?).estimate().into();
        let reduction = stage.is_reduction();
        let once = cells <= all && loads.all(|at| same_all(&at, &first));
        let plain = !from_init && (!reduction || stage.reduction().is_some());
        (once && plain).then_some(Inlet { cells, reduction })
    }
}

impl Facts {
    /// The facts of a function; `None` where it is not in canonical form, has several results,
    /// shapes that are not constant, or attributes that a merged function could not keep.
    pub fn of(func: &Arc<TensorFunc>) -> Option<Facts> {
        let known = ["global_symbol", "tir.noalias", VIEW];
        let plain = func.attrs.iter().all(|(k, v)| {
            known.contains(&&**k) && !matches!((&**k, v), ("tir.noalias", Attr::Bool(false)))
        });
        // Open sizes come behind the result.
        let inputs = func.buffers().count().checked_sub(1)?;
        let sizes = func.params.iter().skip(inputs + 1);
        let plain = plain && sizes.into_iter().all(is_size);
        if !plain || func.ret.is_some() || func.attrs.contains_key(COPY) {
            return None;
        }
        let inlined = inline_spatial(func);
        let func = if inlined.body.ptr_eq(&func.body) { func.clone() } else { Arc::new(inlined) };
        let buffers: Vec<&Buffer> = func.buffers().collect();
        let (allocs, _) = func.root_parts();
        if buffers.len() != inputs + 1 || !buffers.iter().copied().chain(allocs).all(is_compact) {
            return None;
        }
        let stages = open_stages(&func)?;
        let (last, before) = stages.split_last()?;
        let (result, inputs) = buffers.split_last()?;
        let own = |s: &Stage| s.buffer == **result || s.loads().iter().any(|l| l.0 == **result);
        let writes_input = stages.iter().any(|s| inputs.contains(&&s.buffer));
        let kind = stage_kind(last);
        if last.buffer != **result
            || before.iter().any(own)
            || writes_input
            || kind == StageKind::Other
            || before.iter().any(|s| s.value.effects().impure())
        {
            return None;
        }
        let cost = Cost::of(&last.value);
        let role = match before.is_empty() && kind != StageKind::Reduction {
            false => {
                Role::Source { inlets: inputs.iter().map(|p| Inlet::of(&stages, p)).collect() }
            }
            true => Role::Map {
                reads: inputs
                    .iter()
                    .map(|p| {
                        let loads = last.loads().into_iter().filter(|l| l.0 == **p);
                        loads.map(|(b, at)| access(last, &b, &at)).collect()
                    })
                    .collect(),
                moves: !cost.computes,
                divides: cost.divides,
                branches: cost.branches,
                view: relabels(&func),
            },
        };
        let cells: i128 = dim::product(dim::of_shape(&result.shape)?).estimate().into();
        let nodes = cost.nodes;
        Some(Facts { func, role, cells, nodes })
    }
}

/// Whether a parameter is an integer.
fn is_size(param: &Param) -> bool {
    matches!(param, Param::Scalar(v) if v.dtype().is_int())
}

/// A shape of constants and open sizes, row-major, memory of its own.
pub(crate) fn is_compact(b: &Buffer) -> bool {
    dim::of_shape(&b.shape).is_some()
        && b.strides.is_empty()
        && b.elem_offset.is_none()
        && b.axis_separators.is_empty()
        && &*b.scope == "global"
}

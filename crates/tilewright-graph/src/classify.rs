//! What a tensor function is to its neighbours, from its accesses, never from its name.
//!
//! A *map* computes each element of its result on its own: one spatial stage over the whole
//! result. A *source* is anything else in canonical form whose last stage, and no other, writes
//! the result: contractions, pooling, softmax. A map may follow a source in one function, or come
//! before it where the source reads nothing twice; other functions stay alone.

use std::sync::Arc;

use tilewright_analysis::cost::Cost;
use tilewright_analysis::{Stage, open_stages};
use tilewright_ir::index::same_all;
use tilewright_ir::{Attr, Buffer, Dim, Expr, Param, TensorFunc, Var, dim};
use tilewright_transform::inline_spatial;

use crate::marks::{COPY, VIEW};
use crate::view::{is_compact, relabels};

/// Whether `stage` reads `buffer[at]` at the indices at which it writes, in a buffer of the same shape.
pub fn reads_own_cell(stage: &Stage, buffer: &Buffer, at: &[Expr]) -> bool {
    let Some(axes) = stage.covers_buffer() else { return false };
    let (shape, own) = (dim::of_shape(&buffer.shape), dim::of_shape(&stage.buffer.shape));
    shape.filter(|shape| own.as_ref() == Some(shape)).is_some_and(|shape| {
        at.len() == axes.len()
            && at.iter().zip(&axes).zip(shape).all(|((i, a), e)| is_own_index(i, a, e))
    })
}

fn is_own_index(index: &Expr, axis: &Option<Var>, extent: Dim) -> bool {
    match (index.as_var(), axis) {
        (Some(v), Some(axis)) => v == axis,
        _ => extent == 1 && (index.as_int() == Some(0) || index.as_var().is_some()),
    }
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
        /// For each load of each input whether it is at the stored element's own indices.
        reads: Vec<Vec<bool>>,
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
        inlets: Vec<Option<Loops>>,
    },
}

/// The loops in which a stage reads cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loops {
    /// Number of iterations, for decisions about speed.
    pub cells: i128,
    /// They are those of a reduction, in which nothing may be computed twice and no branches
    /// may stand.
    pub reduction: bool,
}

impl Loops {
    /// Those of the one stage that reads an input, no cell more than once.
    fn collect(stages: &[Stage], input: &Buffer) -> Option<Loops> {
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
        (once && plain).then_some(Loops { cells, reduction })
    }
}

impl Facts {
    /// The facts of a function; `None` where it is not in canonical form, has several results,
    /// shapes that are not constant, or attributes that a merged function could not keep.
    pub fn analyse(func: &Arc<TensorFunc>) -> Option<Facts> {
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
        let writes_input = stages.iter().any(|s| inputs.contains(&&s.buffer));
        let is_known = if last.is_reduction() {
            last.reduction().is_some()
        } else {
            last.covers_buffer().is_some()
                && !last.value.loads_from(|b| b == *result)
                && !last.value.effects().impure()
        };
        if last.buffer != **result
            || before.iter().any(|s| s.buffer == **result || s.value.loads_from(|b| b == *result))
            || writes_input
            || !is_known
            || before.iter().any(|s| s.value.effects().impure())
        {
            return None;
        }
        let cost = Cost::count(&last.value);
        let role = if before.is_empty() && !last.is_reduction() {
            Role::Map {
                reads: inputs
                    .iter()
                    .map(|p| {
                        let loads = last.loads().into_iter().filter(|l| l.0 == **p);
                        loads.map(|(b, at)| reads_own_cell(last, &b, &at)).collect()
                    })
                    .collect(),
                moves: !cost.computes,
                divides: cost.divides,
                branches: cost.branches,
                view: relabels(&func),
            }
        } else {
            Role::Source { inlets: inputs.iter().map(|p| Loops::collect(&stages, p)).collect() }
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

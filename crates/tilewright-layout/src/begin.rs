//! Where the passes begin: a module that may have been through them before.
//!
//! Late passes tell memory planning how values lie, by attributes of functions ([`marks`](tilewright_graph::marks))
//! and by strides of their parameters. A module that was printed behind them is compiled like any other:
//! layouts, fusion and memory planning decide anew where values may lie, so that what was told is
//! forgotten first. The graph is one of values, so that it means the same without.
//!
//! Functions that are lowered have the strides in their indices: such a module keeps what was told, and
//! its layouts ([`has_fixed_places`]).

use std::sync::Arc;

use tilewright_analysis::footprint::by_indices_alone;
use tilewright_ir::{Function, Module, TensorFunc};

use crate::parts::without_strides;
use tilewright_graph::marks::{COPY, PARTS, SLICE, VIEW};
use tilewright_graph::normal::name_outputs;

/// What memory planning is told.
const MARKS: [&str; 4] = [VIEW, PARTS, SLICE, COPY];

/// A module as the first step takes it: with names for its outputs, and nothing told to memory planning.
pub fn begin(module: &Module) -> Module {
    forget_places(&name_outputs(module))
}

/// Whether memory planning was told of lowered functions how values lie, which can no longer change.
pub fn has_fixed_places(module: &Module) -> bool {
    let has_places = has_places(module);
    module.tensors().any(|(_, f)| {
        (is_marked(f, &MARKS) || has_places && f.buffers().any(|b| !b.strides.is_empty()))
            && f.buffers().any(|b| !by_indices_alone(&f.body, b))
    })
}

/// Whether values lie in others.
fn has_places(module: &Module) -> bool {
    module.tensors().any(|(_, f)| is_marked(f, &[PARTS, SLICE]))
}

fn forget_places(module: &Module) -> Module {
    if has_fixed_places(module) {
        return module.clone();
    }
    let has_places = has_places(module);
    let mut new = module.clone();
    for function in new.functions.values_mut() {
        let Function::Tensor(f) = function else { continue };
        if has_places && let Some(compact) = without_strides(f) {
            *f = Arc::new(compact);
        }
        if is_marked(f, &MARKS) {
            let f = Arc::make_mut(f);
            MARKS.iter().for_each(|mark| drop(f.attrs.remove(*mark)));
        }
    }
    new
}

fn is_marked(func: &TensorFunc, marks: &[&str]) -> bool {
    marks.iter().any(|mark| func.attrs.contains_key(*mark))
}

//! Where the passes begin: a module that may have been through them before.
//!
//! Late passes tell memory planning how values lie, by attributes of functions ([`marks`](tilewright_graph::marks))
//! and by strides of their parameters. A module that was printed behind them is compiled like any other:
//! layouts, fusion and memory planning decide anew where values may lie, so that what was told is
//! forgotten first. The graph is one of values, so that it means the same without.
//!
//! Functions that are lowered have the strides in their indices, and keep what was told.

use std::sync::Arc;

use tilewright_analysis::footprint::by_indices_alone;
use tilewright_ir::{Function, Module, TensorFunc};

use crate::parts::without_strides;
use tilewright_graph::marks::{COPY, PARTS, SLICE, VIEW};
use tilewright_graph::normal::name_outputs;

/// A module as the first step takes it: with names for its outputs, and nothing told to memory planning.
pub fn begin(module: &Module) -> Module {
    forget_places(&name_outputs(module))
}

fn forget_places(module: &Module) -> Module {
    let all = [VIEW, PARTS, SLICE, COPY];
    let has_places = module.tensors().any(|(_, f)| is_marked(f, &[PARTS, SLICE]));
    let is_told = |f: &TensorFunc| {
        is_marked(f, &all) || has_places && f.buffers().any(|b| !b.strides.is_empty())
    };
    let is_fixed = |f: &TensorFunc| f.buffers().any(|b| !by_indices_alone(&f.body, b));
    if module.tensors().any(|(_, f)| is_told(f) && is_fixed(f)) {
        return module.clone();
    }
    let mut new = module.clone();
    for function in new.functions.values_mut() {
        let Function::Tensor(f) = function else { continue };
        if has_places && let Some(compact) = without_strides(f) {
            *f = Arc::new(compact);
        }
        if is_marked(f, &all) {
            let f = Arc::make_mut(f);
            all.iter().for_each(|mark| drop(f.attrs.remove(*mark)));
        }
    }
    new
}

fn is_marked(func: &TensorFunc, marks: &[&str]) -> bool {
    marks.iter().any(|mark| func.attrs.contains_key(*mark))
}

//! Graph functions with control flow, cut into straight-line pieces.
//!
//! [`cut`] takes a graph function apart: what lies between branches, loops, casts and operators on
//! lists becomes graph functions without any of these, which go through all passes as others do, and a
//! [`Program`] says in which order they run, on which values. Calls of graph functions are expanded,
//! with the sizes of the caller in the place of the callee's.
//!
//! A piece takes as much as it can: work waits for nothing but its operands, so there are as many
//! pieces in a row as the longest chain of control flow and work has. A piece takes the sizes that no
//! input of it has as an extent in a parameter of the type `R.Shape`.
//!
//! * `resolve`: a body as a list of nodes over plain variables.
//! * `emit`: nodes to pieces and operations.

mod emit;
mod resolve;

use std::sync::Arc;

use tilewright_analysis::stage::open_stages;
pub use tilewright_ir::control::{PIECE, TAKES_EMPTY};
use tilewright_ir::plan::program::Program;
use tilewright_ir::{Attr, Function, GraphExpr, Module, Result};

/// A module whose graph functions are pieces, and the program that runs them.
#[derive(Clone, Debug)]
pub struct Cut {
    /// The pieces, and the tensor functions of the module.
    pub module: Module,
    /// What runs them.
    pub program: Program,
}

/// Whether running a function of a module takes a program over pieces: whether it, or a graph function
/// that it calls, has control flow.
pub fn has_control(module: &Module, entry: &str) -> bool {
    let (mut open, mut seen): (Vec<Arc<str>>, Vec<Arc<str>>) = (vec![entry.into()], Vec::new());
    while let Some(name) = open.pop() {
        let Some(Function::Graph(f)) = module.functions.get(&name) else { continue };
        if f.has_control() {
            return true;
        }
        if seen.contains(&name) {
            continue;
        }
        seen.push(name);
        f.for_each_expr(&mut |e| {
            if let GraphExpr::Call { op, .. } = e {
                open.extend(op.strip_prefix("cls.").map(Arc::from));
            }
        });
    }
    false
}

/// The pieces of a graph function of a module.
///
/// # Errors
/// * `Unsupported` for inputs and outputs that are no tensors, operators without a tensor function,
///   and calls that are nested too deeply.
/// * `Malformed` where values are not what they are used as.
/// * `Input` where a size is not known.
pub fn cut(module: &Module, entry: &str) -> Result<Cut> {
    let func = module.graph(entry)?;
    let located = || {
        let (part, params) = resolve::resolve(module, entry, func)?;
        emit::emit(module, entry, func, &params, part)
    };
    located().map_err(|e| match &module.source {
        Some(source) => e.in_source(source),
        None => e,
    })
}

/// Whether a module was made by [`cut`].
pub fn is_cut(module: &Module) -> bool {
    module.graphs().any(|(_, f)| f.attrs.contains_key(PIECE))
}

/// The module with [`TAKES_EMPTY`] at every tensor function that computes each cell of its results by
/// itself: without elements, the loops do nothing. What reduces has nothing to begin with then.
pub fn mark_empty(module: &Module) -> Module {
    let mut out = module.clone();
    for function in out.functions.values_mut() {
        if let Function::Tensor(f) = function
            && !f.attrs.contains_key(TAKES_EMPTY)
            && open_stages(f).is_some_and(|all| all.iter().all(|s| !s.is_reduction()))
        {
            Arc::make_mut(f).attrs.insert(TAKES_EMPTY.into(), Attr::Int(1));
        }
    }
    out
}

//! Graph functions with control flow, cut into straight-line pieces.
//!
//! [`cut`] takes a graph function apart: what lies between branches, loops, casts and operators on
//! lists becomes graph functions without any of these, which go through all passes as others do. What
//! is left of the function calls these *pieces*: it is a graph function as others are, which can be
//! printed, read and interpreted, and from which memory planning derives in which order the pieces run, on
//! which values. Calls of graph functions are expanded, with the sizes of the caller in the place of
//! the callee's.
//!
//! A piece takes as much as it can: work waits for nothing but its operands, so there are as many
//! pieces in a row as the longest chain of control flow and work has. A piece takes the sizes that no
//! input of it has as an extent in a parameter of the type `R.Shape`.
//!
//! * [`resolve`]: a body as a list of nodes over plain variables.
//! * `pieces`: nodes with pieces in the place of calls.
//! * `write`: nodes as a body again.
//! * `empty`: functions that are right without elements.
//! * [`dataflow`]: a graph function without control flow, for what compares values.

pub mod dataflow;
mod empty;
mod pieces;
pub mod resolve;
mod write;

use std::sync::Arc;

pub use empty::{initialise_empty, mark_empty, mark_empty_operands};
pub use tilewright_ir::control::{NEEDS_ELEMENTS, PIECE, TAKES_EMPTY};
use tilewright_ir::dim::open_size;
use tilewright_ir::{Attr, Function, GraphFunc, Module, Result};

use crate::functions::{each_tensor, located};

/// A graph function that was cut.
#[derive(Clone, Debug)]
pub struct Cut {
    /// The pieces, and the tensor functions of the module.
    pub module: Module,
    /// The name of the function.
    pub name: Arc<str>,
    /// What is left of it.
    pub entry: GraphFunc,
}

impl Cut {
    /// A module of the pieces, whatever passes made of them, with the function that calls them.
    pub fn join(mut module: Module, name: Arc<str>, entry: GraphFunc) -> Module {
        module.insert(name, entry);
        module
    }
}

/// The pieces of a graph function of a module, and what is left of it.
///
/// # Errors
/// * `Unsupported` for operators without a tensor function, and calls that are nested too deeply.
/// * `Malformed` where values are not what they are used as.
/// * `Input` where a size is not known.
pub fn cut(module: &Module, entry: &str) -> Result<Cut> {
    let func = module.graph(entry)?;
    located(module, try_cut(module, entry, func))
}

fn try_cut(module: &Module, entry: &str, func: &Arc<GraphFunc>) -> Result<Cut> {
    let (resolved, params) = resolve::resolve(module, entry, func)?;
    let mut pieces = module.clone();
    pieces.functions.retain(|_, f| match f {
        Function::Tensor(_) => true,
        Function::Graph(f) => f.attrs.contains_key(PIECE),
    });
    let resolved = pieces::cut(&mut pieces, entry, &params, resolved)?;
    let entry_func = write::write(func, params, resolved);
    Ok(Cut { module: pieces, name: entry.into(), entry: entry_func })
}

/// Whether a module was made by [`cut`].
pub fn is_cut(module: &Module) -> bool {
    module.graphs().any(|(_, f)| f.attrs.contains_key(PIECE))
}

/// The module with [`NEEDS_ELEMENTS`] at every tensor function of open sizes without [`TAKES_EMPTY`]: a run
/// that would give it an argument without elements ends before.
pub fn mark_needs_elements(module: &Module) -> Module {
    each_tensor(module, |_, f| {
        let open = f.sizes();
        let of_graph = !open.is_empty() && open.iter().all(|v| open_size(v).is_some());
        if of_graph && !f.takes_empty() {
            Arc::make_mut(f).attrs.insert(NEEDS_ELEMENTS.into(), Attr::Int(1));
        }
    })
}

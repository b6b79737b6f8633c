//! What a graph function becomes once memory is assigned: kernel calls over fixed places.
//!
//! The planner makes it, code generation turns it into the entry point of a compiled module, and
//! the runtime allocates what it says. All sizes are constants by then.

use std::collections::HashSet;
use std::sync::Arc;

use crate::dtype::DType;
use crate::tensor::Tensor;

/// An input or output of a compiled module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// Name, as the user knows it.
    pub name: Arc<str>,
    /// Element type.
    pub dtype: DType,
    /// Extents.
    pub shape: Vec<usize>,
}

/// Where an argument of a kernel lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Slot {
    /// The whole of an input, by position.
    Input(usize),
    /// The whole of an output, by position.
    Output(usize),
    /// A constant, by position.
    Constant(usize),
    /// In the arena, from this byte on (a multiple of 64).
    Arena(usize),
}

/// One call of a kernel.
#[derive(Clone, Debug)]
pub struct Step {
    /// Name of the tensor function.
    pub func: Arc<str>,
    /// One slot a tensor parameter, in order, scratch parameters included.
    pub args: Vec<Slot>,
}

/// Steps in order, and the memory that they need.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// Inputs in order.
    pub inputs: Vec<Port>,
    /// Outputs in order.
    pub outputs: Vec<Port>,
    /// Constants, each 64-byte aligned when the plan runs.
    pub constants: Vec<Tensor>,
    /// Kernel calls in order.
    pub steps: Vec<Step>,
    /// Size of the arena in bytes.
    pub arena_bytes: usize,
}

impl Plan {
    /// The functions that it calls, each once, in the order of their first calls.
    pub fn functions(&self) -> Vec<Arc<str>> {
        let mut seen = HashSet::new();
        let names = self.steps.iter().map(|step| step.func.clone());
        names.filter(|name| seen.insert(name.clone())).collect()
    }
}

//! What a graph function becomes once memory is assigned: kernel calls over fixed places.
//!
//! The planner makes an [`MemoryPlan`], in which sizes may be open; for numbers it becomes a [`SizedPlan`].
//! Code generation turns that into the entry point of a compiled module, and the runtime allocates
//! what it says. A graph function with control flow becomes several, and a [`program`] that runs
//! them.

pub mod arena;
mod open;
pub mod program;
pub mod stored;

use std::collections::HashSet;
use std::sync::Arc;

use tilewright_ir::dtype::DType;
use tilewright_ir::tensor::Tensor;

pub use open::{ArgSource, MemoryPlan, OpenPort, OpenStep, Reason, Value, Within};
pub use stored::Stored;

/// An input or output of a compiled module.
#[derive(Clone, Debug, PartialEq)]
pub struct Port<S = usize> {
    /// Name, as the user knows it.
    pub name: Arc<str>,
    /// Element type.
    pub dtype: DType,
    /// Extents.
    pub shape: Vec<S>,
    /// How the tensor of the model lies in it; `None` where it is that tensor.
    pub stored: Option<Arc<Stored>>,
}

/// Where an argument of a kernel lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Slot {
    /// The whole of an input, by position.
    Input(usize),
    /// The whole of an output, by position.
    Output(usize),
    /// From this byte of an input on.
    InputAt(usize, usize),
    /// From this byte of an output on.
    OutputAt(usize, usize),
    /// A constant, by position.
    Constant(usize),
    /// In the arena, from this byte on: a multiple of 64, but for a part of another value.
    Arena(usize),
    /// No memory: a size that the kernel takes as a number.
    Number(i64),
}

/// One call of a kernel.
#[derive(Clone, Debug)]
pub struct Step {
    /// Name of the tensor function.
    pub func: Arc<str>,
    /// One slot a parameter, in order, scratch parameters included; then one for each open size that
    /// shapes of parameters say ([`TensorFunc::shape_vars`](tilewright_ir::TensorFunc::shape_vars)).
    pub args: Vec<Slot>,
    /// Whether all of its results are empty, so that it is not called.
    pub idle: bool,
    /// An input and an output: where these are the same memory, it is not called.
    pub unless_shared: Option<Shared>,
}

/// An input and an output that may be the same memory, by position: the output is the input with some cells
/// changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shared {
    /// The input.
    pub input: usize,
    /// The output.
    pub output: usize,
}

/// Steps in order, and the memory that they need.
#[derive(Clone, Debug, Default)]
pub struct SizedPlan {
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

impl SizedPlan {
    /// The functions that it calls, each once, in the order of their first calls.
    pub fn functions(&self) -> Vec<Arc<str>> {
        each_once(self.steps.iter().map(|step| &step.func))
    }
}

fn each_once<'a>(names: impl Iterator<Item = &'a Arc<str>>) -> Vec<Arc<str>> {
    let mut seen = HashSet::new();
    names.filter(|name| seen.insert(*name)).cloned().collect()
}

//! What runs are given and what they give.

use std::sync::Arc;
use tilewright_ir::hash::HashMap;

use tilewright_ir::scalar::Scalar;
use tilewright_ir::tensor::index_of;
use tilewright_ir::{Error, Result, Tensor};

use crate::alias::Mode;
use crate::machine::Fill;

/// A function outside of the program, on scalars.
pub type Extern = Arc<dyn Fn(&[Scalar]) -> Result<Scalar> + Send + Sync>;

/// Functions that `T.call_extern` finds, by name.
pub type Externs = HashMap<Arc<str>, Extern>;

/// What reading a cell that was never written does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Uninitialised {
    /// It is an error.
    #[default]
    Refuse,
    /// It gives an arbitrary value, as if `T.undef()` had been stored.
    Undef,
}

/// How to run.
#[derive(Clone)]
pub struct RunOptions {
    /// Cells that were never written.
    pub uninitialised: Uninitialised,
    /// What arbitrary values are.
    pub fill: Fill,
    /// Number of stores and loop iterations after which a function stops with an error.
    pub steps: Option<u64>,
    /// Bytes that the memories of one function may take together.
    pub memory: usize,
    /// Functions outside of the program.
    pub externs: Externs,
    /// Whether loop nests of a common form run in batches: the same results, much faster.
    pub batches: bool,
}

impl Default for RunOptions {
    /// Uninitialised reads are refused, arbitrary values are zero, any number of steps, 16 GiB.
    fn default() -> Self {
        RunOptions {
            uninitialised: Uninitialised::Refuse,
            fill: Fill::Zero,
            steps: None,
            memory: usize::try_from(16u64 << 30).unwrap_or(usize::MAX),
            externs: Externs::default(),
            batches: true,
        }
    }
}

impl RunOptions {
    pub(crate) fn lenient(&self) -> bool {
        self.uninitialised == Uninitialised::Undef
    }
}

/// Whether an element has a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// It has.
    Value,
    /// An arbitrary one: any other would do as well.
    Undef,
    /// It was never written.
    Unwritten,
}

/// An argument.
#[derive(Clone, Debug)]
pub enum Arg {
    /// A tensor of which every element has a value.
    Tensor(Tensor),
    /// A tensor with the state of each element, in row-major order.
    Partial(Tensor, Vec<State>),
    /// An output that was never written; its shape, where the other arguments do not give it.
    Fresh(Option<Vec<usize>>),
    Scalar(Scalar),
}

impl Arg {
    /// The shape of a tensor, where it is known.
    pub(crate) fn shape(&self) -> Option<&[usize]> {
        match self {
            Arg::Tensor(t) | Arg::Partial(t, _) => Some(t.shape()),
            Arg::Fresh(shape) => shape.as_deref(),
            Arg::Scalar(_) => None,
        }
    }

    /// How a tensor argument comes; `None` for scalars.
    pub(crate) fn mode(&self) -> Option<Mode> {
        match self {
            Arg::Tensor(_) => Some(Mode::Given),
            Arg::Partial(..) => Some(Mode::Partial),
            Arg::Fresh(_) => Some(Mode::Fresh),
            Arg::Scalar(_) => None,
        }
    }
}

/// A tensor parameter after a run.
#[derive(Clone, Debug)]
pub struct Output {
    /// Position of the parameter.
    pub param: usize,
    pub name: Arc<str>,
    /// The elements. Arbitrary ones are as [`RunOptions::fill`] says, unwritten ones zero.
    pub tensor: Tensor,
    /// State of each element in row-major order; `None` if all have a value.
    pub states: Option<Vec<State>>,
}

impl Output {
    /// The first element without a value, by its indices, with its state.
    pub fn first_missing(&self) -> Option<(Vec<usize>, State)> {
        let states = self.states.as_ref()?;
        let (at, state) = states.iter().enumerate().find(|(_, s)| **s != State::Value)?;
        Some((index_of(at, self.tensor.shape()), *state))
    }

    /// The tensor, if every element was written; arbitrary ones count as written.
    pub fn into_tensor(self) -> Result<Tensor> {
        if self.states.as_ref().is_some_and(|s| s.contains(&State::Unwritten)) {
            let states = self.states.map(|s| {
                s.into_iter()
                    .map(|s| if s == State::Unwritten { s } else { State::Value })
                    .collect()
            });
            let found = Output { states, ..self };
            let index = found.first_missing().map_or_else(Vec::new, |(i, _)| i);
            let name = &found.name;
            return Err(Error::execution(format!("output `{name}` is not written at {index:?}")));
        }
        Ok(self.tensor)
    }
}

/// What a run of a tensor function gives.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The tensor parameters that the function writes, or that did not come as full tensors.
    pub outputs: Vec<Output>,
    /// The result of a function that returns a scalar.
    pub ret: Option<Scalar>,
    /// Stores and loop iterations.
    pub steps: u64,
}

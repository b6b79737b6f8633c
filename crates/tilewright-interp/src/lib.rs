//! The reference interpreter: exact semantics, and a report of everything illegal.
//!
//! It is the oracle that transformations and generated code are compared with. A function is
//! compiled once into closures ([`Program`]) and then run on tensors.
//!
//! ```
//! use tilewright_interp::run_module;
//! use tilewright_ir::{Buffer, DType, Expr, Module, Param, Stmt, Tensor, TensorFunc, Var};
//! let (a, b) = (
//!     Buffer::with_extents("A", &[3], DType::F32),
//!     Buffer::with_extents("B", &[3], DType::F32),
//! );
//! let i = Var::index("i");
//! let body = Stmt::store(&b, vec![i.expr()], a.load([i.expr()]) + 1.0);
//! let body = Stmt::serial(&i, Expr::i32(3), body);
//! let mut module = Module::new();
//! module.insert("main", TensorFunc::new(vec![Param::tensor(&a), Param::tensor(&b)], body));
//! let a = Tensor::from_slice(&[3], &[1.0f32, 2.0, 3.0])?;
//! let outputs = run_module(&module, "main", &[a])?;
//! assert_eq!(outputs[0].as_slice(), Some(&[2.0f32, 3.0, 4.0][..]));
//! # Ok::<(), tilewright_ir::Error>(())
//! ```
//!
//! # Semantics
//!
//! * **Arithmetic** follows the type of the operands. Integers wrap. Each operation on
//!   `float32` and `float64` is that of IEEE 754; on `float16` and `bfloat16` it is the exact
//!   result rounded once. Nothing is contracted or reordered. `min` and `max` give `NaN` if
//!   either side is, and order `-0.0` below `0.0`.
//! * **Functions** (`exp`, `erf`, `pow`, ...) are computed in `float64` by the `libm` crate, the
//!   same on every machine, and rounded once to the type.
//! * **Conversions** round once, ties to even. Float to integer goes towards zero; `NaN` gives 0
//!   and what is out of range gives the nearest value of the type. Between integers the low bits
//!   are kept. To `bool` is "not zero".
//! * **Illegal**, with [`Error::Execution`]: reading what was never written other than to copy it,
//!   indices out of range of the axis, division by an integer zero, a shift by the width of the type or more,
//!   an integer to a negative power, an assumption or assertion that does not hold, a block's
//!   iteration variable outside of its domain, and a decision (index, bound, condition, divisor
//!   of integers) on an arbitrary value.
//! * **Arbitrary values** (`T.undef()`) travel: a result is arbitrary if an operand is, unless
//!   every value gives the same (an integer zero times anything, false and anything, true or
//!   anything, the side of a selection that is not taken). A float zero times an arbitrary value
//!   is arbitrary, because that may be `NaN`. Storing one marks the cell, and
//!   `T.assume(A[i] == T.undef())` permits reading a cell that was never written. What marked
//!   cells hold is up to [`Fill`].
//! * **Copies**: a store whose value is a load, or a choice of loads by `T.if_then_else` or
//!   `T.Select`, may read a cell that was never written. The cell that it writes is one then.
//! * **Memory** of an allocation is new each time its scope is entered.
//! * **Loops** of every kind run their iterations one after the other, vectors lane by lane; a
//!   vector is stored after all its lanes are computed.
//! * **Promises**: where iterations of a parallel, vectorised or thread-bound loop depend on one
//!   another, the run ends with both ([`Error::Execution`]): one of them writes another value to a
//!   cell that the other one reads or writes. In a vectorised loop, updates of a cell by one operator
//!   that commutes do not count.
//! * A block's **init** runs where every reduction variable has the first value of its domain.
//!
//! # Calls
//!
//! Parameters that are written are outputs. [`run_module`] takes the inputs of a graph function,
//! or the parameters of a tensor function that are not written, and returns the outputs. A
//! tensor function that updates a parameter takes all its parameters as inputs.

use std::collections::HashMap;
use std::sync::Arc;

use tilewright_ir::{Error, Result, Tensor, TensorFunc};

mod alias;
mod batch;
mod code;
mod compile;
mod expr;
mod graph;
mod machine;
mod nest;
mod place;
mod program;
mod race;
pub mod symbolic;

pub use alias::Mode;
pub use graph::{Interpreter, run_module};
pub use machine::Fill;
pub use program::Program;
pub use tilewright_ir::scalar::{self, Scalar};

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
            memory: 16 << 30,
            externs: Externs::new(),
            batches: true,
        }
    }
}

impl RunOptions {
    fn lenient(&self) -> bool {
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
    /// A scalar.
    Scalar(Scalar),
}

impl Arg {
    /// The shape of a tensor, where it is known.
    fn shape(&self) -> Option<&[usize]> {
        match self {
            Arg::Tensor(t) | Arg::Partial(t, _) => Some(t.shape()),
            Arg::Fresh(shape) => shape.as_deref(),
            Arg::Scalar(_) => None,
        }
    }

    /// How a tensor argument comes; `None` for scalars.
    fn mode(&self) -> Option<Mode> {
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
    /// Its name.
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
        let mut rest = at;
        let mut index: Vec<usize> = Vec::new();
        for &extent in self.tensor.shape().iter().rev() {
            index.push(rest % extent.max(1));
            rest /= extent.max(1);
        }
        index.reverse();
        Some((index, *state))
    }

    /// The tensor, if every element was written; arbitrary ones count as written.
    pub fn into_tensor(self) -> Result<Tensor> {
        let unwritten = |s: &State| *s == State::Unwritten;
        if self.states.as_ref().is_some_and(|s| s.iter().any(unwritten)) {
            let states = self.states.map(|s| {
                let keep = |s: State| if unwritten(&s) { s } else { State::Value };
                s.into_iter().map(keep).collect()
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

/// Runs a tensor function on one argument a parameter.
///
/// Fails with [`Error::Malformed`] where the function breaks a rule of the IR,
/// [`Error::Unsupported`] where it does something that the interpreter does not know,
/// [`Error::Input`] where the arguments do not fit, and [`Error::Execution`] where it does
/// something illegal.
pub fn run_func(func: &TensorFunc, args: &[Arg], options: &RunOptions) -> Result<Outcome> {
    let name = func.attr_str("global_symbol").unwrap_or("main");
    let modes: Vec<Mode> = args.iter().filter_map(Arg::mode).collect();
    Program::new(name, func, &modes, options)?.run(args)
}

/// Which parameters a tensor function writes, in order; scalars never are.
pub fn written_params(func: &TensorFunc) -> Vec<bool> {
    let memories = alias::Memories::new(func, &[], false);
    let written = |p: &tilewright_ir::Param| {
        let info = p.buffer().and_then(|b| memories.info.get(memories.number(b)));
        info.is_some_and(|i| i.written)
    };
    func.params.iter().map(written).collect()
}

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
//!
//! [`Error::Execution`]: tilewright_ir::Error::Execution

use tilewright_ir::{Result, TensorFunc};

mod alias;
mod batch;
mod code;
mod compile;
mod expr;
pub mod graph;
pub mod machine;
mod nest;
mod place;
mod program;
pub mod race;
mod run;

pub use alias::Mode;
pub use graph::{Interpreter, run_module};
pub use machine::Fill;
pub use program::Program;
pub use run::{Arg, Extern, Externs, Outcome, Output, RunOptions, State, Uninitialised};
pub use tilewright_ir::scalar::{self, Scalar};

/// Runs a tensor function on one argument a parameter.
///
/// Fails with [`Error::Malformed`] where the function breaks a rule of the IR,
/// [`Error::Unsupported`] where it does something that the interpreter does not know,
/// [`Error::Input`] where the arguments do not fit, and [`Error::Execution`] where it does
/// something illegal.
///
/// [`Error::Malformed`]: tilewright_ir::Error::Malformed
/// [`Error::Unsupported`]: tilewright_ir::Error::Unsupported
/// [`Error::Input`]: tilewright_ir::Error::Input
/// [`Error::Execution`]: tilewright_ir::Error::Execution
pub fn run_func(func: &TensorFunc, args: &[Arg], options: &RunOptions) -> Result<Outcome> {
    let name = func.attr_str("global_symbol").unwrap_or("main");
    let modes: Vec<Mode> = args.iter().filter_map(Arg::mode).collect();
    Program::new(name, func, &modes, options)?.run(args)
}

/// Which parameters a tensor function writes, in order; scalars never are.
pub fn written_params(func: &TensorFunc) -> Vec<bool> {
    let memories = alias::Memories::new(func, &[], false);
    func.params
        .iter()
        .map(|p| {
            let info = p.buffer().and_then(|b| memories.info.get(memories.number(b)));
            info.is_some_and(|i| i.written)
        })
        .collect()
}

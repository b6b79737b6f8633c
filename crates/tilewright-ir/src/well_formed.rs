//! The rules that every function and module keeps, and the check that names the node which
//! breaks one.
//!
//! Expressions
//! * A variable is in scope where it is used, and defined once. A `let` inside an expression may
//!   stand several times, as long as its variable is not in scope already. Variables that occur
//!   alone as an extent, stride or offset of a parameter (or of a view's strides and offset) are
//!   defined there.
//! * A constant fits its type and has one lane; text is an argument of a call.
//! * The two operands of an operator have one type. Arithmetic takes numbers, division of
//!   integers says its rounding, logic takes `bool`; conditions are `bool` with one lane or with
//!   as many as the values.
//! * Intrinsics have their number of arguments, of the kinds that [`Intrin::operands`](crate::Intrin::operands) lists.
//! * `Ramp` and `Broadcast` take scalars and make at least two lanes.
//! * A load names a buffer in scope with one integer index an axis, of which only the last may
//!   have lanes; its type has the buffer's lanes times those of the index.
//! * `T.undef()` is never part of an index, a loop bound or a shape.
//! * It is nested at most [`EXPR_DEPTH`] deep, so that recursion over it ends before the stack.
//!
//! Statements
//! * A stored value has the type that a load at the same place has.
//! * Loop bounds, block bindings and iteration domains have the type of their variable, an
//!   integer; conditions, predicates, assumptions and assertions are one `bool`.
//! * A block has a name, one binding an iteration variable, and regions of as many ranges as
//!   the buffer has axes. A view has the type of its source and the extents of its region, of
//!   which leading ones may be left out where they are one.
//! * Sequences have at least two statements and hold no sequence; statements are nested at most
//!   [`STMT_DEPTH`] deep.
//! * A constant is compact, of the type and the shape of its tensor, and no store goes there.
//! * Shapes, strides and offsets are integers, known extents are not negative, strides are none
//!   or one an axis, axis separators increase from 0 to the rank at most.
//! * Scratch parameters (see [`SCRATCH`](crate::func::SCRATCH)) are tensors.
//!
//! Graph functions
//! * A variable is defined once and before its use; what is bound in a dataflow region is known
//!   after it only if it is one of its outputs.
//! * A call passes what the callee takes: tensors of the right type, rank and, as far as both are
//!   known, extents; `call_tir` names a tensor function, whose parameters are the arguments, the
//!   outputs and the scalars in this order, and which writes no argument. Scratch memory of the
//!   callee is not passed.
//! * A variable's type is that of its value. Graph functions do not call themselves.
//! * Branches and loops are values of bindings outside of dataflow regions. Their bodies see what is
//!   known around them; what they define is not known after them. A condition is one `bool`, a number
//!   of iterations one `int64`, neither with axes. Branches give values of the same kinds, element
//!   types and ranks; extents may differ where the bound variable's type has a variable of its own.
//!   A loop's parameters are the iteration's number, then the carried values; its body gives a tuple:
//!   whether to go on, carried values that fit the parameters, tensors that are stacked.
//! * The types of what branches, loops and casts (`R.match_cast`) give may bring variables of sizes.
//!   Operators on lists, optionals and shapes get as many arguments as they take.

use crate::error::Result;
use crate::func::TensorFunc;
use crate::graph::GraphFunc;
use crate::module::{Function, Module};

mod graph;
mod tensor;

pub use tensor::{EXPR_DEPTH, STMT_DEPTH};

/// Checks every function of a module. Fails with [`Error::Malformed`] at the first node that
/// breaks a rule.
///
/// [`Error::Malformed`]: crate::Error::Malformed
pub fn check_module(module: &Module) -> Result<()> {
    check_functions(module, false)
}

/// [`check_module`], except that tensor functions may use integers and `bool`s that nothing
/// defines: they stand for any value. Such a function can be transformed, but not run.
pub fn check_open_module(module: &Module) -> Result<()> {
    check_functions(module, true)
}

fn check_functions(module: &Module, open: bool) -> Result<()> {
    check_all(module, open).map_err(|e| match &module.source {
        Some(source) => e.in_source(source),
        None => e,
    })
}

fn check_all(module: &Module, open: bool) -> Result<(), crate::Error> {
    for (name, f) in &module.functions {
        match f {
            Function::Tensor(f) => check_func(name, f, open)?,
            Function::Graph(f) => check_graph(module, name, f)?,
        }
    }
    graph::check_recursion(module)
}

fn check_func(name: &str, func: &TensorFunc, open: bool) -> Result<()> {
    tensor::check(func, open).map_err(|e| e.context(format!("function `{name}`")).at(func.span))
}

/// Checks a tensor function. `name` is for the message.
pub fn check_tensor(name: &str, func: &TensorFunc) -> Result<()> {
    check_func(name, func, false)
}

/// Checks a graph function and its calls of other functions of the module. `name` is for the
/// message.
pub(crate) fn check_graph(module: &Module, name: &str, func: &GraphFunc) -> Result<()> {
    graph::check(module, func).map_err(|e| e.context(format!("function `{name}`")).at(func.span))
}

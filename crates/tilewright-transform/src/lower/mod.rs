//! Lowering: from blocks over multi-dimensional buffers to plain loops over flat memory.
//!
//! The steps, each a pass of its own:
//! 1. [`remove_assume`] and [`remove_store_undef`]: what was only said for the passes before goes.
//! 2. [`blocks::lower_blocks`]: blocks become statements; predicates and initialisations become
//!    conditions, views of regions become offsets.
//! 3. [`flatten::flatten_buffers`]: one index for each physical axis.
//! 4. [`vectorize::vectorize_loops`]: vectorised loops become vector expressions.
//! 5. [`scratch::lift_scratch`]: allocations that live outside parallel work become parameters,
//!    so that running the function allocates nothing.
//!
//! What is left: stores, serial, parallel and unrolled loops, conditions, let bindings,
//! sequences, small allocations inside loops, declared views, assertions, calls.

pub mod blocks;
pub mod flatten;
pub mod opaque;
pub mod scratch;
pub mod vectorize;

use tilewright_ir::{Result, TensorFunc};

use crate::pass::{Pass, Run};
use crate::placeholder::{remove_assume, remove_store_undef};

/// `lower` by name.
pub const PASS: Pass = Pass {
    name: "lower",
    summary: "all that code generation needs, from remove_assume to lift_scratch",
    options: &[],
    run: Run::Tensor(|f, _, _| lower(f)),
};

/// Lowers a tensor function for code generation.
///
/// # Errors
/// `Unsupported` where the function uses something that flat memory cannot express.
pub fn lower(func: &TensorFunc) -> Result<TensorFunc> {
    let func = remove_store_undef(&remove_assume(func));
    let func = blocks::lower_blocks(&func)?;
    let func = flatten::flatten_buffers(&func)?;
    let func = vectorize::vectorize_loops(&func);
    scratch::lift_scratch(&func)
}

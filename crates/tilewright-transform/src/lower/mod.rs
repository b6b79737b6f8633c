//! Lowering: from blocks over multi-dimensional buffers to plain loops over flat memory.
//!
//! The steps, each a pass of its own:
//! 1. [`blocks::lower_blocks`]: blocks become statements; predicates and initialisations become
//!    conditions, views of regions become offsets.
//! 2. [`refine::refine`]: indices, guards, ranges and allocations that schedules leave to be
//!    derived.
//! 3. [`remove_assume`] and [`remove_store_undef`]: what was only said for the passes before goes.
//! 4. `bounds::check_bounds`: assertions where an access may be out of range.
//! 5. `flatten::flatten_for_code`: one index for each physical axis, simplified again.
//! 6. [`vectorize::vectorize_loops`]: vectorised loops become vector expressions.
//! 7. [`scratch::lift_scratch`]: allocations that live outside parallel work become parameters,
//!    so that running the function allocates nothing.
//! 8. [`use_border`]: guards of reads from textures that the border makes needless.
//! 9. `sizes::bind_sizes`: what is computed of open sizes alone is computed once.
//!
//! What is left: stores, serial, parallel and unrolled loops, conditions, let bindings,
//! sequences, small allocations inside loops, declared views, assertions, calls.

pub mod blocks;
pub mod bounds;
pub mod flatten;
pub mod opaque;
pub mod refine;
pub mod scratch;
mod sizes;
pub mod unroll;
pub mod vectorize;

use tilewright_ir::{Remarks, Result, TensorFunc};

use crate::border::use_border;
use crate::pass::{Flag, Pass, Run};
use crate::placeholder::{remove_assume, remove_store_undef};
use crate::products::with_products_as_sizes;

use self::sizes::bind_sizes;

/// Whether accesses that are not proved to be in range go without an assertion.
pub const UNCHECKED: Flag = Flag {
    name: "unchecked",
    summary: "no assertions where an access is not proved to be in range",
    default: false,
};

/// `lower` by name.
pub const PASS: Pass = Pass {
    name: "lower",
    summary: "all that code generation needs, from lower_blocks to lift_scratch",
    options: &[&UNCHECKED],
    run: Run::Tensor(|f, given, why| {
        let unchecked = given.get(&UNCHECKED)?;
        let lowered = with_products_as_sizes(f, |f| {
            let derived = derived(f, why)?;
            let checked = if unchecked { derived } else { bounds::check_bounds(&derived)? };
            use_border(&flat(&checked)?, why)
        })?;
        Ok(bind_sizes(&lowered))
    }),
};

/// Lowers a tensor function for code generation. What comes out accesses nothing outside of its
/// buffers: an assertion fails before.
///
/// # Errors
/// `Unsupported` where the function uses something that flat memory cannot express, those of
/// [`refine::refine`], and those of `bounds::check_bounds`.
pub fn lower(func: &TensorFunc) -> Result<TensorFunc> {
    let lowered = with_products_as_sizes(func, |func| {
        let why = &mut Remarks::new();
        use_border(&flat(&bounds::check_bounds(&derived(func, why)?)?)?, why)
    })?;
    Ok(bind_sizes(&lowered))
}

/// A function without blocks, and what was only said for passes.
fn derived(func: &TensorFunc, why: &mut Remarks) -> Result<TensorFunc> {
    let func = refine::refine(&blocks::lower_blocks(func)?, why)?;
    Ok(remove_store_undef(&remove_assume(&func)))
}

fn flat(func: &TensorFunc) -> Result<TensorFunc> {
    let func = refine::simplify_flat(&flatten::flatten_for_code(func)?);
    let func = vectorize::vectorize_loops(&func);
    scratch::lift_scratch(&func)
}

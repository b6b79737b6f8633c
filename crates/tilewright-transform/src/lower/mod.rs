//! Lowering: from blocks over multi-dimensional buffers to plain loops over flat memory.
//!
//! The steps, each a pass of its own:
//! 1. [`blocks::lower_blocks`]: blocks become statements; predicates and initialisations become
//!    conditions, views of regions become offsets.
//! 2. [`refine::refine`]: indices, guards, ranges and allocations that schedules leave to be
//!    derived.
//! 3. [`remove_assume`] and [`remove_store_undef`]: what was only said for the passes before goes.
//! 4. `bounds::check_bounds`: assertions where an access may be out of range.
//! 5. [`repeat_rows`]: rows that tiles of registers have too many are computed as the last row that there is.
//! 6. `flatten::flatten_for_code`: one index for each physical axis, simplified again, with sizes as numbers in branches
//!    that run where they have a value (`known`).
//! 7. [`vectorize::vectorize_loops`]: vectorised loops become vector expressions.
//! 8. [`scratch::lift_scratch`]: allocations that live outside parallel work become parameters,
//!    so that running the function allocates nothing.
//! 9. [`use_border`]: guards of reads from textures that the border makes needless.
//! 10. `once::loops_to_conditions`: a loop of at most one iteration is a condition.
//! 11. `rows::join_rows`: loops over rows and their cells that nobody scheduled are one.
//! 12. `together::assert_together`: assertions about data are asked for many iterations together.
//! 13. `sizes::hoist_sizes`: what is computed of open sizes alone is computed once.
//! 14. `carry::carry_values`: what the iteration before wrote is kept in a register.
//!
//! What is left: stores, serial, parallel and unrolled loops, conditions, let bindings,
//! sequences, small allocations inside loops, declared views, assertions, calls.

pub mod blocks;
pub mod bounds;
mod carry;
mod double_buffer;
mod exchange;
pub mod flatten;
mod join_phases;
mod known;
mod once;
pub mod opaque;
pub mod refine;
pub mod repeat_rows;
mod rows;
pub mod scratch;
mod sizes;
mod together;
pub mod unroll;
pub mod vectorize;
mod warp_registers;
mod widen;

use tilewright_ir::{Attr, Error, Param, Remarks, Result, TensorFunc};

use crate::border::use_border;
use crate::pass::{Flag, Pass, Run};
use crate::placeholder::{remove_assume, remove_store_undef};
use crate::products::with_products_as_sizes;

use self::carry::carry_values;
use self::once::loops_to_conditions;
use self::repeat_rows::repeat_rows;
use self::rows::join_rows;
use self::sizes::hoist_sizes;
use self::together::assert_together;

/// Whether accesses that are not proved to be in range go without an assertion.
pub const UNCHECKED: Flag = Flag {
    name: "unchecked",
    summary: "no assertions where an access is not proved to be in range",
    default: false,
};

/// The attribute of a lowered function that says which memory of sums is in no registers, and why: a list of texts.
pub const IN_MEMORY: &str = "tilewright.in_memory";

/// `lower` by name.
pub const PASS: Pass = Pass {
    name: "lower",
    summary: "all that code generation needs, from lower_blocks to lift_scratch",
    options: &[&UNCHECKED],
    run: Run::Tensor(|f, given, why| lowered(f, given.get(&UNCHECKED)?, why)),
};

/// Lowers a tensor function for code generation. What comes out accesses nothing outside of its
/// buffers: an assertion fails before.
///
/// # Errors
/// `Unsupported` where the function uses something that flat memory cannot express, those of
/// [`refine::refine`], and those of `bounds::check_bounds`.
pub fn lower(func: &TensorFunc) -> Result<TensorFunc> {
    lowered(func, false, &mut Remarks::new())
}

/// Refuses a function of which [`lower`] leaves loops that are marked as instructions of a warp as they are: their
/// fragments did not become registers of lanes.
///
/// # Errors
/// [`Error::Refused`], and those of [`lower`].
pub fn check_instructions(func: &TensorFunc) -> Result<()> {
    if warp_registers::has_instructions(&lower(func)?.body) {
        return Err(Error::refused(
            "fragments are accessed by other lanes than those that hold them",
        ));
    }
    Ok(())
}

fn lowered(func: &TensorFunc, unchecked: bool, why: &mut Remarks) -> Result<TensorFunc> {
    let mut remarks = Remarks::new();
    let mut lowered = with_products_as_sizes(func, |f| {
        let derived = derived(f, &mut remarks)?;
        let checked = if unchecked { derived } else { bounds::check_bounds(&derived)? };
        use_border(&flat(&repeat_rows(&checked))?, &mut remarks)
    })?;
    let in_memory = sums_in_memory(&lowered, &remarks);
    if !in_memory.is_empty() {
        lowered.attrs.insert(IN_MEMORY.into(), Attr::List(in_memory));
    }
    why.extend(remarks);
    let joined = join_rows(&loops_to_conditions(&lowered));
    Ok(carry_values(&hoist_sizes(&assert_together(&joined))))
}

/// The buffers of open size that were to be registers and became parameters, with what was said of them. LLVM
/// keeps those of known size in registers where they fit.
fn sums_in_memory(func: &TensorFunc, remarks: &Remarks) -> Vec<Attr> {
    let scratch = func.params.iter().rev().take(func.scratch_count()).rev();
    let local = scratch.filter_map(Param::buffer).filter(|b| &*b.scope == "local");
    let mut texts = Vec::new();
    for b in local.filter(|b| b.const_shape().is_none()) {
        let name = format!("`{}`", b.name);
        let own = remarks.iter().map(Error::diagnostic).filter(|d| d.message.contains(&name));
        let mut notes: Vec<&str> = own.flat_map(|d| &d.notes).map(String::as_str).collect();
        notes.dedup();
        let why = if notes.is_empty() { "its size is open" } else { &notes.join("; ") };
        texts.push(Attr::Str(format!("{name}: {why}").into()));
    }
    texts
}

/// A function without blocks, and what was only said for passes.
fn derived(func: &TensorFunc, why: &mut Remarks) -> Result<TensorFunc> {
    let func = refine::refine(&blocks::lower_blocks(func)?, why)?;
    Ok(remove_store_undef(&remove_assume(&func)))
}

fn flat(func: &TensorFunc) -> Result<TensorFunc> {
    let func = known::sizes_in_branches(&flatten::flatten_for_code(func)?);
    let func = refine::simplify_flat(&func);
    let func = vectorize::vectorize_loops(&func);
    scratch::lift_scratch(&func)
}

//! Guards go where running without them changes nothing (RFC 0077, "overcompute").
//!
//! ```text
//! for io, ii in grid(4, 4):
//!     if 4 * io + ii < 14:                 # goes: what B[3, 2] and B[3, 3] get
//!         B[io, ii] = f(io, ii)            # without it is overwritten below
//! for io, ii in grid(4, 4):                # before anything reads it
//!     if io == 3 and ii >= 2:
//!         B[io, ii] = 0
//! ```
//!
//! Without a guard, its body has more instances: those where the condition is false. They may be
//! added if they are no-ops (rule 4 of `docs/semantics.md`), each store for one of three reasons:
//!
//! * nothing but other added instances reads what it writes, because it is overwritten (by
//!   `T.undef()` too) or is freed before;
//! * it writes the value that its cell holds;
//! * what it reads is known, from assumptions and other stores, and makes the value that of the
//!   cell: zero in a sum, one in a product, minus infinity in a maximum
//!   ([`tilewright_analysis::neutral`]).
//!
//! An update `B[i] = f(B[i])` passes on what its cell holds, so that its users are the readers of the
//! cell later, until something else is written: neither its read nor its write has to be followed.
//!
//! Guards of one depth are tried together, the innermost ones first: what runs more without them is collected
//! (`candidates`), those out of which something leaks are put back (`decide`, by the questions in `leaks` and
//! `copies`), and the function is written without the others (`rewrite`).
//!
//! Of a guard that stays, parts may go (`parts`).
//!
//! An `if` with two sides, and an `if_then_else` in a stored value, are one side alone if that does
//! the same as the other where the other runs (`sides`).
//!
//! Where added instances may not run at all (`added`), or would read cells that may hold nothing
//! (those of an argument too, unless they are read anyway, or an assumption permits it), or would use
//! copies of such cells (`copies`), the guard stays too. Every guard that stays has a remark with the missing fact and a point at which it is
//! missing.

mod added;
mod branch;
mod candidates;
mod copies;
mod decide;
mod guard;
mod leaks;
mod parts;
mod rewrite;
mod sides;
mod unchanged;

pub use self::branch::{PASS as WAY_BACK, remove_overcompute};
pub use self::guard::OvercomputeOptions;

use tilewright_ir::{Remarks, Result, TensorFunc};

use self::candidates::Candidates;
use self::guard::{Analysed, guards};
use crate::pass::{Flag, Pass, Run};
pub use tilewright_analysis::neutral::Floats;

/// Whether floats may be taken to be finite.
const FINITE: Flag = Flag {
    name: "finite",
    summary: "floats in memory are neither infinite nor NaN, so that zero times one is zero",
    default: false,
};

/// Whether indices may change.
const WRAP: Flag = Flag {
    name: "wrap_indices",
    summary: "take indices modulo the extent where only their range is in the way",
    default: false,
};

/// `remove_branching_through_overcompute` by name.
pub const PASS: Pass = Pass {
    name: "remove_branching_through_overcompute",
    summary: "remove guards whose bodies may run everywhere, because that changes nothing",
    options: &[
        &FINITE,
        &WRAP,
        &Flag { name: "use_dataflow_analysis", summary: "no effect: always done", default: true },
    ],
    run: Run::Tensor(|f, given, why| {
        let floats = if given.get(&FINITE)? { Floats::Finite } else { Floats::Any };
        let wrap_indices = given.get(&WRAP)?;
        let options = OvercomputeOptions { wrap_indices, floats, ..OvercomputeOptions::default() };
        remove_branching(f, &options, why)
    }),
};

/// `use_assume_to_reduce_branches` by name.
pub(crate) const ASSUME: Pass = Pass {
    name: "use_assume_to_reduce_branches",
    summary: "remove_branching_through_overcompute, by the name that TVM has for a part of it",
    options: &[],
    run: Run::Tensor(|f, _, why| remove_branching(f, &OvercomputeOptions::default(), why)),
};

/// Removes the guards that may go.
pub fn remove_branching(
    func: &TensorFunc,
    options: &OvercomputeOptions<'_>,
    why: &mut Remarks,
) -> Result<TensorFunc> {
    let mut now = Analysed::new(func);
    let mut depth = None;
    loop {
        let guards = guards(&now.scop, options);
        let deepest = guards.values().map(|g| g.depth).filter(|d| depth.is_none_or(|k| *d < k));
        // Sides last: a constant that one of them stores is of use to the guards.
        let Some(deepest) = deepest.max() else {
            let now = parts::remove_parts(now, options, why)?;
            return if options.tails { Ok(now.func) } else { sides::one_side(now, options, why) };
        };
        depth = Some(deepest);
        let these = guards.into_iter().filter(|(_, g)| g.depth == deepest);
        let mut candidates = Candidates::collect(&now.scop, these, options, why);
        candidates.decide(true, why);
        if !candidates.guards.is_empty() {
            now = Analysed::new(&candidates.without_guards(&now.func)?);
        }
    }
}

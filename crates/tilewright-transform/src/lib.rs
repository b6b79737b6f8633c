//! Passes over tensor functions.
//!
//! * [`dependence`]: which cells are touched, and whether iterations may run in another order.
//! * [`extents`]: loops that run only where their body does something.
//! * [`facts`]: the values that memory holds at a place.
//! * [`flow`]: who wrote what a step reads.
//! * [`hoist`]: conditions and bindings moved out of loops.
//! * [`index`]: index arithmetic simplified by intervals.
//! * [`inline`]: spatial stages substituted into the stages that read them.
//! * [`mod@lower`]: from blocks over multi-dimensional buffers to loops over flat memory.
//! * [`merge`]: loops that run together.
//! * [`neutral`]: what a value becomes when parts of it are known.
//! * [`no_op`]: what changes nothing goes.
//! * [`overcompute`]: guards go where running without them changes nothing.
//! * [`partition`]: loops taken apart where their guards change.
//! * [`pass`]: what a pass is: name, options, how it runs.
//! * [`placeholder`]: the end of `T.assume` and `T.undef()`.
//! * [`program`]: a function as the list of things that it does, for questions of flow.
//! * [`prune`]: what does nothing, by the text alone, goes.
//! * [`regions`]: the boxes of each buffer that a block reads and writes.
//! * [`same`]: whether two functions are the same up to equal expressions.
//! * [`simplify`]: whole functions simplified by exact sets.
//! * [`mod@stage`]: the canonical form of a tensor function before scheduling, as a view.

pub mod dependence;
pub mod extents;
pub mod facts;
pub mod flow;
pub mod hoist;
pub mod index;
pub mod inline;
pub mod lower;
mod magnitude;
pub mod merge;
pub mod neutral;
pub mod no_op;
pub mod overcompute;
pub mod partition;
pub mod pass;
pub mod placeholder;
pub mod program;
pub mod prune;
pub mod regions;
pub mod same;
mod scope;
mod settle;
pub mod simplify;
pub mod stage;

pub use inline::inline_spatial;
pub use lower::lower;
pub use stage::{Stage, stage, stages};

use pass::Pass;

/// Every pass over tensor functions.
pub static PASSES: &[&Pass] = &[
    &extents::PASS,
    &hoist::IF,
    &hoist::PASS,
    &inline::PASS,
    &lower::PASS,
    &lower::blocks::PASS,
    &lower::flatten::STORAGE,
    &lower::flatten::PASS,
    &lower::opaque::PASS,
    &lower::scratch::PASS,
    &lower::vectorize::PASS,
    &merge::PASS,
    &no_op::PASS,
    &overcompute::ASSUME,
    &overcompute::PASS,
    &overcompute::WAY_BACK,
    &partition::PASS,
    &placeholder::ASSUME,
    &placeholder::STORE,
    &simplify::PASS,
    &simplify::RENORMALIZE,
];

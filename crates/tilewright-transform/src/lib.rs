//! Passes over tensor functions.
//!
//! * [`border`]: guards of reads from textures that the border makes needless.
//! * [`warp`]: how accesses of threads meet banks and segments of memory.
//! * [`compact`]: local buffers allocated where they are used, as small as can be.
//! * [`cursor`]: finding and replacing statements.
//! * [`extents`]: loops that run only where their body does something.
//! * [`hoist`]: conditions and bindings moved out of loops.
//! * [`inline`]: spatial stages substituted into the stages that read them.
//! * [`mod@lower`]: from blocks over multi-dimensional buffers to loops over flat memory.
//! * [`merge`]: loops that run together.
//! * [`names`]: names that are all different.
//! * [`no_op`]: what changes nothing goes.
//! * [`overcompute`]: guards go where running without them changes nothing.
//! * [`partition`]: loops taken apart where their guards change.
//! * [`pass`]: what a pass is: name, options, how it runs.
//! * [`placeholder`]: the end of `T.assume` and `T.undef()`.
//! * [`products`]: products of open sizes as sizes of their own.
//! * [`simplify`]: whole functions simplified by exact sets.
//! * [`versions`]: versions of a loop for the values that an expression has.

pub mod border;
pub mod compact;
pub mod cursor;
pub mod extents;
pub mod hoist;
pub mod inline;
pub mod lower;
pub mod merge;
pub mod names;
pub mod no_op;
pub mod overcompute;
pub mod partition;
pub mod pass;
pub mod placeholder;
pub mod products;
mod settle;
pub mod simplify;
pub mod versions;
pub mod warp;

pub use inline::inline_spatial;
pub use lower::lower;

use pass::Pass;

/// Every pass over tensor functions.
pub static PASSES: &[&Pass] = &[
    &border::PASS,
    &compact::PASS,
    &extents::PASS,
    &hoist::IF,
    &hoist::PASS,
    &inline::PASS,
    &lower::PASS,
    &lower::blocks::PASS,
    &lower::flatten::STORAGE,
    &lower::flatten::PASS,
    &lower::opaque::PASS,
    &lower::refine::PASS,
    &lower::repeat_rows::PASS,
    &lower::scratch::PASS,
    &lower::unroll::PASS,
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
    &warp::PASS,
];

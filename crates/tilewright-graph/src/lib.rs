//! Passes over graph functions: fusion and memory planning.
//!
//! The way of a module through this crate:
//!
//! 1. [`fuse()`]: chains of elementwise work join the functions before them, so that intermediate
//!    results stay in registers.
//! 2. [`legalize()`]: the graph takes the form that memory planning needs, and functions that only
//!    relabel are marked as views.
//! 3. The tensor functions are scheduled and lowered, elsewhere. On the way, when contractions have their
//!    loops, `parts::place_parts` lets the parts of concatenations lie in the whole.
//! 4. `plan_memory`: a graph function over lowered functions becomes a
//!    `MemoryPlan`: steps over places in one arena, for sizes that may be open.
//!
//! * [`classify`]: what a tensor function is to its neighbours.
//! * [`control`]: graph functions with control flow, cut into pieces.
//! * `layout`: conversions between layouts.
//! * [`in_place`](mod@in_place): functions that change a part of an input, where a caller has its result there.
//! * [`normal`]: the normal form of graph functions, which all passes start from.
//! * `parts`: parts of values in place.
//! * [`quantized`]: products of numbers that integers stand for.
//! * [`sizes`]: sizes for what a module leaves open.
//! * [`resize`](mod@resize): a module with another size, for prices.
//! * [`view`]: functions that only relabel.
//! * [`winograd`]: convolutions by fewer products, within an error.
//!
//! **Architecture invariant:** the graph knows no backend, and no decision looks at a name.

pub mod call_sizes;
pub mod calls;
pub mod classify;
pub mod control;
pub mod fold;
pub mod functions;
pub mod fuse;
pub mod in_place;
pub mod legalize;
pub mod marks;
pub mod merge;
pub mod normal;
pub mod quantized;
pub mod resize;
pub mod rewrite;
pub mod sizes;
pub mod stages;
pub mod view;
pub mod winograd;

pub use fuse::fuse;
pub use legalize::legalize;

use tilewright_transform::pass::Pass;

/// Every pass over graph functions.
pub static PASSES: &[&Pass] = &[&fuse::PASS, &legalize::PASS, &quantized::PASS];

//! Passes over graph functions: fusion and memory planning.
//!
//! The way of a module through this crate:
//!
//! 1. [`fuse()`]: chains of elementwise work join the functions before them, so that intermediate
//!    results stay in registers.
//! 2. [`legalize()`]: the graph takes the form that memory planning needs, and functions that only
//!    relabel are marked as views.
//! 3. The tensor functions are scheduled and lowered, elsewhere. On the way, when contractions have their
//!    loops, [`parts::place_parts`] lets the parts of concatenations lie in the whole.
//! 4. [`plan_memory`]: a graph function over lowered functions becomes a
//!    [`OpenPlan`](tilewright_ir::OpenPlan): steps over places in one arena, for sizes that may be open.
//!
//! * [`classify`]: what a tensor function is to its neighbours.
//! * [`control`]: graph functions with control flow, cut into pieces.
//! * [`layout`]: conversions between layouts.
//! * [`normal`]: the normal form of graph functions, which all passes start from.
//! * [`parts`]: parts of values in place.
//! * [`quantized`]: products of numbers that integers stand for.
//! * [`sizes`]: sizes for what a module leaves open.
//! * [`resize`](mod@resize): a module with another size, for prices.
//! * [`view`]: functions that only relabel.
//! * [`winograd`]: convolutions by fewer products, within an error.
//!
//! **Architecture invariant:** the graph knows no backend, and no decision looks at a name.

pub mod call_sizes;
mod calls;
pub mod classify;
pub mod control;
mod functions;
pub mod fuse;
pub mod layout;
pub mod legalize;
pub mod memory;
mod merge;
pub mod normal;
pub mod parts;
pub mod quantized;
pub mod resize;
pub mod sizes;
pub mod view;
pub mod winograd;

pub use fuse::fuse;
pub use legalize::legalize;
pub use memory::plan_memory;

use tilewright_transform::pass::Pass;

/// Every pass over graph functions.
pub static PASSES: &[&Pass] = &[
    &fuse::PASS,
    &layout::cancel::PASS,
    &layout::flow::PASS,
    &layout::fold::PASS,
    &layout::free::PASS,
    &layout::lift::PASS,
    &legalize::PASS,
    &parts::PASS,
    &quantized::PASS,
];

/// Attribute of a tensor function whose result is its input under another shape: memory planning
/// gives both the same memory, and the function is not called. Set by [`legalize()`].
pub const VIEW: &str = "tilewright.view";

/// Attribute of a tensor function whose inputs lie in its result: for each, the least indices of the
/// box that it is there. Memory planning places them so, and the function is not called. Set by
/// [`parts::place_parts`].
pub const PARTS: &str = "tilewright.parts";

/// Attribute of a tensor function whose result lies in its input: the indices of its first cell, and for
/// each axis of it how far a step goes along each axis of the input. Memory planning places it so, and
/// the function is not called. Set by [`parts::place_parts`].
pub const SLICE: &str = "tilewright.slice";

/// Attribute of a tensor function that copies because the copy is needed. Set by [`legalize()`];
/// such a function is neither a view nor fused.
pub const COPY: &str = "tilewright.copy";

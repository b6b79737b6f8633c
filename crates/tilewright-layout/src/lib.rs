//! How tensors lie in memory: the subject of the project.
//!
//! One buffer of one function:
//!
//! * [`index_map`]: [`IndexMap`], from logical to physical indices, and the [`PhysicalLayout`] that it is on a
//!   shape: box, padding, inverse; `digits`: maps of bits; `program`: a map at all points of a box.
//! * [`buffer`]: a function in which a buffer lies by another map; [`mod@relayout`]: its accesses;
//!   [`padding`] and `folding`: what the padding holds, and the code that says so.
//!
//! Between the calls of a model:
//!
//! * [`conversion`]: functions that only move data, recognised from their accesses, as a map and a pad value;
//!   [`recognise`]: which functions of a module are such; `apply`: conversions of constants, run directly.
//! * [`lift`]: conversions at the edges of functions move into the graph; [`cancel`]: those that undo
//!   each other go; [`fold`]: those of constants are run now; [`precompute`]: stages of constants, too.
//! * [`tiled`]: [`TiledLayout`], axes split into digits in an order of their own, the form of a layout that can be
//!   carried through accesses; [`propagate`]: through one function; [`regroup`]: through reshapes and transposes;
//!   [`flow`]: through whole graphs.
//! * [`free`]: arguments that are the same in every run, so that they may lie in any way.
//! * [`parts`]: tensors that lie in others, with strides.
//! * [`textures`]: which values between calls lie in textures.
//! * [`collapse`]: axes of open sizes that functions walk as one are one axis.
//!
//! For people and other tools:
//!
//! * [`notation`]: layouts as CuTe, Triton, oneDNN, TVM and MLIR write them, read to index maps and written from
//!   them; what they do to vector accesses and banks, and where two of them differ.
//!
//! A whole model:
//!
//! * [`policy`]: a fixed choice of layouts.
//! * `flow::candidates` and `flow::plan`: layouts and prices for each call, and the choice among them
//!   that costs least, by [`solver`], which knows no layout: names and integers, an exact answer and its certificate.
//! * [`memory`]: where every value lies in the arena of a run.
//!
//! Prices come from the caller.
//!
//! **Architecture invariant:** conversions are compared by maps and pad values, by proof. No decision
//! looks at a name or at a shape alone.
//!
//! **Architecture invariant:** nothing here makes or orders loops, which is what schedules do; they
//! use the maps of this crate.

mod apply;
pub mod begin;
pub mod buffer;
pub mod cancel;
pub mod collapse;
mod constant;
pub mod conversion;
mod digits;
pub mod flow;
pub mod fold;
mod folding;
pub mod free;
mod gather;
mod grouped;
pub mod index_map;
mod known;
pub mod lift;
pub mod marks;
pub mod memory;
pub mod notation;
pub mod padding;
pub mod parts;
pub mod policy;
pub mod precompute;
mod program;
pub mod propagate;
pub mod recognise;
pub mod regroup;
pub mod relayout;
pub mod solver;
mod taint;
pub mod textures;
pub mod tiled;
mod writes;

pub use begin::{begin, has_fixed_places};
pub use cancel::cancel_layout;
pub use conversion::{Conversion, Pad};
pub use flow::{IoLayout, Left, flow_layout};
pub use fold::fold_constant;
pub use free::mark_free;
pub use index_map::{IndexMap, PhysicalLayout};
pub use lift::{Leave, lift_layout};
pub use memory::plan_memory;
pub use policy::ConvLayout;
pub use recognise::Recognised;
pub use tiled::TiledLayout;

use tilewright_transform::pass::Pass;

/// Every pass over the layouts of graph functions.
pub static PASSES: &[&Pass] = &[
    &cancel::PASS,
    &collapse::PASS,
    &flow::PASS,
    &fold::PASS,
    &free::PASS,
    &lift::PASS,
    &parts::PASS,
];

//! Layouts in the graph: conversions that scheduling put at the edges of functions become
//! functions of their own, meet, and vanish.
//!
//! * `apply`: conversions of constants, run directly.
//! * [`cancel`]: conversions that undo each other go.
//! * [`propagate`]: a layout through one function, by its accesses.
//! * [`conversion`]: functions that only move data, recognised from their accesses.
//! * [`flow`]: layouts through whole graphs.
//! * [`fold`]: calls of constants are run now.
//! * [`free`]: arguments that are the same in every run.
//! * [`lift`]: conversions at the edges of functions move into the graph.
//! * [`physical`]: layouts that split axes into digits and reorder them.
//! * [`policy`]: a fixed choice of layouts for whole models.
//! * [`recognise`]: which functions of a module are conversions.

mod apply;
pub mod cancel;
mod constant;
pub mod conversion;
pub mod flow;
pub mod fold;
pub mod free;
mod known;
pub mod lift;
pub mod physical;
pub mod policy;
pub mod precompute;
pub mod propagate;
pub mod recognise;
mod taint;
mod writes;

pub use cancel::cancel_layout;
pub use conversion::{Conversion, Pad};
pub use flow::{IoLayout, Left, flow_layout};
pub use fold::fold_constant;
pub use free::mark_free;
pub use lift::{Leave, lift_layout};
pub use physical::Layout;
pub use policy::Policy;
pub use recognise::Recognised;

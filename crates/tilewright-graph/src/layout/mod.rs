//! Layouts in the graph: conversions that scheduling put at the edges of functions become
//! functions of their own, meet, and vanish.
//!
//! * [`cancel`]: conversions that undo each other go.
//! * [`conversion`]: functions that only move data, recognised from their accesses.
//! * [`fold`]: calls of constants are run now.
//! * [`lift`]: conversions at the edges of functions move into the graph.
//! * [`recognise`]: which functions of a module are conversions.
//! * [`stages`]: functions that work in other layouts inside.

pub mod cancel;
pub mod conversion;
pub mod fold;
mod known;
pub mod lift;
pub mod recognise;
pub mod stages;
mod taint;
mod writes;

pub use cancel::cancel_layout;
pub use conversion::{Conversion, Pad};
pub use fold::fold_constant;
pub use lift::{Leave, lift_layout};
pub use recognise::Recognised;
pub use stages::with_layouts;

//! Passes over tensor functions.
//!
//! * [`index`]: index arithmetic simplified by intervals.
//! * [`lower`]: from blocks over multi-dimensional buffers to loops over flat memory.
//! * [`stage`]: the canonical form of a tensor function before scheduling, as a view.

pub mod index;
pub mod lower;
pub mod stage;

pub use lower::lower;
pub use stage::{Stage, stage, stages};

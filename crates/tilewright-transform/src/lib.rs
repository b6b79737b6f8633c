//! Passes over tensor functions.
//!
//! * [`stage`]: the canonical form of a tensor function before scheduling, as a view.

mod index;
pub mod stage;

pub use stage::{Stage, stage, stages};

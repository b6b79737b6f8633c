//! Schedules: how the loops of a tensor function run, and how its buffers lie in memory.
//!
//! * [`auto`]: a schedule for CPUs, found from the structure of a function.

pub mod auto;

pub use auto::{Machine, auto};

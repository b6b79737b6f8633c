//! Schedules: how the loops of a tensor function run, and how its buffers lie in memory.
//!
//! * [`auto`]: a schedule for CPUs, found from the structure of a function.
//! * [`cache`]: copies of buffers.
//! * [`decompose_padding`]: a padded copy as a fill and a copy.
//! * [`pad_einsum`]: contractions over padded copies.
//! * [`storage`]: where buffers live, and annotations of blocks.
//! * [`schedule`]: a module under change; primitives are its methods.
//! * [`loops`]: primitives on loops.
//! * [`trace`]: the record of what was applied, which prints as a script.
//! * [`site`]: finding and replacing statements.

pub mod auto;
pub mod cache;
mod copying;
pub mod decompose_padding;
mod footprint;
pub mod loops;
pub mod pad_einsum;
pub mod schedule;
pub mod site;
pub mod storage;
pub mod trace;

pub use auto::{Machine, auto};
pub use cache::Pick;
pub use schedule::{Permissions, Schedule};
pub use trace::{BlockRef, LoopRef, Trace};

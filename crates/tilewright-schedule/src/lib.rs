//! Schedules: how the loops of a tensor function run, and how its buffers lie in memory.
//!
//! * `apart`: accesses that must not meet.
//! * [`argument`]: the types of what primitives take and return.
//! * [`block_layout`]: iteration spaces of blocks.
//! * [`buffer_arg`]: which buffer of a block is meant.
//! * [`cache`]: copies of buffers.
//! * [`call`]: blocks and loops by name.
//! * [`compute`]: stages computed where they are needed.
//! * [`decompose_padding`]: a padded copy as a fill and a copy.
//! * [`inline`]: stages that disappear into their neighbours.
//! * [`loop_layout`]: iteration spaces of loops.
//! * [`loops`]: primitives on loops.
//! * `names`: which function, block or loop a name means.
//! * [`pad_einsum`]: contractions over padded copies.
//! * [`parts`]: passes on a block or on loops.
//! * [`primitive`]: what a primitive is.
//! * [`reduction`]: primitives on reductions.
//! * [`reindex_cache`]: caches with an order of their own.
//! * [`reverse_compute`]: stages computed where their inputs are.
//! * [`rfactor`]: reductions in two steps.
//! * [`schedule`]: a module under change; primitives are its methods.
//! * [`sequential_buffer_access`]: loops in the order of a buffer.
//! * `cursor`: where blocks and loops of scripts are.
//! * [`signature`]: what is said of a primitive, and how arguments become values.
//! * [`storage`]: where buffers live, and annotations of blocks.
//! * [`table`]: all primitives; calls by name, and traces that run again.
//! * [`tensorize`]: pieces of nests as instructions of the hardware.
//! * [`trace`]: the record of what was applied, which prints as a script.
//! * [`transform_layout`]: how buffers lie in memory.
//! * [`value`]: the values of scripts and traces.

pub mod argument;
pub mod block_layout;
pub mod buffer_arg;
pub mod cache;
pub mod call;
pub mod compute;
mod copying;
mod cursor;
pub mod decompose_padding;
mod disjoint;
pub mod inline;
pub mod loop_layout;
pub mod loops;
mod names;
pub mod pad_einsum;
pub mod parts;
pub mod primitive;
pub mod reduction;
pub mod reindex_cache;
pub mod reverse_compute;
pub mod rfactor;
pub mod schedule;
pub mod sequential_buffer_access;
pub mod signature;
pub mod storage;
pub mod table;
pub mod tensorize;
pub mod trace;
pub mod transform_layout;
pub mod value;
pub mod widths;

pub use argument::BlockOrLoop;
pub use buffer_arg::BufferArg;
pub use schedule::{Permissions, Schedule};

pub use trace::Trace;
pub use value::{BlockRef, LoopRef};

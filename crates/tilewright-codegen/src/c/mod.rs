//! Lowered tensor functions to C text for devices: OpenCL C.
//!
//! * `steps`: a function becomes kernels, and the steps in which the host calls them; `host`: these steps
//!   and the plan around them as C.
//! * `writer`: the state while a kernel is written; `stmt`, `expr`: its parts; `threads`: groups of threads.
//! * `vector`: values of several lanes.
//! * `texture`: reads and writes of images.
//! * `types`, `helpers`: what C has, and functions for what it does not have.
//!
//! Numbers are those of native code ([`crate::emit`]): integers wrap, every operation rounds by itself but
//! for a product that is accumulated, 16-bit floats are rounded after each operation, and nothing traps.
//!
//! **Architecture invariant:** nothing here calls a driver; text is all that leaves.

mod expr;
mod helpers;
pub mod host;
pub mod steps;
mod stmt;
mod texture;
mod threads;
mod types;
mod vector;
mod writer;

pub use helpers::Helpers;
pub use steps::{Argument, HostStep, Image, Kernel, Kernels, Memory, Over, kernels, program};
pub use threads::Extents;
pub use writer::Arithmetic;

/// What stands before the kernels of a program.
pub const PRELUDE: &str = "#pragma OPENCL FP_CONTRACT OFF\n\n";

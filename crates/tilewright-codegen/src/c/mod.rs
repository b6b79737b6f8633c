//! Lowered tensor functions to C text for devices: OpenCL C and CUDA C++.
//!
//! * `steps`: a function becomes kernels, and the steps in which the host calls them; `host`: these steps
//!   and the plan around them as C.
//! * `writer`: the state while a kernel is written; `stmt`, `expr`: its parts; `threads`: groups of threads.
//! * `vector`: values of several lanes; `transpose`: loops that read across rows; `warp`: instructions that the lanes of a warp execute together.
//! * `texture`: reads and writes of images.
//! * `pairs`: `float64` where a device has none.
//! * `types`, `helpers`: what C has, and functions for what it does not have.
//!
//! Numbers are those of native code ([`crate::emit`]): integers wrap, every operation rounds by itself but
//! for a product that is accumulated, 16-bit floats are rounded after each operation, and nothing traps.
//!
//! **Architecture invariant:** nothing here calls a driver; text is all that leaves.

mod copies;
mod expr;
mod helpers;
pub mod host;
mod lanes;
mod mma;
mod pairs;
pub mod steps;
mod stmt;
mod texture;
mod threads;
mod transpose;
mod types;
mod vector;
mod warp;
mod writer;

pub use helpers::Helpers;
pub use steps::{Argument, HostStep, Image, Kernel, Kernels, Memory, Over, kernels, program};
pub use threads::Extents;
pub use writer::Arithmetic;

/// The language of a text. Both have the same kernels, behind what gives their names a meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// OpenCL C.
    OpenCl,
    /// CUDA C++.
    Cuda,
}

impl Language {
    /// What stands before the kernels of a program: the meaning of names, and the helpers that they use.
    fn head(self, helpers: &Helpers) -> String {
        match self {
            Language::OpenCl => [OPENCL_PRELUDE, &helpers.text()].concat(),
            Language::Cuda => [include_str!("prelude.cuh"), &helpers.cuda_text()].concat(),
        }
    }
}

const OPENCL_PRELUDE: &str = include_str!("prelude.clh");

//! Tensor functions to LLVM IR and native code.
//!
//! * [`backend`]: all of it as a [`Backend`](tilewright_target::Backend).
//! * [`emit`]: lowered tensor functions to textual LLVM IR.
//! * `across_rows`: loops that both of these do by shuffles.
//! * [`entry`]: the function that runs a whole plan.
//! * [`shape_func`]: what of a plan depends on sizes that are known at run time.
//! * [`library`], [`header`]: shared libraries with a C interface.
//! * [`registry`]: the backends by their names; [`files`]: what they make of whole programs.
//! * [`packed`]: kernels as a library that this crate loads again, without LLVM.
//! * [`llvm`]: LLVM as a library that is found at run time; text to object file to callable code.
//! * [`c`]: lowered tensor functions to C text for devices; `device`: what the host does around kernels;
//!   [`opencl`], [`cuda`]: the drivers that run them.
//! * [`cache`]: compiled objects on disk, by content.

mod across_rows;
pub mod backend;
pub mod c;
pub mod cache;
pub mod cuda;
mod device;
pub mod emit;
pub mod entry;
pub mod files;
pub mod header;
mod kernels;
pub mod library;
pub mod llvm;
pub mod opencl;
pub mod packed;
pub mod registry;
pub mod shape_func;

pub use backend::LlvmBackend;
pub use opencl::OpenClBackend;

//! Tensor functions to LLVM IR and native code.
//!
//! * [`backend`]: all of it as a [`Backend`](tilewright_target::Backend).
//! * [`emit`]: lowered tensor functions to textual LLVM IR.
//! * [`entry`]: the function that runs a whole plan.
//! * [`shape_func`]: what of a plan depends on sizes that are known at run time.
//! * [`library`], [`header`]: shared libraries with a C interface.
//! * [`packed`]: kernels as a library that this crate loads again, without LLVM.
//! * [`llvm`]: LLVM as a library that is found at run time; text to object file to callable code.
//! * [`cache`]: compiled objects on disk, by content.

pub mod backend;
pub mod cache;
pub mod emit;
pub mod entry;
pub mod header;
mod kernels;
pub mod library;
pub mod llvm;
pub mod packed;
pub mod shape_func;

pub use backend::LlvmBackend;

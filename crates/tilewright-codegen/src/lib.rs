//! Tensor functions to LLVM IR and native code.
//!
//! * [`llvm`]: LLVM as a library that is found at run time; text to object file to callable code.
//! * [`cache`]: compiled objects on disk, by content.

pub mod cache;
pub mod llvm;

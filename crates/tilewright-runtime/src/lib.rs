//! Tensors in files, compiled modules, threads and memory.
//!
//! * [`npy`], [`npz`]: tensors in NumPy's files.
//! * [`mod@file`]: files that are written whole.
//! * [`pool`]: the threads that share a kernel's parallel loops.
//! * [`executable`]: a compiled plan that can be run.
//!
//! **Architecture invariant:** nothing here knows what a kernel computes or how its code was made, and a run allocates
//! nothing.

pub mod executable;
pub mod file;
pub mod npy;
pub mod npz;
pub mod pool;

pub use executable::Executable;
pub use pool::Pool;

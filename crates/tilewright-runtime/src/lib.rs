//! Tensors in files, compiled modules, threads and memory.
//!
//! * [`npy`], [`npz`]: tensors in NumPy's files.
//! * [`abi`]: how a compiled kernel is called.
//! * [`pool`]: the threads that share a kernel's parallel loops.
//! * [`executable`]: a compiled plan that can be run.
//!
//! **Architecture invariant:** nothing here knows what a kernel computes, and a run allocates
//! nothing.

pub mod abi;
pub mod executable;
pub mod npy;
pub mod npz;
pub mod pool;

pub use executable::{Executable, Symbol};
pub use pool::Pool;

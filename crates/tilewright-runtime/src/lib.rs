//! Tensors in files, compiled modules, threads and memory.
//!
//! * [`npy`], [`npz`]: tensors in NumPy's files.
//! * [`mod@file`]: files that are written whole.
//! * [`pool`]: the threads that share a kernel's parallel loops.
//! * [`parallel`]: work of the compiler on many trees at once.
//! * [`plan`]: where the values of a model lie, and the kernel calls over them.
//! * [`executable`]: a compiled plan that can be run.
//! * `arenas`: the memory that runs write to; `home`: where it is, on the host or on a device.
//! * [`device_tensor`]: tensors in memory of a device, which runs take and give.
//! * `control`: a program over several plans, where there is control flow.
//!
//! **Architecture invariant:** nothing here knows what a kernel computes or how its code was made, and a run of a
//! plan allocates nothing.

mod arenas;
mod calls;
mod control;
pub mod device_tensor;
pub mod executable;
pub mod file;
mod home;
pub mod npy;
pub mod npz;
pub mod parallel;
pub mod plan;
pub mod pool;

pub use device_tensor::{DeviceTensor, Operand};
pub use executable::Executable;
pub use plan::{MemoryPlan, OpenPort, Port, SizedPlan, Slot, Step, Stored};
pub use pool::Pool;

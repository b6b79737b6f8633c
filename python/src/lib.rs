//! `tilewright._native`: the library as Python sees it from below.
//!
//! The classes and functions here are thin: they convert values, release the lock of the
//! interpreter and call the library. What people use (names, defaults, documentation) is the Python
//! package around it, in `tilewright/`.
//!
//! * [`error`]: the one error type as exceptions.
//! * [`array`]: arrays of Python as tensors, and back, without copying where that can be.
//! * [`module`], [`executable`]: reading, compiling, running.
//! * [`schedule`], [`passes`], [`plan`]: what changes modules, and says what it would cost.
//! * [`expr`], [`te`]: expressions that Python functions make.
//! * [`tune`]: measuring, as a list of requests that anybody may answer.

mod array;
mod error;
mod executable;
mod expr;
mod module;
mod passes;
mod schedule;

use pyo3::prelude::*;

#[pymodule(name = "_native")]
mod native {
    #[pymodule_export]
    use super::array::address;
    #[pymodule_export]
    use super::executable::{Executable, open_saved};
    #[pymodule_export]
    use super::expr::{Expr, Lambda, intrinsic, intrinsics, select};
    #[pymodule_export]
    use super::module::{Module, load, parse};
    #[pymodule_export]
    use super::passes::{passes, stages};
    #[pymodule_export]
    use super::schedule::{Block, Loop, Schedule, primitives};

    use super::*;

    #[pymodule_init]
    fn init(m: &Bound<'_, PyModule>) -> PyResult<()> {
        m.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}

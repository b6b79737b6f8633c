//! `tilewright._native`: the library as Python sees it from below.
//!
//! The classes and functions here are thin: they convert values, release the lock of the
//! interpreter and call the library. What people use (names, defaults, documentation) is the Python
//! package around it, in `tilewright/`.
//!
//! * [`error`]: the one error type as exceptions.
//! * [`work`]: long work, on a stack that is large enough.
//! * [`array`]: arrays of Python as tensors, and back, without copying where that can be.
//! * [`dlpack`]: tensors that libraries hand to one another; [`device`]: those on a device.
//! * [`module`], [`executable`]: reading, compiling, running.
//! * [`schedule`], [`passes`]: what changes modules.
//! * [`plan`]: what comparing modules and planning layouts say.
//! * [`expr`], [`te`]: expressions that Python functions make.
//! * [`command`]: the command `tilewright`, and where the package has libraries of its own.
//! * [`tune`]: measuring, as a list of requests that anybody may answer.

mod array;
mod command;
mod device;
mod dlpack;
mod error;
mod executable;
mod expr;
mod module;
mod options;
mod passes;
mod plan;
mod schedule;
mod te;
mod tune;
mod work;

use pyo3::prelude::*;

#[pymodule(name = "_native")]
mod native {
    #[pymodule_export]
    use super::array::address;
    #[pymodule_export]
    use super::command::{bundle, run_command};
    #[pymodule_export]
    use super::device::DeviceTensor;
    #[pymodule_export]
    use super::executable::{Executable, open_saved};
    #[pymodule_export]
    use super::expr::{Expr, Lambda, intrinsic, intrinsics, select};
    #[pymodule_export]
    use super::module::{Module, load, parse};
    #[pymodule_export]
    use super::passes::{passes, stages};
    #[pymodule_export]
    use super::plan::{Plan, plan_layouts, verify_modules};
    #[pymodule_export]
    use super::schedule::{Block, Loop, Schedule, primitives};
    #[pymodule_export]
    use super::te::{
        Axis, Output, Reduction, Stage, Tensor, placeholder, te_axis, te_compute, te_module,
        te_reduce, te_stage, te_stages,
    };
    #[pymodule_export]
    use super::tune::{
        Measurer, Tuning, export_measurements, import_measurements, measure_line, tuning_file,
    };

    use super::*;

    #[pymodule_init]
    fn init(m: &Bound<'_, PyModule>) -> PyResult<()> {
        m.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}

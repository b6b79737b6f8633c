//! The backends that there are: the one place that names them.

use std::sync::Arc;

use tilewright_ir::{Error, Result};
use tilewright_target::{Backend, Target};

use crate::backend::LlvmBackend;
use crate::c::Arithmetic;
use crate::files::FileBackend;
use crate::opencl::{FAMILY, OpenClBackend};

/// The backend for the processor of this machine, and for others of which it knows the triple.
pub fn native() -> Arc<dyn Backend> {
    Arc::new(LlvmBackend)
}

/// The backend that a target asks for: `native`, `opencl` for the first device that OpenCL lists,
/// `opencl:1` for one by its number, `opencl:NAME` for one by a part of its name or its driver's.
///
/// # Errors
/// [`Error::Input`] for other names and devices that are not there, [`Error::Toolchain`] where there is no
/// driver.
pub fn named(target: &str) -> Result<Arc<dyn Backend>> {
    match target.split_once(':').unwrap_or((target, "")) {
        ("native", "") => Ok(native()),
        ("opencl", which) => Ok(Arc::new(OpenClBackend::new(which)?)),
        _ => Err(Error::input(format!("there is no target `{target}`")).help(
            "targets are `native`, `opencl`, `opencl:NUMBER` and `opencl:NAME`; to compile, the triple of another machine, too",
        )),
    }
}

/// What arithmetic a device has, for which C text is made.
///
/// # Errors
/// [`Error::Input`] for a target that is no device.
pub fn device_arithmetic(target: &Target) -> Result<Arithmetic> {
    if target.triple == FAMILY {
        return Ok(Arithmetic::from_target(target));
    }
    Err(Error::input("OpenCL C is made for a device").help("give --target opencl"))
}

/// What writes files of code for a backend.
///
/// # Errors
/// [`Error::Unsupported`] for a backend that writes none.
pub fn files(backend: &dyn Backend) -> Result<&'static dyn FileBackend> {
    if backend.name() == LlvmBackend.name() {
        return Ok(&LlvmBackend);
    }
    Err(Error::unsupported(format!(
        "the backend {} makes no libraries and objects",
        backend.name()
    )))
}

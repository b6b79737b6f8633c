//! The backends that there are: the one place that names them.

use std::sync::Arc;

use tilewright_ir::{Error, Result};
use tilewright_target::{Backend, CUDA, Target};

use crate::backend::LlvmBackend;
use crate::c::{Arithmetic, Language};
use crate::cuda::{self, CudaBackend};
use crate::files::FileBackend;
use crate::opencl::{self, OpenClBackend};

/// The backend for the processor of this machine, and for others of which it knows the triple.
pub fn native() -> Arc<dyn Backend> {
    Arc::new(LlvmBackend)
}

/// The backend that a target asks for: `native`, `opencl` for the first device that OpenCL lists,
/// `opencl:1` for one by its number, `opencl:NAME` for one by a part of its name or its driver's, `cuda` for
/// the first GPU of NVIDIA, `cuda:1` for one by its number, `cuda:sm_90` for those of an architecture: code for them is
/// written where no GPU runs it.
///
/// # Errors
/// [`Error::Input`] for other names and devices that are not there, [`Error::Toolchain`] where there is no
/// driver.
pub fn named(target: &str) -> Result<Arc<dyn Backend>> {
    match target.split_once(':').unwrap_or((target, "")) {
        ("native", "") => Ok(native()),
        ("opencl", which) => Ok(Arc::new(OpenClBackend::new(which)?)),
        (name, "") if name.starts_with("opencl+") => {
            Ok(Arc::new(OpenClBackend::new(&name["opencl".len()..])?))
        }
        ("cuda", which) => Ok(Arc::new(CudaBackend::new(which)?)),
        _ => Err(Error::input(format!("there is no target `{target}`")).help(
            "targets are `native`, `opencl`, `opencl:NUMBER`, `opencl:NAME`, `cuda`, `cuda:NUMBER` and `cuda:sm_80`; to compile, the triple of another machine, too",
        )),
    }
}

/// The backend of a target.
///
/// # Errors
/// As [`named`], for a device.
pub fn of_target(target: &Target) -> Result<Arc<dyn Backend>> {
    match &*target.triple {
        opencl::FAMILY => named(&format!("opencl:{}", target.cpu)),
        CUDA => named(&format!("cuda:{}", target.cpu)),
        _ => Ok(native()),
    }
}

/// What arithmetic a device has, for which C text is made, and the language of that.
///
/// # Errors
/// [`Error::Input`] for a target that is no device.
pub fn device_arithmetic(target: &Target) -> Result<(Arithmetic, Language)> {
    let language = match &*target.triple {
        opencl::FAMILY => Language::OpenCl,
        CUDA => Language::Cuda,
        _ => {
            return Err(Error::input("C text of kernels is made for a device")
                .help("give --target opencl or --target cuda:sm_80"));
        }
    };
    Ok((Arithmetic::from_target(target), language))
}

/// PTX of the text of kernels in CUDA C++, for a target that is a GPU of NVIDIA.
///
/// # Errors
/// [`Error::Toolchain`] where NVIDIA's compiler is missing or fails.
pub fn ptx(text: &str, target: &Target) -> Result<String> {
    cuda::ptx(text, &target.cpu)
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

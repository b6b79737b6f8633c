//! The backends that there are: the one place that names them.

use std::sync::Arc;

use tilewright_ir::{Error, Result};
use tilewright_target::{Backend, CodeOptions, OptLevel, Target};

use crate::backend::LlvmBackend;
use crate::library::{Built, Library, Program};
use crate::opencl::OpenClBackend;

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

/// A text on the way to code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Text {
    /// The backend's own intermediate form after its optimisations; before them with [`OptLevel::None`].
    Intermediate,
    /// Assembly.
    Assembly,
}

/// Writes whole programs as files with a C interface.
pub trait FileBackend: Sync {
    /// A shared library and its header.
    ///
    /// # Errors
    /// [`Error::Toolchain`] if there is no C compiler or it fails, [`Error::Io`] if a temporary file
    /// cannot be written, [`Error::Input`] if the name is not a C identifier,
    /// [`Error::Unsupported`] for constants of 2 GB and more; and those of code generation.
    fn shared(&self, library: &Library<'_>, options: &CodeOptions<'_>) -> Result<Built>;

    /// A static library and its header.
    ///
    /// # Errors
    /// As [`FileBackend::shared`]; [`Error::Unsupported`] for further objects and libraries, which programs
    /// are linked with themselves.
    fn archive(&self, library: &Library<'_>, options: &CodeOptions<'_>) -> Result<Built>;

    /// An object file of a program whose symbols begin with `name`, and its header.
    ///
    /// # Errors
    /// Those of code generation, and [`Error::Input`] if the name is not a C identifier.
    fn object(
        &self,
        name: &str,
        program: &Program<'_>,
        target: &Target,
        options: &CodeOptions<'_>,
    ) -> Result<Built>;

    /// A program as text, with symbols that begin with `name`.
    ///
    /// # Errors
    /// As [`FileBackend::object`].
    fn text(
        &self,
        name: &str,
        program: &Program<'_>,
        text: Text,
        target: &Target,
        level: OptLevel,
    ) -> Result<String>;
}

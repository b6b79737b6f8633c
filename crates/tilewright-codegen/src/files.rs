//! Files of code: what a backend makes of whole programs, beside code for this process.

use tilewright_ir::Result;
use tilewright_target::{CodeOptions, OptLevel, Target};

use crate::library::{Built, Library, Program};

/// A text on the way to code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Text {
    /// The backend's own intermediate form after its optimisations; before them with [`OptLevel::None`].
    Intermediate,
    Assembly,
}

/// Writes whole programs as files with a C interface.
pub trait FileBackend: Sync {
    /// A shared library and its header.
    ///
    /// # Errors
    /// [`Toolchain`](tilewright_ir::Error::Toolchain) if there is no C compiler or it fails, [`Io`](tilewright_ir::Error::Io) if a temporary file
    /// cannot be written, [`Input`](tilewright_ir::Error::Input) if the name is not a C identifier,
    /// [`Unsupported`](tilewright_ir::Error::Unsupported) for constants of 2 GB and more; and those of code generation.
    fn shared(&self, library: &Library<'_>, options: &CodeOptions<'_>) -> Result<Built>;

    /// A static library and its header.
    ///
    /// # Errors
    /// As [`FileBackend::shared`]; [`Unsupported`](tilewright_ir::Error::Unsupported) for further objects and libraries, which programs
    /// are linked with themselves.
    fn archive(&self, library: &Library<'_>, options: &CodeOptions<'_>) -> Result<Built>;

    /// An object file of a program whose symbols begin with `name`, and its header.
    ///
    /// # Errors
    /// Those of code generation, and [`Input`](tilewright_ir::Error::Input) if the name is not a C identifier.
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

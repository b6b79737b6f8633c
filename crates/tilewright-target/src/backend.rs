//! Backends: lowered functions in, something that runs out.
//!
//! A [`Backend`] makes [`Code`] for a [`Target`]. What runs code (memory, threads, the order of
//! kernels) knows nothing of how it was made; what makes it knows nothing of graphs and layouts.

use std::path::PathBuf;
use std::sync::Arc;

use tilewright_ir::{Error, Lowered, Result};

use crate::abi::Workers;
use crate::{Device, Target};

/// How much a backend optimises.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum OptLevel {
    /// Not at all; for looking at what was generated.
    None,
    /// What is cheap.
    Less,
    /// Everything.
    #[default]
    Full,
}

/// Is told how many parts of how many are done, possibly from several threads.
pub type Watch<'a> = &'a (dyn Fn(usize, usize) + Sync);

/// Is told what is wrong and stops nothing, as sentences for people.
pub type Warn<'a> = &'a (dyn Fn(&str) + Sync);

/// How code is made.
#[derive(Clone, Default)]
pub struct CodeOptions<'a> {
    /// How much is optimised.
    pub level: OptLevel,
    /// Keep what was made on disk, and take it from there.
    pub cache: bool,
    /// Objects and shared libraries with the C functions that are called.
    pub link: &'a [PathBuf],
    /// Progress.
    pub watch: Option<Watch<'a>>,
    /// Warnings.
    pub warn: Option<Warn<'a>>,
}

/// Makes code.
pub trait Backend: Send + Sync {
    /// Its name, for people.
    fn name(&self) -> &str;

    /// All that decides what code it makes, beside what it is given: for caches.
    ///
    /// # Errors
    /// As [`Backend::host`].
    fn identity(&self) -> Result<String> {
        self.host().map(|_| self.name().to_owned())
    }

    /// The machine that it makes code for by default: this one.
    ///
    /// # Errors
    /// [`Error::Toolchain`] if what it needs is not installed.
    fn host(&self) -> Result<Target>;

    /// Refuses a target that it cannot make code for.
    ///
    /// # Errors
    /// [`Error::Input`] for names that it does not know.
    fn check_target(&self, target: &Target) -> Result<()>;

    /// Refuses a target whose code this machine cannot run; also those of
    /// [`Backend::check_target`].
    ///
    /// # Errors
    /// [`Error::Unsupported`] that says what is missing.
    fn check_host(&self, target: &Target) -> Result<()> {
        self.check_target(target)
    }

    /// Refuses functions that use what the target lacks; at least memory of a scope or of a physical
    /// rank that it does not have.
    ///
    /// # Errors
    /// [`Error::Unsupported`] with the name of the function and
    /// of the buffer, at its place.
    fn check(&self, module: &Lowered, functions: &[Arc<str>], target: &Target) -> Result<()> {
        functions.iter().try_for_each(|name| {
            target.check_memory(module.tensor(name)?).map_err(|e| {
                let e = e.context(format!("function `{name}`"));
                module.source.iter().fold(e, |e, source| e.in_source(source))
            })
        })
    }

    /// Makes code for functions of a module, to run in this process.
    ///
    /// # Errors
    /// Those of [`Backend::check_host`] and [`Backend::check`];
    /// [`Error::Unsupported`] for what it has no code for;
    /// [`Error::Toolchain`] if what it needs is missing or fails.
    fn compile(
        &self,
        module: &Lowered,
        functions: &[Arc<str>],
        target: &Target,
        options: &CodeOptions<'_>,
    ) -> Result<Arc<dyn Code>>;

    /// Whether [`Backend::pack`] is there.
    fn packs(&self) -> bool {
        false
    }

    /// Makes code for functions of a module as a native shared library, for a file that starts without
    /// the backend.
    ///
    /// # Errors
    /// Those of [`Backend::compile`] but for the host; [`Error::Unsupported`] by a backend that makes no
    /// such library.
    fn pack(
        &self,
        _module: &Lowered,
        _functions: &[Arc<str>],
        _target: &Target,
        _options: &CodeOptions<'_>,
    ) -> Result<Vec<u8>> {
        Err(Error::unsupported(format!("the backend {} makes no files", self.name())))
    }
}

/// Functions that can be called in this process, from any thread and several at once.
///
/// # Safety
/// A function accesses nothing but its arguments, which are as large as the types of its parameters
/// say, and memory of its own.
pub unsafe trait Code: Send + Sync {
    /// The number of a function, for [`Code::call`]; `None` if there is none of this name.
    fn find(&self, name: &str) -> Option<usize>;

    /// The device whose memory the functions work on; `None` for memory of the host.
    fn device(&self) -> Option<Arc<dyn Device>> {
        None
    }

    /// Calls a function. On a device, it may still be running when this returns, but for one with
    /// assertions.
    ///
    /// # Errors
    /// [`Error::Execution`] with the place, if an assertion of the
    /// function fails.
    ///
    /// # Safety
    /// The number is one that [`Code::find`] gave. There is one argument for each parameter, scratch
    /// memory included: the value of a scalar, or the address, on the device where there is one, of as
    /// many bytes as the tensor has, which no other code accesses during the call unless all only read them. Tensors that the
    /// function writes overlap no others.
    unsafe fn call(&self, function: usize, args: &[u64], workers: &Workers) -> Result<()>;
}

//! LLVM as a library that is found and loaded at run time.
//!
//! Nothing is linked and no package has to be installed: the Rust toolchain brings a complete
//! libLLVM, and any other one from LLVM 16 on serves as well. [`Llvm::get`] finds it once per
//! process; [`Llvm::compile`] turns textual IR into an object file, assembly or optimised IR;
//! [`Jit`] loads objects into this process.
//!
//! * [`find`]: where libraries are looked for.
//! * `api`: the table of C functions.
//! * `compile`: text to object file.
//! * `fatal`: errors of LLVM's that end the process otherwise.
//! * `jit`: object file to callable code.
//!
//! ```
//! use tilewright_codegen::llvm::{Emit, Jit, Llvm, OptLevel};
//!
//! let llvm = Llvm::get()?;
//! let ir = "define i32 @twice(i32 %x) { %y = shl i32 %x, 1  ret i32 %y }";
//! let object = llvm.compile(ir, &llvm.host(), OptLevel::Full, Emit::Object)?;
//! let jit = Jit::new(llvm)?;
//! jit.add_object(&object)?;
//! let twice = jit.lookup("twice")?.as_ptr();
//! // SAFETY: the type is that of the definition, and `jit` is still there.
//! let twice: extern "C" fn(i32) -> i32 = unsafe { std::mem::transmute(twice) };
//! assert_eq!(twice(21), 42);
//! # Ok::<(), tilewright_ir::Error>(())
//! ```
//!
//! **Architecture invariant:** this module knows LLVM's C interface and nothing of tensor
//! functions; it is the only one in the project that does.

mod api;
mod buffer;
mod compile;
mod fatal;
pub mod find;
mod jit;
mod load;
pub(crate) mod passes;

use std::ffi::{CStr, CString, c_char};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use tilewright_ir::{Error, Result};
use tilewright_target::Arch;
pub use tilewright_target::{OptLevel, Target};

use api::{Api, ErrorObject, Functions};
pub use compile::Emit;
use find::Search;
pub use jit::Jit;
use load::Loading;
pub use load::{SearchedPath, Status};

/// An LLVM that is loaded and initialised. All methods may be called from several threads at once.
pub struct Llvm {
    api: Api,
    /// As it was found.
    path: PathBuf,
    /// Without links.
    resolved: PathBuf,
    /// This machine; found at the first call that needs it.
    host: OnceLock<Target>,
}

/// The version of an LLVM library.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// 22 in 22.1.2.
    pub major: u32,
    /// 1 in 22.1.2.
    pub minor: u32,
    /// 2 in 22.1.2.
    pub patch: u32,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

impl Loading<Llvm> {
    /// Walks until there is an LLVM. For one thread at a time: it initialises what it loads.
    pub fn llvm(search: Search) -> Self {
        Loading::new(search, |file| {
            // Not left to the dynamic linker: it would search its own path for a name without a
            // slash.
            let resolved = file.canonicalize().map_err(|error| error.to_string())?;
            if !resolved.is_file() {
                return Err("not a file".into());
            }
            let api = Api::load(&resolved)?;
            let host = OnceLock::new();
            Ok(Llvm { api, path: file.to_path_buf(), resolved, host })
        })
    }
}

/// The outcome for this process. It is never dropped: code that it generated may be running at
/// exit.
static LOADED: OnceLock<Loading<Llvm>> = OnceLock::new();

fn loaded() -> &'static Loading<Llvm> {
    LOADED.get_or_init(|| Loading::llvm(Search::from_env()))
}

impl Llvm {
    /// The LLVM of this process; the first call looks for it and loads it.
    ///
    /// # Errors
    /// [`Error::Toolchain`] if there is none, with every place that was looked at, or if the one
    /// that [`find::OVERRIDE`] names cannot be used.
    pub fn get() -> Result<&'static Llvm> {
        let loading = loaded();
        loading.library.as_ref().ok_or_else(|| loading.error())
    }

    /// Every place where LLVM is looked for, with what is there; not only those up to the one in
    /// use.
    pub fn survey() -> Vec<SearchedPath> {
        loaded().survey()
    }

    /// The file that was loaded, under the name by which it was found.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The version that the library reports.
    pub fn version(&self) -> Version {
        let (major, minor, patch) = self.api.version;
        Version { major, minor, patch }
    }

    /// The version and the name of the file behind all links: what tells this LLVM from a patched
    /// build of the same version; what is kept from it, and the options that it is given.
    pub(crate) fn identity(&self) -> String {
        let file = self.resolved.file_name().unwrap_or_default();
        let options = api::OPTIONS.map(CStr::to_string_lossy).join(" ");
        let avoided = self.avoided_features();
        format!("{} {} {avoided} {options}", self.version(), file.to_string_lossy())
    }

    /// Features of x86 CPUs that this LLVM generates wrong code with, or ends the process.
    ///
    /// From LLVM 22 on, `vpmov*2m` followed by a move of the mask to a general register becomes
    /// `vmovmsk`, which does not have the registers above 15: it reads another one (LLVM issue
    /// 191304). Without AVX512DQ there is no such instruction for lanes of 32 and 64 bits. For
    /// those of 8 bits it would take leaving out AVX512BW, without which other code does not
    /// compile. And without AVX512DQ, but with AVX512FP16, it has no way to convert vectors of
    /// unsigned integers of 64 bits to floats, and traps; no code here computes in halves.
    fn avoided_features(&self) -> &'static str {
        match self.version().major {
            22.. => "-avx512dq,-avx512fp16",
            _ => "",
        }
    }

    /// The target families that this library can generate code for, as LLVM names them: `X86`,
    /// `AArch64`, `RISCV`, `NVPTX`.
    pub fn families(&self) -> &[&'static str] {
        &self.api.families
    }

    /// The machine that this process runs on.
    pub fn host(&self) -> Target {
        self.host.get_or_init(|| self.ask_host()).clone()
    }

    fn ask_host(&self) -> Target {
        let f = self.functions();
        // SAFETY: the three functions return a message each, which `take_message` frees.
        let [triple, cpu, features] = unsafe {
            [
                self.take_message((f.LLVMGetDefaultTargetTriple)()),
                self.take_message((f.LLVMGetHostCPUName)()),
                self.take_message((f.LLVMGetHostCPUFeatures)()),
            ]
        };
        Target::new(triple, cpu, sorted(&features)).with_host()
    }

    /// Refuses the CPUs and features that LLVM does not know.
    ///
    /// # Errors
    /// [`Error::Input`] with the nearest name.
    pub fn check_target(&self, target: &Target) -> Result<()> {
        let host = self.host();
        let same = Arch::from_triple(&host.triple) == Arch::from_triple(&target.triple);
        if same && host.cpu == target.cpu && host.features == target.features {
            return Ok(());
        }
        let known = same.then_some(host.features.as_str());
        let Target { triple, cpu, features, .. } = target;
        // What LLVM calls this machine it knows.
        let cpu = if same && *cpu == host.cpu { "" } else { cpu };
        tilewright_target::check(triple, cpu, features, self.version().major, known)
    }

    /// Refuses code that this machine cannot run.
    ///
    /// # Errors
    /// [`Error::Unsupported`] that names the missing features; those of [`Llvm::check_target`].
    pub fn check_host(&self, target: &Target) -> Result<()> {
        self.check_target(target)?;
        let host = self.host();
        let (have, need) = (host.known_features(), target.known_features());
        if have.arch() != need.arch() {
            return refused_host(
                format!("this machine cannot run code for {}", target.triple),
                &host,
            );
        }
        match need.missing_in(have) {
            missing if missing.is_empty() => Ok(()),
            missing => refused_host(
                format!(
                    "this machine cannot run code for {}: it lacks {}",
                    if target.cpu.is_empty() { "these features" } else { &target.cpu },
                    missing.join(", ")
                ),
                &host,
            ),
        }
    }

    fn functions(&self) -> &Functions {
        &self.api.functions
    }

    /// Copies and frees a message of LLVM's; empty for null.
    ///
    /// # Safety
    /// `message` is null or one that LLVM hands over for `LLVMDisposeMessage`.
    unsafe fn take_message(&self, message: *mut c_char) -> String {
        if message.is_null() {
            return String::new();
        }
        // SAFETY: a message ends with a zero; the caller hands it over.
        unsafe {
            let text = CStr::from_ptr(message).to_string_lossy().into_owned();
            (self.functions().LLVMDisposeMessage)(message);
            text
        }
    }

    /// Turns an error object of LLVM's into its text, and frees it.
    ///
    /// # Safety
    /// `error` is null, which stands for success, or an error that the caller owns.
    unsafe fn check(&self, error: *mut ErrorObject) -> Result<(), String> {
        if error.is_null() {
            return Ok(());
        }
        // SAFETY: getting the message consumes the error; the message has a disposal of its own.
        unsafe {
            let message = (self.functions().LLVMGetErrorMessage)(error);
            let text = CStr::from_ptr(message).to_string_lossy().into_owned();
            (self.functions().LLVMDisposeErrorMessage)(message);
            Err(text)
        }
    }
}

fn refused_host(why: String, host: &Target) -> Result<()> {
    Err(Error::unsupported(why)
        .note(format!("this is {} ({})", host.cpu, host.triple))
        .help("compile to a file (.so, .o) for that machine, or run for `native`"))
}

/// A list of features in a fixed order: LLVM gives that of a hash table. What the CPU lacks comes
/// last, and so takes away what depends on it.
fn sorted(features: &str) -> String {
    let mut features: Vec<_> = features.split(',').collect();
    features.sort_unstable();
    features.join(",")
}

/// The text as LLVM takes it.
fn c_string(what: &str, text: &str) -> Result<CString> {
    CString::new(text).map_err(|error| {
        Error::input(format!("{what} contains a NUL character, at byte {}", error.nul_position()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_an_llvm_and_it_knows_this_machine() {
        let llvm = Llvm::get().expect("an LLVM");
        assert!(llvm.version().major >= find::OLDEST_MAJOR);
        assert!(llvm.path().is_file());
        let host = llvm.host();
        assert!(host.triple.starts_with(std::env::consts::ARCH), "{host:?}");
        assert!(!host.cpu.is_empty());
        let first = Llvm::get().map(|again| std::ptr::eq(again, llvm));
        assert!(first.expect("an LLVM"), "it is loaded once");
        let used = Llvm::survey().into_iter().flat_map(|place| place.files);
        let used: Vec<_> = used.filter(|(_, status)| *status == Status::Used).collect();
        assert_eq!(used, [(llvm.path().to_path_buf(), Status::Used)]);
    }

    #[test]
    fn features_come_in_a_fixed_order() {
        assert_eq!(sorted("-xop,+avx,-amx,+sse"), "+avx,+sse,-amx,-xop");
        assert_eq!(sorted(""), "");
    }
}

//! The functions of LLVM's C interface that Tilewright calls, and their look-up in a library.
//!
//! Names, types and ownership are those of the headers `llvm-c/*.h`. Each kind of object has an
//! opaque type of its own, so that handing a module to a function that wants a context does not
//! compile.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::path::Path;

use tilewright_dylib::Library;

macro_rules! opaque {
    ($($name:ident),* $(,)?) => { $(
        #[doc = concat!("What an `LLVM", stringify!($name), "Ref` points to.")]
        #[repr(C)]
        pub(crate) struct $name { _private: [u8; 0] }
    )* };
}

opaque!(
    Context,
    DefinitionGenerator,
    DiagnosticInfo,
    ErrorObject,
    ExecutionSession,
    Dylib,
    LlJit,
    LlJitBuilder,
    MemoryBuffer,
    ModuleObject,
    PassBuilderOptions,
    SymbolName,
    TargetData,
    TargetEntry,
    TargetMachine,
);

/// `LLVMDiagnosticHandler`.
pub(crate) type DiagnosticHandler = unsafe extern "C" fn(*mut DiagnosticInfo, *mut c_void);
/// `LLVMFatalErrorHandler`.
pub(crate) type FatalErrorHandler = unsafe extern "C" fn(*const c_char);
/// `LLVMOrcErrorReporterFunction`; the reporter owns the error.
pub(crate) type ErrorReporter = unsafe extern "C" fn(*mut c_void, *mut ErrorObject);
/// `LLVMOrcSymbolPredicate`.
pub(crate) type SymbolPredicate = unsafe extern "C" fn(*mut c_void, *mut SymbolName) -> c_int;

/// `LLVMDiagnosticSeverity`: the value that stands for an error.
pub(crate) const SEVERITY_ERROR: c_int = 0;
/// `LLVMVerifierFailureAction`: report through the status that is returned.
pub(crate) const VERIFY_RETURN_STATUS: c_int = 2;
/// `LLVMRelocMode`: position-independent code.
pub(crate) const RELOC_PIC: c_int = 2;
/// `LLVMCodeModel`: the target's default.
pub(crate) const CODE_MODEL_DEFAULT: c_int = 0;
/// `LLVMCodeGenFileType`: assembly text.
pub(crate) const FILE_ASSEMBLY: c_int = 0;
/// `LLVMCodeGenFileType`: an object file.
pub(crate) const FILE_OBJECT: c_int = 1;

tilewright_dylib::functions! {
    LLVMGetVersion: fn(*mut c_uint, *mut c_uint, *mut c_uint);
    LLVMInstallFatalErrorHandler: fn(FatalErrorHandler);
    LLVMDisposeMessage: fn(*mut c_char);
    LLVMGetErrorMessage: fn(*mut ErrorObject) -> *mut c_char;
    LLVMDisposeErrorMessage: fn(*mut c_char);

    LLVMContextCreate: fn() -> *mut Context;
    LLVMContextDispose: fn(*mut Context);
    LLVMContextSetDiagnosticHandler: fn(*mut Context, Option<DiagnosticHandler>, *mut c_void);
    LLVMGetDiagInfoDescription: fn(*mut DiagnosticInfo) -> *mut c_char;
    LLVMGetDiagInfoSeverity: fn(*mut DiagnosticInfo) -> c_int;

    LLVMCreateMemoryBufferWithMemoryRangeCopy: fn(
        *const c_char, usize, *const c_char,
    ) -> *mut MemoryBuffer;
    LLVMGetBufferStart: fn(*mut MemoryBuffer) -> *const c_char;
    LLVMGetBufferSize: fn(*mut MemoryBuffer) -> usize;
    LLVMDisposeMemoryBuffer: fn(*mut MemoryBuffer);

    LLVMParseIRInContext: fn(
        *mut Context, *mut MemoryBuffer, *mut *mut ModuleObject, *mut *mut c_char,
    ) -> c_int;
    LLVMVerifyModule: fn(*mut ModuleObject, c_int, *mut *mut c_char) -> c_int;
    LLVMPrintModuleToString: fn(*mut ModuleObject) -> *mut c_char;
    LLVMSetTarget: fn(*mut ModuleObject, *const c_char);
    LLVMSetModuleDataLayout: fn(*mut ModuleObject, *mut TargetData);
    LLVMDisposeModule: fn(*mut ModuleObject);

    LLVMGetDefaultTargetTriple: fn() -> *mut c_char;
    LLVMParseCommandLineOptions: fn(c_int, *const *const c_char, *const c_char);
    LLVMGetHostCPUName: fn() -> *mut c_char;
    LLVMGetHostCPUFeatures: fn() -> *mut c_char;
    LLVMGetTargetFromTriple: fn(*const c_char, *mut *mut TargetEntry, *mut *mut c_char) -> c_int;
    LLVMCreateTargetMachine: fn(
        *mut TargetEntry, *const c_char, *const c_char, *const c_char, c_int, c_int, c_int,
    ) -> *mut TargetMachine;
    LLVMDisposeTargetMachine: fn(*mut TargetMachine);
    LLVMCreateTargetDataLayout: fn(*mut TargetMachine) -> *mut TargetData;
    LLVMDisposeTargetData: fn(*mut TargetData);
    LLVMTargetMachineEmitToMemoryBuffer: fn(
        *mut TargetMachine, *mut ModuleObject, c_int, *mut *mut c_char, *mut *mut MemoryBuffer,
    ) -> c_int;

    LLVMCreatePassBuilderOptions: fn() -> *mut PassBuilderOptions;
    LLVMDisposePassBuilderOptions: fn(*mut PassBuilderOptions);
    LLVMRunPasses: fn(
        *mut ModuleObject, *const c_char, *mut TargetMachine, *mut PassBuilderOptions,
    ) -> *mut ErrorObject;

    LLVMOrcCreateLLJIT: fn(*mut *mut LlJit, *mut LlJitBuilder) -> *mut ErrorObject;
    LLVMOrcDisposeLLJIT: fn(*mut LlJit) -> *mut ErrorObject;
    LLVMOrcLLJITGetExecutionSession: fn(*mut LlJit) -> *mut ExecutionSession;
    LLVMOrcExecutionSessionSetErrorReporter: fn(*mut ExecutionSession, ErrorReporter, *mut c_void);
    LLVMOrcLLJITGetMainJITDylib: fn(*mut LlJit) -> *mut Dylib;
    LLVMOrcLLJITGetGlobalPrefix: fn(*mut LlJit) -> c_char;
    LLVMOrcLLJITAddObjectFile: fn(*mut LlJit, *mut Dylib, *mut MemoryBuffer) -> *mut ErrorObject;
    LLVMOrcLLJITLookup: fn(*mut LlJit, *mut u64, *const c_char) -> *mut ErrorObject;
    LLVMOrcCreateDynamicLibrarySearchGeneratorForProcess: fn(
        *mut *mut DefinitionGenerator, c_char, Option<SymbolPredicate>, *mut c_void,
    ) -> *mut ErrorObject;
    LLVMOrcCreateDynamicLibrarySearchGeneratorForPath: fn(
        *mut *mut DefinitionGenerator, *const c_char, c_char, Option<SymbolPredicate>, *mut c_void,
    ) -> *mut ErrorObject;
    LLVMOrcJITDylibAddGenerator: fn(*mut Dylib, *mut DefinitionGenerator);
}

/// The target families that Tilewright has code for, as LLVM names them. A library may lack some.
const FAMILIES: [&str; 4] = ["X86", "AArch64", "RISCV", "NVPTX"];

/// Options of LLVM's code generator, which has no other way to set them.
///
/// Loop strength reduction finds induction variables for the addresses of a loop. Ours come loop by loop
/// (`emit::address`), and it changes none of them for the better; it takes an eighth of LLVM's time. Neither does
/// scheduling once more behind register allocation, which takes a twentieth. Measured on networks and transformers with
/// AVX2 and AVX-512: kernels take 0.99 of their time without both.
pub(super) const OPTIONS: [&CStr; 2] = [c"-disable-lsr", c"-disable-post-ra"];

/// The newest major version that is known to have [`OPTIONS`]: LLVM ends the process where it does not know one.
const NEWEST_WITH_OPTIONS: c_uint = 22;

/// A library that is loaded, checked and initialised.
pub(crate) struct Api {
    pub functions: Functions,
    pub version: (u32, u32, u32),
    pub families: Vec<&'static str>,
    /// Keeps the functions alive.
    _library: Library,
}

impl Api {
    /// Loads the library at `path`. On failure the text says what is wrong with it.
    pub fn load(path: &Path) -> Result<Api, String> {
        too_old_by_name(path).map_or(Ok(()), Err)?;
        let is_ours = !tilewright_dylib::is_loaded(path);
        // SAFETY: a library whose name begins with `libLLVM`, or that the user names as LLVM. Its
        // constructors register options and passes.
        let library = unsafe { tilewright_dylib::open(path) }?;
        // SAFETY: the types are those of LLVM's headers, unchanged from LLVM 16 on. The library is
        // kept beside the functions.
        let functions = unsafe { Functions::resolve(&library) }.map_err(|reason| {
            format!("not an LLVM from {} on: {reason}", super::find::OLDEST_MAJOR)
        })?;
        let mut version = (0, 0, 0);
        // SAFETY: three valid places to write to.
        unsafe {
            (functions.LLVMGetVersion)(&mut version.0, &mut version.1, &mut version.2);
        }
        if is_too_old(version.0) {
            return Err(too_old(version.0));
        }
        // SAFETY: the handler is a function of this program, and never goes away.
        unsafe { (functions.LLVMInstallFatalErrorHandler)(super::fatal::report) };
        // SAFETY: as above; the caller loads a library from one thread.
        let families =
            FAMILIES.into_iter().filter(|family| unsafe { initialise(&library, family) });
        let families = families.collect();
        // Options are those of the whole process, and may be set once.
        if is_ours && version.0 <= NEWEST_WITH_OPTIONS {
            set_options(&functions);
        }
        Ok(Api { functions, version, families, _library: library })
    }
}

fn set_options(functions: &Functions) {
    let program = [c"tilewright".as_ptr()];
    let all: Vec<*const c_char> = program.into_iter().chain(OPTIONS.map(CStr::as_ptr)).collect();
    let Ok(count) = c_int::try_from(all.len()) else { return };
    // SAFETY: so many texts, each ended by NUL, that are never freed; no other thread uses the library yet.
    unsafe { (functions.LLVMParseCommandLineOptions)(count, all.as_ptr(), std::ptr::null()) };
}

/// Why a library with this name need not be opened.
pub(crate) fn too_old_by_name(path: &Path) -> Option<String> {
    let major = super::find::major_in_name(path.file_name()?)?;
    is_too_old(major).then(|| too_old(major))
}

fn is_too_old(major: u32) -> bool {
    major < super::find::OLDEST_MAJOR
}

fn too_old(major: u32) -> String {
    format!("LLVM {major} is too old: {} or newer is needed", super::find::OLDEST_MAJOR)
}

/// Makes a target family usable; `false` if the library was built without it.
///
/// # Safety
/// `library` is an LLVM, and no other thread is using it.
unsafe fn initialise(library: &Library, family: &str) -> bool {
    let function = |part: &str| {
        let name = format!("LLVMInitialize{family}{part}\0");
        // SAFETY: the initialisers take nothing and return nothing.
        unsafe { library.get::<unsafe extern "C" fn()>(name.as_str()) }.ok()
    };
    let needed = ["TargetInfo", "Target", "TargetMC", "AsmPrinter"].map(function);
    let [Some(info), Some(target), Some(machine_code), Some(printer)] = needed else {
        return false;
    };
    // SAFETY: the caller's promise; LLVM allows repeated initialisation.
    unsafe {
        info();
        target();
        machine_code();
        printer();
        // Only for inline assembly, which not every family has.
        if let Some(parser) = function("AsmParser") {
            parser();
        }
    }
    true
}

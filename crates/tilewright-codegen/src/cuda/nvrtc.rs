//! NVIDIA's compiler for CUDA C++ as a library, found at run time.
//!
//! It is looked for as LLVM is: the file that `TILEWRIGHT_NVRTC` names, and then nothing else; where the
//! dynamic linker finds it; in a toolkit of CUDA; in the packages of the Python environment in use.

use std::ffi::{CString, c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::ptr::{null, null_mut};
use std::sync::OnceLock;

use tilewright_ir::{Error, Result};

type Program = *mut c_void;

tilewright_dylib::functions! {
    nvrtcVersion: fn(*mut c_int, *mut c_int) -> c_int;
    nvrtcCreateProgram: fn(*mut Program, *const c_char, *const c_char, c_int, *const *const c_char, *const *const c_char) -> c_int;
    nvrtcDestroyProgram: fn(*mut Program) -> c_int;
    nvrtcCompileProgram: fn(Program, c_int, *const *const c_char) -> c_int;
    nvrtcGetPTXSize: fn(Program, *mut usize) -> c_int;
    nvrtcGetPTX: fn(Program, *mut c_char) -> c_int;
    nvrtcGetCUBINSize: fn(Program, *mut usize) -> c_int;
    nvrtcGetCUBIN: fn(Program, *mut c_char) -> c_int;
    nvrtcGetProgramLogSize: fn(Program, *mut usize) -> c_int;
    nvrtcGetProgramLog: fn(Program, *mut c_char) -> c_int;
}

struct Nvrtc {
    functions: Functions,
    file: PathBuf,
    _library: tilewright_dylib::Library,
}

/// PTX of CUDA C++ for an architecture such as `sm_80`.
///
/// # Errors
/// [`Error::Toolchain`] where there is no compiler on this machine, with where it was looked for, and with
/// what the compiler says where it fails.
pub fn ptx(text: &str, architecture: &str) -> Result<String> {
    let library = Nvrtc::get()?;
    let made = library.compile(text, &architecture.replace("sm_", "compute_"), |program| {
        let f = &library.functions;
        library.made(program, f.nvrtcGetPTXSize, f.nvrtcGetPTX)
    })?;
    Ok(text_of(&made))
}

/// Machine code of CUDA C++ for an architecture.
///
/// # Errors
/// As [`ptx`].
pub(super) fn machine_code(text: &str, architecture: &str) -> Result<Vec<u8>> {
    let library = Nvrtc::get()?;
    library.compile(text, architecture, |program| {
        let f = &library.functions;
        library.made(program, f.nvrtcGetCUBINSize, f.nvrtcGetCUBIN)
    })
}

/// The file of the compiler, and its version.
///
/// # Errors
/// As [`ptx`].
pub fn compiler() -> Result<(&'static Path, String)> {
    let library = Nvrtc::get()?;
    let (mut major, mut minor) = (0, 0);
    // SAFETY: the library writes two numbers.
    unsafe { (library.functions.nvrtcVersion)(&mut major, &mut minor) };
    Ok((&library.file, format!("{major}.{minor}")))
}

/// A text that ends with a zero.
fn text_of(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

impl Nvrtc {
    /// The compiler, as it is found on this machine.
    fn get() -> Result<&'static Nvrtc> {
        static LIBRARY: OnceLock<std::result::Result<Nvrtc, Vec<String>>> = OnceLock::new();
        LIBRARY.get_or_init(load).as_ref().map_err(|tried| {
            let error = Error::toolchain("there is no NVRTC, NVIDIA's compiler, on this machine");
            tried.iter().fold(error, |error, text| error.note(text.clone())).help(
                "install CUDA, or the package nvidia-cuda-nvrtc-cu12 of Python's index; TILEWRIGHT_NVRTC=FILE \
                 names the library; an output with the ending .cu is the source",
            )
        })
    }

    /// Compiles a text for an architecture, real or virtual, and takes what was made.
    fn compile(
        &self,
        text: &str,
        architecture: &str,
        take: impl FnOnce(Program) -> Result<Vec<u8>>,
    ) -> Result<Vec<u8>> {
        let f = &self.functions;
        let source = CString::new(text).map_err(|_| Error::internal("a text with a zero in it"))?;
        let architecture = format!("--gpu-architecture={architecture}");
        let options = CString::new(architecture).map_err(|_| Error::internal("a zero"))?;
        // Products and sums round together only where the text says so.
        let options = [options.as_ptr(), c"--fmad=false".as_ptr(), c"--std=c++17".as_ptr()];
        let mut program: Program = null_mut();
        // SAFETY: the texts end with a zero; there are no headers.
        let code = unsafe {
            (f.nvrtcCreateProgram)(
                &mut program,
                source.as_ptr(),
                c"kernels.cu".as_ptr(),
                0,
                null(),
                null(),
            )
        };
        if code != 0 {
            return Err(Error::toolchain(format!("NVRTC takes no program: error {code}")));
        }
        // SAFETY: the program is there; there are so many options, which end with a zero.
        let code =
            unsafe { (f.nvrtcCompileProgram)(program, options.len() as c_int, options.as_ptr()) };
        let made = if code == 0 {
            take(program)
        } else {
            let log = self.made(program, f.nvrtcGetProgramLogSize, f.nvrtcGetProgramLog);
            let log = text_of(&log.unwrap_or_default());
            let first = log.lines().take(20).collect::<Vec<_>>().join("\n");
            Err(Error::toolchain(format!("NVRTC fails: error {code}")).note(first))
        };
        // SAFETY: it was made above, and nothing uses it any more.
        unsafe { (f.nvrtcDestroyProgram)(&mut program) };
        made
    }

    /// What is asked for by its length and then its bytes.
    fn made(
        &self,
        program: Program,
        length: unsafe extern "C" fn(Program, *mut usize) -> c_int,
        get: unsafe extern "C" fn(Program, *mut c_char) -> c_int,
    ) -> Result<Vec<u8>> {
        let mut size = 0usize;
        // SAFETY: the program is there.
        let code = unsafe { length(program, &mut size) };
        let mut room = vec![0u8; size];
        // SAFETY: there is room for as many bytes as it says.
        if code != 0 || unsafe { get(program, room.as_mut_ptr().cast()) } != 0 {
            return Err(Error::toolchain("NVRTC gives no code"));
        }
        Ok(room)
    }
}

fn load() -> std::result::Result<Nvrtc, Vec<String>> {
    // SAFETY: the libraries have the name of NVIDIA's compiler, or one is named by the user.
    unsafe {
        tilewright_dylib::open_first(places(), |library, file| {
            // SAFETY: the types are those of its header, and the library stays open beside them.
            let functions = Functions::resolve(&library)?;
            Ok(Nvrtc { functions, file: file.to_path_buf(), _library: library })
        })
    }
}

fn places() -> Vec<PathBuf> {
    if let Some(file) = tilewright_dylib::demanded(std::env::var_os("TILEWRIGHT_NVRTC")) {
        return vec![file];
    }
    let mut all: Vec<PathBuf> =
        ["libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12"].map(PathBuf::from).to_vec();
    let home = std::env::var_os("CUDA_HOME").map(PathBuf::from);
    for root in home.into_iter().chain([PathBuf::from("/usr/local/cuda")]) {
        all.push(root.join("lib64/libnvrtc.so"));
    }
    for root in python_roots() {
        all.extend(in_packages(&root));
    }
    all
}

/// The roots of the Python environments in use: the active one, and those whose `python3` the path has.
fn python_roots() -> Vec<PathBuf> {
    let active = std::env::var_os("VIRTUAL_ENV").map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path)
        .filter(|dir| dir.join("python3").exists())
        .filter_map(|dir| dir.parent().map(Path::to_path_buf));
    active.into_iter().chain(found).collect()
}

/// The library as NVIDIA's packages bring it, under `lib/pythonX/site-packages/nvidia/PACKAGE/lib`.
fn in_packages(root: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for python in folders(&root.join("lib")) {
        for packages in ["site-packages", "dist-packages"] {
            for package in folders(&python.join(packages).join("nvidia")) {
                for version in ["12", "13"] {
                    let file = package.join("lib").join(format!("libnvrtc.so.{version}"));
                    all.extend(Some(file).filter(|file| file.exists()));
                }
            }
        }
    }
    all
}

fn folders(of: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(of).into_iter().flatten().flatten();
    let mut all: Vec<PathBuf> = entries.map(|e| e.path()).filter(|p| p.is_dir()).collect();
    all.sort();
    all
}

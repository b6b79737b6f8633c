//! NVIDIA's compiler for CUDA C++ as a library, found at run time.
//!
//! It is looked for as LLVM is: the file that `TILEWRIGHT_NVRTC` names, and then nothing else; where the
//! dynamic linker finds it; in a toolkit of CUDA; in the packages of the Python environment in use.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::ptr::{null, null_mut};
use std::sync::OnceLock;

use tilewright_ir::{Error, Result};

type Program = *mut c_void;

tilewright_dylib::functions! {
    nvrtcCreateProgram: fn(*mut Program, *const c_char, *const c_char, c_int, *const *const c_char, *const *const c_char) -> c_int;
    nvrtcDestroyProgram: fn(*mut Program) -> c_int;
    nvrtcCompileProgram: fn(Program, c_int, *const *const c_char) -> c_int;
    nvrtcGetPTXSize: fn(Program, *mut usize) -> c_int;
    nvrtcGetPTX: fn(Program, *mut c_char) -> c_int;
    nvrtcGetProgramLogSize: fn(Program, *mut usize) -> c_int;
    nvrtcGetProgramLog: fn(Program, *mut c_char) -> c_int;
}

struct Nvrtc {
    functions: Functions,
    _library: tilewright_dylib::Library,
}

/// PTX of CUDA C++ for an architecture such as `sm_80`.
///
/// # Errors
/// [`Error::Toolchain`] where there is no compiler on this machine, with where it was looked for, and with
/// what the compiler says where it fails.
pub fn ptx(text: &str, architecture: &str) -> Result<String> {
    static LIBRARY: OnceLock<std::result::Result<Nvrtc, Vec<String>>> = OnceLock::new();
    let found = LIBRARY.get_or_init(load).as_ref();
    let library = found.map_err(|tried| {
        let error = Error::toolchain("there is no NVRTC, which makes PTX, on this machine");
        tried.iter().fold(error, |error, text| error.note(text.clone())).help(
            "install CUDA, or the package nvidia-cuda-nvrtc-cu12 of Python's index; TILEWRIGHT_NVRTC=FILE \
             names the library; an output with the ending .cu is the source",
        )
    })?;
    library.compile(text, architecture)
}

impl Nvrtc {
    fn compile(&self, text: &str, architecture: &str) -> Result<String> {
        let f = &self.functions;
        let source = CString::new(text).map_err(|_| Error::internal("a text with a zero in it"))?;
        let architecture = architecture.replace("sm_", "--gpu-architecture=compute_");
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
            self.text(program, f.nvrtcGetPTXSize, f.nvrtcGetPTX)
        } else {
            let log = self.text(program, f.nvrtcGetProgramLogSize, f.nvrtcGetProgramLog);
            let first = log.unwrap_or_default().lines().take(20).collect::<Vec<_>>().join("\n");
            Err(Error::toolchain(format!("NVRTC fails: error {code}")).note(first))
        };
        // SAFETY: it was made above, and nothing uses it any more.
        unsafe { (f.nvrtcDestroyProgram)(&mut program) };
        made
    }

    /// A text that is asked for by its length and then its characters.
    fn text(
        &self,
        program: Program,
        length: unsafe extern "C" fn(Program, *mut usize) -> c_int,
        get: unsafe extern "C" fn(Program, *mut c_char) -> c_int,
    ) -> Result<String> {
        let mut size = 0usize;
        // SAFETY: the program is there.
        let code = unsafe { length(program, &mut size) };
        let mut room = vec![0u8; size + 1];
        // SAFETY: there is room for as many characters as it says.
        if code != 0 || unsafe { get(program, room.as_mut_ptr().cast()) } != 0 {
            return Err(Error::toolchain("NVRTC gives no text"));
        }
        let text = CStr::from_bytes_until_nul(&room).unwrap_or_default();
        Ok(text.to_string_lossy().into_owned())
    }
}

fn load() -> std::result::Result<Nvrtc, Vec<String>> {
    // SAFETY: the libraries have the name of NVIDIA's compiler, or one is named by the user.
    unsafe {
        tilewright_dylib::open_first(places(), |library, _| {
            // SAFETY: the types are those of its header, and the library stays open beside them.
            let functions = Functions::resolve(&library)?;
            Ok(Nvrtc { functions, _library: library })
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

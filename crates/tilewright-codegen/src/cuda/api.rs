//! NVIDIA's driver as it exports itself, looked up when it is first needed.
//!
//! `TILEWRIGHT_CUDA` names a file, then nothing else is tried; nothing is linked.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::path::PathBuf;
use std::ptr::null;
use std::sync::OnceLock;

use tilewright_ir::{Error, Result};

/// A pointer of the driver: a context, a stream, a module, a function or an event.
pub(super) type Handle = *mut c_void;

tilewright_dylib::functions! {
    cuInit: fn(c_uint) -> c_int;
    cuDriverGetVersion: fn(*mut c_int) -> c_int;
    cuGetErrorString: fn(c_int, *mut *const c_char) -> c_int;
    cuDeviceGetCount: fn(*mut c_int) -> c_int;
    cuDeviceGet: fn(*mut c_int, c_int) -> c_int;
    cuDeviceGetName: fn(*mut c_char, c_int, c_int) -> c_int;
    cuDeviceGetAttribute: fn(*mut c_int, c_int, c_int) -> c_int;
    cuDeviceTotalMem_v2: fn(*mut usize, c_int) -> c_int;
    cuDevicePrimaryCtxRetain: fn(*mut Handle, c_int) -> c_int;
    cuCtxSetCurrent: fn(Handle) -> c_int;
    cuStreamCreate: fn(*mut Handle, c_uint) -> c_int;
    cuStreamSynchronize: fn(Handle) -> c_int;
    cuMemAlloc_v2: fn(*mut u64, usize) -> c_int;
    cuMemFree_v2: fn(u64) -> c_int;
    cuMemcpyHtoDAsync_v2: fn(u64, *const c_void, usize, Handle) -> c_int;
    cuMemcpyDtoHAsync_v2: fn(*mut c_void, u64, usize, Handle) -> c_int;
    cuMemcpyDtoDAsync_v2: fn(u64, u64, usize, Handle) -> c_int;
    cuMemsetD8Async: fn(u64, u8, usize, Handle) -> c_int;
    cuModuleLoadData: fn(*mut Handle, *const c_void) -> c_int;
    cuModuleUnload: fn(Handle) -> c_int;
    cuModuleGetFunction: fn(*mut Handle, Handle, *const c_char) -> c_int;
    cuLaunchKernel: fn(Handle, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, Handle, *mut *mut c_void, *mut *mut c_void) -> c_int;
    cuEventCreate: fn(*mut Handle, c_uint) -> c_int;
    cuEventRecord: fn(Handle, Handle) -> c_int;
    cuEventSynchronize: fn(Handle) -> c_int;
    cuEventElapsedTime: fn(*mut f32, Handle, Handle) -> c_int;
    cuEventDestroy_v2: fn(Handle) -> c_int;
}

pub(super) const THREADS_OF_GROUP: c_int = 1;
pub(super) const SHARED_OF_GROUP: c_int = 8;
pub(super) const MULTIPROCESSORS: c_int = 16;
pub(super) const CAPABILITY_MAJOR: c_int = 75;
pub(super) const CAPABILITY_MINOR: c_int = 76;
/// A stream that does not wait for the default one.
pub(super) const NON_BLOCKING: c_uint = 1;

/// The library and its functions.
pub(super) struct Api {
    pub functions: Functions,
    pub file: PathBuf,
    _library: tilewright_dylib::Library,
}

impl Api {
    /// The driver, as it is found on this machine, ready for use.
    ///
    /// # Errors
    /// [`Error::Toolchain`] if there is none, or it finds no GPU, with where it was looked for.
    pub fn get() -> Result<&'static Api> {
        static API: OnceLock<std::result::Result<Api, Vec<String>>> = OnceLock::new();
        API.get_or_init(load).as_ref().map_err(|tried| {
            let error = Error::toolchain("there is no driver of NVIDIA on this machine");
            let error = tried.iter().fold(error, |error, text| error.note(text.clone()));
            error.help("install the driver of the GPU; TILEWRIGHT_CUDA=FILE names the library")
        })
    }

    /// What a call returned, as an error.
    ///
    /// # Errors
    /// [`Error::Execution`] for anything but success, with what was tried and what the driver says.
    pub fn check(&self, code: c_int, what: &str) -> Result<()> {
        if code == 0 {
            return Ok(());
        }
        let mut text = null();
        // SAFETY: the driver writes a pointer to a text of its own, or nothing.
        let known = unsafe { (self.functions.cuGetErrorString)(code, &mut text) } == 0;
        let why = if known && !text.is_null() {
            // SAFETY: it ends with a zero, and is there as long as the driver.
            unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
        } else {
            "an unknown error".to_owned()
        };
        Err(Error::execution(format!("CUDA: {what}: {why} (error {code})")))
    }
}

fn load() -> std::result::Result<Api, Vec<String>> {
    // SAFETY: the libraries have the name of NVIDIA's driver, or one is named by the user.
    unsafe {
        tilewright_dylib::open_first(places(), |library, file| {
            // SAFETY: the types are those of its header, and the library stays open beside them.
            let functions = Functions::resolve(&library)?;
            // SAFETY: it is the first call, which no other one is before.
            match (functions.cuInit)(0) {
                0 => Ok(Api { functions, file: file.to_path_buf(), _library: library }),
                code => Err(format!("cuInit: error {code}")),
            }
        })
    }
}

fn places() -> Vec<PathBuf> {
    if let Some(file) = tilewright_dylib::demanded(std::env::var_os("TILEWRIGHT_CUDA")) {
        return vec![file];
    }
    let names: &[&str] = match std::env::consts::OS {
        "windows" => &["nvcuda.dll"],
        _ => &["libcuda.so.1", "libcuda.so"],
    };
    names.iter().map(PathBuf::from).collect()
}

//! OpenCL as its loader exports it, looked up when it is first needed.
//!
//! The library is found at run time (`TILEWRIGHT_OPENCL` names a file, then nothing else is tried), as LLVM is;
//! nothing is linked. Only what every OpenCL from 1.2 on has is used.

use std::ffi::{c_char, c_void};
use std::path::PathBuf;
use std::sync::OnceLock;

use tilewright_ir::{Error, Result};

pub(super) type Handle = *mut c_void;
type Int = i32;
type Callback = *const c_void;

tilewright_dylib::functions! {
    clGetPlatformIDs: fn(u32, *mut Handle, *mut u32) -> Int;
    clGetPlatformInfo: fn(Handle, u32, usize, *mut c_void, *mut usize) -> Int;
    clGetDeviceIDs: fn(Handle, u64, u32, *mut Handle, *mut u32) -> Int;
    clGetDeviceInfo: fn(Handle, u32, usize, *mut c_void, *mut usize) -> Int;
    clCreateContext: fn(*const isize, u32, *const Handle, Callback, *mut c_void, *mut Int) -> Handle;
    clCreateCommandQueue: fn(Handle, Handle, u64, *mut Int) -> Handle;
    clCreateBuffer: fn(Handle, u64, usize, *mut c_void, *mut Int) -> Handle;
    clCreateImage: fn(Handle, u64, *const ImageFormat, *const ImageDescription, *mut c_void, *mut Int) -> Handle;
    clEnqueueCopyBuffer: fn(Handle, Handle, Handle, usize, usize, usize, u32, *const Handle, *mut Handle) -> Int;
    clEnqueueCopyBufferToImage: fn(Handle, Handle, Handle, usize, *const usize, *const usize, u32, *const Handle, *mut Handle) -> Int;
    clEnqueueCopyImageToBuffer: fn(Handle, Handle, Handle, *const usize, *const usize, usize, u32, *const Handle, *mut Handle) -> Int;
    clReleaseMemObject: fn(Handle) -> Int;
    clEnqueueWriteBuffer: fn(Handle, Handle, u32, usize, usize, *const c_void, u32, *const Handle, *mut Handle) -> Int;
    clEnqueueReadBuffer: fn(Handle, Handle, u32, usize, usize, *mut c_void, u32, *const Handle, *mut Handle) -> Int;
    clEnqueueFillBuffer: fn(Handle, Handle, *const c_void, usize, usize, usize, u32, *const Handle, *mut Handle) -> Int;
    clCreateProgramWithSource: fn(Handle, u32, *const *const c_char, *const usize, *mut Int) -> Handle;
    clCreateProgramWithBinary: fn(Handle, u32, *const Handle, *const usize, *const *const u8, *mut Int, *mut Int) -> Handle;
    clGetProgramInfo: fn(Handle, u32, usize, *mut c_void, *mut usize) -> Int;
    clBuildProgram: fn(Handle, u32, *const Handle, *const c_char, Callback, *mut c_void) -> Int;
    clGetProgramBuildInfo: fn(Handle, Handle, u32, usize, *mut c_void, *mut usize) -> Int;
    clReleaseProgram: fn(Handle) -> Int;
    clCreateKernel: fn(Handle, *const c_char, *mut Int) -> Handle;
    clReleaseKernel: fn(Handle) -> Int;
    clSetKernelArg: fn(Handle, u32, usize, *const c_void) -> Int;
    clEnqueueNDRangeKernel: fn(Handle, Handle, u32, *const usize, *const usize, *const usize, u32, *const Handle, *mut Handle) -> Int;
    clFinish: fn(Handle) -> Int;
}

/// `cl_image_format`.
#[repr(C)]
pub(super) struct ImageFormat {
    pub order: u32,
    pub channel: u32,
}

/// `cl_image_desc`.
#[repr(C)]
pub(super) struct ImageDescription {
    pub kind: u32,
    pub width: usize,
    pub height: usize,
    pub depth: usize,
    pub array: usize,
    pub row_pitch: usize,
    pub slice_pitch: usize,
    pub levels: u32,
    pub samples: u32,
    pub buffer: Handle,
}

pub(super) const IMAGE_2D: u32 = 0x10f1;
pub(super) const RGBA: u32 = 0x10b5;
pub(super) const HALF_CHANNELS: u32 = 0x10dd;
pub(super) const FLOAT_CHANNELS: u32 = 0x10de;
pub(super) const DEVICE_IMAGE_WIDTH: u32 = 0x1011;
pub(super) const DEVICE_IMAGE_HEIGHT: u32 = 0x1012;
pub(super) const PLATFORM_NAME: u32 = 0x0902;
pub(super) const DEVICE_TYPE: u32 = 0x1000;
pub(super) const DEVICE_MAX_COMPUTE_UNITS: u32 = 0x1002;
pub(super) const DEVICE_MAX_WORK_GROUP_SIZE: u32 = 0x1004;
pub(super) const DEVICE_SINGLE_FP_CONFIG: u32 = 0x101b;
pub(super) const DEVICE_IMAGE_SUPPORT: u32 = 0x1016;
pub(super) const DEVICE_GLOBAL_MEM_SIZE: u32 = 0x101f;
pub(super) const DEVICE_LOCAL_MEM_SIZE: u32 = 0x1023;
pub(super) const DEVICE_NAME: u32 = 0x102b;
pub(super) const DEVICE_NATIVE_FLOATS: u32 = 0x103a;
pub(super) const DRIVER_VERSION: u32 = 0x102d;
pub(super) const DEVICE_VERSION: u32 = 0x102f;
pub(super) const DEVICE_EXTENSIONS: u32 = 0x1030;
pub(super) const ALL_DEVICES: u64 = 0xffff_ffff;
pub(super) const TYPE_CPU: u64 = 2;
pub(super) const TYPE_GPU: u64 = 4;
pub(super) const CONTEXT_PLATFORM: isize = 0x1084;
pub(super) const READ_WRITE: u64 = 1;
pub(super) const BUILD_LOG: u32 = 0x1183;
pub(super) const PROGRAM_BINARY_SIZES: u32 = 0x1165;
pub(super) const PROGRAM_BINARIES: u32 = 0x1166;
pub(super) const FP_FMA: u64 = 1 << 5;
pub(super) const FP_CORRECT_DIVIDE: u64 = 1 << 7;

/// The library and its functions.
pub(super) struct Api {
    pub functions: Functions,
    pub file: PathBuf,
    _library: tilewright_dylib::Library,
}

impl Api {
    /// OpenCL, as it is found on this machine.
    ///
    /// # Errors
    /// [`Error::Toolchain`] if there is none, with where it was looked for.
    pub fn get() -> Result<&'static Api> {
        static API: OnceLock<std::result::Result<Api, Vec<String>>> = OnceLock::new();
        API.get_or_init(load).as_ref().map_err(|tried| {
            let error = Error::toolchain("there is no OpenCL on this machine");
            let error = tried.iter().fold(error, |error, text| error.note(text.clone()));
            error.help(
                "install the driver of the device, or PoCL for the processor itself \
                 (Debian: apt-get install pocl-opencl-icd); TILEWRIGHT_OPENCL=FILE names a library",
            )
        })
    }
}

fn load() -> std::result::Result<Api, Vec<String>> {
    // SAFETY: the libraries have the name of OpenCL's loader, or one is named by the user.
    unsafe {
        tilewright_dylib::open_first(places(), |library, file| {
            // SAFETY: the types are those of OpenCL's headers, and the library stays open beside them.
            let functions = Functions::resolve(&library)?;
            Ok(Api { functions, file: file.to_path_buf(), _library: library })
        })
    }
}

fn places() -> Vec<PathBuf> {
    if let Some(file) = tilewright_dylib::demanded(std::env::var_os("TILEWRIGHT_OPENCL")) {
        return vec![file];
    }
    let names: &[&str] = match std::env::consts::OS {
        "macos" => &["/System/Library/Frameworks/OpenCL.framework/OpenCL"],
        "windows" => &["OpenCL.dll"],
        _ => &["libOpenCL.so.1", "libOpenCL.so"],
    };
    names.iter().map(PathBuf::from).collect()
}

/// What a call returned, as an error.
///
/// # Errors
/// [`Error::Execution`] for anything but success, with what was tried.
pub(super) fn check(code: i32, what: &str) -> Result<()> {
    if code == 0 {
        return Ok(());
    }
    let why = match code {
        -4 | -61 => "there is not so much memory on the device",
        -5 => "the device has no resources left",
        -6 => "there is not so much memory on the host",
        -11 => "the program does not compile",
        -46 => "there is no such kernel",
        -52 => "the kernel lacks arguments",
        -54 => "the device takes no groups of this size",
        -55 => "the device has not so many threads in a group along one axis",
        _ => return Err(Error::execution(format!("OpenCL: {what}: error {code}"))),
    };
    Err(Error::execution(format!("OpenCL: {what}: {why} (error {code})")))
}

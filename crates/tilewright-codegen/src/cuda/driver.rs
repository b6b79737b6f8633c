//! The GPUs of this machine that NVIDIA's driver lists.

use std::ffi::{CStr, c_int};
use std::sync::OnceLock;

use tilewright_ir::Result;

use super::api::{self, Api};

/// A GPU.
#[derive(Clone, Debug)]
pub struct GpuInfo {
    /// Its number for the driver.
    pub number: usize,
    pub name: String,
    /// Its compute capability, as an architecture: `sm_90`.
    pub architecture: String,
    /// The version of CUDA that the driver has.
    pub driver: String,
    /// Multiprocessors.
    pub units: usize,
    /// Bytes of memory.
    pub memory: u64,
    /// Bytes of memory that a group shares.
    pub shared: usize,
    /// Threads of the largest group.
    pub threads: usize,
}

/// All GPUs, in the order in which the driver lists them.
///
/// # Errors
/// [`Error::Toolchain`](tilewright_ir::Error::Toolchain) if there is no driver.
pub fn gpus() -> Result<&'static [GpuInfo]> {
    static GPUS: OnceLock<Vec<GpuInfo>> = OnceLock::new();
    let api = Api::get()?;
    Ok(GPUS.get_or_init(|| list(api)))
}

/// The file of the driver, for people.
///
/// # Errors
/// As [`gpus`].
pub fn library() -> Result<&'static std::path::Path> {
    Ok(&Api::get()?.file)
}

fn list(api: &Api) -> Vec<GpuInfo> {
    let mut count = 0;
    // SAFETY: the driver is ready, and writes a number.
    let code = unsafe { (api.functions.cuDeviceGetCount)(&mut count) };
    let numbers = if code == 0 { 0..count } else { 0..0 };
    numbers.filter_map(|number| describe(api, number)).collect()
}

fn describe(api: &Api, number: c_int) -> Option<GpuInfo> {
    let cu = &api.functions;
    let mut device = 0;
    // SAFETY: the driver is ready, and listed so many devices.
    if unsafe { (cu.cuDeviceGet)(&mut device, number) } != 0 {
        return None;
    }
    let attribute = |which: c_int| {
        let mut value = 0;
        // SAFETY: the device was given above.
        let code = unsafe { (cu.cuDeviceGetAttribute)(&mut value, which, device) };
        if code == 0 { usize::try_from(value).unwrap_or(0) } else { 0 }
    };
    let (mut name, mut memory, mut version) = ([0u8; 256], 0usize, 0);
    // SAFETY: there is room for so many characters, and for the numbers.
    unsafe {
        (cu.cuDeviceGetName)(name.as_mut_ptr().cast(), name.len() as c_int, device);
        (cu.cuDeviceTotalMem_v2)(&mut memory, device);
        (cu.cuDriverGetVersion)(&mut version);
    }
    let name = CStr::from_bytes_until_nul(&name).unwrap_or_default();
    let [major, minor] = [api::CAPABILITY_MAJOR, api::CAPABILITY_MINOR].map(attribute);
    Some(GpuInfo {
        number: number as usize,
        name: name.to_string_lossy().into_owned(),
        architecture: format!("sm_{major}{minor}"),
        driver: format!("{}.{}", version / 1000, version % 1000 / 10),
        units: attribute(api::MULTIPROCESSORS),
        memory: memory as u64,
        shared: attribute(api::SHARED_OF_GROUP),
        threads: attribute(api::THREADS_OF_GROUP),
    })
}

impl GpuInfo {
    /// Whether code for an architecture runs on it: that of its own or an earlier one; `sm_90a` and the like run
    /// on that architecture alone.
    pub(super) fn runs(&self, architecture: &str) -> bool {
        let own = capability(&self.architecture);
        let asked = capability(architecture);
        let exact = architecture.ends_with(['a', 'f']);
        asked == own || (!exact && asked.is_some() && asked < own)
    }
}

/// The number of an architecture: 90 for `sm_90` and `sm_90a`.
pub(super) fn capability(architecture: &str) -> Option<u32> {
    architecture.trim_start_matches("sm_").trim_end_matches(['a', 'f']).parse().ok()
}

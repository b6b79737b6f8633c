//! The devices of this machine that OpenCL has drivers for, and which one is meant.

use std::ffi::c_void;
use std::fmt;
use std::ptr::null_mut;
use std::sync::OnceLock;

use tilewright_ir::{Error, Result};
use tilewright_target::{GroupCosts, MemoryScope, Target, ThreadGroups};

use super::api::{self, Api, Functions, Handle, check};
use crate::c::Arithmetic;

/// What [`Target::triple`] is for devices of OpenCL.
pub const FAMILY: &str = "opencl";

/// A device.
#[derive(Clone, Debug)]
pub struct DeviceInfo {
    pub(super) platform: usize,
    pub(super) id: usize,
    /// What its driver calls it.
    pub name: String,
    /// What the driver calls itself.
    pub driver: String,
    /// The version of OpenCL, and that of the driver.
    pub version: String,
    /// `CPU`, `GPU`, or another kind.
    pub kind: &'static str,
    /// How many groups run at once.
    pub units: usize,
    /// Bytes of memory.
    pub memory: u64,
    /// Bytes of memory that a group shares.
    pub shared: u64,
    /// Threads of the largest group.
    pub threads: usize,
    /// Floats of 32 bits that one thread computes at once.
    pub floats: usize,
    /// Texels of the longest row of an image and its rows, where it has images.
    pub images: Option<(usize, usize)>,
    /// What it computes with.
    pub arithmetic: Arithmetic,
    /// Whether divisions and roots round correctly if they are asked to.
    pub(super) exact_division: bool,
    /// What was asked for beside the device ([`choose`]).
    pub(super) asked: Asked,
}

/// What code is made for a device in another way than its kind says, to see what others get.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Asked {
    /// `+threads`: schedules for groups of threads.
    threads: bool,
    /// `+textures`: values between calls in textures.
    textures: bool,
    /// `+no-float64`: as if the device had none.
    no_doubles: bool,
}

impl fmt::Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            (self.threads, "+threads"),
            (self.textures, "+textures"),
            (self.no_doubles, "+no-float64"),
        ];
        parts.iter().filter(|p| p.0).try_for_each(|p| f.write_str(p.1))
    }
}

/// All devices, in the order in which their drivers list them.
///
/// # Errors
/// [`Error::Toolchain`] if there is no OpenCL.
pub fn devices() -> Result<&'static [DeviceInfo]> {
    // Asked once, by one thread: drivers start when they are asked first, and not all can do so twice at
    // the same time.
    static DEVICES: OnceLock<Vec<DeviceInfo>> = OnceLock::new();
    let cl = &Api::get()?.functions;
    Ok(DEVICES.get_or_init(|| list_devices(cl)))
}

fn list_devices(cl: &Functions) -> Vec<DeviceInfo> {
    let platforms = list(|n, ids, count| {
        // SAFETY: there is room for so many handles.
        unsafe { (cl.clGetPlatformIDs)(n, ids, count) }
    });
    let mut all = Vec::new();
    for platform in platforms {
        let ids = list(|n, ids, count| {
            // SAFETY: as above; the platform is one that was listed.
            unsafe { (cl.clGetDeviceIDs)(platform, api::ALL_DEVICES, n, ids, count) }
        });
        for id in ids {
            all.push(describe(cl, platform, id));
        }
    }
    all
}

/// A list that OpenCL gives in two calls: how many, then which. One that fails is empty: a platform
/// without devices says so by an error.
fn list(ask: impl Fn(u32, *mut Handle, *mut u32) -> i32) -> Vec<Handle> {
    let mut count = 0;
    if ask(0, null_mut(), &mut count) != 0 {
        return Vec::new();
    }
    let mut ids = vec![null_mut(); count as usize];
    if ask(count, ids.as_mut_ptr(), null_mut()) == 0 { ids } else { Vec::new() }
}

fn text(ask: impl Fn(usize, *mut c_void, *mut usize) -> i32) -> String {
    let mut bytes = 0;
    if ask(0, null_mut(), &mut bytes) != 0 {
        return String::new();
    }
    let mut room = vec![0u8; bytes];
    ask(bytes, room.as_mut_ptr().cast(), null_mut());
    let end = room.iter().position(|b| *b == 0).unwrap_or(room.len());
    String::from_utf8_lossy(&room[..end]).trim().to_owned()
}

fn describe(cl: &Functions, platform: Handle, id: Handle) -> DeviceInfo {
    // SAFETY: OpenCL writes no more than the room that it is told of; the handles were listed.
    let word = |what: u32| -> u64 {
        let mut value = 0u64;
        unsafe { (cl.clGetDeviceInfo)(id, what, 8, (&raw mut value).cast(), null_mut()) };
        value
    };
    // SAFETY: as above.
    let info =
        |what: u32| text(|n, room, size| unsafe { (cl.clGetDeviceInfo)(id, what, n, room, size) });
    // SAFETY: as above.
    let driver = text(|n, room, size| unsafe {
        (cl.clGetPlatformInfo)(platform, api::PLATFORM_NAME, n, room, size)
    });
    let single = word(api::DEVICE_SINGLE_FP_CONFIG);
    let kind = word(api::DEVICE_TYPE);
    DeviceInfo {
        platform: platform.expose_provenance(),
        id: id.expose_provenance(),
        name: info(api::DEVICE_NAME),
        driver,
        version: format!("{}; driver {}", info(api::DEVICE_VERSION), info(api::DRIVER_VERSION)),
        kind: match kind {
            _ if kind & api::TYPE_GPU != 0 => "GPU",
            _ if kind & api::TYPE_CPU != 0 => "CPU",
            _ => "accelerator",
        },
        units: word(api::DEVICE_MAX_COMPUTE_UNITS) as usize,
        memory: word(api::DEVICE_GLOBAL_MEM_SIZE),
        shared: word(api::DEVICE_LOCAL_MEM_SIZE),
        threads: word(api::DEVICE_MAX_WORK_GROUP_SIZE) as usize,
        floats: word(api::DEVICE_NATIVE_FLOATS) as usize,
        images: (word(api::DEVICE_IMAGE_SUPPORT) & 1 != 0).then(|| {
            (word(api::DEVICE_IMAGE_WIDTH) as usize, word(api::DEVICE_IMAGE_HEIGHT) as usize)
        }),
        arithmetic: Arithmetic {
            doubles: info(api::DEVICE_EXTENSIONS).split(' ').any(|e| e == "cl_khr_fp64"),
            fma: single & api::FP_FMA != 0,
            vectors: true,
            mma: false,
        },
        exact_division: single & api::FP_CORRECT_DIVIDE != 0,
        asked: Asked::default(),
    }
}

/// What [`choose`] takes for a device that is none of this machine.
const GENERIC: &str = "generic";

/// What a read from a texture costs, where one of as many bytes from a buffer costs 1.
const TEXTURE_READ: f64 = 0.5;

/// The same for a processor, which computes the place of a texel and looks whether it is in range.
const PROCESSOR_TEXTURE_READ: f64 = 4.0;

impl DeviceInfo {
    /// What every GPU with images has, and what OpenCL 1.2 asks of it at least: for text that is written and not
    /// run, on a machine without a driver, too.
    fn generic() -> DeviceInfo {
        DeviceInfo {
            platform: 0,
            id: 0,
            name: GENERIC.to_owned(),
            driver: "none".to_owned(),
            version: "OpenCL 1.2".to_owned(),
            kind: "GPU",
            units: 1,
            memory: 128 << 20,
            shared: 32 << 10,
            threads: 256,
            floats: 1,
            images: Some((8192, 8192)),
            arithmetic: Arithmetic { doubles: false, fma: true, vectors: true, mma: false },
            exact_division: false,
            asked: Asked::default(),
        }
    }

    /// Whether it is a device of this machine, which runs code.
    pub(super) fn is_here(&self) -> bool {
        self.platform != 0
    }

    /// Whether it is a processor of this machine: a thread of a group is an iteration of a loop there.
    pub(super) fn is_processor(&self) -> bool {
        self.kind == "CPU"
    }

    /// What it offers.
    pub fn target(&self) -> Target {
        let mut target = Target::new(FAMILY, self.name.clone(), self.arithmetic.features());
        // Where a thread computes single values, threads together are the vector.
        target.vectors.bytes = match self.floats {
            16.. => &[64, 32, 16],
            8.. => &[32, 16],
            4.. => &[16],
            _ => &[1],
        };
        // Processors with wide vectors have many.
        target.vectors.registers = if self.floats >= 16 { 32 } else { 16 };
        target.vectors.broadcasts = self.floats >= 16;
        target.vectors.masks = &[];
        target.vectors.by_compiler = false;
        if self.is_processor() {
            target = target.with_host();
        }
        target.cores = self.units.max(1);
        if self.kind == "GPU" || self.asked.threads {
            // OpenCL does not tell the first three: those of most GPUs.
            target.groups = Some(ThreadGroups {
                warp: 32,
                banks: 32,
                segment: 128,
                registers: 128,
                shared: self.shared as i64,
                threads: self.threads as i64,
                async_copies: false,
                costs: GroupCosts::of_processors(self.units.max(1) as i64),
            });
        }
        target = target.with_scope(MemoryScope::new("shared", [1]));
        let Some((width, height)) = self.images else { return target };
        // A processor reads an image by a function call. The textures of a GPU have a cache of their own, which
        // neighbours in both directions share, and a read gives four channels: half of what it takes from a buffer.
        target.texture_read = Some(match self.kind {
            _ if self.asked.textures => TEXTURE_READ,
            "CPU" => PROCESSOR_TEXTURE_READ,
            _ => TEXTURE_READ,
        });
        let textures = MemoryScope::textures(height as i64, width as i64);
        textures.into_iter().fold(target, Target::with_scope)
    }
}

/// The device that is meant: by its number in the list, by a part of its name or its driver's, the first
/// one for nothing, or one for which text is written, and not run (`generic`). Behind it may stand `+threads`, for
/// schedules for groups of threads, `+textures`, for values in textures, whatever the device is best with, and
/// `+no-float64`, for code that does without.
///
/// # Errors
/// [`Error::Input`] where there is no such device, or several are meant, with those there are;
/// [`Error::Toolchain`] where there is none at all.
pub fn choose(which: &str) -> Result<DeviceInfo> {
    let mut parts = which.split('+');
    let which = parts.next().unwrap_or_default();
    let mut asked = Asked::default();
    for part in parts {
        match part {
            "threads" => asked.threads = true,
            "textures" => asked.textures = true,
            "no-float64" => asked.no_doubles = true,
            _ => {
                let text = format!("a device cannot be asked for `{part}`");
                return Err(Error::input(text)
                    .help("`+threads`, `+textures` and `+no-float64` are possible"));
            }
        }
    }
    let mut device = DeviceInfo { asked, ..choose_device(which)? };
    device.arithmetic.doubles &= !asked.no_doubles;
    Ok(device)
}

fn choose_device(which: &str) -> Result<DeviceInfo> {
    if which == GENERIC {
        return Ok(DeviceInfo::generic());
    }
    let all = devices()?;
    if all.is_empty() {
        return Err(Error::toolchain("OpenCL finds no device on this machine").help(
            "install the driver of the device, or PoCL for the processor itself \
             (Debian: apt-get install pocl-opencl-icd)",
        ));
    }
    if which.is_empty() {
        return Ok(all[0].clone());
    }
    if let Ok(number) = which.parse::<usize>() {
        return all.get(number).cloned().ok_or_else(|| {
            with_devices(Error::input(format!("there is no device number {number}")), all)
        });
    }
    let wanted = which.to_lowercase();
    let mut found = all.iter().filter(|d| {
        d.name.to_lowercase().contains(&wanted) || d.driver.to_lowercase().contains(&wanted)
    });
    match (found.next(), found.next()) {
        (Some(one), None) => Ok(one.clone()),
        (Some(_), Some(_)) => {
            Err(with_devices(Error::input(format!("several devices are called `{which}`")), all))
        }
        _ => Err(with_devices(Error::input(format!("there is no device called `{which}`")), all)),
    }
}

fn with_devices(error: Error, all: &[DeviceInfo]) -> Error {
    let names = all.iter().enumerate().map(|(k, d)| format!("{k}: {} ({})", d.name, d.driver));
    error.note(format!("the devices are: {}", names.collect::<Vec<_>>().join(", ")))
}

/// Opens a context on a device, and a queue that runs what it is asked in order.
pub(super) fn open(device: &DeviceInfo) -> Result<(Handle, Handle)> {
    let cl = &Api::get()?.functions;
    let id: Handle = std::ptr::with_exposed_provenance_mut(device.id);
    let properties = [api::CONTEXT_PLATFORM, device.platform as isize, 0];
    let mut code = 0;
    // SAFETY: the handles were listed; the list of properties ends with zero.
    let context = unsafe {
        (cl.clCreateContext)(properties.as_ptr(), 1, &id, std::ptr::null(), null_mut(), &mut code)
    };
    check(code, "opening the device").map_err(|e| e.context(device.name.clone()))?;
    // SAFETY: as above.
    let queue = unsafe { (cl.clCreateCommandQueue)(context, id, 0, &mut code) };
    check(code, "opening a queue").map_err(|e| e.context(device.name.clone()))?;
    Ok((context, queue))
}

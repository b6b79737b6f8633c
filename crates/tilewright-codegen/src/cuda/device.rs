//! A GPU that is open: its memory, its stream, kernels on it.
//!
//! An address is one of the GPU. A GPU is opened once a process, by the context that all of the process share,
//! and stays open.

use std::convert::Infallible;
use std::ffi::{CString, c_int, c_uint, c_void};
use std::ptr::{NonNull, null_mut};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tilewright_ir::hash::HashMap;

use tilewright_ir::{Error, Result};
use tilewright_target::{Device, DeviceIdentity};

use super::api::{self, Api, Handle};
use super::driver::GpuInfo;
use super::nvrtc;
use crate::c::{Image, Kernels, Language};
use crate::cache::{ObjectCache, key_of_parts};
use crate::device::{Images, KernelDevice, Value, Work};

/// Threads of a group that runs items of a loop.
const GROUP: usize = 128;

/// `kDLCUDA` of DLPack.
const DLPACK_CUDA: i32 = 2;

/// The most groups along the first axis of a launch.
const MOST_GROUPS: usize = (1 << 31) - 1;

/// A handle of the driver, which any thread may use.
#[derive(Clone, Copy, Debug)]
struct Object(Handle);

// SAFETY: functions of the driver may be called from any thread.
unsafe impl Send for Object {}
// SAFETY: as above.
unsafe impl Sync for Object {}

pub(super) struct Gpu {
    pub info: GpuInfo,
    context: Object,
    stream: Object,
    api: &'static Api,
}

impl Gpu {
    /// Opens a GPU, or gives it where it is open.
    ///
    /// # Errors
    /// [`Error::Execution`] if the driver fails.
    pub fn get(info: &GpuInfo) -> Result<Arc<Gpu>> {
        static OPEN: Mutex<Option<HashMap<usize, Arc<Gpu>>>> = Mutex::new(None);
        let mut all = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        let all = all.get_or_insert_with(HashMap::default);
        if let Some(device) = all.get(&info.number) {
            return Ok(device.clone());
        }
        let api = Api::get()?;
        let cu = &api.functions;
        let (mut device, mut context, mut stream) = (0, null_mut(), null_mut());
        let opened = |code: c_int| {
            api.check(code, "opening the device").map_err(|e| e.context(info.name.clone()))
        };
        // SAFETY: the driver is ready and listed the device; the context is current when the stream is made.
        unsafe {
            opened((cu.cuDeviceGet)(&mut device, info.number as c_int))?;
            opened((cu.cuDevicePrimaryCtxRetain)(&mut context, device))?;
            opened((cu.cuCtxSetCurrent)(context))?;
            opened((cu.cuStreamCreate)(&mut stream, api::NON_BLOCKING))?;
        }
        let (context, stream) = (Object(context), Object(stream));
        let gpu = Arc::new(Gpu { info: info.clone(), context, stream, api });
        all.insert(info.number, gpu.clone());
        Ok(gpu)
    }

    /// The functions of the driver, with the context of the GPU current for this thread.
    fn current(&self) -> Result<&'static api::Functions> {
        let cu = &self.api.functions;
        // SAFETY: the context stays open.
        let code = unsafe { (cu.cuCtxSetCurrent)(self.context.0) };
        self.api.check(code, "using the device")?;
        Ok(cu)
    }

    /// Loads code: machine code of the GPU, or PTX that ends with a zero.
    fn load(&self, code: &[u8]) -> Result<Arc<Program>> {
        let cu = self.current()?;
        let mut module = null_mut();
        // SAFETY: the driver reads as much as the code says it is.
        let done = unsafe { (cu.cuModuleLoadData)(&mut module, code.as_ptr().cast()) };
        self.api.check(done, "loading kernels")?;
        Ok(Arc::new(Program { module: Object(module), cu }))
    }

    /// Code of a text for the architecture that is asked for.
    fn build(&self, text: &str, architecture: &str, cache: &ObjectCache) -> Result<Arc<Program>> {
        let (_, version) = nvrtc::compiler()?;
        let own = self.info.architecture == architecture.trim_end_matches(['a', 'f']);
        let parts = ["cuda", architecture, if own { "code" } else { "ptx" }, &version, text];
        let key = key_of_parts(&parts.map(str::as_bytes));
        if let Some(code) = cache.get(&key)
            && let Ok(program) = self.load(&code)
        {
            return Ok(program);
        }
        let code = if own {
            nvrtc::machine_code(text, architecture)?
        } else {
            [nvrtc::ptx(text, architecture)?.as_bytes(), &[0]].concat()
        };
        let program = self.load(&code)?;
        cache.put(&key, &code);
        Ok(program)
    }
}

/// Code that is loaded.
struct Program {
    module: Object,
    cu: &'static api::Functions,
}

impl Drop for Program {
    fn drop(&mut self) {
        // SAFETY: no kernel of it is left, and the stream is in order: the driver waits for those that run.
        unsafe { (self.cu.cuModuleUnload)(self.module.0) };
    }
}

/// A kernel.
pub(super) struct Kernel {
    function: Object,
    _program: Arc<Program>,
}

/// A GPU with the architecture that code is made for on it.
pub(super) struct GpuFor {
    pub gpu: Arc<Gpu>,
    pub architecture: String,
}

impl KernelDevice for GpuFor {
    type Kernel = Kernel;
    /// There are no textures.
    type Image = Infallible;

    fn kernels(&self, kernels: &Kernels, cache: &ObjectCache) -> Result<Vec<Kernel>> {
        let text = kernels.program(Language::Cuda);
        let program = self.gpu.build(&text, &self.architecture, cache)?;
        let cu = self.gpu.current()?;
        let find = |k: &crate::c::Kernel| {
            let name = CString::new(&*k.name).map_err(|_| Error::internal("a zero in a name"))?;
            let mut function = null_mut();
            // SAFETY: the module is loaded; the name ends with a zero.
            let code =
                unsafe { (cu.cuModuleGetFunction)(&mut function, program.module.0, name.as_ptr()) };
            self.gpu.api.check(code, &k.name)?;
            Ok(Kernel { function: Object(function), _program: program.clone() })
        };
        kernels.kernels.iter().map(find).collect()
    }

    fn image(&self, _: &Image) -> Result<Infallible> {
        Err(Error::unsupported("code for CUDA has no textures"))
    }

    fn images(&self) -> &Images<Infallible> {
        static NONE: Images<Infallible> = Images::new();
        &NONE
    }

    fn copy_image(&self, image: &Infallible, _: u64, _: bool) -> Result<()> {
        match *image {}
    }

    fn launch(
        &self,
        kernel: &mut Kernel,
        work: Work,
        arguments: &[Value<'_, Infallible>],
    ) -> Result<()> {
        let mut words: Vec<[u8; 8]> = Vec::with_capacity(2 * arguments.len());
        for argument in arguments {
            match argument {
                Value::Memory(address) => {
                    words.extend([address.to_ne_bytes(), 0u64.to_ne_bytes()]);
                }
                Value::Whole(address) => words.push(address.to_ne_bytes()),
                Value::Image(image) => match **image {},
                Value::Number(bytes, _) => words.push(*bytes),
            }
        }
        let mut pointers: Vec<*mut c_void> =
            words.iter_mut().map(|w| w.as_mut_ptr().cast()).collect();
        let (groups, threads) = match work {
            Work::Items(n) => {
                let group = n.min(GROUP);
                ([n.div_ceil(group).min(MOST_GROUPS), 1, 1], [group, 1, 1])
            }
            Work::Groups { groups, threads } => (groups, threads),
        };
        let size = |n: usize| {
            c_uint::try_from(n)
                .map_err(|_| Error::execution(format!("{n} groups of threads are too many")))
        };
        let cu = self.gpu.current()?;
        // SAFETY: the kernel has so many parameters, which are read before the call returns.
        let code = unsafe {
            (cu.cuLaunchKernel)(
                kernel.function.0,
                size(groups[0])?,
                size(groups[1])?,
                size(groups[2])?,
                size(threads[0])?,
                size(threads[1])?,
                size(threads[2])?,
                0,
                self.gpu.stream.0,
                pointers.as_mut_ptr(),
                null_mut(),
            )
        };
        self.gpu.api.check(code, &format!("running {groups:?} groups of {threads:?} threads"))
    }
}

impl Device for GpuFor {
    fn allocate(&self, bytes: usize) -> Result<u64> {
        let cu = self.gpu.current()?;
        let mut address = 0;
        // SAFETY: the driver writes an address. What it allocates lies at a multiple of 256.
        let code = unsafe { (cu.cuMemAlloc_v2)(&mut address, bytes.max(1)) };
        self.gpu.api.check(code, &format!("{bytes} bytes of memory"))?;
        Ok(address)
    }

    fn free(&self, address: u64) {
        if let Ok(cu) = self.gpu.current() {
            // SAFETY: it was allocated by `allocate`; the driver waits for what uses it.
            unsafe {
                (cu.cuStreamSynchronize)(self.gpu.stream.0);
                (cu.cuMemFree_v2)(address)
            };
        }
    }

    fn write(&self, to: u64, bytes: &[u8]) -> Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let (cu, stream) = (self.gpu.current()?, self.gpu.stream.0);
        // SAFETY: there are so many bytes, and the call below waits until they are read.
        let code =
            unsafe { (cu.cuMemcpyHtoDAsync_v2)(to, bytes.as_ptr().cast(), bytes.len(), stream) };
        self.gpu.api.check(code, "copying to the device")?;
        self.finish()
    }

    fn read(&self, from: u64, bytes: &mut [u8]) -> Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let (cu, stream) = (self.gpu.current()?, self.gpu.stream.0);
        // SAFETY: there is room for so many bytes, and the call below waits until they are written.
        let code = unsafe {
            (cu.cuMemcpyDtoHAsync_v2)(bytes.as_mut_ptr().cast(), from, bytes.len(), stream)
        };
        self.gpu.api.check(code, "copying from the device")?;
        self.finish()
    }

    fn fill(&self, to: u64, bytes: usize, byte: u8) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        let cu = self.gpu.current()?;
        // SAFETY: there are so many bytes.
        let code = unsafe { (cu.cuMemsetD8Async)(to, byte, bytes, self.gpu.stream.0) };
        self.gpu.api.check(code, "filling memory of the device")
    }

    fn copy(&self, to: u64, from: u64, bytes: usize) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        let cu = self.gpu.current()?;
        // SAFETY: there are so many bytes at both places, which do not overlap.
        let code = unsafe { (cu.cuMemcpyDtoDAsync_v2)(to, from, bytes, self.gpu.stream.0) };
        self.gpu.api.check(code, "copying on the device")
    }

    fn identity(&self) -> DeviceIdentity {
        let stream = Some(self.gpu.stream.0.expose_provenance() as u64);
        DeviceIdentity { kind: DLPACK_CUDA, number: self.gpu.info.number as i32, stream }
    }

    fn exported(&self, address: u64) -> Result<(u64, u64)> {
        Ok((address, 0))
    }

    fn imported(&self, pointer: u64, byte: u64) -> Result<u64> {
        Ok(pointer + byte)
    }

    fn finish(&self) -> Result<()> {
        let cu = self.gpu.current()?;
        // SAFETY: the stream is open.
        let code = unsafe { (cu.cuStreamSynchronize)(self.gpu.stream.0) };
        self.gpu.api.check(code, "waiting for the device")
    }

    fn timed(&self, work: &mut dyn FnMut() -> Result<()>) -> Result<Duration> {
        let [before, after] = [Event::new(&self.gpu)?, Event::new(&self.gpu)?];
        before.record()?;
        work()?;
        after.record()?;
        after.since(&before)
    }
}

/// A point in the stream, of which the GPU knows when it was reached.
struct Event<'a> {
    gpu: &'a Gpu,
    event: NonNull<c_void>,
}

impl Event<'_> {
    fn new(gpu: &Gpu) -> Result<Event<'_>> {
        let cu = gpu.current()?;
        let mut event = null_mut();
        // SAFETY: the driver writes a handle.
        let code = unsafe { (cu.cuEventCreate)(&mut event, 0) };
        gpu.api.check(code, "making an event")?;
        let event =
            NonNull::new(event).ok_or_else(|| Error::internal("an event without a handle"))?;
        Ok(Event { gpu, event })
    }

    fn record(&self) -> Result<()> {
        let cu = self.gpu.current()?;
        // SAFETY: event and stream are open.
        let code = unsafe { (cu.cuEventRecord)(self.event.as_ptr(), self.gpu.stream.0) };
        self.gpu.api.check(code, "an event")
    }

    /// The time from another one to it, when it is reached.
    fn since(&self, before: &Event<'_>) -> Result<Duration> {
        let cu = self.gpu.current()?;
        let mut milliseconds = 0f32;
        // SAFETY: both were recorded in the stream, in this order.
        let code = unsafe {
            match (cu.cuEventSynchronize)(self.event.as_ptr()) {
                0 => (cu.cuEventElapsedTime)(
                    &mut milliseconds,
                    before.event.as_ptr(),
                    self.event.as_ptr(),
                ),
                code => code,
            }
        };
        self.gpu.api.check(code, "waiting for the device")?;
        Ok(Duration::from_secs_f64(f64::from(milliseconds.max(0.0)) / 1e3))
    }
}

impl Drop for Event<'_> {
    fn drop(&mut self) {
        // SAFETY: nothing else destroys it.
        unsafe { (self.gpu.api.functions.cuEventDestroy_v2)(self.event.as_ptr()) };
    }
}

//! A device that is open: its memory, its queue, programs for it.
//!
//! An address is the number of an allocation, from one, in the bits from 40 on, and a byte in it below. A
//! device is opened once a process and stays open.

use std::ffi::{CStr, CString, c_void};
use std::ptr::{null, null_mut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tilewright_ir::hash::HashMap;

use tilewright_ir::{Error, Result};
use tilewright_target::{Device, DeviceIdentity};

use super::api::{self, Api, Functions, Handle, ImageDescription, ImageFormat, check};
use super::driver::{DeviceInfo, devices, open};
use crate::c::{Image, Kernels, Language};
use crate::cache::{ObjectCache, key_of_parts};
use crate::device::{Images, KernelDevice, Value, Work};

/// Items by which a core of a processor gets its share of a loop: enough that none waits long for others.
const ITEMS_OF_UNIT: usize = 8;

/// Bits of an address that say the byte in an allocation.
const BYTE_BITS: u32 = 40;

/// `kDLOpenCL` of DLPack.
const DLPACK_OPENCL: i32 = 4;

/// A handle of OpenCL, which any thread may use.
#[derive(Clone, Copy, Debug)]
struct Object(pub Handle);

impl Object {
    /// It as an argument of a kernel.
    fn bytes(self) -> [u8; size_of::<usize>()] {
        self.0.expose_provenance().to_ne_bytes()
    }
}

// SAFETY: OpenCL's functions may be called from any thread, but for setting the arguments of one kernel
// object, which happens under a lock.
unsafe impl Send for Object {}
// SAFETY: as above.
unsafe impl Sync for Object {}

pub(super) struct OpenDevice {
    info: DeviceInfo,
    context: Object,
    queue: Object,
    cl: &'static Functions,
    memory: Mutex<Allocations>,
    images: Images<ImageObject>,
}

#[derive(Default)]
struct Allocations {
    /// By number, from one.
    list: Vec<Option<Object>>,
    free: Vec<usize>,
}

impl OpenDevice {
    /// Opens a device, or gives it where it is open.
    ///
    /// # Errors
    /// [`Error::Execution`] if its driver fails.
    pub fn get(info: &DeviceInfo) -> Result<Arc<OpenDevice>> {
        static OPEN: Mutex<Option<HashMap<usize, Arc<OpenDevice>>>> = Mutex::new(None);
        let mut all = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        let all = all.get_or_insert_with(HashMap::default);
        if let Some(device) = all.get(&info.id) {
            return Ok(device.clone());
        }
        let (context, queue) = open(info)?;
        let device = Arc::new(OpenDevice {
            info: info.clone(),
            context: Object(context),
            queue: Object(queue),
            cl: &Api::get()?.functions,
            memory: Mutex::default(),
            images: Images::new(),
        });
        all.insert(info.id, device.clone());
        Ok(device)
    }

    fn lock(&self) -> MutexGuard<'_, Allocations> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The memory object of an address, and the byte in it.
    fn find(&self, address: u64) -> Result<(Object, usize)> {
        let (number, byte) = (address >> BYTE_BITS, address & ((1 << BYTE_BITS) - 1));
        let at = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
        let object = at.and_then(|at| self.lock().list.get(at).copied().flatten());
        let object = object.ok_or_else(|| Error::internal(format!("no memory at {address:#x}")))?;
        Ok((object, byte as usize))
    }

    /// Compiles a program, or takes what its compilation gave before out of a cache: a binary of this device
    /// and this version of its driver.
    ///
    /// # Errors
    /// [`Error::Toolchain`] with what the compiler of the driver says.
    fn build(&self, text: &str, cache: &ObjectCache) -> Result<Program> {
        let key = self.key(text);
        if let Some(binary) = cache.get(&key)
            && let Some(program) = self.load(&binary)
        {
            return Ok(program);
        }
        let lines = text.as_ptr().cast();
        let length = text.len();
        let mut code = 0;
        // SAFETY: the text has so many bytes.
        let program = unsafe {
            (self.cl.clCreateProgramWithSource)(self.context.0, 1, &lines, &length, &mut code)
        };
        check(code, "making a program")?;
        let program = Program { object: Object(program), cl: self.cl };
        let code = self.link(&program);
        if code == 0 {
            // Some drivers compile once more for a binary.
            if cache.directory().is_some()
                && let Some(binary) = program.binary()
            {
                cache.put(&key, &binary);
            }
            return Ok(program);
        }
        let id: Handle = std::ptr::with_exposed_provenance_mut(self.info.id);
        let mut log = vec![0u8; 4096];
        // SAFETY: there is room for so many bytes.
        unsafe {
            let room = log.as_mut_ptr().cast::<c_void>();
            (self.cl.clGetProgramBuildInfo)(
                program.object.0,
                id,
                api::BUILD_LOG,
                log.len(),
                room,
                null_mut(),
            );
        }
        let end = log.iter().position(|b| *b == 0).unwrap_or(log.len());
        let log = String::from_utf8_lossy(&log[..end]).trim().to_owned();
        Err(Error::toolchain(format!("the compiler of {} fails: error {code}", self.info.driver))
            .note(log))
    }

    /// What the driver's compiler is told.
    fn build_options(&self) -> &'static CStr {
        if self.info.exact_division {
            c"-cl-std=CL1.2 -cl-fp32-correctly-rounded-divide-sqrt"
        } else {
            c"-cl-std=CL1.2"
        }
    }

    /// The hash of all that decides what the driver's compiler makes.
    fn key(&self, text: &str) -> blake3::Hash {
        let DeviceInfo { name, driver, version, .. } = &self.info;
        let parts = ["opencl", name, driver, version, text].map(str::as_bytes);
        key_of_parts(&[&parts[..], &[self.build_options().to_bytes()]].concat())
    }

    /// Makes a program ready to run; an error code, or zero.
    fn link(&self, program: &Program) -> i32 {
        let id: Handle = std::ptr::with_exposed_provenance_mut(self.info.id);
        let (object, options) = (program.object.0, self.build_options().as_ptr());
        // SAFETY: the program and the device are there; the options end with a zero.
        unsafe { (self.cl.clBuildProgram)(object, 1, &id, options, null(), null_mut()) }
    }

    /// The program of a binary; `None` where the driver does not take it.
    fn load(&self, binary: &[u8]) -> Option<Program> {
        let id: Handle = std::ptr::with_exposed_provenance_mut(self.info.id);
        let (bytes, length) = (binary.as_ptr(), binary.len());
        let (mut status, mut code) = (0, 0);
        // SAFETY: there are so many bytes, which are copied.
        let object = unsafe {
            (self.cl.clCreateProgramWithBinary)(
                self.context.0,
                1,
                &id,
                &length,
                &bytes,
                &mut status,
                &mut code,
            )
        };
        if code != 0 {
            return None;
        }
        let program = Program { object: Object(object), cl: self.cl };
        (status == 0 && self.link(&program) == 0).then_some(program)
    }

    /// A kernel of a program.
    fn kernel(&self, program: &Program, name: &str) -> Result<KernelObject> {
        let symbol = CString::new(name).map_err(|_| Error::internal("a name with a zero in it"))?;
        let mut code = 0;
        // SAFETY: the program is there; the name ends with a zero.
        let kernel =
            unsafe { (self.cl.clCreateKernel)(program.object.0, symbol.as_ptr(), &mut code) };
        check(code, name)?;
        Ok(KernelObject { object: Object(kernel), cl: self.cl })
    }

    /// Puts a kernel with its arguments into the queue.
    fn enqueue(&self, kernel: &KernelObject, work: Work) -> Result<()> {
        let (global, local) = match work {
            // A thread of a group is an iteration of a loop: items have many iterations of their own instead.
            Work::Items(n) if self.info.is_processor() => {
                ([n.min(ITEMS_OF_UNIT * self.info.units.max(1)), 1, 1], Some([1; 3]))
            }
            Work::Items(n) => ([n, 1, 1], None),
            Work::Groups { groups, threads } => {
                (std::array::from_fn(|k| groups[k] * threads[k]), Some(threads))
            }
        };
        let local = local.as_ref().map_or(null(), |l: &[usize; 3]| l.as_ptr());
        let (kernel, global) = (kernel.object.0, global.as_ptr());
        // SAFETY: the kernel has its arguments; the lists have three numbers.
        let code = unsafe {
            (self.cl.clEnqueueNDRangeKernel)(
                self.queue.0,
                kernel,
                3,
                null(),
                global,
                local,
                0,
                null(),
                null_mut(),
            )
        };
        check(code, "running a kernel")
    }
}

impl KernelDevice for OpenDevice {
    type Kernel = KernelObject;
    type Image = ImageObject;

    fn kernels(&self, kernels: &Kernels, cache: &ObjectCache) -> Result<Vec<KernelObject>> {
        let program = self.build(&kernels.program(Language::OpenCl), cache)?;
        kernels.kernels.iter().map(|k| self.kernel(&program, &k.name)).collect()
    }

    fn image(&self, image: &Image) -> Result<ImageObject> {
        let channel = if image.half { api::HALF_CHANNELS } else { api::FLOAT_CHANNELS };
        let format = ImageFormat { order: api::RGBA, channel };
        let description = ImageDescription {
            kind: api::IMAGE_2D,
            width: image.columns,
            height: image.rows,
            depth: 1,
            array: 1,
            row_pitch: 0,
            slice_pitch: 0,
            levels: 0,
            samples: 0,
            buffer: null_mut(),
        };
        let mut code = 0;
        // SAFETY: no pointer of the host goes in.
        let object = unsafe {
            (self.cl.clCreateImage)(
                self.context.0,
                api::READ_WRITE,
                &format,
                &description,
                null_mut(),
                &mut code,
            )
        };
        check(code, &format!("an image of {} by {} texels", image.rows, image.columns))?;
        Ok(ImageObject {
            object: Object(object),
            size: [image.columns, image.rows, 1],
            cl: self.cl,
        })
    }

    fn images(&self) -> &Images<ImageObject> {
        &self.images
    }

    fn copy_image(&self, image: &ImageObject, address: u64, to_image: bool) -> Result<()> {
        let (memory, at) = self.find(address)?;
        let (origin, size) = ([0usize; 3], image.size.as_ptr());
        // SAFETY: memory and image have so many texels.
        let code = unsafe {
            if to_image {
                (self.cl.clEnqueueCopyBufferToImage)(
                    self.queue.0,
                    memory.0,
                    image.object.0,
                    at,
                    origin.as_ptr(),
                    size,
                    0,
                    null(),
                    null_mut(),
                )
            } else {
                (self.cl.clEnqueueCopyImageToBuffer)(
                    self.queue.0,
                    image.object.0,
                    memory.0,
                    origin.as_ptr(),
                    size,
                    at,
                    0,
                    null(),
                    null_mut(),
                )
            }
        };
        check(code, "copying an image")
    }

    fn launch(
        &self,
        kernel: &mut KernelObject,
        work: Work,
        arguments: &[Value<'_, ImageObject>],
    ) -> Result<()> {
        let mut at = 0;
        let mut set = |bytes: &[u8]| {
            at += 1;
            kernel.set(at - 1, bytes)
        };
        for argument in arguments {
            match argument {
                Value::Memory(address) => {
                    let (memory, byte) = self.find(*address)?;
                    set(&memory.bytes())?;
                    set(&(byte as u64).to_ne_bytes())?;
                }
                Value::Whole(address) => set(&self.find(*address)?.0.bytes())?,
                Value::Image(image) => set(&image.object.bytes())?,
                Value::Number(bytes, length) => set(&bytes[..*length])?,
            }
        }
        self.enqueue(kernel, work)
    }
}

/// An image on the device.
pub(super) struct ImageObject {
    object: Object,
    size: [usize; 3],
    cl: &'static Functions,
}

impl Drop for ImageObject {
    fn drop(&mut self) {
        // SAFETY: nothing else releases it; OpenCL keeps it until what uses it is done.
        unsafe { (self.cl.clReleaseMemObject)(self.object.0) };
    }
}

/// A program that is compiled.
struct Program {
    object: Object,
    cl: &'static Functions,
}

impl Program {
    /// What the driver's compiler made of it, for its one device.
    fn binary(&self) -> Option<Vec<u8>> {
        let mut length = 0usize;
        let word = size_of::<usize>();
        // SAFETY: the program is of one device: there is one number, and then so many bytes.
        unsafe {
            let (ask, program) = (self.cl.clGetProgramInfo, self.object.0);
            let to = (&raw mut length).cast();
            if ask(program, api::PROGRAM_BINARY_SIZES, word, to, null_mut()) != 0 || length == 0 {
                return None;
            }
            let mut bytes = vec![0u8; length];
            let mut to = bytes.as_mut_ptr();
            let to = (&raw mut to).cast();
            let code = ask(program, api::PROGRAM_BINARIES, word, to, null_mut());
            (code == 0).then_some(bytes)
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // SAFETY: nothing else releases it; kernels keep what they need.
        unsafe { (self.cl.clReleaseProgram)(self.object.0) };
    }
}

/// A kernel with its arguments.
pub(super) struct KernelObject {
    object: Object,
    cl: &'static Functions,
}

impl KernelObject {
    /// Sets an argument: the bytes of a number, or of a handle.
    fn set(&self, at: usize, bytes: &[u8]) -> Result<()> {
        // SAFETY: there are so many bytes, which are copied.
        let code = unsafe {
            (self.cl.clSetKernelArg)(self.object.0, at as u32, bytes.len(), bytes.as_ptr().cast())
        };
        check(code, "an argument of a kernel")
    }
}

impl Drop for KernelObject {
    fn drop(&mut self) {
        // SAFETY: nothing else releases it.
        unsafe { (self.cl.clReleaseKernel)(self.object.0) };
    }
}

impl Device for OpenDevice {
    fn allocate(&self, bytes: usize) -> Result<u64> {
        if bytes as u64 >> BYTE_BITS != 0 {
            return Err(Error::execution(format!("{bytes} bytes on a device in one piece")));
        }
        let mut code = 0;
        // SAFETY: no pointer of the host goes in.
        let object = unsafe {
            (self.cl.clCreateBuffer)(
                self.context.0,
                api::READ_WRITE,
                bytes.max(1),
                null_mut(),
                &mut code,
            )
        };
        check(code, &format!("{bytes} bytes of memory"))?;
        let mut memory = self.lock();
        let at = memory.free.pop().unwrap_or(memory.list.len());
        if at == memory.list.len() {
            memory.list.push(None);
        }
        memory.list[at] = Some(Object(object));
        Ok((at as u64 + 1) << BYTE_BITS)
    }

    fn free(&self, address: u64) {
        self.images.forget(address, 1 << BYTE_BITS);
        let at = (address >> BYTE_BITS) as usize;
        let mut memory = self.lock();
        let object =
            at.checked_sub(1).and_then(|at| memory.list.get_mut(at)).and_then(Option::take);
        if let Some(object) = object {
            memory.free.push(at - 1);
            // SAFETY: it was allocated by `allocate`; OpenCL keeps it until what uses it is done.
            unsafe { (self.cl.clReleaseMemObject)(object.0) };
        }
    }

    fn write(&self, to: u64, bytes: &[u8]) -> Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.images.access(self, to, bytes.len() as u64, true)?;
        let (object, at) = self.find(to)?;
        let from = bytes.as_ptr().cast();
        // SAFETY: there are so many bytes, and the call waits until they are read.
        let code = unsafe {
            (self.cl.clEnqueueWriteBuffer)(
                self.queue.0,
                object.0,
                1,
                at,
                bytes.len(),
                from,
                0,
                null(),
                null_mut(),
            )
        };
        check(code, "copying to the device")
    }

    fn read(&self, from: u64, bytes: &mut [u8]) -> Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.images.access(self, from, bytes.len() as u64, false)?;
        let (object, at) = self.find(from)?;
        let to = bytes.as_mut_ptr().cast();
        // SAFETY: there is room for so many bytes, and the call waits until they are written.
        let code = unsafe {
            (self.cl.clEnqueueReadBuffer)(
                self.queue.0,
                object.0,
                1,
                at,
                bytes.len(),
                to,
                0,
                null(),
                null_mut(),
            )
        };
        check(code, "copying from the device")
    }

    fn fill(&self, to: u64, bytes: usize, byte: u8) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        self.images.access(self, to, bytes as u64, true)?;
        let (object, at) = self.find(to)?;
        let pattern = (&raw const byte).cast();
        // SAFETY: the pattern is one byte, which is copied.
        let code = unsafe {
            (self.cl.clEnqueueFillBuffer)(
                self.queue.0,
                object.0,
                pattern,
                1,
                at,
                bytes,
                0,
                null(),
                null_mut(),
            )
        };
        check(code, "filling memory of the device")
    }

    fn copy(&self, to: u64, from: u64, bytes: usize) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        self.images.access(self, from, bytes as u64, false)?;
        self.images.access(self, to, bytes as u64, true)?;
        let ((target, to), (source, from)) = (self.find(to)?, self.find(from)?);
        // SAFETY: there are so many bytes at both places, which do not overlap.
        let code = unsafe {
            (self.cl.clEnqueueCopyBuffer)(
                self.queue.0,
                source.0,
                target.0,
                from,
                to,
                bytes,
                0,
                null(),
                null_mut(),
            )
        };
        check(code, "copying on the device")
    }

    fn identity(&self) -> DeviceIdentity {
        let all = devices().unwrap_or(&[]);
        let number = all.iter().position(|d| d.id == self.info.id).unwrap_or(0);
        DeviceIdentity { kind: DLPACK_OPENCL, number: number as i32, stream: None }
    }

    fn exported(&self, address: u64) -> Result<(u64, u64)> {
        // Others access it when they want to.
        let whole = address >> BYTE_BITS << BYTE_BITS;
        self.images.access(self, whole, 1 << BYTE_BITS, true)?;
        let (object, byte) = self.find(address)?;
        Ok((object.0.expose_provenance() as u64, byte as u64))
    }

    fn imported(&self, pointer: u64, byte: u64) -> Result<u64> {
        let memory = self.lock();
        let is_it = |o: &Option<Object>| {
            o.as_ref().is_some_and(|o| o.0.expose_provenance() as u64 == pointer)
        };
        let at = memory.list.iter().position(is_it).ok_or_else(|| {
            Error::input("memory of OpenCL that was allocated elsewhere")
                .note("an object of OpenCL belongs to the context that made it")
        })?;
        Ok(((at as u64 + 1) << BYTE_BITS) + byte)
    }

    fn finish(&self) -> Result<()> {
        // SAFETY: the queue is open.
        check(unsafe { (self.cl.clFinish)(self.queue.0) }, "waiting for the device")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::opencl::choose;

    /// A program is compiled once; a binary that the driver does not take is compiled again.
    #[test]
    fn binaries_of_programs_are_kept() {
        let info = match choose("") {
            Ok(info) => info,
            Err(e) if std::env::var_os("TILEWRIGHT_TEST_DEVICE").is_some() => panic!("{e}"),
            Err(e) => return eprintln!("a test on a device did not run: {e}"),
        };
        let device = OpenDevice::get(&info).expect("it opens");
        let directory = tempfile::tempdir().expect("a directory");
        let cache = ObjectCache::at(directory.path().join("cache"), 1 << 20);
        let [seven, eight] =
            [7, 8].map(|n| format!("__kernel void f(__global int* a) {{ a[0] = {n}; }}"));
        let build =
            |text: &str, cache: &ObjectCache| device.build(text, cache).expect("it compiles");
        let result = |program: &Program| {
            let mut kernel = device.kernel(program, "f").expect("it is there");
            let memory = device.allocate(4).expect("four bytes");
            device.launch(&mut kernel, Work::Items(1), &[Value::Whole(memory)]).expect("it runs");
            let mut bytes = [0; 4];
            device.read(memory, &mut bytes).expect("they are there");
            device.free(memory);
            i32::from_ne_bytes(bytes)
        };
        assert_eq!(result(&build(&seven, &cache)), 7);
        assert_eq!(cache.usage().0, 1);
        // What lies there is what runs.
        let other = build(&eight, &ObjectCache::off()).binary().expect("a binary");
        cache.put(&device.key(&seven), &other);
        assert_eq!(result(&build(&seven, &cache)), 8);
        assert_eq!(result(&build(&seven, &ObjectCache::off())), 7);
        cache.put(&device.key(&seven), b"no binary");
        assert_eq!(result(&build(&seven, &cache)), 7);
        assert_ne!(cache.get(&device.key(&seven)).as_deref(), Some(&b"no binary"[..]));
    }
}

//! OpenCL as a backend.

use std::sync::{Arc, Mutex};

use tilewright_ir::{Error, Lowered, Result};
use tilewright_runtime::parallel;
use tilewright_target::{Backend, Code, CodeOptions, Device, DeviceMemory, Target};

use super::code::{FAILURE_BYTES, Function, OnDevice, Own};
use super::device::OpenDevice;
use super::driver::{DeviceInfo, FAMILY, choose};
use crate::c::{self, Kernels, Memory};
use crate::cache::ObjectCache;

/// A device of this machine, by OpenCL.
#[derive(Clone, Debug)]
pub struct OpenClBackend {
    device: DeviceInfo,
}

impl OpenClBackend {
    /// The device that is meant: by its number, by a part of its name, or the first one for nothing.
    ///
    /// # Errors
    /// As [`choose`].
    pub fn new(which: &str) -> Result<OpenClBackend> {
        Ok(OpenClBackend { device: choose(which)? })
    }

    pub fn device(&self) -> &DeviceInfo {
        &self.device
    }
}

impl Backend for OpenClBackend {
    fn name(&self) -> &str {
        "opencl"
    }

    fn identity(&self) -> Result<String> {
        let DeviceInfo { name, driver, version, asked, .. } = &self.device;
        Ok(format!("opencl {driver} {name} {version}{asked}"))
    }

    fn host(&self) -> Result<Target> {
        Ok(self.device.target())
    }

    fn check_target(&self, target: &Target) -> Result<()> {
        if target.triple == FAMILY && target.cpu == self.device.name {
            return Ok(());
        }
        Err(Error::input(format!(
            "the device `{}` is no `{} {}`",
            self.device.name, target.triple, target.cpu
        )))
    }

    fn check_host(&self, target: &Target) -> Result<()> {
        self.check_target(target)?;
        if self.device.is_here() {
            return Ok(());
        }
        Err(Error::unsupported(
            "code for a device that is none of this machine is written, and not run",
        )
        .help("`compile --target opencl:generic -o model.cl` writes it"))
    }

    fn compile(
        &self,
        module: &Lowered,
        functions: &[Arc<str>],
        target: &Target,
        options: &CodeOptions<'_>,
    ) -> Result<Arc<dyn Code>> {
        self.check_host(target)?;
        self.check(module, functions, target)?;
        if let Some(file) = options.link.first() {
            let text = format!("{}: a device calls no functions of the host", file.display());
            return Err(Error::unsupported(text));
        }
        let device = OpenDevice::get(&self.device)?;
        // The driver of a processor compiles for a size of groups when a kernel first runs, and keeps what it makes;
        // a binary before that is for all sizes, and takes as long again.
        let cache = if self.device.is_processor() {
            ObjectCache::off()
        } else {
            ObjectCache::from_options(options)
        };
        let made = parallel::map(functions.len(), |k| {
            self.function(&device, module, &functions[k], &cache)
        });
        cache.tell_warnings(options);
        let functions = made.into_iter().collect::<Result<Vec<_>>>()?;
        let shared: Arc<dyn Device> = device.clone();
        let failure = DeviceMemory::new(&shared, FAILURE_BYTES)?;
        failure.fill(0)?;
        let source = module.source.clone();
        Ok(Arc::new(OnDevice { device, functions, source, failure: Mutex::new(failure) }))
    }
}

impl OpenClBackend {
    /// A function as kernels.
    fn kernels(&self, module: &Lowered, name: &Arc<str>) -> Result<Kernels> {
        let f = module.tensor(name)?;
        let made = c::kernels(name, f, self.device.arithmetic);
        made.map_err(|e| module.source.iter().fold(e, |e, source| e.in_source(source)))
    }

    /// Compiles a function and gives it the memory that it always has.
    fn function(
        &self,
        device: &Arc<OpenDevice>,
        module: &Lowered,
        name: &Arc<str>,
        cache: &ObjectCache,
    ) -> Result<Function> {
        let named = |e: Error| e.context(format!("function `{name}`"));
        let kernels = self.kernels(module, name)?;
        let program = device.build(&kernels.program(), cache).map_err(named)?;
        let objects = kernels.kernels.iter().map(|k| device.kernel(&program, &k.name));
        let objects = Mutex::new(objects.collect::<Result<_>>().map_err(named)?);
        let shared: Arc<dyn Device> = device.clone();
        let own = kernels.memory.iter().map(|memory| match memory {
            Memory::Param(_) => Ok(Own::Nothing),
            Memory::Scratch(bytes) => DeviceMemory::new(&shared, *bytes).map(Own::Memory),
            Memory::Image(image) => device.image(image).map(Own::Image),
            Memory::Constant(tensor) => {
                let memory = DeviceMemory::new(&shared, tensor.bytes().len())?;
                memory.write(0, tensor.bytes())?;
                Ok(Own::Memory(memory))
            }
        });
        let own = own.collect::<Result<_>>().map_err(named)?;
        Ok(Function { name: name.clone(), kernels, objects, own })
    }
}

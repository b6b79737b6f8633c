//! OpenCL as a backend.

use std::sync::Arc;

use tilewright_ir::{Error, Lowered, Result};
use tilewright_target::{Backend, Code, CodeOptions, Target};

use super::device::OpenDevice;
use super::driver::{DeviceInfo, FAMILY, choose};
use crate::cache::ObjectCache;
use crate::device::OnDevice;

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
        let made = OnDevice::new(device, self.device.arithmetic, module, functions, &cache);
        cache.tell_warnings(options);
        Ok(Arc::new(made?))
    }
}

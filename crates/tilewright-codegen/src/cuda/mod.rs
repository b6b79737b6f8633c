//! CUDA: kernels as CUDA C++ for GPUs by their architecture, as PTX by NVIDIA's compiler, and on a GPU.
//!
//! * `nvrtc`: the compiler; `api`: the driver; `driver`: the GPUs that it lists.
//! * `device`: a GPU that is open, with memory, a stream and kernels.
//!
//! The text is that of the kernels for OpenCL ([`crate::c`]) behind a prelude that gives its names their
//! meaning. Compiler and driver are found at run time.
//!
//! *Why not LLVM's NVPTX:* kernels, groups of threads and barriers are written as C text already, and checked by
//! running them on other devices; one text for both leaves one writer to trust. NVRTC is a package of Python's
//! index, needs no GPU, and is the compiler whose registers and spills count.
//!
//! *Why not `cudarc`:* twenty-five functions of the driver are declared as those of OpenCL and LLVM are, by one macro.

mod api;
mod device;
mod driver;
mod nvrtc;

use std::sync::Arc;

use tilewright_ir::{Error, Lowered, Result};
use tilewright_target::{Backend, CUDA, Code, CodeOptions, Target, check_architecture};

use crate::c::Arithmetic;
use crate::cache::ObjectCache;
use crate::device::OnDevice;

use self::device::{Gpu, GpuFor};
pub use self::driver::{GpuInfo, gpus, library};
pub use self::nvrtc::{compiler, ptx};

/// The architecture of which all later ones run the code, for which code is made where none is said and there is no
/// GPU.
const OLDEST: &str = "sm_80";

/// The first architecture that has all the instructions of warps that are known here.
const FIRST_MMA: u32 = 80;

/// GPUs of an architecture, such as `sm_90`, and one of this machine that runs its code.
#[derive(Clone, Debug)]
pub struct CudaBackend {
    architecture: String,
    gpu: Option<GpuInfo>,
}

impl CudaBackend {
    /// What is meant: a GPU of this machine by its number; the GPUs of an architecture by its name, and the first
    /// one here that runs its code; for an empty name the first GPU here, or those of the oldest architecture that is
    /// known.
    ///
    /// # Errors
    /// [`Error::Input`] for what is neither, and a number that no GPU has; [`Error::Toolchain`] for a number where
    /// there is no driver.
    pub fn new(which: &str) -> Result<CudaBackend> {
        if let Ok(number) = which.parse::<usize>() {
            let all = gpus()?;
            let Some(gpu) = all.get(number).cloned() else {
                let error = Error::input(format!("there is no GPU number {number}"));
                return Err(error.note(format!("the driver of NVIDIA lists {}", all.len())));
            };
            return Ok(CudaBackend { architecture: gpu.architecture.clone(), gpu: Some(gpu) });
        }
        check_architecture(which)?;
        let here = gpus().unwrap_or_default();
        let gpu = here.iter().find(|gpu| which.is_empty() || gpu.runs(which)).cloned();
        let architecture = match (&gpu, which) {
            (Some(gpu), "") => gpu.architecture.clone(),
            (None, "") => OLDEST.to_owned(),
            _ => which.to_owned(),
        };
        Ok(CudaBackend { architecture, gpu })
    }
}

/// What the GPUs of an architecture offer.
fn target_of(architecture: &str) -> Target {
    let mma = driver::capability(architecture).is_some_and(|n| n >= FIRST_MMA);
    let arithmetic = Arithmetic { doubles: true, fma: true, vectors: false, mma };
    Target::new(CUDA, architecture, arithmetic.features())
}

impl Backend for CudaBackend {
    fn name(&self) -> &str {
        "cuda"
    }

    fn identity(&self) -> Result<String> {
        let gpu = self.gpu.as_ref().map(|gpu| format!(" {} driver {}", gpu.name, gpu.driver));
        Ok(format!("cuda {}{}", self.architecture, gpu.unwrap_or_default()))
    }

    fn host(&self) -> Result<Target> {
        Ok(target_of(&self.architecture))
    }

    fn check_target(&self, target: &Target) -> Result<()> {
        if target.triple == CUDA && target.cpu == self.architecture {
            return Ok(());
        }
        Err(Error::input(format!(
            "code for {} is no code for `{} {}`",
            self.architecture, target.triple, target.cpu
        )))
    }

    fn check_host(&self, target: &Target) -> Result<()> {
        self.check_target(target)?;
        if self.gpu.is_some() {
            return Ok(());
        }
        let error = Error::unsupported(format!(
            "no GPU of this machine runs code for {}: it is written, and not run",
            self.architecture
        ));
        let error = match gpus() {
            Ok([]) => error.note("the driver of NVIDIA finds no GPU"),
            Ok(all) => all.iter().fold(error, |error, gpu| {
                error.note(format!("cuda:{} is {} ({})", gpu.number, gpu.name, gpu.architecture))
            }),
            Err(missing) => error.note(missing.to_string()),
        };
        Err(error.help("`compile --target cuda:sm_80 -o model.ptx` or `-o model.cu` writes it"))
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
        let Some(info) = &self.gpu else {
            return Err(Error::internal("a host that runs no code was accepted"));
        };
        let device = GpuFor { gpu: Gpu::get(info)?, architecture: self.architecture.clone() };
        let arithmetic = Arithmetic::from_target(target);
        let cache = ObjectCache::from_options(options);
        let made = OnDevice::new(Arc::new(device), arithmetic, module, functions, &cache);
        cache.tell_warnings(options);
        Ok(Arc::new(made?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn architectures_are_known_by_their_names() {
        for name in ["", "sm_80", "sm_90", "sm_90a", "sm_120"] {
            let backend = CudaBackend::new(name).expect("an architecture");
            let target = backend.host().expect("a target");
            backend.check_target(&target).expect("its own");
            assert_eq!(backend.check_host(&target).is_ok(), backend.gpu.is_some());
            assert!(target.groups.is_some());
        }
        for name in ["80000", "sm_", "sm_x", "sm_30", "ampere"] {
            assert!(CudaBackend::new(name).is_err(), "{name}");
        }
    }

    #[test]
    fn code_runs_on_its_architecture_and_later_ones() {
        let gpu = GpuInfo {
            number: 0,
            name: "one".to_owned(),
            architecture: "sm_90".to_owned(),
            driver: "13.0".to_owned(),
            units: 132,
            memory: 1 << 36,
            shared: 48 << 10,
            threads: 1024,
        };
        for (architecture, runs) in [
            ("sm_80", true),
            ("sm_90", true),
            ("sm_90a", true),
            ("sm_80a", false),
            ("sm_100", false),
        ] {
            assert_eq!(gpu.runs(architecture), runs, "{architecture}");
        }
    }
}

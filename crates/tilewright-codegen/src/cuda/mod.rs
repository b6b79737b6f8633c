//! CUDA: kernels as CUDA C++ for GPUs by their architecture, and as PTX by NVIDIA's compiler.
//!
//! The text is that of the kernels for OpenCL ([`crate::c`]) behind a prelude that gives its names their
//! meaning. PTX is made by NVRTC, which is found at run time (`nvrtc`).
//!
//! *Why not LLVM's NVPTX:* kernels, groups of threads and barriers are written as C text already, and checked by
//! running them on other devices; one text for both leaves one writer to trust. NVRTC is a package of Python's
//! index, needs no GPU, and is the compiler whose registers and spills count.
//!
//! Nothing here runs a kernel.

mod nvrtc;

use std::sync::Arc;

use tilewright_ir::{Error, Lowered, Result};
use tilewright_target::{Backend, CUDA, Code, CodeOptions, Target, check_architecture};

use crate::c::Arithmetic;

pub use nvrtc::ptx;

/// The architecture of which all later ones run the code, for which code is made where none is said.
const OLDEST: &str = "sm_80";

/// The first architecture that has all the instructions of warps that are known here.
const FIRST_MMA: u32 = 80;

/// GPUs of an architecture, such as `sm_90`.
#[derive(Clone, Debug)]
pub struct CudaBackend {
    architecture: String,
}

impl CudaBackend {
    /// The GPUs of an architecture; those of the oldest that is known for an empty name.
    ///
    /// # Errors
    /// [`Error::Input`] for what is no architecture.
    pub fn new(architecture: &str) -> Result<CudaBackend> {
        let name = if architecture.is_empty() { OLDEST } else { architecture };
        check_architecture(name)?;
        Ok(CudaBackend { architecture: name.to_owned() })
    }
}

/// What the GPUs of an architecture offer.
fn target_of(architecture: &str) -> Target {
    let number = architecture.trim_start_matches("sm_").trim_end_matches(['a', 'f']);
    let mma = number.parse::<u32>().is_ok_and(|n| n >= FIRST_MMA);
    let arithmetic = Arithmetic { doubles: true, fma: true, vectors: false, mma };
    Target::new(CUDA, architecture, arithmetic.features())
}

impl Backend for CudaBackend {
    fn name(&self) -> &str {
        "cuda"
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
        Err(Error::unsupported("code for CUDA is written, and not run")
            .help("`compile --target cuda:sm_80 -o model.ptx` or `-o model.cu` writes it"))
    }

    fn compile(
        &self,
        _module: &Lowered,
        _functions: &[Arc<str>],
        target: &Target,
        _options: &CodeOptions<'_>,
    ) -> Result<Arc<dyn Code>> {
        self.check_host(target)?;
        Err(Error::internal("a host that runs no code was accepted"))
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
            assert!(backend.check_host(&target).is_err() && target.groups.is_some());
        }
        for name in ["80", "sm_", "sm_x", "sm_30", "ampere"] {
            assert!(CudaBackend::new(name).is_err(), "{name}");
        }
    }
}

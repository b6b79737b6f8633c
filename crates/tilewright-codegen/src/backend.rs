//! LLVM as a backend: the functions of a lowered module become kernels in this process.
//!
//! Each function is a module of LLVM IR of its own: so that they compile at the same time, and one
//! that several models have is compiled once (see [`crate::cache`]).

use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::Arc;

use tilewright_ir::{Error, Lowered, Result};
use tilewright_target::{Backend, Code, CodeOptions, OptLevel, Target};

use crate::cache::ObjectCache;
use crate::files::{FileBackend, Text};
use crate::kernels::{Kernel, Kernels, objects};
use crate::library::{Built, Library, Program};
use crate::llvm::{Emit, Jit, Llvm};
use crate::{emit, entry, header, packed};

/// LLVM, as it is found on this machine, for the processors that it knows.
#[derive(Clone, Copy, Debug, Default)]
pub struct LlvmBackend;

impl Backend for LlvmBackend {
    fn name(&self) -> &str {
        "llvm"
    }

    fn identity(&self) -> Result<String> {
        Ok(Llvm::get()?.identity())
    }

    fn host(&self) -> Result<Target> {
        Ok(Llvm::get()?.host())
    }

    fn check_target(&self, target: &Target) -> Result<()> {
        match Llvm::get() {
            Ok(llvm) => llvm.check_target(target),
            // Layouts and loops are made without it, for any machine that is known here.
            Err(_) => tilewright_target::check(
                &target.triple,
                &target.cpu,
                &target.features,
                u32::MAX,
                None,
            ),
        }
    }

    fn check_host(&self, target: &Target) -> Result<()> {
        Llvm::get()?.check_host(target)
    }

    fn compile(
        &self,
        module: &Lowered,
        functions: &[Arc<str>],
        target: &Target,
        options: &CodeOptions<'_>,
    ) -> Result<Arc<dyn Code>> {
        let llvm = Llvm::get()?;
        llvm.check_host(target)?;
        self.check(module, functions, target)?;
        let objects = objects(llvm, module, functions, target, options)?;
        let jit = Jit::new(llvm)?;
        objects.iter().try_for_each(|object| jit.add_object(object))?;
        options.link.iter().try_for_each(|file| jit.add_file(file))?;
        let kernels = functions
            .iter()
            .map(|name| {
                let address = jit.lookup(&emit::symbol(emit::PREFIX, name))?;
                // SAFETY: the object was made from this function, or is the cached one for the very
                // same text: the symbol is a kernel.
                Ok(unsafe { std::mem::transmute::<NonNull<c_void>, Kernel>(address) })
            })
            .collect::<Result<Vec<Kernel>>>()?;
        Ok(Arc::new(Kernels::new(module, functions, kernels, Box::new(jit))?))
    }

    fn packs(&self) -> bool {
        true
    }

    fn pack(
        &self,
        module: &Lowered,
        functions: &[Arc<str>],
        target: &Target,
        options: &CodeOptions<'_>,
    ) -> Result<Vec<u8>> {
        self.check(module, functions, target)?;
        packed::build(module, functions, target, options)
    }
}

impl FileBackend for LlvmBackend {
    fn shared(&self, library: &Library<'_>, options: &CodeOptions<'_>) -> Result<Built> {
        let cache = ObjectCache::from_options(options);
        let built = library.build(Llvm::get()?, &cache);
        cache.tell_warnings(options);
        built
    }

    fn archive(&self, library: &Library<'_>, options: &CodeOptions<'_>) -> Result<Built> {
        let cache = ObjectCache::from_options(options);
        let built = library.archive(Llvm::get()?, &cache);
        cache.tell_warnings(options);
        built
    }

    fn object(
        &self,
        name: &str,
        program: &Program<'_>,
        target: &Target,
        options: &CodeOptions<'_>,
    ) -> Result<Built> {
        let header = header::object(program.plan, name)?;
        let ir = entry::program(name, program.plan, program.funcs, target)?;
        let cache = ObjectCache::from_options(options);
        let object = cache.compile(Llvm::get()?, &ir, target, options.level);
        cache.tell_warnings(options);
        Ok(Built { library: object?.bytes.to_vec(), header })
    }

    fn text(
        &self,
        name: &str,
        program: &Program<'_>,
        text: Text,
        target: &Target,
        level: OptLevel,
    ) -> Result<String> {
        let ir = entry::program(name, program.plan, program.funcs, target)?;
        let emit = match text {
            Text::Assembly => Emit::Assembly,
            Text::Intermediate if level == OptLevel::None => return Ok(ir),
            Text::Intermediate => Emit::OptimizedIr,
        };
        let bytes = Llvm::get()?.compile(&ir, target, level, emit)?;
        String::from_utf8(bytes).map_err(|_| Error::internal("LLVM's text is not UTF-8"))
    }
}

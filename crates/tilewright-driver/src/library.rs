//! Programs as files of code: shared libraries and objects with a C interface, and the texts on the way.

use std::ffi::OsStr;

use tilewright_codegen::c::Arithmetic;
pub use tilewright_codegen::c::host::Files;
use tilewright_codegen::c::host::{self, Model};
use tilewright_codegen::cache::ObjectCache;
use tilewright_codegen::entry::{self, Planned};
use tilewright_codegen::header;
use tilewright_codegen::library::{self, Built, Control, Library};
use tilewright_codegen::llvm::{Emit, Llvm};
use tilewright_codegen::opencl;
use tilewright_ir::{Error, Result};
use tilewright_target::{OptLevel, Target};

use super::options::Options;
use super::program::Program;

/// The plan of a program that is one.
///
/// # Errors
/// [`Error::Unsupported`] where there is control flow, which takes several; those of
/// [`Planned::new`].
pub fn plan(program: &Program) -> Result<Planned> {
    match &program.control {
        None => Planned::new(&program.plan),
        Some(_) => Err(Error::unsupported(
            "the model has control flow, or sizes that data decide: it is several plans",
        )
        .help("compile it to a shared library (.so)")),
    }
}

/// A shared library of a program, whose symbols begin with `name`, and of its versions for some sizes.
/// Programs that are linked with it ask for it by `soname`.
///
/// # Errors
/// Those of [`Library::build`]; [`Error::Unsupported`] for versions where there is control flow, and for
/// outputs that are lists.
pub fn build(
    name: &str,
    soname: Option<&OsStr>,
    program: &Program,
    versions: &[Program],
    options: &Options,
) -> Result<Built> {
    made(name, soname, program, versions, options, |l, llvm, cache| l.build(llvm, cache))
}

/// The same as a static library.
///
/// # Errors
/// As [`build`], and those of [`Library::archive`].
pub fn archive(
    name: &str,
    program: &Program,
    versions: &[Program],
    options: &Options,
) -> Result<Built> {
    made(name, None, program, versions, options, |l, llvm, cache| l.archive(llvm, cache))
}

/// A library that is made from its content by `make`.
fn made(
    name: &str,
    soname: Option<&OsStr>,
    program: &Program,
    versions: &[Program],
    options: &Options,
    make: impl Fn(&Library<'_>, &'static Llvm, &ObjectCache) -> Result<Built>,
) -> Result<Built> {
    if program.control.is_some() && !versions.is_empty() {
        return Err(Error::unsupported("--specialize for a model with control flow")
            .help("leave it out: the library runs at every size"));
    }
    let target = options.resolve_target()?;
    let funcs = program.functions()?;
    let plans = versions.iter().map(plan).collect::<Result<Vec<_>>>()?;
    let all = versions.iter().map(Program::functions).collect::<Result<Vec<_>>>()?;
    let versions = plans.iter().zip(&all).map(|(plan, funcs)| library::Program { plan, funcs });
    let versions: Vec<library::Program<'_>> = versions.collect();

    let pieces = program.control.iter().flat_map(|c| &c.pieces);
    let planned = pieces.clone().map(Planned::new).collect::<Result<Vec<_>>>()?;
    let own: Vec<Vec<_>> = pieces
        .map(|piece| {
            let called = piece.functions();
            funcs.iter().filter(|(name, _)| called.contains(name)).cloned().collect()
        })
        .collect();
    let pieces = planned.iter().zip(&own).map(|(plan, funcs)| library::Program { plan, funcs });
    let pieces: Vec<library::Program<'_>> = pieces.collect();
    let control = program.control.as_ref();
    let control = control.map(|c| Control { program: &c.program, pieces: &pieces });
    let (plan, funcs) = match &control {
        Some(control) => (library::signature(control.program)?, &[][..]),
        None => (plan(program)?, &funcs[..]),
    };
    let library = Library {
        name,
        soname,
        program: library::Program { plan: &plan, funcs },
        versions: &versions,
        control: control.as_ref(),
        link: &options.link,
        target: &target,
    };
    let llvm = Llvm::get()?;
    options.with_code_options(|code| {
        let cache = ObjectCache::from_options(code);
        let built = make(&library, llvm, &cache);
        cache.tell_warnings(code);
        built
    })
}

/// The kernels of a program for a device, and the C code that runs them there. The files are called
/// `stem`, functions of the C code begin with `name`.
///
/// # Errors
/// Those of [`plan`] and of [`Model::files`]; [`Error::Input`] for a target that is no device;
/// [`Error::Unsupported`] where there is control flow.
pub fn device(name: &str, stem: &str, program: &Program, options: &Options) -> Result<Files> {
    let target = device_target(program, options)?;
    if program.control.is_some() {
        return Err(Error::unsupported(
            "the model has control flow, or sizes that data decide, which C code for a device does not run",
        )
        .help("`run --target opencl` runs it; --emit cl without --output gives the kernels"));
    }
    let (plan, funcs) = (plan(program)?, program.functions()?);
    let arithmetic = Arithmetic::from_target(&target);
    Model { name, stem, device: &target.cpu, arithmetic, plan: &plan, funcs: &funcs }.files()
}

/// The kernels of a program for a device.
///
/// # Errors
/// As [`device`]; control flow runs on the host, and is none of them.
pub fn kernels(program: &Program, options: &Options) -> Result<String> {
    let target = device_target(program, options)?;
    host::kernel_text(&program.functions()?, Arithmetic::from_target(&target))
}

/// The device that kernels are for, which has the memory that they use.
fn device_target(program: &Program, options: &Options) -> Result<Target> {
    let target = options.resolve_target()?;
    if target.triple != opencl::FAMILY {
        let error = Error::input("OpenCL C is made for a device");
        return Err(error.help("give --target opencl"));
    }
    options.backend.check(&program.module, &program.called(), &target)?;
    Ok(target)
}

/// A text on the way to code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Text {
    /// LLVM IR after LLVM's optimisations; before them with [`OptLevel::None`].
    LlvmIr,
    /// Assembly.
    Assembly,
}

/// A whole program as text, with symbols that begin with `name`.
///
/// # Errors
/// Those of [`plan`] and of LLVM.
pub fn text(name: &str, program: &Program, text: Text, options: &Options) -> Result<String> {
    let target = options.resolve_target()?;
    let ir = entry::program(name, &plan(program)?, &program.functions()?, &target)?;
    let emit = match text {
        Text::Assembly => Emit::Assembly,
        Text::LlvmIr if options.level == OptLevel::None => return Ok(ir),
        Text::LlvmIr => Emit::OptimizedIr,
    };
    let bytes = Llvm::get()?.compile(&ir, &target, options.level, emit)?;
    String::from_utf8(bytes).map_err(|_| Error::internal("LLVM's text is not UTF-8"))
}

/// An object file of a program, and its header.
///
/// # Errors
/// Those of [`plan`] and of LLVM.
pub fn object(name: &str, program: &Program, options: &Options) -> Result<Built> {
    let (plan, target) = (plan(program)?, options.resolve_target()?);
    let header = header::object(&plan, name)?;
    let ir = entry::program(name, &plan, &program.functions()?, &target)?;
    let llvm = Llvm::get()?;
    let object = options.with_code_options(|code| {
        let cache = ObjectCache::from_options(code);
        let object = cache.compile(llvm, &ir, &target, options.level);
        cache.tell_warnings(code);
        object
    })?;
    Ok(Built { library: object.bytes.to_vec(), header })
}

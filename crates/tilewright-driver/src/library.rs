//! Programs as files of code: shared libraries and objects with a C interface, and the texts on the way.

use std::ffi::OsStr;

pub use tilewright_codegen::c::host::Files;
use tilewright_codegen::c::host::{self, Model};
use tilewright_codegen::c::{Arithmetic, Language};
use tilewright_codegen::entry::Planned;
use tilewright_codegen::files::FileBackend;
pub use tilewright_codegen::files::Text;
use tilewright_codegen::library::{self, Built, Control, Library};
use tilewright_codegen::registry;
use tilewright_ir::{Error, Result};
use tilewright_target::{CodeOptions, Target};

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
/// Those of [`registry::files`] and [`FileBackend::shared`]; [`Error::Unsupported`] for versions where there is control flow, and for
/// outputs that are lists.
pub fn build(
    name: &str,
    soname: Option<&OsStr>,
    program: &Program,
    versions: &[Program],
    options: &Options,
) -> Result<Built> {
    build_with(name, soname, program, versions, options, |files, l, code| files.shared(l, code))
}

/// The same as a static library.
///
/// # Errors
/// As [`build`], and those of [`FileBackend::archive`].
pub fn archive(
    name: &str,
    program: &Program,
    versions: &[Program],
    options: &Options,
) -> Result<Built> {
    build_with(name, None, program, versions, options, |files, l, code| files.archive(l, code))
}

/// A library that is made from its content by `make`.
fn build_with(
    name: &str,
    soname: Option<&OsStr>,
    program: &Program,
    versions: &[Program],
    options: &Options,
    make: impl Fn(&dyn FileBackend, &Library<'_>, &CodeOptions<'_>) -> Result<Built>,
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
    let files = registry::files(&*options.backend)?;
    options.with_code_options(|code| make(files, &library, code))
}

/// The kernels of a program for a device, and the C code that runs them there. The files are called
/// `stem`, functions of the C code begin with `name`.
///
/// # Errors
/// Those of [`plan`] and of [`Model::files`]; [`Error::Input`] for a target that is no device;
/// [`Error::Unsupported`] where there is control flow.
pub fn device(name: &str, stem: &str, program: &Program, options: &Options) -> Result<Files> {
    let (target, arithmetic, language) = device_target(program, options)?;
    if language != Language::OpenCl {
        return Err(Error::unsupported("C code of the host is made for OpenCL")
            .help("an output with the ending .cu or .ptx has the kernels"));
    }
    if program.control.is_some() {
        return Err(Error::unsupported(
            "the model has control flow, or sizes that data decide, which C code for a device does not run",
        )
        .help("`run --target opencl` runs it; --emit cl without --output gives the kernels"));
    }
    let (plan, funcs) = (plan(program)?, program.functions()?);
    Model { name, stem, device: &target.cpu, arithmetic, plan: &plan, funcs: &funcs }.files()
}

/// The kernels of a program for a device of OpenCL.
///
/// # Errors
/// As [`device`]; control flow runs on the host, and is none of them.
pub fn kernels(program: &Program, options: &Options) -> Result<String> {
    in_language(program, options, Language::OpenCl)
}

/// The same in CUDA C++, for a GPU of NVIDIA.
///
/// # Errors
/// As [`kernels`].
pub fn cuda(program: &Program, options: &Options) -> Result<String> {
    in_language(program, options, Language::Cuda)
}

/// The same as PTX.
///
/// # Errors
/// As [`cuda`], and those of [`registry::ptx`].
pub fn ptx(program: &Program, options: &Options) -> Result<String> {
    registry::ptx(&cuda(program, options)?, &options.resolve_target()?)
}

fn in_language(program: &Program, options: &Options, wanted: Language) -> Result<String> {
    let (_, arithmetic, language) = device_target(program, options)?;
    if language != wanted {
        let (what, target) = match wanted {
            Language::OpenCl => ("OpenCL C is", "opencl"),
            Language::Cuda => ("CUDA C++ and PTX are", "cuda:sm_80"),
        };
        let error = Error::input(format!("{what} made for another device"));
        return Err(error.help(format!("give --target {target}")));
    }
    host::kernel_text(&program.functions()?, arithmetic, language)
}

/// The device that kernels are for, which has the memory that they use, its arithmetic and language.
fn device_target(program: &Program, options: &Options) -> Result<(Target, Arithmetic, Language)> {
    let target = options.resolve_target()?;
    let (arithmetic, language) = registry::device_arithmetic(&target)?;
    options.backend.check(&program.module, &program.called(), &target)?;
    Ok((target, arithmetic, language))
}

/// A whole program as text, with symbols that begin with `name`.
///
/// # Errors
/// Those of [`plan`], [`registry::files`] and [`FileBackend::text`].
pub fn text(name: &str, program: &Program, text: Text, options: &Options) -> Result<String> {
    let target = options.resolve_target()?;
    let program = library::Program { plan: &plan(program)?, funcs: &program.functions()? };
    registry::files(&*options.backend)?.text(name, &program, text, &target, options.level)
}

/// An object file of a program, and its header.
///
/// # Errors
/// Those of [`plan`], [`registry::files`] and [`FileBackend::object`].
pub fn object(name: &str, program: &Program, options: &Options) -> Result<Built> {
    let target = options.resolve_target()?;
    let program = library::Program { plan: &plan(program)?, funcs: &program.functions()? };
    let files = registry::files(&*options.backend)?;
    options.with_code_options(|code| files.object(name, &program, &target, code))
}

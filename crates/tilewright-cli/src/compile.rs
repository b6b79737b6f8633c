//! `tilewright compile`: a model to a file of native code, or of one of the texts on the way there.

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use tilewright_driver::layout::lay_out;
use tilewright_driver::library::{self, Files, Text};
use tilewright_driver::pipeline::PipelineStage;
use tilewright_driver::session::{LoweredModel, OpenSizes};
use tilewright_driver::{Error, Module, Options, Result, Session, print};
use tilewright_runtime::file;

use super::answer::{Answer, Outcome, talk};
use super::given::Given;
use super::native::Native;
use super::progress::Bar;
use super::sizes::Source;
use super::versions::Versions;

/// Compile a model to a library with a C header, or to one of the forms on the way there.
#[derive(clap::Args)]
pub struct Arguments {
    /// An ONNX model, TVMScript with a graph or tensor function, or `-` for TVMScript from standard
    /// input.
    model: PathBuf,
    /// Where to write; text goes to standard output without it. A library or object gets a C header
    /// beside it, with the ending `.h`.
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    /// What to write; by the ending of OUT unless said: .so, .a, .o, .ll, .s, .cl, .cu, .ptx, .py.
    #[arg(long, value_enum)]
    emit: Option<OutputKind>,
    /// Prefix of the symbols of a library or object, a C identifier; from the name of OUT unless
    /// said.
    #[arg(long, value_name = "PREFIX")]
    name: Option<String>,
    /// For TVMScript: the last stage that the module goes through; none unless said.
    #[arg(long, value_name = "STAGE", value_parser = stage)]
    after: Option<PipelineStage>,
    /// Write a file for `pkg-config` beside a library, too: its path with the ending `.pc`, without `lib`.
    #[arg(long)]
    pkg_config: bool,
    #[command(flatten)]
    given: Given,
    #[command(flatten)]
    versions: Versions,
    #[command(flatten)]
    native: Native,
}

/// What can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum OutputKind {
    /// A shared library.
    So,
    /// A static library, with the same interface.
    Archive,
    /// An object file.
    Obj,
    /// LLVM IR after LLVM's optimisations (before them with --opt-level 0).
    LlvmIr,
    /// Assembly.
    Asm,
    /// OpenCL C for a device (--target opencl); into a file, with the C code that runs it, its header and
    /// the constants beside it.
    Cl,
    /// CUDA C++ of the kernels (--target cuda:sm_80).
    Cu,
    /// PTX of the kernels (--target cuda:sm_80), by NVIDIA's compiler NVRTC.
    Ptx,
    /// The module as text.
    Tvmscript,
}

/// The endings of what stands beside kernels: C code, its header, constants.
const DEVICE_ENDINGS: [&str; 3] = ["c", "h", "bin"];

impl OutputKind {
    /// By the ending of a file.
    fn of_ending(path: &Path) -> Option<OutputKind> {
        match path.extension().and_then(OsStr::to_str)? {
            "so" | "dylib" => Some(OutputKind::So),
            "a" => Some(OutputKind::Archive),
            "o" | "obj" => Some(OutputKind::Obj),
            "ll" => Some(OutputKind::LlvmIr),
            "s" | "asm" => Some(OutputKind::Asm),
            "cl" => Some(OutputKind::Cl),
            "cu" => Some(OutputKind::Cu),
            "ptx" => Some(OutputKind::Ptx),
            "py" => Some(OutputKind::Tvmscript),
            _ => None,
        }
    }
}

fn stage(text: &str) -> std::result::Result<PipelineStage, String> {
    PipelineStage::named(text).map_err(|_| {
        let names: Vec<&str> = PipelineStage::all().map(PipelineStage::name).collect();
        format!("the stages are {}", names.join(", "))
    })
}

pub fn execute(arguments: &Arguments, out: &mut impl Write) -> Outcome {
    let output = arguments.output.as_deref();
    let form =
        arguments.emit.or_else(|| output.and_then(OutputKind::of_ending)).ok_or_else(|| {
            Error::input("what to write is not said").help(
                "give --emit, or --output with one of the endings .so, .a, .o, .ll, .s, .cl, .cu, .ptx, .py",
            )
        })?;
    if arguments.after.is_some() && form != OutputKind::Tvmscript {
        return Err(Error::input("--after is for --emit tvmscript").into());
    }
    if let Some(path) = output {
        file::check(path)?;
        if matches!(form, OutputKind::So | OutputKind::Archive | OutputKind::Obj) {
            file::check(path.with_extension("h"))?;
        }
        if form == OutputKind::Cl {
            if path.extension() != Some(OsStr::new("cl")) {
                let error = Error::input(format!("{}: kernels are a file `.cl`", path.display()));
                return Err(error.help("others are written beside it, with other endings").into());
            }
            DEVICE_ENDINGS.iter().try_for_each(|e| file::check(path.with_extension(e)))?;
        }
    }
    let is_library = matches!(form, OutputKind::So | OutputKind::Archive);
    if !is_library && !arguments.versions.is_empty() {
        return Err(Error::input("--specialize is for libraries").into());
    }
    if !is_library && arguments.pkg_config {
        return Err(Error::input("--pkg-config is for libraries").into());
    }
    let bar = Bar::new("load");
    let options = arguments.native.options(&bar)?.specialize(arguments.versions.all()?);
    let session = Session::new(options);
    let model = Source::from_path(&arguments.model)?;
    let request = arguments.given.request(&model, OpenSizes::AsGiven);
    let is_for_device = arguments.native.is_for_device();
    let is_kernels = matches!(form, OutputKind::Cl | OutputKind::Cu | OutputKind::Ptx);
    if !is_kernels && form != OutputKind::Tvmscript && is_for_device {
        return Err(Error::input("for a device, kernels can be written, and TVMScript")
            .help("give an output with the ending .cl for OpenCL, .cu or .ptx for CUDA")
            .into());
    }
    if is_kernels && !is_for_device {
        return Err(Error::input("kernels are made for a device")
            .help("give --target opencl or --target cuda:sm_80")
            .into());
    }
    let text = match form {
        OutputKind::So | OutputKind::Archive | OutputKind::Obj => {
            let path = output.ok_or_else(|| {
                Error::input("a library or object is not written to standard output")
                    .help("give --output")
            })?;
            let mut made = session.program(&request)?;
            let header = binary(arguments, form, path, &made, session.options())?;
            drop(bar);
            let kept = if made.is_kept { ", from the program that was kept" } else { "" };
            talk!("note: wrote {} and {}{kept}", path.display(), header.display());
            session.keep_program(&mut made);
            return Ok(Answer::Yes);
        }
        OutputKind::Tvmscript => {
            let module = session.read(&request)?.module;
            let module = match arguments.after {
                // The module itself is asked for, and not what is made of it.
                None if arguments.native.names_layout() => lay_out(&module, session.options())?.0,
                None => module,
                Some(until) => session.stages(&module, until)?.module,
            };
            script(&module)
        }
        OutputKind::Cl => {
            let program = session.program(&request)?.program;
            let Some(path) = output else {
                let text = library::kernels(&program, session.options())?;
                drop(bar);
                out.write_all(text.as_bytes())?;
                return Ok(Answer::Yes);
            };
            let name = name(arguments, output)?;
            let stem = path.file_stem().unwrap_or_default().to_string_lossy();
            let files = library::device(&name, &stem, &program, session.options())?;
            drop(bar);
            write_for_device(path, &files)?;
            return Ok(Answer::Yes);
        }
        OutputKind::Cu => library::cuda(&session.program(&request)?.program, session.options())?,
        OutputKind::Ptx => library::ptx(&session.program(&request)?.program, session.options())?,
        OutputKind::LlvmIr | OutputKind::Asm => {
            let name = name(arguments, output)?;
            let program = session.program(&request)?.program;
            let text = if form == OutputKind::Asm { Text::Assembly } else { Text::Intermediate };
            library::text(&name, &program, text, session.options())?
        }
    };
    drop(bar);
    match output {
        Some(path) => file::write(path, text.as_bytes())?,
        None => out.write_all(text.as_bytes())?,
    }
    Ok(Answer::Yes)
}

/// Writes kernels, and beside them the C code that runs them, its header and the constants.
fn write_for_device(path: &Path, files: &Files) -> Result<()> {
    let beside = DEVICE_ENDINGS.map(|ending| path.with_extension(ending));
    let contents = [files.code.as_bytes(), files.header.as_bytes(), &files.constants];
    let mut all = vec![(path, 0o666, files.kernels.as_bytes())];
    all.extend(beside.iter().zip(contents).map(|(path, content)| (&**path, 0o666, content)));
    file::write_all(&all)?;
    let names: Vec<String> = beside.iter().map(|path| path.display().to_string()).collect();
    talk!("note: wrote {} and {}", path.display(), names.join(", "));
    Ok(())
}

fn script(module: &Module) -> String {
    let mut text = print(module);
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

/// The prefix of symbols.
fn name(arguments: &Arguments, output: Option<&Path>) -> Result<String> {
    if let Some(name) = &arguments.name {
        return Ok(name.clone());
    }
    let from = output.unwrap_or(&arguments.model);
    let stem = from.file_stem().unwrap_or_default().to_string_lossy();
    let stem = stem.strip_prefix("lib").filter(|rest| !rest.is_empty()).unwrap_or(&stem);
    let name: String =
        stem.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    let is_word = name.contains(|c: char| c.is_ascii_alphabetic());
    Ok(match name.chars().next() {
        Some(first) if is_word && !first.is_ascii_digit() => name,
        Some(_) if is_word => format!("m_{name}"),
        _ => "model".to_owned(),
    })
}

/// Writes a library or object, and its header, whose path is the result.
fn binary(
    arguments: &Arguments,
    form: OutputKind,
    path: &Path,
    made: &LoweredModel,
    options: &Options,
) -> Result<PathBuf> {
    let name = name(arguments, Some(path))?;
    let header_path = path.with_extension("h");
    let (mode, built) = match form {
        OutputKind::So => {
            let soname = path.file_name();
            (0o777, library::build(&name, soname, &made.program, &made.versions, options)?)
        }
        OutputKind::Archive => {
            (0o666, library::archive(&name, &made.program, &made.versions, options)?)
        }
        _ => (0o666, library::object(&name, &made.program, options)?),
    };
    let mut files =
        vec![(path, mode, &built.library[..]), (&*header_path, 0o666, built.header.as_bytes())];
    let package = arguments.pkg_config.then(|| package(&name, arguments, form, path));
    if let Some((path, text)) = &package {
        files.push((path, 0o666, text.as_bytes()));
    }
    file::write_all(&files)?;
    Ok(header_path)
}

/// The file for `pkg-config` beside a library, and its text.
fn package(
    name: &str,
    arguments: &Arguments,
    form: OutputKind,
    library: &Path,
) -> (PathBuf, String) {
    let file = without_controls(library.file_name().unwrap_or_default());
    let model = without_controls(arguments.model.file_name().unwrap_or_default());
    // What a static library uses itself.
    let further = if form == OutputKind::Archive { " -lm" } else { "" };
    let stem = without_controls(library.file_stem().unwrap_or_default());
    let stem = stem.strip_prefix("lib").filter(|rest| !rest.is_empty()).unwrap_or(&stem);
    let content = format!(
        "Name: {name}\nDescription: {model}, compiled by Tilewright\nVersion: {}\n\
         Cflags: -I\"${{pcfiledir}}\"\nLibs: \"${{pcfiledir}}/{file}\"{further}\n",
        env!("CARGO_PKG_VERSION")
    );
    (library.with_file_name(format!("{stem}.pc")), content)
}

fn without_controls(file: &OsStr) -> String {
    file.to_string_lossy().replace(char::is_control, " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_become_prefixes() {
        for (file, expected) in [
            ("out/resnet50.so", "resnet50"),
            ("libdigits.so", "digits"),
            ("lib.so", "lib"),
            ("my-net v2.o", "my_net_v2"),
            ("3d.so", "m_3d"),
            ("42.so", "model"),
            ("...", "model"),
            ("é.so", "model"),
        ] {
            assert_eq!(prefix_of(file), expected, "{file}");
        }
    }

    fn prefix_of(file: &str) -> String {
        let arguments = Arguments {
            model: "net.onnx".into(),
            output: None,
            emit: None,
            name: None,
            after: None,
            pkg_config: false,
            given: Given::default(),
            versions: Versions::default(),
            native: Native::default(),
        };
        name(&arguments, Some(Path::new(file))).expect("a name")
    }
}

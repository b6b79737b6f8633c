//! `tilewright compile`: a model to a file of native code, or of one of the texts on the way there.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use tilewright_codegen::cache::ObjectCache;
use tilewright_codegen::entry;
use tilewright_codegen::header;
use tilewright_codegen::llvm::{Emit, Llvm};
use tilewright_driver::compile::{Program, specialized};
use tilewright_driver::kept::{DataFiles, Entry};
use tilewright_driver::library::{build, plan};
use tilewright_driver::pipeline::{self, Stage};
use tilewright_driver::{Error, Module, OptLevel, Options, Result, print};
use tilewright_runtime::file;

use super::answer::{Answer, Outcome, talk};
use super::given::Given;
use super::native::Native;
use super::progress::Bar;
use super::versions::Versions;

/// Compile a model to a shared library with a C header, or to one of the forms on the way there.
#[derive(clap::Args)]
pub struct Arguments {
    /// An ONNX model, TVMScript with a graph or tensor function, or `-` for TVMScript from standard
    /// input.
    model: PathBuf,
    /// Where to write; text goes to standard output without it. A library or object gets a C header
    /// beside it, with the ending `.h`.
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    /// What to write; by the ending of OUT unless said: .so, .o, .ll, .s, .py.
    #[arg(long, value_enum)]
    emit: Option<Form>,
    /// Prefix of the symbols of a library or object, a C identifier; from the name of OUT unless
    /// said.
    #[arg(long, value_name = "PREFIX")]
    name: Option<String>,
    /// For TVMScript: the last stage that the module goes through; none unless said.
    #[arg(long, value_name = "STAGE", value_parser = stage)]
    after: Option<Stage>,
    #[command(flatten)]
    given: Given,
    #[command(flatten)]
    versions: Versions,
    #[command(flatten)]
    native: Native,
}

/// What can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    /// A shared library.
    So,
    /// An object file.
    Obj,
    /// LLVM IR after LLVM's optimisations (before them with --opt-level 0).
    LlvmIr,
    /// Assembly.
    Asm,
    /// The module as text.
    Tvmscript,
}

impl Form {
    /// By the ending of a file.
    fn of_ending(path: &Path) -> Option<Form> {
        match path.extension().and_then(OsStr::to_str)? {
            "so" | "dylib" => Some(Form::So),
            "o" | "obj" => Some(Form::Obj),
            "ll" => Some(Form::LlvmIr),
            "s" | "asm" => Some(Form::Asm),
            "py" => Some(Form::Tvmscript),
            _ => None,
        }
    }
}

fn stage(text: &str) -> std::result::Result<Stage, String> {
    let names = Stage::ALL.map(Stage::name);
    let found = Stage::ALL.into_iter().find(|stage| stage.name() == text);
    found.ok_or_else(|| format!("the stages are {}", names.join(", ")))
}

pub fn execute(arguments: &Arguments, out: &mut impl Write) -> Outcome {
    let output = arguments.output.as_deref();
    let form = arguments.emit.or_else(|| output.and_then(Form::of_ending)).ok_or_else(|| {
        Error::input("what to write is not said")
            .help("give --emit, or --output with one of the endings .so, .o, .ll, .s, .py")
    })?;
    if arguments.after.is_some() && form != Form::Tvmscript {
        return Err(Error::input("--after is for --emit tvmscript").into());
    }
    if let Some(path) = output {
        file::check(path)?;
        if matches!(form, Form::So | Form::Obj) {
            file::check(path.with_extension("h"))?;
        }
    }
    if form != Form::So && !arguments.versions.is_empty() {
        return Err(Error::input("--specialize is for shared libraries").into());
    }
    let bar = Bar::new("load");
    let options = arguments.native.options(&bar)?;
    let text = match form {
        Form::So | Form::Obj => {
            let path = output.ok_or_else(|| {
                Error::input("a library or object is not written to standard output")
                    .help("give --output")
            })?;
            let made = made(arguments, &options)?;
            let versions = versions(arguments, &options)?;
            let header = binary(arguments, form, path, &made.program, &versions, &options)?;
            drop(bar);
            let kept = if made.new.is_none() { ", from the program that was kept" } else { "" };
            talk!("note: wrote {} and {}{kept}", path.display(), header.display());
            pipeline::summary(&made.program.module).iter().for_each(|text| talk!("note: {text}"));
            if let Some(Some((entry, files))) = made.new {
                entry.keep_program(&made.program, &options, &files);
            }
            return Ok(Answer::Yes);
        }
        Form::Tvmscript => {
            let module = arguments.given.load_as_given(&arguments.model, None)?.0;
            let module = match arguments.after {
                // The module itself is asked for, and not what is made of it.
                None if arguments.native.names_layout() => arguments.native.lay_out(&module)?.0,
                None => module,
                Some(until) => arguments.native.staged(&module, &options, until)?,
            };
            script(&module)
        }
        Form::LlvmIr | Form::Asm => {
            let name = name(arguments, output)?;
            native_text(form, &name, &made(arguments, &options)?.program, &options)?
        }
    };
    drop(bar);
    match output {
        Some(path) => file::write(path, text.as_bytes())?,
        None => out.write_all(text.as_bytes())?,
    }
    Ok(Answer::Yes)
}

/// A program, and where it came from.
struct Made {
    program: Program,
    /// `None` for one that was kept; for one that was made now, where it is to be kept.
    new: Option<Option<(Entry, DataFiles)>>,
}

/// The lowered program: the one that is kept of the model, or one that is made now.
fn made(arguments: &Arguments, options: &Options) -> Result<Made> {
    let entry = entry(arguments, options)?;
    if let Some(program) = entry.as_ref().and_then(|entry| entry.open_program(options)) {
        return Ok(Made { program, new: None });
    }
    let (module, files) = arguments.given.load_as_given(&arguments.model, entry.as_ref())?;
    let program = arguments.native.lower(&module, options)?.program;
    Ok(Made { program, new: Some(entry.zip(files)) })
}

/// The programs of the sizes that have versions of their own.
fn versions(arguments: &Arguments, options: &Options) -> Result<Vec<Program>> {
    if arguments.versions.is_empty() {
        return Ok(Vec::new());
    }
    let module = arguments.given.load_as_given(&arguments.model, None)?.0;
    let version = |sizes: &BTreeMap<String, usize>| {
        Ok(arguments.native.lower(&specialized(&module, sizes)?, options)?.program)
    };
    arguments.versions.all()?.iter().map(version).collect()
}

/// Where the program of the model is kept: of an ONNX model for which no values are given, which might
/// be compiled in.
fn entry(arguments: &Arguments, options: &Options) -> Result<Option<Entry>> {
    let is_model = arguments.model.extension().is_some_and(|e| e.eq_ignore_ascii_case("onnx"));
    if !is_model || arguments.given.has_values() || !arguments.native.can_be_kept() {
        return Ok(None);
    }
    let told = format!("compile {} {}", arguments.given.told()?, arguments.native.told());
    Ok(Entry::of(&arguments.model, &told, options))
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
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let name: String = stem.chars().map(plain).collect();
    let is_word = name.contains(|c: char| c.is_ascii_alphabetic());
    Ok(match name.chars().next() {
        Some(first) if is_word && !first.is_ascii_digit() => name,
        Some(_) if is_word => format!("m_{name}"),
        _ => "model".to_owned(),
    })
}

/// The whole program as LLVM IR or assembly.
fn native_text(form: Form, name: &str, program: &Program, options: &Options) -> Result<String> {
    let target = options.target()?;
    let planned = plan(program)?;
    let ir = entry::program(name, &planned, &program.functions()?, &target)?;
    let emit = match form {
        Form::Asm => Emit::Assembly,
        _ if options.level == OptLevel::None => return Ok(ir),
        _ => Emit::OptimizedIr,
    };
    let bytes = Llvm::get()?.compile(&ir, &target, options.level, emit)?;
    String::from_utf8(bytes).map_err(|_| Error::internal("LLVM's text is not UTF-8"))
}

/// Writes a library or object, and its header, whose path is the result.
fn binary(
    arguments: &Arguments,
    form: Form,
    path: &Path,
    program: &Program,
    versions: &[Program],
    options: &Options,
) -> Result<PathBuf> {
    let name = name(arguments, Some(path))?;
    let header_path = path.with_extension("h");
    let (mode, content, header) = match form {
        Form::So => {
            let built = build(&name, path.file_name(), program, versions, options)?;
            (0o777, built.library, built.header)
        }
        _ => {
            let (plan, llvm) = (plan(program)?, Llvm::get()?);
            let header = header::object(&plan, &name)?;
            let ir = entry::program(&name, &plan, &program.functions()?, &options.target()?)?;
            let object = options.with_code_options(|code| {
                let cache = ObjectCache::of(code);
                let object = cache.compile(llvm, &ir, &options.target()?, options.level);
                cache.tell_warnings(code);
                object
            })?;
            (0o666, object.bytes, header)
        }
    };
    file::write_all(&[(path, mode, &content), (&header_path, 0o666, header.as_bytes())])?;
    Ok(header_path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_become_prefixes() {
        let of = |file: &str| {
            let arguments = Arguments {
                model: "net.onnx".into(),
                output: None,
                emit: None,
                name: None,
                after: None,
                given: Given::default(),
                versions: Versions::default(),
                native: Native::default(),
            };
            name(&arguments, Some(Path::new(file))).expect("a name")
        };
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
            assert_eq!(of(file), expected, "{file}");
        }
    }
}

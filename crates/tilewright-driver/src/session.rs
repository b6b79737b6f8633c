//! One way from a model's file, or from a module, to something that runs: reading, laying out, compiling
//! and keeping.
//!
//! A [`Session`] has the choices of a compilation. A [`Request`] names a model, what is given of its
//! inputs, and what becomes of sizes that stay open. [`Session::start`] gives what runs, and
//! [`Session::program`] the lowered program; both take it from the cache where it was kept
//! ([`kept`](super::kept)). The command line, the Python package and the facade call these.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use tilewright_graph::sizes::{self, Sizes};
use tilewright_ir::signature::{ValueKind, ValueType};
use tilewright_ir::{Error, Lowered, Module, Result, Tensor};
use tilewright_layout::Left;
use tilewright_runtime::{Executable, file};

use super::constants::copy_mapped_constants;
use super::kept::{DataFiles, Entry, KeptKind, Record, hash};
use super::load::{Draft, fixed_inputs, is_onnx};
use super::options::{Message, Notice, Options};
use super::pipeline::{self, PipelineStage, Staged, run_stages};
use super::program::Program;
use super::saved::{Content, Note};

/// What is given of a model's inputs: sizes, and values, which may lie in files that are not read yet.
pub trait Inputs {
    /// All that is given but the elements of values, as text, in so far as it decides the program.
    ///
    /// # Errors
    /// Those of reading the files.
    fn cache_key(&self, open: OpenSizes) -> Result<String>;

    /// Whether values are given.
    fn has_values(&self) -> bool;

    /// The values, by the names of the inputs, which are among `inputs`.
    ///
    /// # Errors
    /// [`Error::Input`] for values that the inputs do not take; those of reading
    /// the files.
    fn values(&self, inputs: &[ValueType]) -> Result<BTreeMap<String, Tensor>>;

    /// What is given, with these values.
    ///
    /// # Errors
    /// [`Error::Input`] for sizes that contradict one another.
    fn sizes(&self, values: &BTreeMap<String, Tensor>) -> Result<Sizes>;
}

impl Inputs for Sizes {
    fn cache_key(&self, _: OpenSizes) -> Result<String> {
        let values: Vec<_> = self.values.iter().map(|(n, v)| (n, v.dtype(), v.shape())).collect();
        Ok(format!("{:?} {:?} {:?} {values:?}", self.dims, self.ranges, self.shapes))
    }

    fn has_values(&self) -> bool {
        !self.values.is_empty()
    }

    fn values(&self, inputs: &[ValueType]) -> Result<BTreeMap<String, Tensor>> {
        match self.values.keys().find(|name| !inputs.iter().any(|input| input.takes(name))) {
            Some(name) => Err(not_an_input(name, inputs.iter().map(|input| &*input.name))),
            None => Ok(self.values.clone()),
        }
    }

    fn sizes(&self, _: &BTreeMap<String, Tensor>) -> Result<Sizes> {
        Ok(self.clone())
    }
}

/// The error where something was given that is no input.
pub fn not_an_input<'a>(name: &str, inputs: impl Iterator<Item = &'a str>) -> Error {
    let names: Vec<String> = inputs.map(|name| format!("`{name}`")).collect();
    Error::input(format!("`{name}` was given, and is not an input"))
        .note(format!("the inputs are: {}", names.join(", ")))
}

/// What becomes of the sizes that a model leaves open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenSizes {
    /// Those that are not given stay open.
    AsGiven,
    /// Those that are not given must be a batch, which is one sample.
    BatchOfOne,
    /// All stay open, whatever is given: the program runs at every size. Ranges count, and a size of zero
    /// is no open one, since a program for it is another one.
    Stay,
}

/// Where a model comes from.
#[derive(Clone, Copy)]
pub enum Origin<'a> {
    /// A file.
    File(&'a Path),
    /// A file that was read before, and the module with the given sizes where it was made before.
    Draft {
        /// The file.
        draft: &'a Draft,
        /// The module.
        made: &'a OnceLock<Module>,
    },
}

/// What is to be compiled.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// The model.
    pub model: Origin<'a>,
    /// What is given of its inputs.
    pub inputs: &'a dyn Inputs,
    /// What becomes of open sizes.
    pub open: OpenSizes,
    /// Whether a program that was kept will do. Its values do not have the names of the model.
    pub kept: bool,
}

/// A module that was read, and what was decided on the way.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The module.
    pub module: Module,
    /// What is given, with the sizes that were taken.
    pub sizes: Sizes,
    /// What the user was told.
    pub notes: Vec<Notice>,
    /// The files beside it that hold parts of it; `None` where nothing is to be kept.
    files: Option<DataFiles>,
}

/// A program and the conversions that are left in it.
#[derive(Clone, Debug)]
pub struct Lowering {
    /// The program.
    pub program: Program,
    /// The conversions.
    pub left: Vec<Left>,
    /// When the module was laid out; the rest of the time was lowering.
    pub laid_out: Instant,
}

/// The conversions that are left.
#[derive(Clone, Debug)]
pub enum Conversions {
    /// How many, and the bytes that they move; `None` where that depends on sizes and was not kept.
    Counted(usize, Option<u64>),
    /// Those whose bytes depend on the sizes of a run.
    Open(Vec<Left>),
}

/// How long the parts of a start took.
#[derive(Clone, Copy, Debug, Default)]
pub struct Times {
    /// Reading the model.
    pub import: Duration,
    /// Laying it out.
    pub layout: Duration,
    /// Compiling it, layouts included; or opening what was kept.
    pub compile: Duration,
}

/// A model that can be run.
pub struct Started {
    /// It runs.
    pub executable: Executable,
    /// The values that were given of its inputs.
    pub values: BTreeMap<String, Tensor>,
    /// What is given, with the sizes that were taken.
    pub sizes: Sizes,
    /// The inputs of the model that are compiled in.
    pub fixed: Vec<String>,
    /// The conversions that are left.
    pub left: Conversions,
    /// How long it took.
    pub times: Times,
    unkept: Option<Unkept>,
}

/// A lowered model, for a file of code.
pub struct LoweredModel {
    /// The program.
    pub program: Program,
    /// Its versions for some sizes ([`Options::specialize`]).
    pub versions: Vec<Program>,
    /// Whether it was kept before.
    pub is_kept: bool,
    unkept: Option<(Entry, Record)>,
}

/// A program that was made now and may be kept.
struct Unkept {
    entry: Entry,
    program: Program,
    record: Record,
}

/// The choices of a compilation, and every way to something that runs under them.
#[derive(Clone, Debug, Default)]
pub struct Session {
    options: Options,
}

impl Session {
    /// A session with some choices.
    pub fn new(options: Options) -> Session {
        Session { options }
    }

    /// The choices.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// A module after the stages up to and including `until`.
    ///
    /// # Errors
    /// As [`run_stages`].
    pub fn stages(&self, module: &Module, until: PipelineStage) -> Result<Staged> {
        run_stages(module, &self.options, until, |_, _| Ok(()))
    }

    /// The program of a module.
    ///
    /// # Errors
    /// As [`run_stages`], and those of memory planning.
    pub fn lower(&self, module: &Module) -> Result<Lowering> {
        let mut laid_out = Instant::now();
        let staged = run_stages(module, &self.options, PipelineStage::Lower, |stage, _| {
            if stage == PipelineStage::Layout {
                laid_out = Instant::now();
            }
            Ok(())
        })?;
        let program = Program::plan(Lowered::new(copy_mapped_constants(&staged.module)?)?)?;
        Ok(Lowering { program, left: staged.left, laid_out })
    }

    /// Compiles a module and loads it into this process; with versions for some sizes
    /// ([`Options::specialize`]) where the options ask for them.
    ///
    /// # Errors
    /// As [`compile`].
    pub fn compile(&self, module: &Module) -> Result<Executable> {
        self.check_host()?;
        if self.options.specialize.is_empty() {
            return self.lower(module)?.program.load(&self.options);
        }
        let plain = Session::new(self.options.clone().specialize([]));
        let versions = self
            .options
            .specialize
            .iter()
            .map(|dims| plain.compile(&specialized(module, dims)?))
            .collect::<Result<_>>()?;
        plain.compile(module)?.with_versions(versions)
    }

    /// Compiles a module into a file that starts without the backend ([`saved`](super::saved)).
    ///
    /// # Errors
    /// Those of [`Session::lower`], [`Error::Toolchain`] if there is no C
    /// compiler, and [`Error::Io`] if the file cannot be written.
    pub fn save(&self, module: &Module, path: impl AsRef<Path>) -> Result<()> {
        file::check(path.as_ref())?;
        self.options.backend.check_target(&self.options.resolve_target()?)?;
        let mut programs = vec![self.lower(module)?.program.module];
        for sizes in &self.options.specialize {
            programs.push(self.lower(&specialized(module, sizes)?)?.program.module);
        }
        let programs: Vec<&Lowered> = programs.iter().collect();
        let content = Content::new(&programs, &self.options, Note::Null)?;
        let mut bytes = Vec::with_capacity(content.len());
        let written = content.write(&mut bytes);
        written.map_err(|e| Error::internal(format!("writing to memory: {e}")))?;
        file::write(path, &bytes)
    }

    /// Reads a model, and says what was decided on the way: which sizes were taken, and which inputs
    /// became constants.
    ///
    /// # Errors
    /// As [`load`](super::load::load), and those of the inputs.
    pub fn read(&self, request: &Request<'_>) -> Result<Loaded> {
        let loaded = self.read_for(request, None)?;
        Ok(Loaded { module: copy_mapped_constants(&loaded.module)?, ..loaded })
    }

    /// A model as something that runs: what was kept of it, or it is compiled now.
    ///
    /// # Errors
    /// As [`Session::read`] and [`Session::compile`]; [`Error::Input`] for a
    /// size that is open under [`OpenSizes::BatchOfOne`].
    pub fn start(&self, request: &Request<'_>) -> Result<Started> {
        let entry = self.entry(request, KeptKind::Code)?;
        if let Some(started) = entry.as_ref().and_then(|entry| self.start_kept(request, entry)) {
            return Ok(started);
        }
        self.start_new(request, entry)
    }

    /// A model as a lowered program, for a file of code: what was kept of it, or it is lowered now. Sizes
    /// that are not given stay open.
    ///
    /// # Errors
    /// As [`Session::read`] and [`Session::lower`].
    pub fn program(&self, request: &Request<'_>) -> Result<LoweredModel> {
        // Values might be compiled in, and what comes of this takes none.
        let entry = if request.inputs.has_values() {
            None
        } else {
            self.entry(request, KeptKind::Lowered)?
        };
        if let Some((program, record)) =
            entry.as_ref().and_then(|entry| entry.open_program(&self.options))
        {
            record.notes.iter().for_each(|note| self.options.say(Message::Note(note)));
            return Ok(LoweredModel { program, versions: Vec::new(), is_kept: true, unkept: None });
        }
        let loaded = self.read_for(request, entry.as_ref())?;
        let plain = Session::new(self.options.clone().specialize([]));
        let Lowering { program, left, .. } = plain.lower(&loaded.module)?;
        let versions = self
            .options
            .specialize
            .iter()
            .map(|dims| Ok(plain.lower(&specialized(&loaded.module, dims)?)?.program))
            .collect::<Result<_>>()?;
        let notes = [&loaded.notes[..], &self.summarise(&program)].concat();
        let left = count(&left);
        let unkept = entry
            .zip(loaded.files)
            .map(|(entry, files)| (entry, Record { files, notes, left, ..Record::default() }));
        Ok(LoweredModel { program, versions, is_kept: false, unkept })
    }

    /// Keeps a program that was made now, where it may be kept. The user need not wait for it.
    pub fn keep(&self, started: &mut Started) {
        if let Some(Unkept { entry, program, record }) = started.unkept.take() {
            entry.keep(&program, &self.options, &record);
        }
    }

    /// The same for a lowered program.
    pub fn keep_program(&self, made: &mut LoweredModel) {
        if let Some((entry, record)) = made.unkept.take() {
            entry.keep(&made.program, &self.options, &record);
        }
    }

    fn check_host(&self) -> Result<()> {
        self.options.backend.check_host(&self.options.resolve_target()?)
    }

    /// Where the program of a model is kept, in a form.
    fn entry(&self, request: &Request<'_>, form: KeptKind) -> Result<Option<Entry>> {
        if !request.kept {
            return Ok(None);
        }
        let (path, file) = match request.model {
            Origin::File(path) if is_onnx(path) => (path, None),
            Origin::File(_) => return Ok(None),
            Origin::Draft { draft, made } => match draft.file() {
                // Files beside the model may have changed since its module was made.
                Some(file) if made.get().is_none() || draft.is_alone() => (file.path(), Some(file)),
                _ => return Ok(None),
            },
        };
        // The hash has to be that of the file which was opened.
        if !file.is_none_or(|file| file.is_current()) {
            return Ok(None);
        }
        let Request { inputs, open, .. } = request;
        let given = format!("{open:?} {}", inputs.cache_key(*open)?);
        Ok(Entry::new(path, form, &given, &self.options)
            .filter(|_| file.is_none_or(|file| file.is_current())))
    }

    /// The program that is kept of a model, if it was made for the values that are given and compiled in.
    fn start_kept(&self, request: &Request<'_>, entry: &Entry) -> Option<Started> {
        let start = Instant::now();
        let (executable, record) = entry.open(&self.options)?;
        let inputs: Vec<ValueType> = record
            .inputs
            .iter()
            .map(|name| ValueType {
                name: name.clone(),
                kind: ValueKind::Tensor,
                dtype: None,
                dims: None,
            })
            .collect();
        let mut values = request.inputs.values(&inputs).ok()?;
        let sizes = request.inputs.sizes(&values).ok()?;
        let mut is_same = |(name, known): (&String, &Option<String>)| {
            values.remove(name).as_ref().map(hash) == *known
        };
        if !record.fixed.iter().all(&mut is_same) {
            return None;
        }
        record.notes.iter().for_each(|note| self.options.say(Message::Note(note)));
        let bytes = Some(record.left.1).filter(|_| request.open != OpenSizes::Stay);
        Some(Started {
            executable,
            values,
            sizes,
            fixed: record.fixed.into_keys().collect(),
            left: Conversions::Counted(record.left.0, bytes),
            times: Times { compile: start.elapsed(), ..Times::default() },
            unkept: None,
        })
    }

    /// A model, read and compiled now.
    fn start_new(&self, request: &Request<'_>, entry: Option<Entry>) -> Result<Started> {
        let start = Instant::now();
        let Loaded { module, sizes, mut notes, files } = self.read_for(request, entry.as_ref())?;
        let import = start.elapsed();
        let start = Instant::now();
        if request.open == OpenSizes::BatchOfOne {
            sizes::check_closed(&module)?;
        }
        self.check_host()?;
        let fixed_names = fixed_inputs(&module);
        let (executable, program, left, layout) = if self.options.specialize.is_empty() {
            let Lowering { program, left, laid_out } = self.lower(&module)?;
            // The constants that it alone has are not needed any more.
            drop(module);
            (program.load(&self.options)?, Some(program), left, laid_out - start)
        } else {
            (self.compile(&module)?, None, Vec::new(), Duration::ZERO)
        };
        if let Some(program) = &program {
            notes.extend(self.summarise(program));
        }
        let times = Times { import, layout, compile: start.elapsed() };
        let mut values = sizes.values.clone();
        let fixed: BTreeMap<String, Option<String>> = fixed_names
            .into_iter()
            .map(|name| (name.to_string(), values.remove(&*name).as_ref().map(hash)))
            .collect();
        let free = executable.inputs().iter().map(|port| port.name.to_string());
        let inputs: Vec<String> = free.chain(fixed.keys().cloned()).collect();
        let names = fixed.keys().cloned().collect();
        let unkept = match (entry, program, files) {
            (Some(entry), Some(program), Some(files)) => Some(Unkept {
                entry,
                program,
                record: Record { files, notes, inputs, fixed, left: count(&left) },
            }),
            _ => None,
        };
        let left = match request.open {
            OpenSizes::Stay => Conversions::Open(left),
            _ => Conversions::Counted(left.len(), Some(count(&left).1)),
        };
        // Constants are shared with the executable; the rest of the module is not needed any more.
        Ok(Started { executable, values, sizes, fixed: names, left, times, unkept })
    }

    /// Reads a model, and notes the files beside it before their contents are read.
    fn read_for(&self, request: &Request<'_>, entry: Option<&Entry>) -> Result<Loaded> {
        let read;
        let (draft, made) = match request.model {
            Origin::Draft { draft, made } => (draft, Some(made)),
            Origin::File(path) => {
                read = Draft::open(path)?;
                (&read, None)
            }
        };
        let files = entry.and_then(|entry| entry.data_files(draft));
        let mut values = BTreeMap::new();
        if request.inputs.has_values() {
            let inputs = draft.inputs()?;
            values = request.inputs.values(&inputs)?;
            let text = inputs.iter().find(|i| i.kind == ValueKind::Text);
            if let Some(input) = text.filter(|_| request.open == OpenSizes::Stay) {
                return Err(Error::input(format!("input `{}` holds strings", input.name))
                    .note("strings are compiled in, and a program that runs at every size has no values")
                    .help("leave no sizes open: run it without --open"));
            }
        }
        let mut sizes = request.inputs.sizes(&values)?;
        let mut notes = Vec::new();
        if request.open == OpenSizes::Stay {
            let module = draft.mapped_module(&without_open(&sizes))?;
            return Ok(Loaded { module, sizes, notes, files });
        }
        if request.open == OpenSizes::BatchOfOne {
            sizes = self.close_batch(draft, sizes, &mut notes)?;
        }
        let module = match made {
            Some(made) if request.open == OpenSizes::AsGiven => match made.get() {
                Some(module) => module.clone(),
                None if draft.is_mapped() => draft.mapped_module(&sizes)?,
                None => {
                    let module = draft.module(&sizes)?;
                    made.get_or_init(|| module).clone()
                }
            },
            _ => draft.mapped_module(&sizes)?,
        };
        for name in fixed_inputs(&module) {
            let text = format!("sizes depend on input `{name}`: its value is compiled in");
            self.note(Notice::Text(text), &mut notes);
        }
        Ok(Loaded { module, sizes, notes, files })
    }

    /// Sizes with one sample in each batch that is open.
    fn close_batch(
        &self,
        draft: &Draft,
        mut sizes: Sizes,
        notes: &mut Vec<Notice>,
    ) -> Result<Sizes> {
        for key in draft.open_batch(&sizes)? {
            let size = sizes.ranges.get(&key).map_or(1, |range| range.least());
            self.note(Notice::SizeTaken { name: key.clone(), size }, notes);
            sizes = sizes.dim(key, size);
        }
        Ok(sizes)
    }

    /// Says what a user should know of how functions are computed.
    fn summarise(&self, program: &Program) -> Vec<Notice> {
        let mut notes = Vec::new();
        for text in pipeline::summary(&program.module) {
            self.note(Notice::Text(text), &mut notes);
        }
        notes
    }

    fn note(&self, note: Notice, notes: &mut Vec<Notice>) {
        self.options.say(Message::Note(&note));
        notes.push(note);
    }
}

/// The sizes of a program that runs at every size.
fn without_open(sizes: &Sizes) -> Sizes {
    let mut open = Sizes { ranges: sizes.ranges.clone(), ..Sizes::new() };
    for (name, value) in &sizes.values {
        for (axis, _) in value.shape().iter().enumerate().filter(|(_, n)| **n == 0) {
            open = open.dim(format!("{name}.{axis}"), 0);
        }
    }
    open
}

/// How many conversions there are, and the bytes that they move.
fn count(left: &[Left]) -> (usize, u64) {
    (left.len(), left.iter().map(Left::bytes).sum())
}

/// A module for some of the sizes that it leaves open, by name or as `INPUT.AXIS`.
///
/// # Errors
/// [`Error::Input`] for sizes that it does not leave open, and those that do
/// not fit one another.
pub fn specialized(module: &Module, dims: &BTreeMap<String, usize>) -> Result<Module> {
    sizes::fill(module, &Sizes { dims: dims.clone(), ..Sizes::new() })
}

/// Compiles a module and loads it into this process.
///
/// # Errors
/// [`Error::Malformed`] if the module breaks a rule,
/// [`Error::Input`] if no input says a size that is needed,
/// [`Error::Unsupported`] if it uses what the target does not have,
/// or is to be for a machine whose features this one lacks,
/// [`Error::Toolchain`] if the backend lacks what it needs.
///
/// ```
/// use tilewright_driver::{Options, Sizes, Tensor, compile, parse};
/// let module = parse(r#"
/// @T.prim_func
/// def double(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
///     for i in range(4):
///         with T.block("B"):
///             vi = T.axis.spatial(4, i)
///             B[vi] = A[vi] * T.float32(2)
/// "#, &Sizes::new())?;
/// let executable = compile(&module, &Options::default())?;
/// let x = Tensor::from_slice(&[4], &[1.0f32, 2.0, 3.0, 4.0])?;
/// let outputs = executable.run(&[x])?;
/// assert_eq!(outputs[0].as_slice::<f32>(), Some(&[2.0, 4.0, 6.0, 8.0][..]));
/// # Ok::<(), tilewright_driver::Error>(())
/// ```
pub fn compile(module: &Module, options: &Options) -> Result<Executable> {
    Session::new(options.clone()).compile(module)
}

/// Compiles a model's file and loads it into this process, as [`load`](super::load::load) and
/// [`compile`] do. Where it has weights of a megabyte or more, or open sizes, the program is kept beside the
/// compiled code (unless [`Options::cache`] says no), and the next call with the same model, sizes and
/// options maps it: it reads no model, plans and packs nothing, and makes no code. Values in `sizes` that are
/// compiled in ([`fixed_inputs`]) must be the same as well.
///
/// # Errors
/// Those of `load` and of `compile`.
///
/// ```
/// use tilewright_driver::{Options, Sizes, Tensor, compile_file};
/// # let model = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/digits/digits.onnx");
/// let executable = compile_file(model, &Sizes::new().dim("N", 2), &Options::default())?;
/// let images = Tensor::from_slice(&[2, 1, 8, 8], &[0.5f32; 128])?;
/// assert_eq!(executable.run(&[images])?[0].shape(), [2, 10]);
/// # Ok::<(), tilewright_driver::Error>(())
/// ```
pub fn compile_file(
    path: impl AsRef<Path>,
    sizes: &Sizes,
    options: &Options,
) -> Result<Executable> {
    let session = Session::new(options.clone());
    let request = Request {
        model: Origin::File(path.as_ref()),
        inputs: sizes,
        open: OpenSizes::AsGiven,
        kept: true,
    };
    let mut started = session.start(&request)?;
    session.keep(&mut started);
    Ok(started.executable)
}

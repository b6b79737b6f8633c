//! Programs of models that are kept on disk, so that a second start neither reads the model nor plans,
//! packs or compiles: the file of [`saved`](super::saved) is mapped from the cache of compiled code.
//!
//! The key is the hash of all that decides the program: the model's file, what the user said, this
//! program itself, LLVM, the target, the options, and the file of measurements. The files beside a model
//! that hold its weights are noted with the hashes of what is used of them, and an entry is taken only
//! where these are the same. What a cache entry may be used for, and what is checked of it, is said at
//! [`tilewright_codegen::cache`]; programs with little to pack are not kept.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};
use tilewright_codegen::cache::{Kept, ObjectCache};
use tilewright_graph::sizes::Sizes;
use tilewright_ir::{Module, Result, Tensor};
use tilewright_runtime::{Executable, file};

use super::compile::{Program, compile, load_program, lower_program};
use super::file_state::{state, with_log};
use super::load::{Draft, fixed_inputs};
use super::options::Options;
use super::saved::{Check, Content, open_noted, open_program};

/// Programs of fixed sizes with fewer bytes of constants are not kept: they start quickly as it is, from the
/// objects of their kernels. What is planned and proved for open sizes takes longer than that.
const LEAST: usize = 1 << 20;

/// The entry of a program in the cache.
pub struct Entry {
    cache: ObjectCache,
    key: blake3::Hash,
    /// The model, and the hash of its file.
    model: PathBuf,
    digest: blake3::Hash,
}

/// The files beside a model that hold its weights.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataFiles(Vec<Hashed>);

/// A file beside the model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Hashed {
    name: String,
    /// The bytes that the model uses.
    parts: Vec<Range<u64>>,
    /// Their hash.
    hash: String,
}

/// What is noted of a program.
#[derive(Serialize, Deserialize)]
struct Note {
    files: DataFiles,
    note: String,
}

impl Entry {
    /// The entry for a model's file; `told` is what the user said beside the options. `None` where
    /// nothing is kept: without a cache, for linked objects, which may be others the next time, for
    /// versions of a program, and where this program's own file is not found.
    pub fn of(model: &Path, told: &str, options: &Options) -> Option<Entry> {
        let is_one = options.link.is_empty() && options.specialize.is_empty();
        let usable = options.cache && is_one && options.backend.name() == "llvm";
        let cache = usable.then(ObjectCache::from_env)?;
        cache.directory()?;
        let digest = cache.digest(&file::open(model).ok()?)?;
        let Options { threads, layout, io_layout, level, .. } = options;
        let Options { fuse, schedule, fast_math, unchecked, .. } = options;
        let parts = [
            "program 4".to_owned(),
            digest.to_hex().to_string(),
            told.to_owned(),
            code_state()?,
            options.backend.identity().ok()?,
            format!("{:?}", options.target().ok()?),
            format!("{threads} {} {layout:?} {io_layout:?}", options.threads()),
            format!("{level:?} {fuse} {schedule} {fast_math:?} {unchecked}"),
            options.tuning.as_deref().map(with_log).unwrap_or_default(),
        ];
        let mut hasher = blake3::Hasher::new();
        for part in parts {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part.as_bytes());
        }
        Some(Entry { cache, key: hasher.finalize(), model: model.to_owned(), digest })
    }

    /// The files beside the model as they are now, by [`Draft::data_files`]; `None` where one cannot be
    /// read. To be asked before the model's weights are.
    pub fn data_files(&self, draft: &Draft) -> Option<DataFiles> {
        draft
            .data_files()?
            .into_iter()
            .map(|file| self.hashed(&file.name, &file.parts))
            .collect::<Option<_>>()
            .map(DataFiles)
    }

    /// A file beside the model with the hash of what is used of it.
    fn hashed(&self, name: &str, parts: &[Range<u64>]) -> Option<Hashed> {
        let inside = |c| matches!(c, Component::Normal(_) | Component::CurDir);
        if !Path::new(name).components().all(inside) {
            return None;
        }
        let file = file::open(self.model.parent()?.join(name)).ok()?;
        let hash = self.cache.digest_of_parts(&file, parts)?.to_hex().to_string();
        Some(Hashed { name: name.to_owned(), parts: parts.to_owned(), hash })
    }

    /// Whether the files beside the model are as they were.
    fn is_same(&self, files: &DataFiles) -> bool {
        files.0.iter().all(|file| self.hashed(&file.name, &file.parts).as_ref() == Some(file))
    }

    /// The program that is there, and what was noted of it. One that is damaged is deleted.
    pub fn open(&self, options: &Options) -> Option<(Executable, String)> {
        // SAFETY: an entry under this key in a directory that only this user can write was written by
        // `Entry::keep`, from the functions that it holds.
        self.opened(options, |kept, check| unsafe {
            let opened = open_noted(kept.content(), Some(options.threads), check)?;
            Ok((opened.executable, opened.note))
        })
    }

    /// The same before it is code, as [`Entry::keep_program`] keeps it.
    pub fn open_program(&self, options: &Options) -> Option<Program> {
        self.opened(options, |kept, check| open_program(kept.content(), check)).map(|found| found.0)
    }

    /// What is there, all of which is checked unless it was before, if the files beside the model are
    /// those that it was made of.
    fn opened<T>(
        &self,
        options: &Options,
        open: impl FnOnce(&Kept, Check) -> Result<(T, String)>,
    ) -> Option<(T, String)> {
        let kept = self.cache.kept(&self.key);
        for warning in self.cache.take_warnings() {
            options.warn.iter().for_each(|warn| warn(&warning));
        }
        let kept = kept?;
        let check = if kept.is_checked() { Check::Code } else { Check::All };
        let found = open(&kept, check).ok();
        let noted = found.and_then(|(found, note)| {
            let Note { files, note } = serde_json::from_str(&note).ok()?;
            Some((found, files, note))
        });
        let Some((found, files, note)) = noted else {
            kept.reject();
            return None;
        };
        if check == Check::All {
            kept.confirm();
        }
        self.is_same(&files).then_some((found, note))
    }

    /// Keeps a program that was made of a model and the `files` beside it. A cache is a convenience:
    /// where it cannot be written, there is no C compiler to link the kernels, or one of the files has
    /// changed, nothing is kept.
    pub fn keep(&self, program: &Program, options: &Options, files: &DataFiles, note: &str) {
        let make = |quiet: &Options, note: &str| Content::new(&[&program.module], quiet, note);
        if self.write(program, options, files, note, make) {
            // Reading it once makes it known to be whole.
            drop(self.open(options));
        }
    }

    /// Keeps a program before it is code: what comes next takes its kernels from the cache of objects.
    pub fn keep_program(&self, program: &Program, options: &Options, files: &DataFiles) {
        let make =
            |quiet: &Options, note: &str| Content::without_code(&program.module, quiet, note);
        if self.write(program, options, files, "", make) {
            drop(self.open_program(options));
        }
    }

    fn write(
        &self,
        program: &Program,
        options: &Options,
        files: &DataFiles,
        note: &str,
        make: impl FnOnce(&Options, &str) -> Result<Content>,
    ) -> bool {
        let constants = program.plans().iter().flat_map(|plan| &plan.constants);
        let bytes: usize = constants.map(|t| t.bytes().len()).sum();
        let now = || file::open(&self.model).ok().and_then(|file| self.cache.digest(&file));
        let is_same = || now() == Some(self.digest) && self.is_same(files);
        let is_open = program.plans().iter().any(|plan| !plan.sizes().is_empty());
        if bytes < LEAST && !is_open || !is_same() {
            return false;
        }
        let note = Note { files: files.clone(), note: note.to_owned() };
        let Ok(note) = serde_json::to_string(&note) else { return false };
        // Whoever compiled it was told of the progress already.
        let quiet = Options { progress: None, ..options.clone() };
        let Ok(content) = make(&quiet, &note) else { return false };
        self.cache.keep(&self.key, content.len() as u64, |out| content.write(out)).is_some()
    }
}

/// Compiles a model's file and loads it into this process, as [`load`](super::load::load) and
/// [`compile`] do. Where it has weights of a megabyte or more, or open sizes, the program is kept beside the compiled
/// code (unless [`Options::cache`] says no), and the next call with the same model, sizes and options
/// maps it: it reads no model, plans and packs nothing, and makes no code. Values in `sizes` that are
/// compiled in ([`fixed_inputs`]) must be the same as well.
///
/// # Errors
/// Those of `load` and of `compile`.
///
/// ```
/// use tilewright_driver::{LayoutPolicy, Options, Sizes, Tensor, compile_file};
/// # let model = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/digits/digits.onnx");
/// let options = Options { layout: Some(LayoutPolicy::Plan), ..Options::default() };
/// let executable = compile_file(model, &Sizes::new().dim("N", 2), &options)?;
/// let images = Tensor::from_slice(&[2, 1, 8, 8], &[0.5f32; 128])?;
/// assert_eq!(executable.run(&[images])?[0].shape(), [2, 10]);
/// # Ok::<(), tilewright_driver::Error>(())
/// ```
pub fn compile_file(
    path: impl AsRef<Path>,
    sizes: &Sizes,
    options: &Options,
) -> Result<Executable> {
    let path = path.as_ref();
    let entry = Entry::of(path, &said(sizes), options);
    if let Some(found) = entry.as_ref().and_then(|entry| entry.find(sizes, options)) {
        return Ok(found.executable);
    }
    let draft = Draft::read(path)?;
    let files = entry.as_ref().and_then(|entry| entry.data_files(&draft));
    let module = draft.module(sizes)?;
    made(entry.zip(files), &module, sizes, options)
}

/// A program that was found, and the inputs of the model that are constants in it.
pub struct Found {
    /// The program.
    pub executable: Executable,
    /// The inputs whose values are compiled in.
    pub fixed: Vec<String>,
}

/// What may be kept of an open file ([`Draft::open`]) with some sizes: as [`compile_file`], for a model
/// that was looked at before.
pub struct Opened<'a> {
    draft: &'a Draft,
    sizes: &'a Sizes,
    entry: Option<Entry>,
}

impl<'a> Opened<'a> {
    /// Nothing is kept where the file is not there any more as it was opened, or where stages are to be
    /// checked; nor where the module was made before (`is_made`) and files lie beside the model, which may
    /// have changed since.
    pub fn of(draft: &'a Draft, sizes: &'a Sizes, is_made: bool, options: &Options) -> Opened<'a> {
        let is_alone = || draft.data_files().is_some_and(|files| files.is_empty());
        let is_usable = !options.check && (!is_made || is_alone());
        let file = draft.file().filter(|file| is_usable && file.is_current());
        let entry = file.and_then(|file| Entry::of(file.path(), &said(sizes), options));
        // The hash is that of the file which was opened.
        let entry = entry.filter(|_| file.is_some_and(|file| file.is_current()));
        Opened { draft, sizes, entry }
    }

    /// The program that is kept.
    pub fn find(&self, options: &Options) -> Option<Found> {
        self.entry.as_ref()?.find(self.sizes, options)
    }

    /// Compiles the module of the draft, which `module` gives, and keeps the program.
    ///
    /// # Errors
    /// Those of `module`, and of [`compile`].
    pub fn compile<'m>(
        self,
        module: impl FnOnce() -> Result<&'m Module>,
        options: &Options,
    ) -> Result<Executable> {
        let files = self.entry.as_ref().and_then(|entry| entry.data_files(self.draft));
        made(self.entry.zip(files), module()?, self.sizes, options)
    }
}

/// Compiles a module, and keeps its program where there is an entry for it.
fn made(
    entry: Option<(Entry, DataFiles)>,
    module: &Module,
    sizes: &Sizes,
    options: &Options,
) -> Result<Executable> {
    let Some((entry, files)) = entry else { return compile(module, options) };
    options.backend.check_host(&options.target()?)?;
    let program = lower_program(module, options)?;
    let executable = load_program(&program, options)?;
    let fixed = fixed_inputs(module).into_iter().map(|name| {
        let value = sizes.values.get(&*name).map(hash);
        (name.to_string(), value)
    });
    let note = serde_json::to_string(&fixed.collect::<Fixed>());
    if let Ok(note) = note {
        entry.keep(&program, options, &files, &note);
    }
    Ok(executable)
}

/// The inputs whose values are compiled in, each with the hash of the value that was given.
type Fixed = BTreeMap<String, Option<String>>;

impl Entry {
    /// The program that is there, if what is compiled in is among the values of these sizes.
    fn find(&self, sizes: &Sizes, options: &Options) -> Option<Found> {
        let (executable, note) = self.open(options)?;
        let fixed: Fixed = serde_json::from_str(&note).ok()?;
        let same =
            |(name, known): (&String, &Option<String>)| sizes.values.get(name).map(hash) == *known;
        let is_input = |name: &String| {
            fixed.contains_key(name) || executable.inputs().iter().any(|p| *p.name == **name)
        };
        let all = fixed.iter().all(same) && sizes.values.keys().all(is_input);
        all.then(|| Found { executable, fixed: fixed.into_keys().collect() })
    }
}

/// Sizes as text, and of values what is known of them before the model is read: their types and shapes.
fn said(sizes: &Sizes) -> String {
    let values: Vec<_> = sizes.values.iter().map(|(n, v)| (n, v.dtype(), v.shape())).collect();
    format!("library {:?} {:?} {:?} {values:?}", sizes.dims, sizes.ranges, sizes.shapes)
}

/// The hash of type, shape and bytes of a tensor, in hexadecimal digits.
pub fn hash(tensor: &Tensor) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(format!("{} {:?}", tensor.dtype(), tensor.shape()).as_bytes());
    hasher.update(tensor.bytes()).finalize().to_hex().to_string()
}

/// The state of this code: of the program, and of the library that holds the code where that is another
/// file, as in Python. `None` where that is not known.
fn code_state() -> Option<String> {
    let program = std::env::current_exe().ok()?;
    let library = library_file();
    let states = [Some(program), library].into_iter().flatten().map(|file| state(&file));
    let version = env!("CARGO_PKG_VERSION").to_owned();
    Some(states.collect::<Option<Vec<_>>>()?.join(" ") + &version)
}

/// The file that the code of this function was mapped from, where the system lists what is mapped.
fn library_file() -> Option<PathBuf> {
    let here = library_file as *const () as usize;
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let holds = |range: &str| {
        let (start, end) = range.split_once('-')?;
        let number = |text: &str| usize::from_str_radix(text, 16).ok();
        Some((number(start)?..number(end)?).contains(&here))
    };
    let line = maps.lines().find(|line| line.split(' ').next().and_then(holds) == Some(true))?;
    line.find('/').map(|at| PathBuf::from(&line[at..]))
}

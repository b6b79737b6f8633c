//! Programs of models that are kept on disk, so that a second start neither reads the model nor plans,
//! packs or compiles: the file of [`saved`](super::saved) is mapped from the cache of compiled code.
//!
//! The key is the hash of all that decides the program: the model's file, what the user said, this
//! program itself, the backend, the target, the options, and the file of measurements. The files beside a
//! model that hold its weights are noted with the hashes of what is used of them, and an entry is taken only
//! where these are the same. What a cache entry may be used for, and what is checked of it, is said at
//! [`tilewright_codegen::cache`]; programs with little to pack are not kept.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};
use tilewright_codegen::cache::{Kept, ObjectCache};
use tilewright_ir::{Result, Tensor};
use tilewright_runtime::{Executable, file};

use super::file_state::{state, with_log};
use super::load::Draft;
use super::options::{Message, Notice, Options};
use super::program::Program;
use super::saved::{Check, Content, Note, open_noted, open_program};

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
    form: KeptKind,
}

/// What is kept of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeptKind {
    /// It runs as it is.
    Code,
    /// The lowered module alone: what comes next takes its kernels from the cache of objects.
    Lowered,
}

/// What is kept beside a program.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Record {
    /// The files beside the model that it was made of.
    pub files: DataFiles,
    /// What the user was told.
    pub notes: Vec<Notice>,
    /// The inputs of the model, those that are compiled in among them.
    pub inputs: Vec<String>,
    /// The inputs that are compiled in, each with the [`hash`] of the value that was given.
    pub fixed: BTreeMap<String, Option<String>>,
    /// How many conversions between layouts are left, and the bytes that they move.
    pub left: (usize, u64),
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

impl Entry {
    /// The entry for a model's file, in a form; `given` is what was given beside the options, as text.
    /// `None` where nothing is kept: without a cache, by a backend whose code cannot be kept, for linked
    /// objects, which may be others the next time, for versions of a program, where plans depend on what
    /// is measured on the way, where stages are to be checked, and where this program's own file is not
    /// found.
    pub fn new(model: &Path, form: KeptKind, given: &str, options: &Options) -> Option<Entry> {
        let is_one = options.link.is_empty() && options.specialize.is_empty();
        let is_checked = options.check && !cfg!(debug_assertions);
        let is_fixed = options.measurer.is_none() && !is_checked;
        let usable = options.cache && is_one && is_fixed && options.backend.packs();
        let cache = usable.then(ObjectCache::from_env)?;
        cache.directory()?;
        let digest = cache.digest(&file::open(model).ok()?)?;
        let Options { threads, layout, io_layout, level, .. } = options;
        let Options { fuse, schedule, fast_math, unchecked, .. } = options;
        let parts = [
            format!("program 5 {form:?}"),
            digest.to_hex().to_string(),
            given.to_owned(),
            code_state()?,
            options.backend.identity().ok()?,
            format!("{:?}", options.resolve_target().ok()?),
            format!("{threads:?} {:?} {layout:?} {io_layout:?}", options.thread_count()),
            format!("{level:?} {fuse} {schedule} {fast_math:?} {unchecked}"),
            options.tuning.as_deref().map(with_log).unwrap_or_default(),
        ];
        let mut hasher = blake3::Hasher::new();
        for part in parts {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part.as_bytes());
        }
        Some(Entry { cache, key: hasher.finalize(), model: model.to_owned(), digest, form })
    }

    /// The files beside the model as they are now, by [`Draft::data_files`]; `None` where one cannot be
    /// read. To be asked before the model's weights are.
    pub fn data_files(&self, draft: &Draft) -> Option<DataFiles> {
        draft
            .data_files()?
            .into_iter()
            .map(|file| self.hash_parts(&file.name, &file.parts))
            .collect::<Option<_>>()
            .map(DataFiles)
    }

    /// A file beside the model with the hash of what is used of it.
    fn hash_parts(&self, name: &str, parts: &[Range<u64>]) -> Option<Hashed> {
        if !Path::new(name).components().all(is_inside) {
            return None;
        }
        let file = file::open(self.model.parent()?.join(name)).ok()?;
        let hash = self.cache.digest_of_parts(&file, parts)?.to_hex().to_string();
        Some(Hashed { name: name.to_owned(), parts: parts.to_owned(), hash })
    }

    /// Whether the files beside the model are as they were.
    fn is_same(&self, files: &DataFiles) -> bool {
        files.0.iter().all(|file| self.hash_parts(&file.name, &file.parts).as_ref() == Some(file))
    }

    /// The program that is there as [`KeptKind::Code`], and its record. One that is damaged is deleted.
    pub fn open(&self, options: &Options) -> Option<(Executable, Record)> {
        // SAFETY: an entry under this key in a directory that only this user can write was written by
        // `Entry::keep`, from the functions that it holds.
        self.open_with(options, |kept, check| unsafe {
            let opened = open_noted(kept.content(), options.threads, check)?;
            Ok((opened.executable, opened.note))
        })
    }

    /// The program that is there as [`KeptKind::Lowered`], and its record.
    pub fn open_program(&self, options: &Options) -> Option<(Program, Record)> {
        self.open_with(options, |kept, check| open_program(kept.content(), check))
    }

    /// What is there, all of which is checked unless it was before, if the files beside the model are
    /// those that it was made of.
    fn open_with<T>(
        &self,
        options: &Options,
        open: impl FnOnce(&Kept, Check) -> Result<(T, Note)>,
    ) -> Option<(T, Record)> {
        let kept = self.cache.kept(&self.key);
        for warning in self.cache.take_warnings() {
            options.say(Message::Warning(&warning));
        }
        let kept = kept?;
        let check = if kept.is_checked() { Check::Code } else { Check::All };
        let found = open(&kept, check).ok();
        let noted = found.and_then(|(found, note)| {
            let record: Record = serde_json::from_value(note).ok()?;
            Some((found, record))
        });
        let Some((found, record)) = noted else {
            kept.reject();
            return None;
        };
        if check == Check::All {
            kept.confirm();
        }
        self.is_same(&record.files).then_some((found, record))
    }

    /// Keeps a program that was made of a model. A cache is a convenience: where it cannot be written,
    /// there is no C compiler to link the kernels, or one of the files has changed, nothing is kept.
    pub fn keep(&self, program: &Program, options: &Options, record: &Record) {
        if !self.is_worth_keeping(program) || !self.is_current(record) {
            return;
        }
        let Ok(note) = serde_json::to_value(record) else { return };
        // Whoever compiled it was told of the progress already.
        let quiet = options.clone().progress(None);
        let content = match self.form {
            KeptKind::Code => Content::new(&[&program.module], &quiet, note),
            KeptKind::Lowered => Content::without_code(&program.module, &quiet, note),
        };
        let Ok(content) = content else { return };
        if self.cache.keep(&self.key, content.len() as u64, |out| content.write(out)).is_none() {
            return;
        }
        // Reading it once makes it known to be whole.
        match self.form {
            KeptKind::Code => drop(self.open(options)),
            KeptKind::Lowered => drop(self.open_program(options)),
        }
    }

    fn is_worth_keeping(&self, program: &Program) -> bool {
        let constants = program.plans().iter().flat_map(|plan| &plan.constants);
        let bytes: usize = constants.map(|t| t.byte_len()).sum();
        bytes >= LEAST || program.plans().iter().any(|plan| !plan.sizes().is_empty())
    }

    /// Whether the model and the files beside it are what the program was made of.
    fn is_current(&self, record: &Record) -> bool {
        let now = file::open(&self.model).ok().and_then(|file| self.cache.digest(&file));
        now == Some(self.digest) && self.is_same(&record.files)
    }
}

fn is_inside(c: Component<'_>) -> bool {
    matches!(c, Component::Normal(_) | Component::CurDir)
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
    let line = maps.lines().find(|line| {
        line.split(' ').next().and_then(|range| {
            let (start, end) = range.split_once('-')?;
            Some((hex_number(start)?..hex_number(end)?).contains(&here))
        }) == Some(true)
    })?;
    line.find('/').map(|at| PathBuf::from(&line[at..]))
}

fn hex_number(text: &str) -> Option<usize> {
    usize::from_str_radix(text, 16).ok()
}

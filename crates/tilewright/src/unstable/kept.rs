//! Programs of models that are kept on disk, so that a second start neither reads the model nor plans,
//! packs or compiles: the file of [`saved`](super::saved) is mapped from the cache of compiled code.
//!
//! The key is the hash of all that decides the program: the model's file, what the user said, this
//! program itself, LLVM, the target, the options, and the file of measurements. What a cache entry may
//! be used for, and what is checked of it, is said at [`tilewright_codegen::cache`]; models with data in
//! other files, and programs with little to pack, are not kept.

use std::path::Path;
use std::time::SystemTime;

use tilewright_codegen::cache::{Kept, ObjectCache};
use tilewright_ir::Tensor;
use tilewright_runtime::Executable;

use super::compile::Program;
use super::pipeline::Options;
use super::saved::{Check, Content, open_noted};

/// Programs with fewer bytes of constants are not kept: they start quickly as it is, from the objects
/// of their kernels.
const LEAST: usize = 1 << 20;

/// The place of a program in the cache.
pub struct Place {
    cache: ObjectCache,
    key: blake3::Hash,
}

impl Place {
    /// The place for a model's file; `told` is what the user said beside the options. `None` where
    /// nothing is kept: without a cache, for linked objects, which may be others the next time, and
    /// where this program's own file is not found.
    pub fn of(model: &Path, told: &str, options: &Options) -> Option<Place> {
        let usable = options.cache && options.link.is_empty() && options.backend.name() == "llvm";
        let cache = usable.then(ObjectCache::from_env)?;
        cache.directory()?;
        let digest = cache.digest(model)?;
        let Options { threads, layout, io_layout, level, fuse, schedule, unchecked, .. } = options;
        let code = std::env::current_exe().ok()?;
        let parts = [
            "program 1".to_owned(),
            digest.to_hex().to_string(),
            told.to_owned(),
            state(&code)?,
            options.backend.identity().ok()?,
            format!("{:?}", options.target().ok()?),
            format!("{threads} {} {layout:?} {io_layout:?}", options.threads()),
            format!("{level:?} {fuse} {schedule} {unchecked}"),
            options.tuning.as_deref().map(measurements).unwrap_or_default(),
        ];
        let mut hasher = blake3::Hasher::new();
        for part in parts {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part.as_bytes());
        }
        Some(Place { cache, key: hasher.finalize() })
    }

    /// The program that is there, and what was noted of it. One that is damaged is deleted.
    pub fn open(&self, options: &Options) -> Option<(Executable, String)> {
        let kept = self.cache.kept(&self.key);
        for warning in self.cache.take_warnings() {
            options.warn.iter().for_each(|warn| warn(&warning));
        }
        opened(kept?, options)
    }

    /// Keeps a program. A cache is a convenience: where it cannot be written, or there is no C
    /// compiler to link the kernels, nothing is kept.
    pub fn keep(&self, program: &Program, options: &Options, note: &str) {
        let bytes: usize = program.plan.constants.iter().map(|t| t.bytes().len()).sum();
        if bytes < LEAST {
            return;
        }
        // Whoever compiled it was told of the progress already.
        let quiet = Options { progress: None, ..options.clone() };
        let Ok(content) = Content::new(&[&program.module], &quiet, note) else { return };
        let kept = self.cache.keep(&self.key, content.len() as u64, |out| content.write(out));
        // Reading it once makes it known to be whole.
        drop(kept.and_then(|kept| opened(kept, options)));
    }
}

/// The hash of type, shape and bytes of a tensor, in hexadecimal digits.
pub fn hash(tensor: &Tensor) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(format!("{} {:?}", tensor.dtype(), tensor.shape()).as_bytes());
    hasher.update(tensor.bytes()).finalize().to_hex().to_string()
}

/// The program of an entry, all of which is checked unless it was before.
fn opened(kept: Kept, options: &Options) -> Option<(Executable, String)> {
    let check = if kept.is_checked() { Check::Code } else { Check::All };
    // SAFETY: an entry under this key in a directory that only this user can write was written by
    // `Place::keep`, from the functions that it holds.
    match unsafe { open_noted(kept.content(), Some(options.threads), check) } {
        Ok(opened) => {
            if check == Check::All {
                kept.confirm();
            }
            Some((opened.executable, opened.note))
        }
        Err(_) => {
            kept.reject();
            None
        }
    }
}

/// What the system says of a file that changes with it.
fn state(path: &Path) -> Option<String> {
    let found = path.metadata().ok()?;
    let modified = found.modified().ok()?.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    #[cfg(unix)]
    let more = {
        use std::os::unix::fs::MetadataExt;
        [
            found.dev(),
            found.ino(),
            found.ctime().cast_unsigned(),
            found.ctime_nsec().cast_unsigned(),
        ]
    };
    #[cfg(not(unix))]
    let more = ();
    Some(format!("{} {modified:?} {more:?}", found.len()))
}

/// The state of the file of measurements: also of what is not yet moved into it.
fn measurements(file: &Path) -> String {
    let mut log = file.as_os_str().to_owned();
    log.push("-wal");
    format!("{:?} {:?}", state(file), state(Path::new(&log)))
}

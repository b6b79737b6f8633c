//! Compiled objects on disk, by content.
//!
//! The name of an entry is the hash of all that decides what LLVM generates: the IR text, the
//! target, the passes, and LLVM itself. So an entry is never stale, only missing. A cache is a
//! convenience: whatever is wrong with the disk (no home directory, read-only, full, an entry that
//! was damaged) makes it slower and nothing else.
//!
//! An entry holds a header, the hash of its content, and the content; one whose content does not
//! match its hash is compiled again. Entries are written under a name of their own and then
//! renamed, so that a reader, in this process or another, sees a whole entry or none. When the
//! entries outgrow the limit, those that were not used for longest go; the time of last use is the
//! file's time of modification.

use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use tilewright_ir::Result;

use crate::llvm::{Emit, Llvm, OptLevel, Target};

/// Environment variable that names the directory of the cache; `off` for no cache.
pub const LOCATION: &str = "TILEWRIGHT_CACHE";

/// The size, in bytes, that [`ObjectCache::from_env`] keeps entries below.
pub const DEFAULT_LIMIT: u64 = 1 << 30;

/// The first bytes of an entry; the last two count the versions of its format.
const MAGIC: [u8; 8] = *b"twobj\0\0\x01";
const HASH_LEN: usize = blake3::OUT_LEN;
const HEADER_LEN: usize = MAGIC.len() + HASH_LEN;

/// The ending of an entry's file name: one that nothing else uses, because entries are deleted by
/// it.
const ENTRY: &str = "twobj";
/// The ending of a file that is being written.
const TEMPORARY: &str = "twobj-tmp";

/// A file of a write that was cut short is deleted after this time.
const ABANDONED: Duration = Duration::from_secs(3600);

/// A cache of object files. May be used from several threads and processes at once.
#[derive(Debug)]
pub struct ObjectCache {
    /// `None`: there is no cache.
    directory: Option<PathBuf>,
    /// In bytes.
    limit: u64,
    /// The size of all entries in bytes as far as this process knows; `None` until it has looked.
    size: Mutex<Option<u64>>,
}

/// An object file, and where it came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// The content of the file.
    pub bytes: Vec<u8>,
    /// Whether it came from the cache and LLVM was not called.
    pub cached: bool,
}

impl ObjectCache {
    /// The cache that the environment asks for: in `$TILEWRIGHT_CACHE`, else
    /// `$XDG_CACHE_HOME/tilewright`, else `~/.cache/tilewright`; none with `TILEWRIGHT_CACHE=off`,
    /// or where there is no home directory.
    pub fn from_env() -> ObjectCache {
        match location(|name| std::env::var_os(name)) {
            Some(directory) => ObjectCache::at(directory, DEFAULT_LIMIT),
            None => ObjectCache::off(),
        }
    }

    /// A cache in `directory`, which is made when it is first written to, of at most `limit` bytes.
    pub fn at(directory: impl Into<PathBuf>, limit: u64) -> ObjectCache {
        ObjectCache { directory: Some(directory.into()), limit, size: Mutex::new(None) }
    }

    /// No cache: everything is compiled.
    pub fn off() -> ObjectCache {
        ObjectCache { directory: None, limit: 0, size: Mutex::new(None) }
    }

    /// Where the entries are; `None` if there is no cache.
    pub fn directory(&self) -> Option<&Path> {
        self.directory.as_deref()
    }

    /// Number and total size in bytes of the entries.
    pub fn usage(&self) -> (usize, u64) {
        let entries = self.directory().map(entries).unwrap_or_default();
        (entries.len(), entries.iter().map(|entry| entry.len).sum())
    }

    /// The object file for this IR: from the cache, or else from LLVM and then kept.
    ///
    /// # Errors
    /// Those of [`Llvm::compile`].
    pub fn compile(
        &self,
        llvm: &Llvm,
        ir: &str,
        target: &Target,
        level: OptLevel,
    ) -> Result<Object> {
        let Some(directory) = self.directory() else {
            let bytes = llvm.compile(ir, target, level, Emit::Object)?;
            return Ok(Object { bytes, cached: false });
        };
        let path = directory.join(name(&key(&llvm.identity(), ir, target, level)));
        if let Some(bytes) = read(&path) {
            return Ok(Object { bytes, cached: true });
        }
        let bytes = llvm.compile(ir, target, level, Emit::Object)?;
        if write(&path, &bytes).is_ok() {
            self.grown(directory, (HEADER_LEN + bytes.len()) as u64);
        }
        Ok(Object { bytes, cached: false })
    }

    /// Counts a new entry, and deletes old ones where the limit asks for it.
    fn grown(&self, directory: &Path, by: u64) {
        let mut size = self.size.lock().unwrap_or_else(PoisonError::into_inner);
        let known = match *size {
            Some(before) => before.saturating_add(by),
            // The new entry is among them.
            None => entries(directory).iter().map(|entry| entry.len).sum(),
        };
        // Some way below the limit, so that not every write has to list the directory.
        let goal = self.limit - self.limit / 8;
        *size = Some(if known > self.limit { evict(directory, goal) } else { known });
    }
}

/// The directory that the environment variables `var` ask for.
fn location(var: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let path = |name: &str| var(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    match path(LOCATION) {
        Some(off) if off.as_os_str() == "off" => None,
        Some(directory) => Some(directory),
        // A relative path in this variable is to be ignored, says the XDG base directory
        // specification.
        None => path("XDG_CACHE_HOME")
            .filter(|cache| cache.is_absolute())
            .or_else(|| path("HOME").map(|home| home.join(".cache")))
            .map(|cache| cache.join("tilewright")),
    }
}

/// The hash of everything that decides what LLVM generates.
fn key(llvm: &str, ir: &str, target: &Target, level: OptLevel) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    for part in [llvm, &target.triple, &target.cpu, &target.features, level.pipeline(), ir] {
        // With the length in front, no two lists of parts run together to the same bytes.
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    hasher.finalize()
}

/// The name of an entry's file.
fn name(key: &blake3::Hash) -> String {
    format!("{}.{ENTRY}", key.to_hex())
}

/// The content of a whole entry, marked as used now; `None` if there is none. A damaged one is
/// deleted.
fn read(path: &Path) -> Option<Vec<u8>> {
    let mut bytes = fs::read(path).ok()?;
    let whole = bytes.split_first_chunk().is_some_and(|(magic, rest)| {
        *magic == MAGIC
            && rest
                .split_first_chunk::<HASH_LEN>()
                .is_some_and(|(hash, content)| blake3::hash(content) == *hash)
    });
    if !whole {
        let _ = fs::remove_file(path);
        return None;
    }
    bytes.drain(..HEADER_LEN);
    if let Ok(file) = fs::File::options().append(true).open(path) {
        let _ = file.set_modified(SystemTime::now());
    }
    Some(bytes)
}

/// Writes an entry, all or nothing.
fn write(path: &Path, content: &[u8]) -> std::io::Result<()> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let temporary = path.with_extension(format!("{}-{count}.{TEMPORARY}", std::process::id()));
    if let Some(directory) = path.parent() {
        make_directory(directory)?;
    }
    let written = fs::File::create_new(&temporary).and_then(|mut file| {
        file.write_all(&MAGIC)?;
        file.write_all(blake3::hash(content).as_bytes())?;
        file.write_all(content)
    });
    let renamed = written.and_then(|()| fs::rename(&temporary, path));
    if renamed.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    renamed
}

/// Makes the directory, for this user alone: what is in it will be run.
fn make_directory(directory: &Path) -> std::io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(directory)
}

struct Entry {
    path: PathBuf,
    /// In bytes.
    len: u64,
    used: SystemTime,
}

/// The files of a cache whose names end like this.
fn files(directory: &Path, extension: &str) -> Vec<Entry> {
    let Ok(list) = fs::read_dir(directory) else { return Vec::new() };
    list.flatten()
        .filter(|file| file.path().extension().is_some_and(|found| found == extension))
        .filter_map(|file| {
            let metadata = file.metadata().ok()?;
            let used = metadata.modified().ok()?;
            Some(Entry { path: file.path(), len: metadata.len(), used })
        })
        .collect()
}

fn entries(directory: &Path) -> Vec<Entry> {
    files(directory, ENTRY)
}

/// Deletes the entries that were not used for longest until the rest is at most `goal` bytes, and
/// gives the size of the rest. Deletes what a process that died left behind as well.
fn evict(directory: &Path, goal: u64) -> u64 {
    for file in files(directory, TEMPORARY) {
        if file.used.elapsed().is_ok_and(|age| age > ABANDONED) {
            let _ = fs::remove_file(file.path);
        }
    }
    let mut entries = entries(directory);
    entries.sort_by_key(|entry| entry.used);
    let mut size = entries.iter().map(|entry| entry.len).sum();
    for entry in entries {
        if size <= goal {
            break;
        }
        if fs::remove_file(entry.path).is_ok() {
            size -= entry.len;
        }
    }
    size
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANSWER: &str = "define i32 @answer() {\n  ret i32 42\n}\n";

    fn directory() -> tempfile::TempDir {
        tempfile::tempdir().expect("a temporary directory")
    }

    fn llvm() -> &'static Llvm {
        Llvm::get().expect("an LLVM")
    }

    fn compile(cache: &ObjectCache, ir: &str) -> Object {
        cache.compile(llvm(), ir, &llvm().host(), OptLevel::Full).expect("the IR is right")
    }

    /// The one entry of the cache.
    fn entry(cache: &ObjectCache) -> PathBuf {
        let entries = entries(cache.directory().expect("there is a cache"));
        assert_eq!(entries.len(), 1);
        entries[0].path.clone()
    }

    #[test]
    fn the_second_time_it_comes_from_the_cache() {
        let directory = directory();
        let path = directory.path().join("not/yet/there");
        let first = compile(&ObjectCache::at(&path, DEFAULT_LIMIT), ANSWER);
        let cache = ObjectCache::at(&path, DEFAULT_LIMIT);
        let second = compile(&cache, ANSWER);
        assert!(!first.cached && second.cached);
        assert_eq!(first.bytes, second.bytes);
        let (count, size) = cache.usage();
        assert_eq!((count, size), (1, (HEADER_LEN + first.bytes.len()) as u64));
    }

    #[test]
    fn everything_that_decides_the_code_is_in_the_key() {
        let target = |triple: &str, cpu: &str, features: &str| Target {
            triple: triple.into(),
            cpu: cpu.into(),
            features: features.into(),
        };
        let keys = [
            key("l", "ir", &target("t", "c", "f"), OptLevel::Full),
            key("L", "ir", &target("t", "c", "f"), OptLevel::Full),
            key("l", "IR", &target("t", "c", "f"), OptLevel::Full),
            key("l", "ir", &target("T", "c", "f"), OptLevel::Full),
            key("l", "ir", &target("t", "C", "f"), OptLevel::Full),
            key("l", "ir", &target("t", "c", "F"), OptLevel::Full),
            key("l", "ir", &target("t", "cf", ""), OptLevel::Full),
            key("l", "ir", &target("t", "c", "f"), OptLevel::Less),
            key("l", "ir", &target("t", "c", "f"), OptLevel::None),
        ];
        for (i, a) in keys.iter().enumerate() {
            assert!(keys[..i].iter().all(|b| a != b), "key {i} is not unique");
        }
    }

    #[test]
    fn a_damaged_entry_is_compiled_again() {
        let directory = directory();
        let cache = ObjectCache::at(directory.path(), DEFAULT_LIMIT);
        let good = compile(&cache, ANSWER).bytes;
        let path = entry(&cache);
        let whole = fs::read(&path).expect("the entry can be read");
        let mut flipped = whole.clone();
        flipped[HEADER_LEN + 7] ^= 1;
        let mut other_format = whole.clone();
        other_format[0] ^= 1;
        let longer = [whole.as_slice(), b"x"].concat();
        let cut = &whole[..whole.len() - 1];
        for damaged in [&flipped, &other_format, &longer, cut, &whole[..HEADER_LEN - 1], b""] {
            fs::write(&path, damaged).expect("the entry can be written");
            let again = compile(&cache, ANSWER);
            assert!(!again.cached);
            assert_eq!(again.bytes, good);
            assert!(compile(&cache, ANSWER).cached, "the entry was replaced");
        }
    }

    #[test]
    fn a_directory_that_cannot_be_written_is_no_error() {
        let directory = directory();
        // Not a directory, and so unusable for every user, root included.
        let file = directory.path().join("file");
        fs::write(&file, "").expect("a temporary file can be written");
        let cache = ObjectCache::at(file.join("cache"), DEFAULT_LIMIT);
        assert!(!compile(&cache, ANSWER).cached);
        assert!(!compile(&cache, ANSWER).cached);
        assert_eq!(cache.usage(), (0, 0));
    }

    #[test]
    fn an_error_of_the_compiler_is_not_kept() {
        let directory = directory();
        let cache = ObjectCache::at(directory.path(), DEFAULT_LIMIT);
        assert!(cache.compile(llvm(), "nonsense", &llvm().host(), OptLevel::Full).is_err());
        assert_eq!(cache.usage(), (0, 0));
    }

    #[test]
    fn no_cache_compiles_every_time() {
        let cache = ObjectCache::off();
        assert!(!compile(&cache, ANSWER).cached);
        assert!(!compile(&cache, ANSWER).cached);
    }

    #[test]
    fn what_was_not_used_for_longest_goes_first() {
        let directory = directory();
        let path = |i: usize| directory.path().join(format!("{i}.{ENTRY}"));
        let content = [0; 100 - HEADER_LEN];
        for i in 0..8 {
            write(&path(i), &content).expect("an entry can be written");
            let age = Duration::from_secs(1000 - i as u64);
            let file = fs::File::options().append(true).open(path(i)).expect("it is there");
            file.set_modified(SystemTime::now() - age).expect("the time can be set");
        }
        let foreign = directory.path().join("mine.o");
        fs::write(&foreign, [0; 1000]).expect("a file can be written");
        assert_eq!(read(&path(0)).as_deref(), Some(content.as_slice()));
        let cache = ObjectCache::at(directory.path(), 600);
        cache.grown(directory.path(), 100);
        let left: Vec<_> = (0..8).filter(|&i| path(i).exists()).collect();
        assert_eq!(left, [0, 4, 5, 6, 7], "an eighth below the limit there is room for five");
        assert!(foreign.exists());
    }

    #[test]
    fn what_a_cut_off_write_left_is_cleared_away() {
        let directory = directory();
        let path = |name: &str| directory.path().join(format!("{name}.{TEMPORARY}"));
        for name in ["old", "new"] {
            fs::write(path(name), "").expect("a file can be written");
        }
        let file = fs::File::options().append(true).open(path("old")).expect("it is there");
        file.set_modified(SystemTime::now() - 2 * ABANDONED).expect("the time can be set");
        evict(directory.path(), 0);
        assert!(!path("old").exists() && path("new").exists());
    }

    #[test]
    fn the_environment_says_where() {
        let at = |vars: &[(&str, &str)]| {
            let var = |name: &str| vars.iter().find(|(n, _)| *n == name).map(|(_, v)| v.into());
            location(var).map(|path| path.to_string_lossy().into_owned())
        };
        let home = ("HOME", "/home/me");
        let xdg = ("XDG_CACHE_HOME", "/var/cache/me");
        assert_eq!(at(&[]), None);
        assert_eq!(at(&[home]).as_deref(), Some("/home/me/.cache/tilewright"));
        assert_eq!(at(&[home, xdg]).as_deref(), Some("/var/cache/me/tilewright"));
        let relative = ("XDG_CACHE_HOME", "cache");
        assert_eq!(at(&[home, relative]).as_deref(), Some("/home/me/.cache/tilewright"));
        assert_eq!(at(&[home, xdg, (LOCATION, "/here")]).as_deref(), Some("/here"));
        assert_eq!(at(&[home, xdg, (LOCATION, "off")]), None);
        assert_eq!(at(&[xdg, (LOCATION, "")]).as_deref(), Some("/var/cache/me/tilewright"));
    }
}

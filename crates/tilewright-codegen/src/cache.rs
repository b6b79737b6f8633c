//! Compiled objects on disk, by content.
//!
//! The name of an entry is the hash of all that decides what LLVM generates: the IR text, the
//! target, the passes, and LLVM itself. So an entry is never stale, only missing. A cache is a
//! convenience: whatever is wrong with the disk (no home directory, read-only, full, an entry that
//! was damaged) makes it slower and nothing else.
//!
//! An entry holds a header, its key, the hash of its content, and the content; one whose key is not
//! that of its name, or whose content does not match its hash, is compiled again. Neither says who
//! wrote it: an entry is used because it lies in a directory that only this user can write, and
//! belongs to this user (see `private`). A directory or entry of which that is not so is refused,
//! with a warning, and what was asked for is compiled. Entries are written under a name of their
//! own and then renamed, so that a reader, in this process or another, sees a whole entry or none.
//! When the entries outgrow the limit, those that were not used for longest go; the time of last use
//! is the file's time of modification.

mod kept;
#[cfg(unix)]
mod private;
#[cfg(not(unix))]
#[path = "cache/elsewhere.rs"]
mod private;

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use tilewright_ir::Result;

use tilewright_target::{CodeOptions, OptLevel, Target};

use crate::llvm::{Emit, Llvm, passes};
pub use kept::Kept;
use private::Directory;

/// Environment variable that names the directory of the cache; `off` for no cache.
pub(crate) const LOCATION: &str = "TILEWRIGHT_CACHE";

/// The size, in bytes, that [`ObjectCache::from_env`] keeps entries below.
pub(crate) const DEFAULT_LIMIT: u64 = 1 << 30;

/// The first bytes of an entry; the last two count the versions of its format.
const MAGIC: [u8; 8] = *b"twobj\0\0\x02";
const HASH_LEN: usize = blake3::OUT_LEN;
/// The format, the key, the hash of the content.
const HEADER_LEN: usize = MAGIC.len() + 2 * HASH_LEN;
/// The largest entry that is read, in bytes: no object comes near.
const MAX_ENTRY: u64 = 1 << 32;

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
    /// What was refused, each once, with whether it was told.
    warnings: Mutex<Vec<(String, bool)>>,
}

/// Why there is nothing to work with in a cache.
#[derive(Debug, PartialEq, Eq)]
enum Refused {
    /// It is not there.
    Missing,
    /// It is not safe to use, or cannot be used, for this reason.
    Because(String),
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
        ObjectCache { directory: Some(directory.into()), limit, ..ObjectCache::off() }
    }

    /// No cache: everything is compiled.
    pub fn off() -> ObjectCache {
        ObjectCache {
            directory: None,
            limit: 0,
            size: Mutex::default(),
            warnings: Mutex::default(),
        }
    }

    /// Where the entries are; `None` if there is no cache.
    pub fn directory(&self) -> Option<&Path> {
        self.directory.as_deref()
    }

    /// Number and total size in bytes of the entries.
    pub fn usage(&self) -> (usize, u64) {
        let directory = self.directory().and_then(|path| Directory::open(path).ok());
        let entries = directory.map(|d| files(&d, ENTRY)).unwrap_or_default();
        (entries.len(), entries.iter().map(|entry| entry.len).sum())
    }

    /// Why the directory is not used although it is there: it is not this user's, or others may write
    /// to it, or it cannot be opened.
    pub fn refused(&self) -> Option<String> {
        match Directory::open(self.directory()?) {
            Err(Refused::Because(why)) => Some(why),
            Ok(_) | Err(Refused::Missing) => None,
        }
    }

    /// What was refused since the last call, as sentences for the user.
    pub fn take_warnings(&self) -> Vec<String> {
        let mut warnings = self.warnings.lock().unwrap_or_else(PoisonError::into_inner);
        let new = warnings.iter_mut().filter(|(_, reported)| !reported);
        new.map(|(text, reported)| {
            *reported = true;
            text.clone()
        })
        .collect()
    }

    fn warn(&self, path: &Path, what: &str) {
        let path = path.to_string_lossy();
        let text = format!("the cache of compiled code, {}: {what}", path.escape_debug());
        let mut warnings = self.warnings.lock().unwrap_or_else(PoisonError::into_inner);
        if !warnings.iter().any(|(known, _)| *known == text) {
            warnings.push((text, false));
        }
    }

    /// The one that options ask for.
    pub fn from_options(options: &CodeOptions<'_>) -> ObjectCache {
        if options.cache { ObjectCache::from_env() } else { ObjectCache::off() }
    }

    /// Hands on what the cache warned of.
    pub fn tell_warnings(&self, options: &CodeOptions<'_>) {
        if let Some(warn) = options.warn {
            self.take_warnings().iter().for_each(|warning| warn(warning));
        }
    }

    /// The object file for this IR: from the cache, or else from LLVM and then kept.
    ///
    /// # Errors
    /// Those of [`Llvm::compile`].
    pub fn compile(
        &self,
        llvm: &'static Llvm,
        ir: &str,
        target: &Target,
        level: OptLevel,
    ) -> Result<Object> {
        let key = key(&llvm.identity(), ir, target, level);
        if let Some(bytes) = self.get(&key) {
            return Ok(Object { bytes, cached: true });
        }
        let bytes = llvm.compile(ir, target, level, Emit::Object)?;
        self.put(&key, &bytes);
        Ok(Object { bytes, cached: false })
    }

    /// What was put under a key.
    pub(crate) fn get(&self, key: &blake3::Hash) -> Option<Vec<u8>> {
        let (path, directory) = self.open()?;
        read(&directory, key).unwrap_or_else(|warning| {
            self.warn(path, &warning);
            None
        })
    }

    /// Puts something under a key, in the place of what was there.
    pub(crate) fn put(&self, key: &blake3::Hash, content: &[u8]) {
        let Some((_, directory)) = self.open() else { return };
        if write(&directory, key, content).is_ok() {
            self.grown(&directory, (HEADER_LEN + content.len()) as u64);
        }
    }

    /// The directory, which is made if it is not there; `None` where there is none to use.
    fn open(&self) -> Option<(&Path, Directory)> {
        let path = self.directory()?;
        match Directory::make(path) {
            Ok(directory) => Some((path, directory)),
            Err(Refused::Because(why)) => {
                self.warn(path, &format!("it is not used: {why}"));
                None
            }
            Err(Refused::Missing) => None,
        }
    }

    /// Counts a new entry, and deletes old ones where the limit asks for it.
    fn grown(&self, directory: &Directory, by: u64) {
        let mut size = self.size.lock().unwrap_or_else(PoisonError::into_inner);
        let known = match *size {
            Some(before) => before.saturating_add(by),
            // The new entry is among them.
            None => files(directory, ENTRY).iter().map(|entry| entry.len).sum(),
        };
        // Some way below the limit, so that not every write has to list the directory.
        let goal = self.limit - self.limit / 8;
        *size = Some(if known > self.limit {
            evict(directory, files(directory, ENTRY), goal, |name| directory.remove(name))
        } else {
            known
        });
    }
}

/// The directory that the environment variables `var` ask for.
fn location(var: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let [own, xdg, home] = [LOCATION, "XDG_CACHE_HOME", "HOME"]
        .map(|name| var(name).filter(|value| !value.is_empty()).map(PathBuf::from));
    match own {
        Some(off) if off.as_os_str() == "off" => None,
        Some(directory) => Some(directory),
        // A relative path in this variable is to be ignored, says the XDG base directory
        // specification.
        None => xdg
            .filter(|cache| cache.is_absolute())
            .or_else(|| home.map(|home| home.join(".cache")))
            .map(|cache| cache.join("tilewright")),
    }
}

/// The hash of everything that decides what LLVM generates.
fn key(llvm: &str, ir: &str, target: &Target, level: OptLevel) -> blake3::Hash {
    // `llvm` has the version already.
    let passes = passes::pipeline(level, u32::MAX).to_bytes();
    let [llvm, ir] = [llvm, ir].map(str::as_bytes);
    let [triple, cpu, features] =
        [&target.triple, &target.cpu, &target.features].map(|part| part.as_bytes());
    key_of_parts(&[llvm, triple, cpu, features, passes, ir])
}

/// The hash of parts, none of which run together with its neighbours.
pub(crate) fn key_of_parts(parts: &[&[u8]]) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        // With the length in front, no two lists of parts run together to the same bytes.
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    hasher.finalize()
}

/// The name of a file about a key.
fn name(key: &blake3::Hash, ending: &str) -> String {
    format!("{}.{ending}", key.to_hex())
}

/// An entry, if it is there; the warning if it is refused.
fn find(directory: &Directory, name: &str) -> Result<Option<File>, String> {
    match directory.read(name) {
        Ok(file) => Ok(Some(file)),
        Err(Refused::Missing) => Ok(None),
        Err(Refused::Because(why)) => Err(format!("the entry {name} is not used: {why}")),
    }
}

/// The content of a whole entry, marked as used now; the warning if it is refused. A damaged one is
/// deleted.
fn read(directory: &Directory, key: &blake3::Hash) -> Result<Option<Vec<u8>>, String> {
    let name = name(key, ENTRY);
    let Some(mut file) = find(directory, &name)? else { return Ok(None) };
    let mut bytes = Vec::new();
    // What is cut off here fails the check.
    let whole = (&mut file).take(MAX_ENTRY).read_to_end(&mut bytes).is_ok()
        && bytes.split_at_checked(HEADER_LEN).is_some_and(|(header, content)| {
            let expected = [&MAGIC[..], key.as_bytes(), blake3::hash(content).as_bytes()].concat();
            header == expected
        });
    if !whole {
        let _ = directory.remove(&name);
        return Ok(None);
    }
    bytes.drain(..HEADER_LEN);
    let _ = file.set_modified(SystemTime::now());
    Ok(Some(bytes))
}

/// Writes an entry.
fn write(directory: &Directory, key: &blake3::Hash, content: &[u8]) -> io::Result<()> {
    replace(directory, &name(key, ENTRY), |file| {
        file.write_all(&MAGIC)?;
        file.write_all(key.as_bytes())?;
        file.write_all(blake3::hash(content).as_bytes())?;
        file.write_all(content)
    })
}

/// Writes a file under another name, then gives it its own: all or nothing.
fn replace(
    directory: &Directory,
    name: &str,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let temporary = format!("{name}.{}-{count}.{TEMPORARY}", std::process::id());
    let written = directory.create(&temporary).and_then(|file| {
        let mut file = BufWriter::new(file);
        write(&mut file)?;
        file.flush()
    });
    let renamed = written.and_then(|()| directory.rename(&temporary, name));
    if renamed.is_err() {
        let _ = directory.remove(&temporary);
    }
    renamed
}

struct Entry {
    name: String,
    /// In bytes.
    len: u64,
    used: SystemTime,
}

/// The files of a cache whose names end like this.
fn files(directory: &Directory, extension: &str) -> Vec<Entry> {
    let names = directory
        .names()
        .into_iter()
        .filter(|name| Path::new(name).extension().is_some_and(|found| found == extension));
    names
        .filter_map(|name| {
            let metadata = directory.read(&name).ok()?.metadata().ok()?;
            let used = metadata.modified().ok()?;
            Some(Entry { name, len: metadata.len(), used })
        })
        .collect()
}

/// Deletes the entries that were not used for longest until the rest is at most `goal` bytes, and
/// gives the size of the rest. Deletes what a process that died left behind as well.
fn evict(
    directory: &Directory,
    mut entries: Vec<Entry>,
    goal: u64,
    remove: impl Fn(&str) -> io::Result<()>,
) -> u64 {
    for file in files(directory, TEMPORARY) {
        if file.used.elapsed().is_ok_and(|age| age > ABANDONED) {
            let _ = directory.remove(&file.name);
        }
    }
    entries.sort_by_key(|entry| entry.used);
    let mut size = entries.iter().map(|entry| entry.len).sum();
    for entry in entries {
        if size <= goal {
            break;
        }
        if remove(&entry.name).is_ok() {
            size -= entry.len;
        }
    }
    size
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use proptest::prelude::*;

    use super::*;

    const ANSWER: &str = "define i32 @answer() {\n  ret i32 42\n}\n";

    fn directory() -> tempfile::TempDir {
        tempfile::tempdir().expect("a temporary directory")
    }

    fn llvm() -> &'static Llvm {
        Llvm::get().expect("an LLVM")
    }

    fn open(path: &Path) -> Directory {
        Directory::open(path).expect("a directory of this user's")
    }

    fn compile(cache: &ObjectCache, ir: &str) -> Object {
        cache.compile(llvm(), ir, &llvm().host(), OptLevel::Full).expect("the IR is right")
    }

    /// The one entry of the cache.
    fn entry(cache: &ObjectCache) -> PathBuf {
        let path = cache.directory().expect("there is a cache");
        let entries = files(&open(path), ENTRY);
        assert_eq!(entries.len(), 1);
        path.join(&entries[0].name)
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
        let keys = [
            key("l", "ir", &Target::new("t", "c", "f"), OptLevel::Full),
            key("L", "ir", &Target::new("t", "c", "f"), OptLevel::Full),
            key("l", "IR", &Target::new("t", "c", "f"), OptLevel::Full),
            key("l", "ir", &Target::new("T", "c", "f"), OptLevel::Full),
            key("l", "ir", &Target::new("t", "C", "f"), OptLevel::Full),
            key("l", "ir", &Target::new("t", "c", "F"), OptLevel::Full),
            key("l", "ir", &Target::new("t", "cf", ""), OptLevel::Full),
            key("l", "ir", &Target::new("t", "c", "f"), OptLevel::Less),
            key("l", "ir", &Target::new("t", "c", "f"), OptLevel::None),
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
    fn an_entry_under_another_name_is_a_miss() {
        let directory = directory();
        let cache = ObjectCache::at(directory.path(), DEFAULT_LIMIT);
        compile(&cache, ANSWER);
        let answer = entry(&cache);
        let other = ANSWER.replace("answer", "other");
        let good = compile(&ObjectCache::off(), &other).bytes;
        let key = key(&llvm().identity(), &other, &llvm().host(), OptLevel::Full);
        fs::copy(answer, directory.path().join(name(&key, ENTRY))).expect("an entry can be copied");
        let object = compile(&cache, &other);
        assert!(!object.cached);
        assert_eq!(object.bytes, good);
        assert!(compile(&cache, &other).cached, "the entry was replaced");
        assert!(cache.take_warnings().is_empty());
    }

    #[test]
    fn a_directory_that_others_may_write_is_not_used() {
        let directory = directory();
        let cache = ObjectCache::at(directory.path(), DEFAULT_LIMIT);
        compile(&cache, ANSWER);
        for mode in [0o777, 0o1777, 0o720, 0o702] {
            let permissions = fs::Permissions::from_mode(mode);
            fs::set_permissions(directory.path(), permissions).expect("the mode can be set");
            let cache = ObjectCache::at(directory.path(), DEFAULT_LIMIT);
            assert!(!compile(&cache, ANSWER).cached && !compile(&cache, ANSWER).cached);
            let why = format!("others may write it (mode {mode:o})");
            assert_eq!(cache.refused().as_deref(), Some(why.as_str()));
            let warnings = cache.take_warnings();
            assert!(warnings.len() == 1 && warnings[0].ends_with(&why), "{warnings:?}");
            assert!(cache.take_warnings().is_empty(), "it is said once");
        }
        let private = fs::Permissions::from_mode(0o700);
        fs::set_permissions(directory.path(), private).expect("the mode can be set");
        assert!(compile(&cache, ANSWER).cached);
    }

    /// Only a user who may give files away can make one that is another user's.
    #[test]
    fn what_belongs_to_another_user_is_not_used() {
        let directory = directory();
        let cache = ObjectCache::at(directory.path(), DEFAULT_LIMIT);
        compile(&cache, ANSWER);
        let path = entry(&cache);
        if std::os::unix::fs::chown(&path, Some(12_345), None).is_err() {
            return;
        }
        assert!(!compile(&cache, ANSWER).cached);
        let warnings = cache.take_warnings();
        assert!(warnings[0].contains("belongs to user 12345"), "{warnings:?}");
        assert!(compile(&cache, ANSWER).cached, "the entry was replaced");
        std::os::unix::fs::chown(directory.path(), Some(12_345), None).expect("as above");
        assert!(!compile(&cache, ANSWER).cached);
        assert!(cache.refused().is_some_and(|why| why.contains("belongs to user 12345")));
    }

    #[test]
    fn links_pipes_and_directories_are_no_entries() {
        let place = directory();
        let cache = ObjectCache::at(place.path(), DEFAULT_LIMIT);
        compile(&cache, ANSWER);
        let path = entry(&cache);
        let elsewhere = directory();
        let copy = elsewhere.path().join("object");
        let writable = |path: &Path| {
            fs::copy(&copy, path).expect("an entry can be written");
            let permissions = fs::Permissions::from_mode(0o666);
            fs::set_permissions(path, permissions).expect("the mode can be set");
        };
        type Put<'a> = (&'a str, &'a dyn Fn(&Path));
        let put: [Put<'_>; 3] = [
            ("it is a link", &|path| symlink(&copy, path).expect("a link can be made")),
            ("it is not a regular file", &|path| {
                let made = std::process::Command::new("mkfifo").arg(path).status();
                assert!(made.expect("mkfifo runs").success());
            }),
            ("others may write it (mode 666)", &writable),
        ];
        fs::copy(&path, &copy).expect("an entry can be copied");
        for (why, put) in put {
            fs::remove_file(&path).expect("it is there");
            put(&path);
            assert!(!compile(&cache, ANSWER).cached);
            let warnings = cache.take_warnings();
            assert!(warnings.len() == 1 && warnings[0].ends_with(why), "{warnings:?}");
            assert!(compile(&cache, ANSWER).cached, "the entry was replaced");
        }
        fs::remove_file(&path).expect("it is there");
        fs::create_dir(&path).expect("a directory can be made");
        assert!(!compile(&cache, ANSWER).cached && !compile(&cache, ANSWER).cached);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        /// Whatever is in a file of the cache, what is read is what was written under that key, or
        /// nothing.
        #[test]
        fn no_entry_gives_anything_else(
            content in prop::collection::vec(any::<u8>(), 0..200),
            other in prop::collection::vec(any::<u8>(), 0..200),
            edits in prop::collection::vec((0u8..5, any::<prop::sample::Index>(), any::<u8>()), 0..4),
        ) {
            let directory = directory();
            let opened = open(directory.path());
            let (mine, theirs) = (blake3::hash(b"mine"), blake3::hash(b"theirs"));
            write(&opened, &mine, &content).expect("an entry can be written");
            write(&opened, &theirs, &other).expect("an entry can be written");
            let path = directory.path().join(name(&mine, ENTRY));
            let mut bytes = fs::read(&path).expect("it is there");
            let whole = bytes.clone();
            let foreign = fs::read(directory.path().join(name(&theirs, ENTRY))).expect("it is there");
            for (how, at, byte) in edits {
                match how {
                    0 if !bytes.is_empty() => {
                        let at = at.index(bytes.len());
                        bytes[at] ^= byte;
                    }
                    1 => bytes.truncate(at.index(bytes.len() + 1)),
                    2 => bytes.push(byte),
                    3 => bytes = foreign.clone(),
                    4 => {
                        let at = at.index(bytes.len() + 1);
                        bytes.insert(at, byte);
                    }
                    _ => {}
                }
            }
            fs::write(&path, &bytes).expect("it can be written");
            let expected = (bytes == whole).then(|| content.clone());
            prop_assert_eq!(read(&opened, &mine), Ok(expected));
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
        let opened = open(directory.path());
        let path = |i: usize| directory.path().join(name(&entry_key(i), ENTRY));
        let content = [0; 100 - HEADER_LEN];
        for i in 0..8 {
            write(&opened, &entry_key(i), &content).expect("an entry can be written");
            let age = Duration::from_secs(1000 - i as u64);
            let file = fs::File::options().append(true).open(path(i)).expect("it is there");
            file.set_modified(SystemTime::now() - age).expect("the time can be set");
        }
        let foreign = directory.path().join("mine.o");
        fs::write(&foreign, [0; 1000]).expect("a file can be written");
        assert_eq!(read(&opened, &entry_key(0)), Ok(Some(content.to_vec())));
        let cache = ObjectCache::at(directory.path(), 600);
        cache.grown(&opened, 100);
        let left: Vec<_> = (0..8).filter(|&i| path(i).exists()).collect();
        assert_eq!(left, [0, 4, 5, 6, 7], "an eighth below the limit there is room for five");
        assert!(foreign.exists());
    }

    fn entry_key(i: usize) -> blake3::Hash {
        blake3::hash(&[i as u8])
    }

    #[test]
    fn what_a_cut_off_write_left_is_cleared_away() {
        let directory = directory();
        for name in ["old", "new"] {
            fs::write(temporary_path(name, &directory), "").expect("a file can be written");
        }
        let file = fs::File::options()
            .append(true)
            .open(temporary_path("old", &directory))
            .expect("it is there");
        file.set_modified(SystemTime::now() - 2 * ABANDONED).expect("the time can be set");
        evict(&open(directory.path()), Vec::new(), 0, |_| Ok(()));
        assert!(
            !temporary_path("old", &directory).exists()
                && temporary_path("new", &directory).exists()
        );
    }

    fn temporary_path(name: &str, directory: &tempfile::TempDir) -> PathBuf {
        directory.path().join(format!("{name}.{TEMPORARY}"))
    }

    #[test]
    fn the_environment_says_where() {
        let home = ("HOME", "/home/me");
        let xdg = ("XDG_CACHE_HOME", "/var/cache/me");
        assert_eq!(location_of(&[]), None);
        assert_eq!(location_of(&[home]).as_deref(), Some("/home/me/.cache/tilewright"));
        assert_eq!(location_of(&[home, xdg]).as_deref(), Some("/var/cache/me/tilewright"));
        let relative = ("XDG_CACHE_HOME", "cache");
        assert_eq!(location_of(&[home, relative]).as_deref(), Some("/home/me/.cache/tilewright"));
        assert_eq!(location_of(&[home, xdg, (LOCATION, "/here")]).as_deref(), Some("/here"));
        assert_eq!(location_of(&[home, xdg, (LOCATION, "off")]), None);
        assert_eq!(
            location_of(&[xdg, (LOCATION, "")]).as_deref(),
            Some("/var/cache/me/tilewright")
        );
    }

    fn location_of(vars: &[(&str, &str)]) -> Option<String> {
        location(|name| vars.iter().find(|(n, _)| *n == name).map(|(_, v)| v.into()))
            .map(|path| path.to_string_lossy().into_owned())
    }
}

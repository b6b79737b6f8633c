//! Compiled programs on disk, which are mapped and not read.
//!
//! An entry holds the weights of a model as its kernels take them. Mapping it costs no time that
//! depends on its size, and processes that run the same model share its pages. Like an object
//! ([`super`]) it is used only where no other user can have written it, under the name of its key,
//! which stands in it as well.
//!
//! **What is checked.** The content carries checksums of its parts, which whoever reads it checks: of
//! small parts always, of large ones ([`Kept::is_checked`]) once for each state of the file. Beside the
//! entry lies a *stamp*: the device, number, length and times that the file had when it was read and
//! its checksums were right. As long as the system says the same of the file, it is the same: every
//! write sets the time of last change, which no user can set. That time is as exact as the clock of the
//! file system, so that a stamp is made only for a file whose last change is over for long enough. What
//! this does not find is a disk that returns other bytes than were written to it, and what a user does
//! to files of their own while they are mapped.
//!
//! An entry is never written to: it is made under another name and renamed, and one that goes stays
//! readable for who has mapped it. The oldest go when all outgrow [`LIMIT`]; none is made that would
//! fill the disk by more than half of what is free.
//!
//! [`ObjectCache::digest`] remembers the hash of a large file by the same rule, so that a model of some
//! hundred megabytes is not read to find out that it is the one of the last time.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use memmap2::Mmap;
use tilewright_ir::{DType, Tensor, tensor};

use super::private::{Directory, Identity};
use super::{HASH_LEN, ObjectCache, evict, files, find, name, replace};

/// The bytes that all programs may take together.
pub const LIMIT: u64 = 8 << 30;

/// The first bytes of an entry; the last one counts the versions of its format.
const MAGIC: [u8; 8] = *b"twprog\0\x01";
/// Where the content of an entry begins: behind the format and the key, at a multiple of 64.
const START: usize = tensor::ALIGN;

/// The endings of the names of entries, of their stamps, and of remembered hashes.
const ENTRY: &str = "twprog";
const STAMP: &str = "twprog-ok";
const DIGEST: &str = "twsum";

/// A file that was not changed for this long is not changed any more without another time.
const SETTLED: Duration = Duration::from_millis(20);
/// The same for files of others, which may lie on any file system.
const SETTLED_ELSEWHERE: Duration = Duration::from_secs(2);
/// Files of fewer bytes are hashed each time.
const SMALL: u64 = 1 << 20;
/// Remembered hashes, the latest.
const MOST_DIGESTS: usize = 256;

/// A program that is mapped.
pub struct Kept {
    directory: Directory,
    key: blake3::Hash,
    identity: Identity,
    /// Whether the file could be given a stamp when it was opened.
    is_settled: bool,
    is_checked: bool,
    content: Tensor,
}

impl Kept {
    /// Its bytes.
    pub fn content(&self) -> &Tensor {
        &self.content
    }

    /// Whether all of it was checked before, and the file is the same since.
    pub fn is_checked(&self) -> bool {
        self.is_checked
    }

    /// Remembers that all checksums are right.
    pub fn confirm(&self) {
        let name = name(&self.key, ENTRY);
        if self.is_settled
            && self
                .directory
                .read(&name)
                .is_ok_and(|file| Identity::from_file(&file).is_ok_and(|now| now == self.identity))
        {
            let stamp = stamp(&self.identity, &self.key, &[]);
            let _ = replace(&self.directory, &self::name(&self.key, STAMP), |file| {
                file.write_all(&stamp)
            });
        }
    }

    /// Deletes what turned out to be damaged.
    pub fn reject(self) {
        let _ = remove(&self.directory, &self.key.to_hex());
    }
}

impl ObjectCache {
    /// The program that is kept under a key.
    pub fn kept(&self, key: &blake3::Hash) -> Option<Kept> {
        let (path, directory) = self.open()?;
        let name = name(key, ENTRY);
        let found = find(&directory, &name);
        let file = found.map_err(|warning| self.warn(path, &warning)).ok()??;
        let identity = Identity::from_file(&file).ok()?;
        let is_settled = identity.is_settled(SETTLED);
        // SAFETY: the file is this user's alone, and this program replaces such files and never writes
        // to them.
        let map = unsafe { Mmap::map(&file) }.ok()?;
        let expected = [&MAGIC[..], key.as_bytes()].concat();
        if map.len() < START || !map.starts_with(&expected) {
            let _ = remove(&directory, &key.to_hex());
            return None;
        }
        let content = START..map.len();
        let content =
            Tensor::from_mapped(DType::U8, &[content.len()], &Arc::new(map), content, true)?;
        let found = read_stamp(&directory, &self::name(key, STAMP));
        let is_checked = found.is_some_and(|found| found == stamp(&identity, key, &[]));
        Some(Kept { directory, key: *key, identity, is_settled, is_checked, content })
    }

    /// Keeps a program of `len` bytes, which `write` writes, and opens it.
    pub fn keep(
        &self,
        key: &blake3::Hash,
        len: u64,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Option<Kept> {
        let (_, directory) = self.open()?;
        if directory.room() / 2 < len || len > LIMIT {
            return None;
        }
        let written = replace(&directory, &name(key, ENTRY), |file| {
            let head = [&MAGIC[..], key.as_bytes()].concat();
            file.write_all(&head)?;
            file.write_all(&vec![0; START - head.len()])?;
            write(file)
        });
        written.ok()?;
        make_room(&directory, LIMIT);
        std::thread::sleep(2 * SETTLED);
        self.kept(key)
    }

    /// The hash of a plain file; `None` where it is written to at the moment, or is larger than all that
    /// is kept (`LIMIT`).
    pub fn digest(&self, file: &File) -> Option<blake3::Hash> {
        let [_, _, len, ..] = Identity::from_file(file).ok()?.0;
        self.remembered_hash(file, len, &[], |hasher| add_bytes(hasher, file, 0..len))
    }

    /// The hash of parts of a plain file, of which the others are not read; `None` as for the whole, and
    /// where the file ends before.
    pub fn digest_of_parts(&self, file: &File, parts: &[Range<u64>]) -> Option<blake3::Hash> {
        let len = parts.iter().map(|part| part.end.saturating_sub(part.start)).sum();
        self.remembered_hash(file, len, parts, |hasher| {
            for part in parts {
                hasher.update(&part.start.to_le_bytes()).update(&part.end.to_le_bytes());
                add_bytes(hasher, file, part.clone())?;
            }
            Ok(())
        })
    }

    /// The hash of `len` bytes of a file, remembered for the file and its parts.
    fn remembered_hash(
        &self,
        file: &File,
        len: u64,
        parts: &[Range<u64>],
        add: impl FnOnce(&mut blake3::Hasher) -> io::Result<()>,
    ) -> Option<blake3::Hash> {
        if len > LIMIT {
            return None;
        }
        let identity = Identity::from_file(file).ok()?;
        let [device, number, ..] = identity.0;
        let directory = self.open().filter(|_| len >= SMALL).map(|(_, directory)| directory);
        let mut place = blake3::Hasher::new();
        place.update(&device.to_le_bytes()).update(&number.to_le_bytes());
        for part in parts {
            place.update(&part.start.to_le_bytes()).update(&part.end.to_le_bytes());
        }
        let place = place.finalize();
        let name = name(&place, DIGEST);
        if let Some(directory) = &directory
            && let Some(known) = remembered(directory, &name, &identity, &place)
        {
            return Some(known);
        }
        let mut hasher = blake3::Hasher::new();
        let is_settled = identity.is_settled(SETTLED_ELSEWHERE);
        add(&mut hasher).ok()?;
        if Identity::from_file(file).ok()? != identity {
            return None;
        }
        let hash = hasher.finalize();
        if let Some(directory) = directory.filter(|_| is_settled) {
            let stamp = stamp(&identity, &place, hash.as_bytes());
            let _ = replace(&directory, &name, |file| file.write_all(&stamp));
            let mut all = files(&directory, DIGEST);
            all.sort_by_key(|file| std::cmp::Reverse(file.used));
            for old in all.iter().skip(MOST_DIGESTS) {
                let _ = directory.remove(&old.name);
            }
        }
        Some(hash)
    }
}

/// Adds bytes of a file to a hash.
fn add_bytes(hasher: &mut blake3::Hasher, mut file: &File, part: Range<u64>) -> io::Result<()> {
    file.seek(SeekFrom::Start(part.start))?;
    let mut left = part.end.saturating_sub(part.start);
    let mut buffer = vec![0; 1 << 18];
    while left > 0 {
        let most = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        match file.read(&mut buffer[..most])? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            n => {
                hasher.update(&buffer[..n]);
                left -= n as u64;
            }
        }
    }
    Ok(())
}

/// The hash that is remembered of a file in this state.
fn remembered(
    directory: &Directory,
    name: &str,
    identity: &Identity,
    place: &blake3::Hash,
) -> Option<blake3::Hash> {
    let found = read_stamp(directory, name)?;
    let (_, rest) = found.split_at_checked(MAGIC.len() + 5 * 8)?;
    let hash: [u8; HASH_LEN] = rest.get(..HASH_LEN)?.try_into().ok()?;
    (found == stamp(identity, place, &hash)).then(|| hash.into())
}

/// What is in a stamp, whose time is that of the last use.
fn read_stamp(directory: &Directory, name: &str) -> Option<Vec<u8>> {
    let mut file = directory.read(name).ok()?;
    let mut found = Vec::new();
    (&mut file).take(1 << 10).read_to_end(&mut found).ok()?;
    let _ = file.set_modified(SystemTime::now());
    Some(found)
}

/// What a stamp holds: the state of a file, what is known of it, and a hash of both and of the key.
fn stamp(identity: &Identity, key: &blake3::Hash, known: &[u8]) -> Vec<u8> {
    let numbers = identity.0.iter().flat_map(|n| n.to_le_bytes());
    let mut all: Vec<u8> = MAGIC.into_iter().chain(numbers).chain(known.iter().copied()).collect();
    let hash = blake3::Hasher::new().update(&all).update(key.as_bytes()).finalize();
    all.extend_from_slice(hash.as_bytes());
    all
}

/// Deletes an entry and its stamp.
fn remove(directory: &Directory, key: &str) -> io::Result<()> {
    let _ = directory.remove(&format!("{key}.{STAMP}"));
    directory.remove(&format!("{key}.{ENTRY}"))
}

/// Deletes the programs that were not used for longest until the others fit.
fn make_room(directory: &Directory, limit: u64) {
    let (stamps, mut entries) = (files(directory, STAMP), files(directory, ENTRY));
    for entry in &mut entries {
        let stamp = stamps.iter().find(|stamp| key_of(&stamp.name) == key_of(&entry.name));
        entry.used = stamp.map_or(entry.used, |stamp| stamp.used.max(entry.used));
    }
    evict(directory, entries, limit, |name| remove(directory, key_of(name)));
}

/// The key in a file's name.
fn key_of(name: &str) -> &str {
    name.split('.').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
    use std::path::PathBuf;

    use super::*;

    struct TestCache {
        directory: tempfile::TempDir,
        cache: ObjectCache,
    }

    fn place() -> TestCache {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let cache = ObjectCache::at(directory.path(), super::super::DEFAULT_LIMIT);
        TestCache { directory, cache }
    }

    impl TestCache {
        fn path(&self, key: &blake3::Hash, ending: &str) -> PathBuf {
            self.directory.path().join(name(key, ending))
        }

        fn keep(&self, key: &blake3::Hash, content: &[u8]) -> Option<Kept> {
            self.cache.keep(key, content.len() as u64, |out| out.write_all(content))
        }

        /// Number and total size in bytes of the programs.
        fn usage(&self) -> (usize, u64) {
            let directory = Directory::open(self.directory.path()).expect("a directory");
            let entries = files(&directory, ENTRY);
            (entries.len(), entries.iter().map(|entry| entry.len).sum())
        }
    }

    fn key(text: &str) -> blake3::Hash {
        blake3::hash(text.as_bytes())
    }

    #[test]
    fn what_is_kept_is_mapped_and_checked_once() {
        let place = place();
        let first = place.keep(&key("a"), b"weights").expect("it is kept");
        assert_eq!((first.content().bytes(), first.is_checked()), (&b"weights"[..], false));
        assert!(!place.cache.kept(&key("a")).expect("it is there").is_checked());
        first.confirm();
        assert!(place.cache.kept(&key("a")).expect("it is there").is_checked());
        assert!(place.cache.kept(&key("b")).is_none());
        assert_eq!(place.usage(), (1, 64 + 7));
        // Kept again, it is another file.
        assert!(!place.keep(&key("a"), b"WEIGHTS").expect("it is kept").is_checked());
        // What is mapped stays.
        assert_eq!(first.content().bytes(), b"weights");
    }

    #[test]
    fn a_change_of_the_file_ends_the_trust_in_it() {
        let place = place();
        let path = place.path(&key("a"), ENTRY);
        let again = || {
            let kept = place.keep(&key("a"), &[7; 1000]).expect("it is kept");
            kept.confirm();
            assert!(place.cache.kept(&key("a")).expect("it is there").is_checked());
        };
        again();
        let mut bytes = fs::read(&path).expect("it is there");
        bytes[500] ^= 1;
        // In place, and with the old time of modification put back.
        let modified = fs::metadata(&path).and_then(|m| m.modified()).expect("a time");
        fs::write(&path, &bytes).expect("it can be written");
        let file = File::options().append(true).open(&path).expect("it opens");
        file.set_modified(modified).expect("the time can be set");
        assert!(!place.cache.kept(&key("a")).expect("it is there").is_checked());
        again();
        File::options().write(true).open(&path).and_then(|f| f.set_len(300)).expect("it is cut");
        assert!(!place.cache.kept(&key("a")).expect("it is there").is_checked());
        // Shorter than its head, of another key, or nonsense: it goes.
        for content in [&b""[..], &bytes[..50], &[1; 200]] {
            again();
            fs::write(&path, content).expect("it can be written");
            assert!(place.cache.kept(&key("a")).is_none());
            assert!(!path.exists());
        }
        again();
        place.keep(&key("b"), b"other").expect("it is kept").confirm();
        fs::copy(place.path(&key("b"), ENTRY), &path).expect("it can be copied");
        fs::copy(place.path(&key("b"), STAMP), place.path(&key("a"), STAMP)).expect("copied");
        assert!(place.cache.kept(&key("a")).is_none());
    }

    #[test]
    fn a_stamp_is_for_one_file_and_whole() {
        let place = place();
        place.keep(&key("a"), b"weights").expect("it is kept").confirm();
        place.keep(&key("b"), b"weights").expect("it is kept").confirm();
        let path = place.path(&key("a"), STAMP);
        let stamp = fs::read(&path).expect("it is there");
        let is_checked = |bytes: &[u8]| {
            fs::write(&path, bytes).expect("it can be written");
            place.cache.kept(&key("a")).expect("it is there").is_checked()
        };
        assert!(is_checked(&stamp));
        for at in 0..stamp.len() {
            let mut broken = stamp.clone();
            broken[at] ^= 0x40;
            assert!(!is_checked(&broken), "byte {at}");
            assert!(!is_checked(&stamp[..at]), "{at} bytes");
        }
        assert!(!is_checked(&[&stamp[..], &[0]].concat()));
        let other = fs::read(place.path(&key("b"), STAMP)).expect("it is there");
        assert!(!is_checked(&other));
    }

    #[test]
    fn files_of_others_and_links_are_refused() {
        let place = place();
        place.keep(&key("a"), b"weights").expect("it is kept");
        let path = place.path(&key("a"), ENTRY);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).expect("a mode can be set");
        assert!(place.cache.kept(&key("a")).is_none());
        let warnings = place.cache.take_warnings();
        assert!(warnings[0].ends_with("others may write it (mode 666)"), "{warnings:?}");
        fs::remove_file(&path).expect("it is there");
        place.keep(&key("b"), b"weights").expect("it is kept");
        symlink(place.path(&key("b"), ENTRY), &path).expect("a link can be made");
        assert!(place.cache.kept(&key("a")).is_none());
        let open = fs::Permissions::from_mode(0o777);
        fs::set_permissions(place.directory.path(), open).expect("a mode can be set");
        assert!(place.cache.kept(&key("b")).is_none());
        assert!(place.keep(&key("c"), b"weights").is_none());
        assert!(ObjectCache::off().kept(&key("a")).is_none());
    }

    #[test]
    fn a_write_that_fails_leaves_nothing() {
        let place = place();
        assert!(place.cache.keep(&key("a"), 10, write_then_fail).is_none());
        assert!(place.cache.keep(&key("a"), u64::MAX, |_| Ok(())).is_none());
        assert_eq!(fs::read_dir(place.directory.path()).expect("it is there").count(), 0);
    }

    fn write_then_fail(out: &mut dyn Write) -> Result<(), io::Error> {
        out.write_all(b"some")?;
        Err(io::ErrorKind::StorageFull.into())
    }

    #[test]
    fn what_was_not_used_for_longest_goes_first() {
        let place = place();
        let directory = Directory::open(place.directory.path()).expect("this user's");
        for (k, text) in ["a", "b", "c"].into_iter().enumerate() {
            place.keep(&key(text), &[0; 1000]).expect("it is kept").confirm();
            let age = Duration::from_secs(1000 - k as u64);
            for ending in [ENTRY, STAMP] {
                let file = File::options().append(true).open(place.path(&key(text), ending));
                let file = file.expect("it is there");
                file.set_modified(SystemTime::now() - age).expect("the time can be set");
            }
        }
        drop(place.cache.kept(&key("a")).expect("it is there"));
        make_room(&directory, 2500);
        let left: Vec<bool> = ["a", "b", "c"].map(|t| place.path(&key(t), ENTRY).exists()).to_vec();
        assert_eq!(left, [true, false, true]);
        assert!(!place.path(&key("b"), STAMP).exists());
    }

    #[test]
    fn a_hash_is_remembered_for_a_file_that_is_the_same() {
        let place = place();
        let other = tempfile::tempdir().expect("a temporary directory");
        let path = other.path().join("model.onnx");
        let bytes = vec![3u8; (SMALL + 5) as usize];
        fs::write(&path, &bytes).expect("a file can be written");
        let digest = || place.cache.digest(&File::open(&path).expect("it opens"));
        let sums = || files(&Directory::open(place.directory.path()).expect("mine"), DIGEST).len();
        // It was changed a moment ago.
        assert_eq!(digest(), Some(blake3::hash(&bytes)));
        assert_eq!(sums(), 0);
        std::thread::sleep(SETTLED_ELSEWHERE + Duration::from_millis(100));
        assert_eq!(digest(), Some(blake3::hash(&bytes)));
        assert_eq!(sums(), 1);
        assert_eq!(digest(), Some(blake3::hash(&bytes)));
        // Another content of the same length and time.
        let modified = fs::metadata(&path).and_then(|m| m.modified()).expect("a time");
        let bytes = vec![4u8; bytes.len()];
        fs::write(&path, &bytes).expect("a file can be written");
        let file = File::options().append(true).open(&path).expect("it opens");
        file.set_modified(modified).expect("the time can be set");
        assert_eq!(digest(), Some(blake3::hash(&bytes)));
    }

    #[test]
    fn a_hash_of_parts_reads_these_alone() {
        let place = place();
        let path = place.directory.path().join("weights");
        let file = File::options().read(true).write(true).create_new(true).open(&path);
        let file = file.expect("it is made");
        file.set_len(LIMIT + 100).expect("a sparse file");
        let parts = [5..SMALL + 9, LIMIT..LIMIT + 100];
        let first = place.cache.digest_of_parts(&file, &parts).expect("a hash");
        let write = |at: u64| file.write_all_at(&[1], at).expect("it is written");
        for at in [4, SMALL + 9, LIMIT - 1] {
            write(at);
            assert_eq!(place.cache.digest_of_parts(&file, &parts), Some(first), "byte {at}");
        }
        let mut hashes = vec![first];
        for at in [5, SMALL + 8, LIMIT, LIMIT + 99] {
            write(at);
            hashes.push(place.cache.digest_of_parts(&file, &parts).expect("a hash"));
        }
        // The same bytes elsewhere.
        hashes.push(
            place.cache.digest_of_parts(&file, std::slice::from_ref(&(10..20))).expect("a hash"),
        );
        hashes.push(
            place.cache.digest_of_parts(&file, std::slice::from_ref(&(20..30))).expect("a hash"),
        );
        let different: std::collections::HashSet<_> = hashes.iter().collect();
        assert_eq!(different.len(), hashes.len());
        // Too much, or not there.
        assert_eq!(place.cache.digest(&file), None);
        assert_eq!(place.cache.digest_of_parts(&file, &[0..LIMIT, LIMIT + 1..LIMIT + 9]), None);
        assert_eq!(
            place.cache.digest_of_parts(&file, std::slice::from_ref(&(LIMIT + 99..LIMIT + 101))),
            None
        );
    }
}

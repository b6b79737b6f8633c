//! Files that no other user can have written.
//!
//! What is in the cache is run, so a user who can write there can run code as this one. A
//! [`Directory`] is one that belongs to this user and that others may not write; it is held open,
//! and every name is looked up in it, so that one which is put in its place afterwards is not used.
//! A file is opened without following a link and without waiting for a writer, and its kind, owner
//! and mode are those of what was opened.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::Path;
use std::time::{Duration, SystemTime};

use rustix::fs::{AtFlags, Dir, Mode, OFlags, openat, renameat, unlinkat};

use super::Refused;

/// What the system says of a file, which changes whenever its content does: device, number, length,
/// and the nanoseconds of its last change of content and of anything. The last one is the system's:
/// nobody can set it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Identity(pub [u64; 5]);

impl Identity {
    /// That of an open file.
    pub fn from_file(file: &File) -> io::Result<Identity> {
        let found = file.metadata()?;
        Ok(Identity([
            found.dev(),
            found.ino(),
            found.len(),
            file_time(found.mtime(), found.mtime_nsec()),
            file_time(found.ctime(), found.ctime_nsec()),
        ]))
    }

    /// Whether a change from now on would give the file another time: it is `least` since the last one,
    /// and the file system counts in less than seconds.
    pub fn is_settled(&self, least: Duration) -> bool {
        let changed = self.0[4];
        let since = SystemTime::UNIX_EPOCH
            .checked_add(Duration::from_nanos(changed))
            .and_then(|time| time.elapsed().ok());
        !changed.is_multiple_of(1_000_000_000) && since.is_some_and(|since| since > least)
    }
}

fn file_time(seconds: i64, nanos: i64) -> u64 {
    seconds.wrapping_mul(1_000_000_000).wrapping_add(nanos).cast_unsigned()
}

/// Permission to write for a group or for everybody.
const OTHERS_WRITE: u32 = 0o022;

/// A directory of this user's.
pub(super) struct Directory(OwnedFd);

impl From<io::Error> for Refused {
    fn from(error: io::Error) -> Refused {
        match error.kind() {
            io::ErrorKind::NotFound => Refused::Missing,
            _ => Refused::Because(error.to_string()),
        }
    }
}

/// Whether what was opened is this user's alone.
fn check(file: &File, directory: bool) -> Result<(), Refused> {
    let found = file.metadata()?;
    match directory {
        true if !found.is_dir() => return Err(Refused::Because("it is not a directory".into())),
        false if !found.is_file() => {
            return Err(Refused::Because("it is not a regular file".into()));
        }
        _ => {}
    }
    let me = rustix::process::geteuid().as_raw();
    if found.uid() != me {
        return Err(Refused::Because(format!(
            "it belongs to user {}, and this is user {me}",
            found.uid()
        )));
    }
    if found.mode() & OTHERS_WRITE != 0 {
        return Err(Refused::Because(format!(
            "others may write it (mode {:o})",
            found.mode() & 0o7777
        )));
    }
    Ok(())
}

impl Directory {
    /// Opens a directory.
    pub fn open(path: &Path) -> Result<Directory, Refused> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = rustix::fs::open(path, flags, Mode::empty()).map_err(io::Error::from)?;
        let file = File::from(opened);
        check(&file, true)?;
        Ok(Directory(file.into()))
    }

    /// Opens a directory, which is made for this user alone if it is not there.
    pub fn make(path: &Path) -> Result<Directory, Refused> {
        match Directory::open(path) {
            Err(Refused::Missing) => {}
            found => return found,
        }
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path)?;
        Directory::open(path)
    }

    /// Opens a file for reading.
    pub fn read(&self, name: &str) -> Result<File, Refused> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let opened = openat(&self.0, name, flags, Mode::empty()).map_err(|e| match e {
            rustix::io::Errno::LOOP => Refused::Because("it is a link".into()),
            e => Refused::from(io::Error::from(e)),
        })?;
        let file = File::from(opened);
        check(&file, false)?;
        Ok(file)
    }

    /// Makes a new file, for this user alone.
    pub fn create(&self, name: &str) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        Ok(File::from(openat(&self.0, name, flags, Mode::RUSR | Mode::WUSR)?))
    }

    /// Gives a file another name; what had that name goes.
    pub fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        Ok(renameat(&self.0, from, &self.0, to)?)
    }

    /// Bytes that are free for this user on the file system.
    pub fn room(&self) -> u64 {
        let found = rustix::fs::fstatvfs(&self.0);
        found.map_or(0, |found| found.f_bavail.saturating_mul(found.f_frsize))
    }

    /// Removes a file or link.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        Ok(unlinkat(&self.0, name, AtFlags::empty())?)
    }

    /// The names in the directory that are text.
    pub fn names(&self) -> Vec<String> {
        let Ok(list) = Dir::read_from(&self.0) else { return Vec::new() };
        list.flatten()
            .filter_map(|entry| {
                OsString::from_vec(entry.file_name().to_bytes().to_vec()).into_string().ok()
            })
            .collect()
    }
}

//! Files: only plain ones are read, and they are written all or nothing.
//!
//! Opening a pipe waits for its writer, a device may never end, and a socket or a directory is no
//! text: a path that leads to one of them is refused by its kind before anything is opened
//! ([`open`]).
//!
//! When a file is written, the content goes to a new file beside the old one, reaches the disk, and takes the old one's
//! name. Where any of that fails, the old file is as it was. What is no plain file, such as a
//! device or a pipe, has no old content to keep and is written directly.

use std::fs::{self, File, FileType, Metadata, OpenOptions, Permissions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;
use tilewright_ir::{Error, Result};

/// Opens a plain file for reading, without waiting.
///
/// # Errors
/// That of the system, or one that names the kind of what is no plain file.
pub fn open(path: impl AsRef<Path>) -> std::io::Result<File> {
    check_plain(&path)?;
    let mut options = OpenOptions::new();
    options.read(true);
    // Another kind may have taken its place since.
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(
        &mut options,
        rustix::fs::OFlags::NONBLOCK.bits().cast_signed(),
    );
    let file = options.open(path)?;
    refuse_other_kinds(&file.metadata()?)?;
    Ok(file)
}

/// Refuses a path that [`open`] refuses, for whoever opens it by other means.
///
/// # Errors
/// As [`open`].
pub fn check_plain(path: impl AsRef<Path>) -> std::io::Result<()> {
    refuse_other_kinds(&fs::metadata(path)?)
}

/// Reads a plain file.
///
/// # Errors
/// [`Error::Io`] with the name of the file.
pub fn read(path: impl AsRef<Path>) -> Result<Vec<u8>> {
    let mut content = Vec::new();
    let read = open(&path).and_then(|mut file| file.read_to_end(&mut content));
    read.map(|_| content).map_err(|e| unreadable(path.as_ref(), &e))
}

/// Reads a plain file of text in UTF-8.
///
/// # Errors
/// [`Error::Io`] with the name of the file.
pub fn read_text(path: impl AsRef<Path>) -> Result<String> {
    let mut content = String::new();
    let read = open(&path).and_then(|mut file| file.read_to_string(&mut content));
    read.map(|_| content).map_err(|e| unreadable(path.as_ref(), &e))
}

/// The error of a file that cannot be read.
pub fn unreadable(path: &Path, e: &std::io::Error) -> Error {
    Error::io(format!("cannot read `{}`: {e}", path.display()))
}

fn refuse_other_kinds(found: &Metadata) -> std::io::Result<()> {
    if found.is_file() {
        return Ok(());
    }
    let kind = name_of_kind(found.file_type());
    Err(std::io::Error::other(format!("it is {kind}, not a plain file")))
}

fn name_of_kind(kind: FileType) -> &'static str {
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        if kind.is_fifo() {
            return "a pipe";
        }
        if kind.is_socket() {
            return "a socket";
        }
        if kind.is_block_device() || kind.is_char_device() {
            return "a device";
        }
    }
    if kind.is_dir() { "a directory" } else { "something else" }
}

/// A file that is being written.
pub struct Output {
    /// For messages.
    name: PathBuf,
    to: To,
}

enum To {
    /// The new file, and the path that it will have.
    Beside(NamedTempFile, PathBuf),
    Direct(File),
}

/// Refuses a path that [`Output::create`] refuses, before there is anything to write.
///
/// # Errors
/// As [`Output::create`].
pub fn check(path: impl AsRef<Path>) -> Result<()> {
    if special(path.as_ref()) {
        // Opening a pipe would wait for its reader.
        Ok(())
    } else {
        Output::create(path, 0o666).map(drop)
    }
}

/// Writes a file.
///
/// # Errors
/// [`Error::Io`] with the name of the file.
pub fn write(path: impl AsRef<Path>, content: &[u8]) -> Result<()> {
    write_all(&[(path.as_ref(), 0o666, content)])
}

/// Writes files that belong together, each with its permissions (see [`Output::create`]): where
/// one cannot be written, none is.
///
/// # Errors
/// [`Error::Io`] with the name of the file.
pub fn write_all(files: &[(&Path, u32, &[u8])]) -> Result<()> {
    let mut outputs = Vec::with_capacity(files.len());
    for (path, mode, content) in files {
        let mut output = Output::create(path, *mode)?;
        let written = output.file().write_all(content);
        written.map_err(|e| output.failed(&e))?;
        outputs.push(output);
    }
    outputs.into_iter().try_for_each(Output::commit)
}

/// Whether something is there that is neither a plain file nor a directory.
fn special(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|meta| !meta.is_file() && !meta.is_dir())
}

impl Output {
    /// Starts a file. A new one gets the permissions `mode` (of Unix, less the process's mask);
    /// one that is there keeps its own.
    ///
    /// # Errors
    /// [`Error::Io`] with the name of the file, where it is a directory, its directory is not
    /// there, or no file can be made in it.
    pub fn create(path: impl AsRef<Path>, mode: u32) -> Result<Output> {
        let name = path.as_ref();
        if special(name) {
            let file = OpenOptions::new().write(true).open(name).map_err(|e| failed(name, &e))?;
            return Ok(Output { name: name.into(), to: To::Direct(file) });
        }
        if name.is_dir() {
            return Err(Error::io("it is a directory").context(name.display()));
        }
        // What a link names is replaced, not the link.
        let path = fs::canonicalize(name).unwrap_or_else(|_| name.into());
        let directory = match path.parent() {
            Some(parent) if parent != Path::new("") => parent,
            _ => Path::new("."),
        };
        if path.file_name().is_none() {
            return Err(Error::io("it is no name of a file").context(name.display()));
        }
        let old = fs::metadata(&path).ok().map(|meta| meta.permissions());
        if old.as_ref().is_some_and(Permissions::readonly) {
            return Err(Error::io("it is write-protected").context(name.display()));
        }
        let mut builder = tempfile::Builder::new();
        builder.prefix(".tilewright-").suffix(".tmp");
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(mode));
        #[cfg(not(unix))]
        let _ = mode;
        let temporary = builder.tempfile_in(directory).map_err(|e| failed(name, &bare(e)))?;
        if let Some(old) = old {
            temporary.as_file().set_permissions(old).map_err(|e| failed(name, &e))?;
        }
        Ok(Output { name: name.into(), to: To::Beside(temporary, path) })
    }

    /// Where the content goes.
    pub fn file(&mut self) -> &mut File {
        match &mut self.to {
            To::Beside(temporary, _) => temporary.as_file_mut(),
            To::Direct(file) => file,
        }
    }

    /// Gives the file its name.
    ///
    /// # Errors
    /// [`Error::Io`] with the name of the file; the old one is still there.
    pub fn commit(self) -> Result<()> {
        let name = self.name;
        match self.to {
            To::Direct(mut file) => file.flush().map_err(|e| failed(&name, &e)),
            To::Beside(temporary, path) => {
                temporary.as_file().sync_all().map_err(|e| failed(&name, &e))?;
                temporary.persist(path).map_err(|e| failed(&name, &e.error)).map(drop)
            }
        }
    }

    /// The error where its content cannot be written.
    pub fn failed(&self, e: &std::io::Error) -> Error {
        failed(&self.name, e)
    }
}

fn failed(name: &Path, e: &std::io::Error) -> Error {
    Error::io(e.to_string()).context(name.display())
}

/// The system's error, without the name of the temporary file.
fn bare(e: std::io::Error) -> std::io::Error {
    match e.raw_os_error().or_else(|| {
        e.get_ref().and_then(|inner| inner.downcast_ref::<std::io::Error>()?.raw_os_error())
    }) {
        Some(code) => std::io::Error::from_raw_os_error(code),
        None => std::io::Error::from(e.kind()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn only_plain_files_are_read_and_nothing_is_waited_for() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = |name: &str| directory.path().join(name);
        fs::write(path("plain"), "text").expect("it can be written");
        std::os::unix::fs::symlink(path("plain"), path("link")).expect("a link");
        for name in ["plain", "link"] {
            assert_eq!(read_text(path(name)).expect("it is read"), "text");
            assert_eq!(read(path(name)).expect("it is read"), b"text");
        }
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mkfifoat(rustix::fs::CWD, path("pipe"), mode).expect("a pipe");
        let _socket = std::os::unix::net::UnixListener::bind(path("socket")).expect("a socket");
        for (path, kind) in [
            (path("pipe"), "a pipe"),
            (path("socket"), "a socket"),
            (directory.path().into(), "a directory"),
            ("/dev/zero".into(), "a device"),
        ] {
            let expected =
                format!("cannot read `{}`: it is {kind}, not a plain file", path.display());
            for result in [read(&path).map(drop), read_text(&path).map(drop)] {
                assert_eq!(result.expect_err("it is refused").to_string(), expected);
            }
        }
        let missing = read(path("none")).expect_err("it is not there").to_string();
        assert!(missing.contains("No such file"), "{missing}");
    }

    #[test]
    fn a_file_is_replaced_whole_or_stays() -> Result<()> {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("f");
        write(&path, b"old")?;
        let mut output = Output::create(&path, 0o666)?;
        output.file().write_all(b"ne").expect("it can be written");
        // Given up half way.
        drop(output);
        assert_eq!(fs::read(&path).expect("it is there"), b"old");
        write(&path, b"new")?;
        assert_eq!(fs::read(&path).expect("it is there"), b"new");
        assert_eq!(fs::read_dir(directory.path()).expect("a directory").count(), 1);
        Ok(())
    }

    #[test]
    fn paths_that_cannot_be_written_are_refused_before_the_work() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let refused = |path: &Path| check(path).expect_err("it is refused").to_string();
        assert!(refused(directory.path()).ends_with(": it is a directory"));
        let missing = directory.path().join("no/f");
        let message = refused(&missing);
        assert!(
            message
                .strip_prefix(&missing.display().to_string())
                .is_some_and(|s| !s.contains(".tmp")),
            "{message}"
        );
        assert!(check(directory.path().join("f")).is_ok());
        assert_eq!(fs::read_dir(directory.path()).expect("a directory").count(), 0);
    }

    #[cfg(unix)]
    #[test]
    fn permissions_and_links_stay() -> Result<()> {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let directory = tempfile::tempdir().expect("a temporary directory");
        let (path, link) = (directory.path().join("f"), directory.path().join("link"));
        write(&path, b"old")?;
        let mode = || fs::metadata(&path).expect("it is there").permissions().mode() & 0o777;
        assert_ne!(mode() & 0o444, 0);
        fs::set_permissions(&path, Permissions::from_mode(0o640)).expect("it is ours");
        symlink(&path, &link).expect("a link can be made");
        write(&link, b"new")?;
        assert_eq!((fs::read(&path).expect("it is there"), mode()), (b"new".to_vec(), 0o640));
        assert!(fs::symlink_metadata(&link).expect("it is there").is_symlink());
        Ok(())
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_an_error() {
        let message = write("/dev/full", b"text").expect_err("it is full").to_string();
        assert!(message.starts_with("/dev/full: "), "{message}");
    }
}

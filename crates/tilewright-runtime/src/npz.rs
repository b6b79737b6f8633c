//! NumPy's `.npz` files: arrays by name.
//!
//! A file is a zip archive that holds the array `x` as the member `x.npy`. Names are arbitrary
//! text: those of ONNX tensors, with slashes and colons, stand as they are, as `numpy.savez`
//! writes them. Members may be stored or deflated (`numpy.savez_compressed`); written files are
//! stored, like those of `numpy.savez`.
//!
//! An archive may be hostile, and a few deflated bytes can stand for a thousand times as many. So
//! what a member's header says is compared with what may still be inflated, which is [`LIMIT`] and
//! what the file's length allows, before any of it is; and members that share their bytes in the
//! file do not multiply without bound. A reader who knows what an array should be asks for its
//! [`Archive::info`] first, and reads only those that are wanted.

use std::collections::HashSet;
use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use indexmap::IndexMap;
use tilewright_ir::{Error, Result, Tensor};
use zip::CompressionMethod;
use zip::read::ZipArchive;
use zip::result::ZipError;
use zip::write::{SimpleFileOptions, ZipWriter};

use crate::file::Output;
use crate::npy::{self, Info};

/// How many bytes the arrays of any archive may take in memory, 1 GiB; one of a larger file may
/// take more, `PER_BYTE` for each byte of the file.
pub const LIMIT: u64 = 1 << 30;
/// How many bytes each byte of a file may stand for. Real numbers deflate to a half or a quarter,
/// masks and class numbers to a tenth; text that repeats itself to a thousandth.
const PER_BYTE: u64 = 32;

/// The most bytes that a deflated byte can stand for.
const DEFLATED: u64 = 1032;

/// The ending of a member that is an array.
const SUFFIX: &str = ".npy";

/// Arrays by name, in the order of the file.
pub type Arrays = IndexMap<String, Tensor>;

/// An open archive, of which single arrays can be read.
pub struct Archive<R> {
    zip: ZipArchive<R>,
    /// For messages.
    path: PathBuf,
    /// Positions of the arrays in the archive.
    members: IndexMap<String, usize>,
    /// How many bytes may still be read, by [`LIMIT`] and [`PER_BYTE`].
    budget: u64,
}

/// Reads every array of a `.npz` file.
///
/// # Errors
/// [`Error::Io`] if the file cannot be read; [`Error::Input`] if it is not a zip archive, is
/// damaged, or is larger than [`LIMIT`] allows; the errors of [`npy::read`] for a member, with its
/// name.
pub fn read(path: impl AsRef<Path>) -> Result<Arrays> {
    let mut archive = Archive::open(path)?;
    let names: Vec<String> = archive.names().map(str::to_owned).collect();
    let mut arrays = Arrays::with_capacity(names.len());
    for name in names {
        let tensor = archive.read(&name)?;
        arrays.insert(name, tensor);
    }
    Ok(arrays)
}

/// Writes tensors to a `.npz` file. One that exists is replaced, or stays as it is where that
/// fails.
///
/// # Errors
/// [`Error::Io`] if the file cannot be written, [`Error::Input`] if two tensors have one name. Both
/// name the file.
pub fn write<'a>(
    path: impl AsRef<Path>,
    arrays: impl IntoIterator<Item = (&'a str, &'a Tensor)>,
) -> Result<()> {
    let path = path.as_ref();
    let mut output = Output::create(path, 0o666)?;
    encode(BufWriter::new(output.file()), arrays).map_err(|e| e.context(path.display()))?;
    output.commit()
}

fn encode<'a>(
    to: impl Write + Seek,
    arrays: impl IntoIterator<Item = (&'a str, &'a Tensor)>,
) -> Result<()> {
    // Sizes from 4 GiB on need another form of entry, which old readers do not know.
    const LARGE: usize = u32::MAX as usize - (1 << 16);
    let mut failed = None;
    let to = UpTo { to, at: 0, end: 0, failed: &mut failed };
    let written = encode_zip(to, arrays, LARGE);
    match failed {
        Some(e) => Err(Error::io(e.to_string())),
        None => written,
    }
}

fn encode_zip<'a>(
    to: impl Write + Seek,
    arrays: impl IntoIterator<Item = (&'a str, &'a Tensor)>,
    large: usize,
) -> Result<()> {
    let mut zip = ZipWriter::new(to);
    let mut names = HashSet::new();
    for (name, tensor) in arrays {
        if !names.insert(name) {
            return Err(Error::input(format!("two arrays have the name `{name}`")));
        }
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Stored)
            .large_file(tensor.bytes().len() > large);
        zip.start_file(format!("{name}{SUFFIX}"), options).map_err(|e| io_error(&e))?;
        npy::encode(&mut zip, tensor).map_err(|e| io_error(&e))?;
    }
    zip.finish().map_err(|e| io_error(&e))?.flush().map_err(|e| io_error(&e))
}

fn io_error(e: &dyn std::fmt::Display) -> Error {
    Error::io(e.to_string())
}

/// A place to write to, up to the first failure, which is kept. What comes after it goes nowhere: the
/// writer of an archive that is dropped still writes the end of it, and says on standard error where
/// it cannot.
struct UpTo<'e, W> {
    to: W,
    /// The position, and the largest one so far.
    at: u64,
    end: u64,
    failed: &'e mut Option<std::io::Error>,
}

impl<W: Write> Write for UpTo<'_, W> {
    fn write(&mut self, content: &[u8]) -> std::io::Result<usize> {
        let written = match &self.failed {
            None => self.to.write(content),
            Some(_) => Ok(content.len()),
        };
        let n = match written {
            Err(e) if e.kind() != std::io::ErrorKind::Interrupted => {
                *self.failed = Some(e);
                content.len()
            }
            other => other?,
        };
        self.at += n as u64;
        self.end = self.end.max(self.at);
        Ok(n)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        if self.failed.is_none() {
            *self.failed = self.to.flush().err();
        }
        Ok(())
    }
}

impl<W: Seek> Seek for UpTo<'_, W> {
    fn seek(&mut self, to: SeekFrom) -> std::io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
            SeekFrom::End(by) => self.end.checked_add_signed(by),
        };
        if self.failed.is_none() {
            match self.to.seek(to) {
                Ok(at) => self.at = at,
                Err(e) => *self.failed = Some(e),
            }
        }
        if self.failed.is_some() {
            self.at = at.unwrap_or(self.at);
        }
        Ok(self.at)
    }
}

impl Archive<BufReader<File>> {
    /// Opens a `.npz` file and reads the list of its members.
    ///
    /// # Errors
    /// [`Error::Io`] if the file cannot be read, [`Error::Input`] if it is not a zip archive.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        npy::open(path, |file, len| Archive::new(file, path.into(), len))
    }
}

impl<R: Read + Seek> Archive<R> {
    fn new(file: R, path: PathBuf, len: u64) -> Result<Self> {
        let mut zip = ZipArchive::new(file).map_err(|e| match e {
            ZipError::Io(e) => Error::io(e.to_string()),
            e => Error::input(format!("not a `.npz` file: {e}")),
        })?;
        let mut members = IndexMap::new();
        for index in 0..zip.len() {
            let entry = zip.by_index_raw(index).map_err(damaged)?;
            let name = entry.name().map_err(damaged)?;
            if let Some(name) = name.strip_suffix(SUFFIX) {
                members.insert(name.to_owned(), index);
            }
        }
        Ok(Archive {
            zip,
            path,
            members,
            budget: LIMIT.saturating_add(PER_BYTE.saturating_mul(len)),
        })
    }

    /// Names of the arrays, in the order of the file.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.members.keys().map(String::as_str)
    }

    /// Element type and shape of an array, from its header alone.
    ///
    /// # Errors
    /// As [`Archive::read`].
    pub fn info(&mut self, name: &str) -> Result<Info> {
        self.member(name, |file, _| Ok(npy::decode_header(file)?.info))
    }

    /// Reads an array.
    ///
    /// # Errors
    /// [`Error::Input`] if there is none of this name, or it is damaged or too large;
    /// [`Error::Unsupported`] for element types that tensors do not have. All name file and array.
    pub fn read(&mut self, name: &str) -> Result<Tensor> {
        let budget = self.budget;
        let tensor = self.member(name, |file, possible| {
            let most = possible.min(budget);
            npy::decode(file, most, Some(most))
        })?;
        self.budget = self.budget.saturating_sub(tensor.bytes().len() as u64);
        Ok(tensor)
    }

    /// Calls `read` with the content of a member, and with the number of bytes that its part of the
    /// file can stand for.
    fn member<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(&mut dyn Read, u64) -> Result<T>,
    ) -> Result<T> {
        let Some(&index) = self.members.get(name) else {
            let there: Vec<_> = self.names().map(|n| format!("`{n}`")).collect();
            let error = Error::input(format!("{}: no array `{name}`", self.path.display()));
            return Err(error.note(if there.is_empty() {
                "there are no arrays in the file".to_owned()
            } else {
                format!("it holds {}", there.join(", "))
            }));
        };
        let content = self.zip.by_index(index).map_err(|e| match e {
            ZipError::UnsupportedArchive(what) => {
                Error::unsupported(format!("a member of the archive that needs {what}"))
                    .help("write the file with numpy.savez or numpy.savez_compressed")
            }
            e => damaged(e),
        });
        let value = content.and_then(|mut file| {
            let ratio = match file.compression() {
                CompressionMethod::Stored => 1,
                _ => DEFLATED,
            };
            let possible = file.compressed_size().saturating_mul(ratio);
            read(&mut file, possible)
        });
        value.map_err(|e| e.context(format_args!("{}: array `{name}`", self.path.display())))
    }
}

fn damaged(e: ZipError) -> Error {
    match e {
        ZipError::Io(e) if e.kind() != std::io::ErrorKind::UnexpectedEof => {
            Error::io(e.to_string())
        }
        e => Error::input(format!("the archive is damaged: {e}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    fn archive(bytes: &[u8]) -> Result<Archive<Cursor<&[u8]>>> {
        Archive::new(Cursor::new(bytes), "x.npz".into(), bytes.len() as u64)
    }

    fn encoded(arrays: &[(&str, &Tensor)]) -> Vec<u8> {
        let mut bytes = Cursor::new(Vec::new());
        encode(&mut bytes, arrays.iter().copied()).expect("memory can be written");
        bytes.into_inner()
    }

    fn deflated(name: &str, content: &[u8]) -> Vec<u8> {
        let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
        let options = SimpleFileOptions::default().compression_method(CompressionMethod::Deflated);
        zip.start_file(name, options).expect("a new name");
        zip.write_all(content).expect("memory can be written");
        zip.finish().expect("memory can be written").into_inner()
    }

    fn npy(tensor: &Tensor) -> Vec<u8> {
        let mut bytes = Vec::new();
        npy::encode(&mut bytes, tensor).expect("memory can be written");
        bytes
    }

    fn tensor(n: usize) -> Tensor {
        let values: Vec<f32> = (0..n).map(|i| i as f32 * 0.5).collect();
        Tensor::from_slice(&[n], &values).expect("a tensor")
    }

    #[test]
    fn a_place_that_fills_up_is_said_wherever_that_is() {
        /// Takes so many bytes, and counts how often it is asked for more.
        struct Full(Cursor<Vec<u8>>, usize);
        impl Write for Full {
            fn write(&mut self, content: &[u8]) -> std::io::Result<usize> {
                if self.0.position() as usize + content.len() <= self.1 {
                    self.0.write(content)
                } else {
                    Err(std::io::ErrorKind::StorageFull.into())
                }
            }
            fn flush(&mut self) -> std::io::Result<()> {
                Ok(())
            }
        }
        impl Seek for Full {
            fn seek(&mut self, to: SeekFrom) -> std::io::Result<u64> {
                self.0.seek(to)
            }
        }
        let (a, b) = (tensor(7), tensor(3));
        let arrays = [("a", &a), ("b", &b)];
        let size = encoded(&arrays).len();
        for room in 0..size {
            let e = encode(Full(Cursor::new(Vec::new()), room), arrays).expect_err("it is full");
            assert_eq!(
                e.to_string(),
                std::io::Error::from(std::io::ErrorKind::StorageFull).to_string()
            );
        }
        encode(Full(Cursor::new(Vec::new()), size), arrays).expect("it fits");
    }

    #[test]
    fn arrays_with_any_names_round_trip_in_order() {
        let names = ["gpu_0/data_0", "a:0", "/absolute/x", "../up", "é ü", "", "x.npy", "b\\c"];
        let tensors: Vec<Tensor> = (0..names.len()).map(tensor).collect();
        let arrays: Vec<_> = names.iter().copied().zip(&tensors).collect();
        let bytes = encoded(&arrays);
        let mut archive = archive(&bytes).expect("an archive");
        assert_eq!(archive.names().collect::<Vec<_>>(), names);
        for (name, expected) in arrays {
            assert_eq!(archive.info(name).expect(name).shape, expected.shape());
            assert!(archive.read(name).expect(name).same(expected), "{name}");
        }
    }

    #[test]
    fn deflated_members_are_read_and_others_are_not_arrays() {
        let expected = tensor(5000);
        let bytes = deflated("x.npy", &npy(&expected));
        assert!(bytes.len() < expected.bytes().len());
        let mut one = archive(&bytes).expect("an archive");
        assert!(one.read("x").expect("an array").same(&expected));
        let bytes = deflated("README", b"text");
        let mut none = archive(&bytes).expect("an archive");
        assert_eq!(none.names().count(), 0);
        let error = none.read("README").expect_err("not an array").render();
        assert!(error.contains("no array `README`") && error.contains("no arrays"), "{error}");
    }

    #[test]
    fn a_missing_array_is_an_error_that_lists_those_that_are_there() {
        let (a, b) = (tensor(1), tensor(2));
        let bytes = encoded(&[("a", &a), ("b", &b)]);
        let error = archive(&bytes).expect("an archive").read("c").expect_err("not there").render();
        assert_eq!(error, "error: x.npz: no array `c`\nnote: it holds `a`, `b`\n");
    }

    #[test]
    fn one_name_twice_is_an_error() {
        let t = tensor(1);
        let error = encode(Cursor::new(Vec::new()), [("a", &t), ("a", &t)]);
        let error = error.expect_err("a name twice");
        assert_eq!(error.to_string(), "two arrays have the name `a`");
    }

    #[test]
    fn a_bomb_is_an_error_before_it_fills_the_memory() {
        // A header that promises 16 GiB, with some zeros behind it that deflate to nothing.
        let header = "{'descr': '|u1', 'fortran_order': False, 'shape': (17179869184,), }";
        let mut content = b"\x93NUMPY\x01\x00".to_vec();
        content.extend((header.len() as u16).to_le_bytes());
        content.extend(header.as_bytes());
        content.resize(4 << 20, 0);
        let bytes = deflated("x.npy", &content);
        assert!(bytes.len() < 1 << 14);
        let error = archive(&bytes).expect("an archive").read("x").expect_err("a lie");
        assert!(error.to_string().contains("takes 17179869184 bytes, where"), "{error}");
        assert!(matches!(error, Error::Input(_)));
        // One that says less than there is, and more, by a little and by much.
        for (says, expected) in
            [(1 << 19, "goes on behind"), ((4 << 20) + 1, "cut short"), (1 << 24, "may hold")]
        {
            let header =
                format!("{{'descr': '|u1', 'fortran_order': False, 'shape': ({says},), }}");
            let mut content = b"\x93NUMPY\x01\x00".to_vec();
            content.extend((header.len() as u16).to_le_bytes());
            content.extend(header.as_bytes());
            content.resize(4 << 20, 0);
            let bytes = deflated("x.npy", &content);
            let error = archive(&bytes).expect("an archive").read("x").expect_err("a lie");
            assert!(error.to_string().contains(expected), "{error}");
        }
    }

    #[test]
    fn the_limit_holds_for_all_members_together() {
        let t = tensor(1000);
        let bytes = encoded(&[("a", &t), ("b", &t)]);
        let mut archive = archive(&bytes).expect("an archive");
        archive.budget = 6000;
        archive.read("a").expect("within the limit");
        archive.read("b").expect_err("past the limit");
    }

    #[test]
    fn damage_anywhere_is_an_error_or_harmless() {
        let (a, b) = (tensor(20), tensor(3));
        let whole = encoded(&[("a", &a), ("b", &b)]);
        for len in 0..whole.len() {
            assert!(read_all(&whole[..len]).is_err(), "cut at {len}");
        }
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x55;
            let _ = read_all(&bytes);
            // One wrong byte: the checksum finds it in the content, elsewhere it may not matter.
            if let Ok(t) = archive(&bytes).and_then(|mut x| x.read("a")) {
                assert!(t.same(&a), "a wrong byte at {at} went unnoticed");
            }
        }
    }

    fn read_all(bytes: &[u8]) -> Result<()> {
        let mut archive = archive(bytes)?;
        let names: Vec<_> = archive.names().map(str::to_owned).collect();
        names.iter().try_for_each(|name| archive.read(name).map(drop))
    }

    #[test]
    fn archives_with_random_damage_are_read_or_refused() {
        let (a, b) = (tensor(300), tensor(5));
        let seeds =
            [encoded(&[("a", &a), ("b", &b)]), deflated("a.npy", &npy(&a)), npy(&b), Vec::new()];
        let mut state = 1u64;
        let mut random = move |below: usize| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) as usize % below.max(1)
        };
        for _ in 0..3000 {
            let mut bytes = seeds[random(seeds.len())].clone();
            for _ in 0..=random(6) {
                let at = random(bytes.len() + 1);
                match random(5) {
                    // Numbers at the ends of their ranges, as sizes and offsets.
                    0 => bytes.splice(at..(at + 4).min(bytes.len()), [0xff; 4]).for_each(drop),
                    1 => bytes.truncate(at),
                    2 => {
                        let from = random(bytes.len());
                        let part = bytes[from..(from + random(80)).min(bytes.len())].to_vec();
                        bytes.splice(at..at, part).for_each(drop);
                    }
                    3 => bytes.splice(at..at, [0; 3]).for_each(drop),
                    _ => bytes
                        .splice(at..(at + 1).min(bytes.len()), [random(256) as u8])
                        .for_each(drop),
                }
            }
            let Ok(mut archive) = archive(&bytes) else { continue };
            let most = archive.budget;
            let names: Vec<String> = archive.names().map(str::to_owned).collect();
            let read = names.iter().filter_map(|name| archive.read(name).ok());
            assert!(read.map(|t| t.bytes().len() as u64).sum::<u64>() <= most);
        }
    }

    #[test]
    fn files_are_read_and_written_and_errors_name_them() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("x.npz");
        let t = tensor(7);
        write(&path, [("a/b", &t)]).expect("a file can be written");
        let arrays = read(&path).expect("it is there");
        assert!(arrays.len() == 1 && arrays["a/b"].same(&t));
        std::fs::write(&path, "no archive").expect("a file can be written");
        let error = read(&path).expect_err("not an archive");
        assert!(error.to_string().contains("x.npz: not a `.npz` file: "), "{error}");
        assert!(matches!(error, Error::Input(_)));
        let error = read(directory.path().join("y.npz")).expect_err("no such file");
        assert!(matches!(error, Error::Io(_)) && error.to_string().contains("y.npz"), "{error}");
        let error = write(directory.path().join("no/z.npz"), [("a", &t)]).expect_err("no place");
        assert!(matches!(error, Error::Io(_)) && error.to_string().contains("z.npz"), "{error}");
    }
}

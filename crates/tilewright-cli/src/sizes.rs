//! Sizes that are given by name, and the files that they are given for.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use tilewright_driver::load::Draft;
use tilewright_driver::session::Origin;
use tilewright_driver::{Error, Module, SizeRange, Sizes};

/// Reads `NAME=VALUE`; the name may contain `=` itself.
pub fn pair(text: &str) -> Result<(String, String), String> {
    match text.rsplit_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("expected NAME=VALUE".to_owned()),
    }
}

/// What `--dim` says of a size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    Size(usize),
    Range(SizeRange),
}

/// Reads `NAME=SIZE` or `NAME=LEAST..MOST`.
pub fn extent(text: &str) -> Result<(String, Extent), String> {
    let (name, size) =
        text.rsplit_once('=').filter(|(name, _)| !name.is_empty()).ok_or("expected NAME=SIZE")?;
    let extent = if size.contains("..") {
        Extent::Range(size.parse().map_err(|e: Error| e.to_string())?)
    } else {
        Extent::Size(size.parse().map_err(|_| format!("`{size}` is not a size"))?)
    };
    Ok((name.to_owned(), extent))
}

/// Sizes and ranges by name; one that is given twice is an error.
pub fn sizes(given: &[(String, Extent)]) -> Result<Sizes, Error> {
    let mut sizes = Sizes::new();
    for (name, extent) in given {
        let is_twice = match *extent {
            Extent::Size(n) => sizes.dims.insert(name.clone(), n).is_some_and(|old| old != n),
            Extent::Range(r) => sizes.ranges.insert(name.clone(), r).is_some_and(|old| old != r),
        };
        if is_twice {
            return Err(Error::input(format!("--dim {name} is given twice")));
        }
    }
    Ok(sizes)
}

/// Reads a file as it is, without sizes; `-` stands for TVMScript from standard input.
pub fn read_module(path: &Path) -> Result<Module, Error> {
    match Source::from_path(path)? {
        Source::File(path) => Draft::read(path),
        Source::Input(draft, _) => Ok(draft),
    }?
    .module(&Sizes::new())
}

/// A model that a command names.
pub enum Source {
    File(PathBuf),
    /// TVMScript from standard input, and its module.
    Input(Draft, OnceLock<Module>),
}

impl Source {
    /// What a path stands for: a file, or standard input, which is read now, for `-`.
    pub fn from_path(path: &Path) -> Result<Source, Error> {
        if path != Path::new("-") {
            return Ok(Source::File(path.to_owned()));
        }
        let mut text = String::new();
        let read = io::stdin().lock().read_to_string(&mut text);
        read.map_err(|e| Error::io(format!("cannot read standard input: {e}")))?;
        Ok(Source::Input(Draft::parse("<stdin>", text)?, OnceLock::new()))
    }

    /// The same for a request.
    pub fn origin(&self) -> Origin<'_> {
        match self {
            Source::File(path) => Origin::File(path),
            Source::Input(draft, made) => Origin::Draft { draft, made },
        }
    }
}

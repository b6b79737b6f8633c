//! What a command is told of a model's inputs: sizes, and values.
//!
//! The model is read first, so that of an archive only the arrays that it takes are read, and only
//! where their headers fit.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::builder::{OsStringValueParser, TypedValueParser};
use tilewright_driver::kept::{DataFiles, Entry};
use tilewright_driver::load::{self, Draft};
use tilewright_driver::{Error, Module, Result, Sizes, Tensor};
use tilewright_onnx::ValueType;
use tilewright_runtime::{npy, npz};

use super::answer::talk;
use super::sizes::{Extent, draft, extent, sizes};

/// What is known of the inputs.
#[derive(clap::Args, Default)]
pub struct Given {
    /// Inputs, by name. They also give the sizes that the model leaves open, and an ONNX model takes
    /// from them what its shapes depend on: such an input is compiled in.
    #[arg(long, value_name = "FILE.npz")]
    inputs: Vec<PathBuf>,
    /// One input.
    #[arg(long, value_name = "NAME=FILE.npy", value_parser = OsStringValueParser::new().try_map(file))]
    input: Vec<(String, PathBuf)>,
    /// A size that the model leaves open, or the range of one that stays open (`N=1..512`, both ends
    /// included), which proofs use; a dimension's name, or `INPUT.AXIS`. `compile` leaves the others
    /// open; elsewhere the first dimension of an ONNX model's input is 1 where nothing says another
    /// size.
    #[arg(long = "dim", value_name = "NAME=SIZE", value_parser = extent)]
    dims: Vec<(String, Extent)>,
}

/// Reads `NAME=FILE`; the name is text and may contain `=`, the file may have any name without one.
fn file(text: OsString) -> std::result::Result<(String, PathBuf), String> {
    let bytes = text.as_encoded_bytes();
    let at = bytes.iter().rposition(|b| *b == b'=').filter(|at| *at > 0);
    let name = at.and_then(|at| std::str::from_utf8(&bytes[..at]).ok());
    let (Some(at), Some(name)) = (at, name) else { return Err("expected NAME=VALUE".to_owned()) };
    Ok((name.to_owned(), tail(&text, at + 1)?))
}

/// The end of a text, from a byte behind an ASCII character on.
#[cfg(unix)]
fn tail(text: &OsString, from: usize) -> std::result::Result<PathBuf, String> {
    use std::os::unix::ffi::OsStrExt;
    Ok(std::ffi::OsStr::from_bytes(&text.as_bytes()[from..]).into())
}

/// The end of a text, from a byte behind an ASCII character on.
#[cfg(not(unix))]
fn tail(text: &OsString, from: usize) -> std::result::Result<PathBuf, String> {
    let text = text.to_str().ok_or("the name of the file is no text")?;
    Ok(text[from..].into())
}

/// A module that was read, and what was decided on the way.
pub struct Loaded {
    pub module: Module,
    pub sizes: Sizes,
    /// What the user was told.
    pub notes: Vec<String>,
    /// The files beside it that hold parts of it, as `entry` keeps them; `None` without an entry.
    pub files: Option<DataFiles>,
}

impl Given {
    /// Reads a module and what is given to it, and says what was decided on the way: which sizes
    /// were assumed, and which inputs became constants. `-` stands for TVMScript from standard
    /// input.
    pub fn load(&self, path: &Path) -> Result<(Module, Sizes)> {
        self.load_noted(path, None).map(|loaded| (loaded.module, loaded.sizes))
    }

    /// The same with what was said, for a program that is to be kept.
    pub fn load_noted(&self, path: &Path, entry: Option<&Entry>) -> Result<Loaded> {
        let (draft, mut sizes) = self.read(path)?;
        let files = entry.and_then(|entry| entry.data_files(&draft));
        let mut notes = Vec::new();
        for key in draft.open_batch(&sizes)? {
            let size = sizes.ranges.get(&key).map_or(1, |range| range.least());
            let note = format!(
                "note: the size `{key}` is open, and {size} is taken; --dim {key}=SIZE gives another"
            );
            talk!("{note}");
            notes.push(note);
            sizes = sizes.dim(key, size);
        }
        let module = module(&draft, &sizes, &mut notes)?;
        Ok(Loaded { module, sizes, notes, files })
    }

    /// Whether values of inputs are given.
    pub fn has_values(&self) -> bool {
        !self.inputs.is_empty() || !self.input.is_empty()
    }

    /// What is given, as text: everything but the values of arrays.
    ///
    /// # Errors
    /// Those of reading the headers.
    pub fn told(&self) -> Result<String> {
        let sizes = sizes(&self.dims)?;
        let mut text = format!("{:?} {:?}", sizes.dims, sizes.ranges);
        for path in &self.inputs {
            let mut archive = npz::Archive::open(path)?;
            let names: Vec<String> = archive.names().map(str::to_owned).collect();
            for name in &names {
                text += &format!(" {name:?} {:?}", archive.info(name)?);
            }
        }
        for (name, path) in &self.input {
            text += &format!(" {name:?} {:?}", npy::read_info(path)?);
        }
        Ok(text)
    }

    /// The same of a program for all sizes, which depends on the ranges that sizes are given alone.
    ///
    /// # Errors
    /// `Input` for sizes that cannot be read.
    pub fn told_open(&self) -> Result<String> {
        let mut text = format!("open {:?}", sizes(&self.dims)?.ranges);
        for (name, shape) in self.shapes()? {
            for (axis, _) in shape.iter().enumerate().filter(|(_, n)| **n == 0) {
                text += &format!(" {name:?} {axis} is 0");
            }
        }
        Ok(text)
    }

    /// The names and extents of the inputs that files give.
    fn shapes(&self) -> Result<Vec<(String, Vec<usize>)>> {
        let mut all = Vec::new();
        for path in &self.inputs {
            let mut archive = npz::Archive::open(path)?;
            let names: Vec<String> = archive.names().map(str::to_owned).collect();
            for name in names {
                let shape = archive.info(&name)?.shape;
                all.push((name, shape));
            }
        }
        for (name, path) in &self.input {
            all.push((name.clone(), npy::read_info(path)?.shape));
        }
        Ok(all)
    }

    /// The sizes that are given, and those of values.
    ///
    /// # Errors
    /// `Input` for sizes that cannot be read.
    pub fn sizes(&self, values: &BTreeMap<String, Tensor>) -> Result<Sizes> {
        let values = values.iter();
        let add = |sizes: Sizes, (name, value): (&String, &Tensor)| {
            sizes.value(name.clone(), value.clone())
        };
        Ok(values.fold(sizes(&self.dims)?, add))
    }

    /// The module with the sizes that are given; the others stay open. Second, the files beside the
    /// model, as for [`Given::load_noted`].
    pub fn load_as_given(
        &self,
        path: &Path,
        entry: Option<&Entry>,
    ) -> Result<(Module, Option<DataFiles>)> {
        let (draft, sizes) = self.read(path)?;
        let files = entry.and_then(|entry| entry.data_files(&draft));
        Ok((module(&draft, &sizes, &mut Vec::new())?, files))
    }

    /// The module with all sizes left open that the model leaves open, and what is given. A size of zero
    /// is no open one: a program for it is another one. Third, the files beside the model, as for
    /// [`Given::load_noted`].
    pub fn load_open(
        &self,
        path: &Path,
        entry: Option<&Entry>,
    ) -> Result<(Module, Sizes, Option<DataFiles>)> {
        let (draft, sizes) = self.read(path)?;
        let files = entry.and_then(|entry| entry.data_files(&draft));
        let mut open = Sizes { ranges: sizes.ranges.clone(), ..Sizes::new() };
        for (name, value) in &sizes.values {
            for (axis, _) in value.shape().iter().enumerate().filter(|(_, n)| **n == 0) {
                open = open.dim(format!("{name}.{axis}"), 0);
            }
        }
        Ok((draft.module(&open)?, sizes, files))
    }

    /// Reads a model, and what is given to it.
    fn read(&self, path: &Path) -> Result<(Draft, Sizes)> {
        let draft = draft(path)?;
        let values = match self.inputs.is_empty() && self.input.is_empty() {
            true => BTreeMap::new(),
            false => self.values(&draft.inputs()?)?,
        };
        let sizes = self.sizes(&values)?;
        Ok((draft, sizes))
    }

    /// Reads the files; `inputs` are what may be given.
    pub fn values(&self, inputs: &[ValueType]) -> Result<BTreeMap<String, Tensor>> {
        let mut values = BTreeMap::new();
        let mut add = |name: &str, tensor: Tensor| match values.insert(name.to_owned(), tensor) {
            Some(_) => Err(Error::input(format!("input `{name}` is given twice"))),
            None => Ok(()),
        };
        for path in &self.inputs {
            let mut archive = npz::Archive::open(path)?;
            let names: Vec<String> = archive.names().map(str::to_owned).collect();
            for name in &names {
                let input = find(inputs, name)?;
                let info = archive.info(name)?;
                input.accepts(info.dtype, &info.shape)?;
                add(name, archive.read(name)?)?;
            }
        }
        for (name, path) in &self.input {
            let input = find(inputs, name)?;
            let info = npy::read_info(path)?;
            input.accepts(info.dtype, &info.shape)?;
            add(name, npy::read(path)?)?;
        }
        Ok(values)
    }
}

/// The module for these sizes; says which inputs have become constants, and keeps what it said.
fn module(draft: &Draft, sizes: &Sizes, notes: &mut Vec<String>) -> Result<Module> {
    let module = draft.module(sizes)?;
    for name in load::fixed_inputs(&module) {
        let note = format!("note: sizes depend on input `{name}`: its value is compiled in");
        talk!("{note}");
        notes.push(note);
    }
    Ok(module)
}

fn find<'a>(inputs: &'a [ValueType], name: &str) -> Result<&'a ValueType> {
    inputs
        .iter()
        .find(|input| input.takes(name))
        .ok_or_else(|| not_an_input(name, inputs.iter().map(|input| input.name.as_str())))
}

/// The error where something was given that is no input.
pub fn not_an_input<'a>(name: &str, inputs: impl Iterator<Item = &'a str>) -> Error {
    let names: Vec<String> = inputs.map(|name| format!("`{name}`")).collect();
    Error::input(format!("`{name}` was given, and is not an input"))
        .note(format!("the inputs are: {}", names.join(", ")))
}

//! What a command is told of a model's inputs: sizes, and values.
//!
//! The model is read first, so that of an archive only the arrays that it takes are read, and only
//! where their headers fit.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::builder::{OsStringValueParser, TypedValueParser};
use tilewright_driver::session::{Inputs, OpenSizes, Request, not_an_input};
use tilewright_driver::{Error, Module, Options, Result, Session, Sizes, Tensor};
use tilewright_ir::signature::ValueType;
use tilewright_runtime::{npy, npz};

use super::native::listen;
use super::sizes::{Extent, Source, extent, sizes};

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

impl Given {
    /// Reads a module and what is given to it, and says what was decided on the way: which sizes
    /// were assumed, and which inputs became constants. `-` stands for TVMScript from standard
    /// input.
    pub fn load(&self, path: &Path) -> Result<(Module, Sizes)> {
        let session = Session::new(Options::new().listener(Some(Arc::new(listen))));
        let model = Source::from_path(path)?;
        let loaded = session.read(&self.request(&model, OpenSizes::BatchOfOne))?;
        Ok((loaded.module, loaded.sizes))
    }

    /// The request for a model with what is given.
    pub fn request<'a>(&'a self, model: &'a Source, open: OpenSizes) -> Request<'a> {
        Request { model: model.origin(), inputs: self, open, kept: true }
    }

    /// The names and headers of the inputs that files give.
    fn headers(&self) -> Result<Vec<(String, npy::Info)>> {
        let mut all = Vec::new();
        for path in &self.inputs {
            let mut archive = npz::Archive::open(path)?;
            let names: Vec<String> = archive.names().map(str::to_owned).collect();
            for name in names {
                let info = archive.info(&name)?;
                all.push((name, info));
            }
        }
        for (name, path) in &self.input {
            all.push((name.clone(), npy::read_info(path)?));
        }
        Ok(all)
    }
}

impl Inputs for Given {
    fn cache_key(&self, open: OpenSizes) -> Result<String> {
        let sizes = sizes(&self.dims)?;
        if open == OpenSizes::Stay {
            // A size of zero is no open one.
            let mut text = format!("{:?}", sizes.ranges);
            for (name, info) in self.headers()? {
                for (axis, _) in info.shape.iter().enumerate().filter(|(_, n)| **n == 0) {
                    text += &format!(" {name:?} {axis} is 0");
                }
            }
            return Ok(text);
        }
        let mut text = format!("{:?} {:?}", sizes.dims, sizes.ranges);
        for (name, info) in self.headers()? {
            text += &format!(" {name:?} {info:?}");
        }
        Ok(text)
    }

    fn has_values(&self) -> bool {
        !self.inputs.is_empty() || !self.input.is_empty()
    }

    fn values(&self, inputs: &[ValueType]) -> Result<BTreeMap<String, Tensor>> {
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

    fn sizes(&self, values: &BTreeMap<String, Tensor>) -> Result<Sizes> {
        let mut all = sizes(&self.dims)?;
        for (name, value) in values {
            all = all.value(name.clone(), value.clone());
        }
        Ok(all)
    }
}

fn find<'a>(inputs: &'a [ValueType], name: &str) -> Result<&'a ValueType> {
    inputs
        .iter()
        .find(|input| input.takes(name))
        .ok_or_else(|| not_an_input(name, inputs.iter().map(|input| input.name.as_str())))
}

//! What a command is told of a model's inputs: sizes, and values.

use std::collections::BTreeMap;
use std::path::PathBuf;

use tilewright::runtime::{npy, npz};
use tilewright::{Error, Result, Sizes, Tensor};

use super::{pair, size};

/// What is known of the inputs.
#[derive(clap::Args, Default)]
pub struct Given {
    /// Inputs, by name. They also give the sizes that the model leaves open, and an ONNX model takes
    /// from them what its shapes depend on: such an input is compiled in.
    #[arg(long, value_name = "FILE.npz")]
    inputs: Vec<PathBuf>,
    /// One input.
    #[arg(long, value_name = "NAME=FILE.npy", value_parser = pair)]
    input: Vec<(String, String)>,
    /// A size that the model leaves open; a dimension's name, or `INPUT.AXIS`.
    #[arg(long = "dim", value_name = "NAME=SIZE", value_parser = size)]
    dims: Vec<(String, usize)>,
}

impl Given {
    /// Reads the files.
    pub fn sizes(&self) -> Result<Sizes> {
        let mut values = BTreeMap::new();
        let mut add = |name: String, tensor: Tensor| match values.insert(name.clone(), tensor) {
            Some(_) => Err(Error::input(format!("input `{name}` is given twice"))),
            None => Ok(()),
        };
        for path in &self.inputs {
            npz::read(path)?.into_iter().try_for_each(|(name, tensor)| add(name, tensor))?;
        }
        for (name, path) in &self.input {
            add(name.clone(), npy::read(path)?)?;
        }
        let sizes = Sizes { dims: super::sizes(&self.dims)?, ..Sizes::new() };
        Ok(values.into_iter().fold(sizes, |sizes, (name, value)| sizes.value(name, value)))
    }
}

//! Drafts of models where the feature `onnx` is off: there are none. `model.rs` is what stands here with it.

use std::path::Path;

use tilewright_graph::sizes::Sizes;
use tilewright_ir::signature::{DataFile, ValueType};
use tilewright_ir::{Error, Module, Result};

/// No model.
pub(super) enum ModelDraft {}

/// The file of no model.
pub enum ModelFile {}

impl ModelDraft {
    /// Refuses a model.
    ///
    /// # Errors
    /// [`Error::Unsupported`], always.
    pub(super) fn read(path: &Path) -> Result<ModelDraft> {
        let what = format!("`{}`: without the feature `onnx`, no models are read", path.display());
        Err(Error::unsupported(what).help("it is one of `tilewright`'s default features"))
    }

    /// As [`ModelDraft::read`].
    ///
    /// # Errors
    /// As [`ModelDraft::read`].
    pub(super) fn open(path: &Path) -> Result<ModelDraft> {
        ModelDraft::read(path)
    }

    pub(super) fn file(&self) -> Option<&ModelFile> {
        match *self {}
    }

    pub(super) fn data_files(&self) -> Option<Vec<DataFile>> {
        match *self {}
    }

    pub(super) fn inputs(&self) -> Result<Vec<ValueType>> {
        match *self {}
    }

    pub(super) fn import(&self, _: &Sizes) -> Result<Module> {
        match *self {}
    }
}

impl ModelFile {
    /// Its path.
    pub fn path(&self) -> &Path {
        match *self {}
    }

    /// Whether constants may lie in it.
    pub fn is_mapped(&self) -> bool {
        match *self {}
    }

    /// Whether it is as it was.
    pub fn is_current(&self) -> bool {
        match *self {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_refused_with_the_feature_that_reads_it() {
        let refused = ModelDraft::open(Path::new("a.onnx")).err().map(|e| e.to_string());
        assert!(refused.is_some_and(|e| e.contains("`a.onnx`") && e.contains("feature `onnx`")));
    }
}

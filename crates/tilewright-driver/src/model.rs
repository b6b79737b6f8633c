//! Drafts of ONNX models, and their files, whose weights are read when something asks for them, where they lie.
//!
//! A program of the model may be kept ([`super::kept`]): then nothing does. Without the feature `onnx`,
//! `no_models.rs` stands for this file.

use std::fs::{File, Metadata};
use std::path::{Path, PathBuf};

use tilewright_graph::sizes::Sizes;
use tilewright_ir::signature::{DataFile, ValueType};
use tilewright_ir::{Error, Module, Result};
use tilewright_onnx::{ImportOptions, Model};
use tilewright_runtime::file;

/// Files of fewer bytes are read at once.
const LARGE: u64 = 1 << 20;

/// A model that was read, before its sizes are settled.
pub(super) enum ModelDraft {
    Whole(Box<Model>),
    /// Weights are read when its module is made.
    File(Box<ModelFile>),
}

impl ModelDraft {
    /// Reads a model.
    ///
    /// # Errors
    /// As [`Model::read`].
    pub(super) fn read(path: &Path) -> Result<ModelDraft> {
        Ok(ModelDraft::Whole(Box::new(Model::read(path)?)))
    }

    /// Opens the file of a model.
    ///
    /// # Errors
    /// As [`ModelFile::open`].
    pub(super) fn open(path: &Path) -> Result<ModelDraft> {
        Ok(ModelDraft::File(Box::new(ModelFile::open(path)?)))
    }

    /// Its file, where that is open.
    pub(super) fn file(&self) -> Option<&ModelFile> {
        if let ModelDraft::File(file) = self { Some(file) } else { None }
    }

    /// The model, of whose weights nothing may be asked.
    fn head(&self) -> &Model {
        match self {
            ModelDraft::Whole(model) => model,
            ModelDraft::File(file) => &file.head,
        }
    }

    /// The files beside it, as [`Model::data_files`] lists them.
    pub(super) fn data_files(&self) -> Option<Vec<DataFile>> {
        self.head().data_files()
    }

    /// What it takes.
    ///
    /// # Errors
    /// As [`Model::signature`].
    pub(super) fn inputs(&self) -> Result<Vec<ValueType>> {
        Ok(self.head().signature()?.inputs)
    }

    /// Its module, with these sizes.
    ///
    /// # Errors
    /// As [`Model::import`], and [`Error::Io`] if its file has changed since it was opened.
    pub(super) fn import(&self, sizes: &Sizes) -> Result<Module> {
        let model = match self {
            ModelDraft::Whole(model) => model,
            ModelDraft::File(file) => file.model()?,
        };
        model.import(&ImportOptions {
            dims: sizes.dims.clone(),
            ranges: sizes.ranges.clone(),
            shapes: sizes.shapes.clone(),
            values: sizes.values.clone(),
            ..Default::default()
        })
    }
}

/// The file of a model, open since the model was loaded.
pub struct ModelFile {
    path: PathBuf,
    file: File,
    state: Option<String>,
    /// The model, whose weights lie in the file unless that is small.
    head: Model,
    is_read: bool,
}

impl ModelFile {
    /// Opens a file and decodes it, of a large one all but its weights.
    ///
    /// # Errors
    /// As [`Model::read`].
    pub fn open(path: &Path) -> Result<ModelFile> {
        let file = file::open(path).map_err(|e| file::unreadable(path, &e))?;
        let found =
            file.metadata().map_err(|e| Error::io(e.to_string()).context(path.display()))?;
        let state = content_state(&found);
        let is_read = found.len() < LARGE || state.is_none();
        let head =
            if is_read { Model::read_file(&file, path)? } else { Model::map_file(&file, path)? };
        Ok(ModelFile { path: path.to_owned(), file, state, head, is_read })
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The model. Constants of its modules may lie in the file, which another program may change: what is kept of
    /// them has to be copied.
    ///
    /// # Errors
    /// [`Error::Io`] if the file has changed since it was opened.
    fn model(&self) -> Result<&Model> {
        if !self.is_read {
            let now = self.file.metadata().ok().and_then(|found| content_state(&found));
            if now != self.state {
                let what = format!("`{}` has changed since it was loaded", self.path.display());
                return Err(Error::io(what).help("load it again"));
            }
        }
        Ok(&self.head)
    }

    /// Whether the constants of its modules may lie in the file.
    pub fn is_mapped(&self) -> bool {
        !self.is_read
    }

    /// Whether its path still leads to the file, as it was when it was opened.
    pub fn is_current(&self) -> bool {
        let now = self.path.metadata().ok().and_then(|found| content_state(&found));
        now.is_some() && now == self.state
    }
}

/// What the system says of a file that changes with its content, but not with its names.
fn content_state(found: &Metadata) -> Option<String> {
    let modified = found.modified().ok()?;
    #[cfg(unix)]
    let number = {
        use std::os::unix::fs::MetadataExt;
        [found.dev(), found.ino()]
    };
    #[cfg(not(unix))]
    let number = ();
    Some(format!("{} {modified:?} {number:?}", found.len()))
}

//! Files to modules.

use std::path::Path;
use std::sync::Arc;
use tilewright_ir::hash::HashSet;

use tilewright_graph::quantized::integer_products;
use tilewright_graph::sizes::{self, Sizes};
use tilewright_ir::signature::{DataFile, Dim, ValueKind, ValueType};
use tilewright_ir::{Attr, Error, Expr, Module, Remarks, Result, Source};
use tilewright_layout::fold::moving_directly;
use tilewright_runtime::file;

use super::constants::copy_mapped_constants;
use super::constants::evaluate;
use super::model::{ModelDraft, ModelFile};

/// Loads a model or module from a file: an ONNX model (`.onnx`; by the feature `onnx`) or TVMScript (`.py`).
/// A file with another ending is taken for TVMScript if it is text.
///
/// Sizes that the file leaves open are taken from `sizes`; those that are not given stay open. A model
/// needs the values of the inputs that sizes depend on at import (the target of a `Reshape`, ...),
/// which become constants ([`fixed_inputs`]).
///
/// # Errors
/// [`Error::Io`] if the file cannot be read; [`Error::Syntax`] with the place for TVMScript that
/// does not parse; [`Error::Model`] for a damaged model; [`Error::Unsupported`] for something in it
/// that is not covered; [`Error::Input`] for sizes and values that are missing or do not fit.
///
/// ```
/// use tilewright_driver::{Sizes, load};
/// # let model = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/digits/digits.onnx");
/// let module = load(model, &Sizes::new().dim("N", 97))?;
/// assert!(module.graph("main").is_ok());
/// # Ok::<(), tilewright_driver::Error>(())
/// ```
pub fn load(path: impl AsRef<Path>, sizes: &Sizes) -> Result<Module> {
    Draft::read(path)?.module(sizes)
}

/// A file that was read, before its sizes are settled: it says what it takes, so that no more than
/// that has to be read and given.
pub struct Draft(Kind);

enum Kind {
    Model(ModelDraft),
    Script(Module),
}

impl Draft {
    /// Reads a file.
    ///
    /// # Errors
    /// As [`load`], but for sizes and operators.
    pub fn read(path: impl AsRef<Path>) -> Result<Draft> {
        let path = path.as_ref();
        if is_onnx(path) {
            return Ok(Draft(Kind::Model(ModelDraft::read(path)?)));
        }
        let is_script = has_ending(path, "py");
        match String::from_utf8(file::read(path)?) {
            Ok(text) if is_script => Draft::parse(path.display().to_string(), text),
            Ok(text) if !text.contains('\0') => {
                Draft::parse(path.display().to_string(), text).map_err(|e| not_a_model(e, path))
            }
            Err(e) if is_script => {
                let at = e.utf8_error().valid_up_to();
                Err(Error::syntax(format!("{}: not UTF-8 text, at byte {at}", path.display())))
            }
            Ok(_) | Err(_) => {
                let model = ModelDraft::read(path).map_err(|e| not_a_model(e, path))?;
                Ok(Draft(Kind::Model(model)))
            }
        }
    }

    /// As [`Draft::read`]; but the weights of a large model (`.onnx`) are read only when its module is
    /// made, from the file that is open since.
    ///
    /// # Errors
    /// As [`Draft::read`].
    pub fn open(path: impl AsRef<Path>) -> Result<Draft> {
        let path = path.as_ref();
        if is_onnx(path) {
            Ok(Draft(Kind::Model(ModelDraft::open(path)?)))
        } else {
            Draft::read(path)
        }
    }

    /// Its file, where that is open ([`Draft::open`]).
    pub fn file(&self) -> Option<&ModelFile> {
        self.model()?.file()
    }

    /// The model, of which weights may not be read yet; `None` for a module.
    fn model(&self) -> Option<&ModelDraft> {
        if let Kind::Model(model) = &self.0 { Some(model) } else { None }
    }

    /// Parses TVMScript; `name` is what messages call it.
    ///
    /// # Errors
    /// [`Error::Syntax`] with the place where it does not parse.
    pub fn parse(name: impl Into<String>, text: impl Into<String>) -> Result<Draft> {
        let source = Source::new(name, text);
        Ok(Draft(Kind::Script(tilewright_tvmscript::parse_module(&source)?)))
    }

    /// Whether it is a model, whose sizes have to be known to read it, and not a module.
    pub fn is_model(&self) -> bool {
        self.model().is_some()
    }

    /// The files beside a model that hold parts of it; `None` where that is not known.
    pub fn data_files(&self) -> Option<Vec<DataFile>> {
        self.model().map_or_else(|| Some(Vec::new()), ModelDraft::data_files)
    }

    /// Whether it is known that no other file holds parts of it.
    pub fn is_alone(&self) -> bool {
        self.data_files().is_some_and(|files| files.is_empty())
    }

    /// What can be given to it: the inputs of a model, or the tensor parameters of a module's
    /// entry, outputs among them.
    ///
    /// # Errors
    /// [`Error::Model`] for a model that contradicts itself, [`Error::Input`] for a module without
    /// an entry.
    pub fn inputs(&self) -> Result<Vec<ValueType>> {
        match &self.0 {
            Kind::Script(module) => parameters(module),
            Kind::Model(model) => model.inputs(),
        }
    }

    /// The first dimensions of a model's inputs that are open and that `sizes` does not say, as keys
    /// of [`Sizes::dims`]: with one sample in the batch, most models run.
    ///
    /// # Errors
    /// As [`Draft::inputs`].
    pub fn open_batch(&self, sizes: &Sizes) -> Result<Vec<String>> {
        let Some(model) = self.model() else { return Ok(Vec::new()) };
        let inputs = model.inputs()?;
        let mut given: HashSet<String> = sizes.dims.keys().cloned().collect();
        for input in &inputs {
            let axes = sizes.dims.keys().filter_map(|key| {
                let (name, axis) = key.rsplit_once('.')?;
                (name == input.name).then(|| axis.parse().ok())?
            });
            let whole = sizes.shapes.get(&input.name).map_or(0, Vec::len);
            for axis in axes.chain(0..whole) {
                given.insert(format!("{}.{axis}", input.name));
                if let Some(Dim::Named(name)) = input.dims.as_ref().and_then(|d| d.get(axis)) {
                    given.insert(name.clone());
                }
            }
        }
        let mut keys: Vec<String> =
            inputs.iter().filter_map(|i| i.open_batch(|key| given.contains(key))).collect();
        keys.sort();
        keys.dedup();
        Ok(keys)
    }

    /// The module, with these sizes.
    ///
    /// # Errors
    /// As [`load`].
    pub fn module(&self, sizes: &Sizes) -> Result<Module> {
        copy_mapped_constants(&self.mapped_module(sizes)?)
    }

    /// Whether the constants of [`Draft::mapped_module`] may lie in the file.
    pub(super) fn is_mapped(&self) -> bool {
        self.file().is_some_and(ModelFile::is_mapped)
    }

    /// The module, with these sizes, whose constants may lie in the file: what outlasts a compilation has to be
    /// copied ([`copy_mapped_constants`]).
    ///
    /// # Errors
    /// As [`load`].
    pub(super) fn mapped_module(&self, sizes: &Sizes) -> Result<Module> {
        let model = match &self.0 {
            Kind::Model(model) => model,
            Kind::Script(module) => {
                return sizes::fill(module, sizes).map_err(|e| match &module.source {
                    Some(source) => e.context(&source.name),
                    None => e,
                });
            }
        };
        let imported = model.import(sizes)?;
        // Quantised models are what their integers compute.
        integer_products(&imported, &mut moving_directly(&mut evaluate), &mut Remarks::new())
    }
}

fn not_a_model(e: Error, path: &Path) -> Error {
    let name = path.display();
    e.context(format!("`{name}` ends in neither `.onnx` nor `.py`, and is no model"))
}

fn has_ending(path: &Path, ending: &str) -> bool {
    path.extension().is_some_and(|e| e.eq_ignore_ascii_case(ending))
}

/// Whether a file is a model by its ending.
pub(super) fn is_onnx(path: &Path) -> bool {
    has_ending(path, "onnx")
}

/// The inputs of the model that became constants of the module, because sizes depend on them.
pub fn fixed_inputs(module: &Module) -> Vec<Arc<str>> {
    let entry = module.entry().and_then(|entry| module.graph(entry));
    match entry.ok().and_then(|f| f.attrs.get("fixed_inputs")) {
        Some(Attr::List(names)) => names
            .iter()
            .filter_map(|name| if let Attr::Str(s) = name { Some(s.clone()) } else { None })
            .collect(),
        _ => Vec::new(),
    }
}

/// Parses TVMScript. Sizes that it leaves open are taken from `sizes`; those that are not given stay
/// open.
///
/// # Errors
/// As [`load`] for TVMScript.
///
/// ```
/// use tilewright_driver::{Sizes, parse};
/// let text = r#"
/// @T.prim_func
/// def double(a: T.handle, b: T.handle):
///     n = T.int32()
///     A = T.match_buffer(a, (n,), "float32")
///     B = T.match_buffer(b, (n,), "float32")
///     for i in range(n):
///         with T.block("B"):
///             vi = T.axis.spatial(n, i)
///             B[vi] = A[vi] * T.float32(2)
/// "#;
/// let module = parse(text, &Sizes::new().dim("n", 5))?;
/// assert_eq!(module.tensor("double")?.buffers().next().unwrap().const_shape(), Some(vec![5]));
/// # Ok::<(), tilewright_driver::Error>(())
/// ```
pub fn parse(text: &str, sizes: &Sizes) -> Result<Module> {
    Draft::parse("<text>", text)?.module(sizes)
}

/// A module as TVMScript; parsing it gives the same module.
pub fn print(module: &Module) -> String {
    tilewright_tvmscript::print_module(module)
}

/// The tensor parameters of the entry of a module, as a model describes its inputs.
fn parameters(module: &Module) -> Result<Vec<ValueType>> {
    Ok(sizes::inputs(module, module.entry()?)
        .into_iter()
        .map(|i| ValueType {
            kind: ValueKind::Tensor,
            name: i.name.to_string(),
            dtype: Some(i.dtype),
            dims: Some(i.shape.iter().map(dim_of).collect()),
        })
        .collect())
}

fn dim_of(e: &Expr) -> Dim {
    match (e.as_int().map(usize::try_from), e.as_var()) {
        (Some(Ok(size)), _) => Dim::Fixed(size),
        (_, Some(var)) => Dim::Named(var.name().to_string()),
        _ => Dim::Open,
    }
}

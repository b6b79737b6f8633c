//! Files to modules.

use std::path::Path;
use std::sync::Arc;

use tilewright_ir::{Attr, Error, Module, Result, Source};

use crate::sizes::{self, Sizes};

/// Loads a model or module from a file: an ONNX model (`.onnx`) or TVMScript (`.py`). A file with
/// another ending is taken for TVMScript if it is text.
///
/// Sizes that the file leaves open are taken from `sizes`. A model needs them all, and the values of
/// the inputs that sizes depend on (the target of a `Reshape`, ...), which become constants
/// ([`fixed_inputs`]); in TVMScript, sizes that are not given stay open.
///
/// # Errors
/// [`Error::Io`] if the file cannot be read; [`Error::Syntax`] with the place for TVMScript that
/// does not parse; [`Error::Model`] for a damaged model; [`Error::Unsupported`] for something in it
/// that is not covered; [`Error::Input`] for sizes and values that are missing or do not fit.
///
/// ```
/// use tilewright::{Sizes, load};
/// # let model = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/digits/digits.onnx");
/// let module = load(model, &Sizes::new().dim("N", 97))?;
/// assert!(module.graph("main").is_ok());
/// # Ok::<(), tilewright::Error>(())
/// ```
pub fn load(path: impl AsRef<Path>, sizes: &Sizes) -> Result<Module> {
    let path = path.as_ref();
    let ending = path.extension().and_then(|e| e.to_str()).unwrap_or("").to_ascii_lowercase();
    if ending == "onnx" {
        return load_onnx(path, sizes);
    }
    let bytes =
        std::fs::read(path).map_err(|e| Error::io(e.to_string()).context(path.display()))?;
    match String::from_utf8(bytes) {
        Ok(text) if ending == "py" || !text.contains('\0') => {
            parse(path.display().to_string(), text, sizes)
        }
        Err(e) if ending == "py" => {
            let at = e.utf8_error().valid_up_to();
            Err(Error::syntax(format!("{}: not UTF-8 text, at byte {at}", path.display())))
        }
        Ok(_) | Err(_) => load_onnx(path, sizes),
    }
}

fn load_onnx(path: &Path, sizes: &Sizes) -> Result<Module> {
    let options = tilewright_onnx::ImportOptions {
        dims: sizes.dims.clone(),
        shapes: sizes.shapes.clone(),
        values: sizes.values.clone(),
        ..Default::default()
    };
    tilewright_onnx::import_path(path, &options)
}

/// The inputs of the model that became constants of the module, because sizes depend on them.
pub fn fixed_inputs(module: &Module) -> Vec<Arc<str>> {
    let entry = module.entry().and_then(|entry| module.graph(entry));
    match entry.ok().and_then(|f| f.attrs.get("fixed_inputs")) {
        Some(Attr::List(names)) => {
            let text = |name: &Attr| if let Attr::Str(s) = name { Some(s.clone()) } else { None };
            names.iter().filter_map(text).collect()
        }
        _ => Vec::new(),
    }
}

/// Parses TVMScript; `name` is what messages call it.
///
/// # Errors
/// As [`load`] for TVMScript.
///
/// ```
/// use tilewright::{Sizes, load};
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
/// let module = load::parse("<text>", text, &Sizes::new().dim("n", 5))?;
/// assert_eq!(module.tensor("double")?.buffers().next().unwrap().const_shape(), Some(vec![5]));
/// # Ok::<(), tilewright::Error>(())
/// ```
pub fn parse(name: impl Into<String>, text: impl Into<String>, sizes: &Sizes) -> Result<Module> {
    let source = Source::new(name, text);
    let module = tilewright_script::parse_module(&source)?;
    sizes::fill(&module, sizes).map_err(|e| e.context(&source.name))
}

/// Ways to a module, and its text.
pub trait ModuleExt: Sized {
    /// Imports an ONNX model whose sizes are all known.
    ///
    /// # Errors
    /// As [`load`].
    fn from_onnx(path: impl AsRef<Path>) -> Result<Self>;

    /// Parses TVMScript.
    ///
    /// # Errors
    /// As [`parse`].
    fn from_script(text: &str) -> Result<Self>;

    /// The module as TVMScript; parsing it gives the same module.
    fn to_script(&self) -> String;
}

impl ModuleExt for Module {
    fn from_onnx(path: impl AsRef<Path>) -> Result<Self> {
        load_onnx(path.as_ref(), &Sizes::new())
    }

    fn from_script(text: &str) -> Result<Self> {
        parse("<text>", text, &Sizes::new())
    }

    fn to_script(&self) -> String {
        tilewright_script::print_module(self)
    }
}

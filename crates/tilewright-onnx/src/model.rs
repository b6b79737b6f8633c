//! Reading a model file, and what it says about its inputs and outputs.

use std::collections::HashSet;
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use prost::Message;
use tilewright_ir::{DType, Error, Result};

use crate::data::{Folder, stored_type};
use crate::functions;
use crate::proto::{Bytes, DimensionValue, GraphProto, ModelProto, TypeValue, ValueInfoProto};
use crate::wire;

/// Memory that decoding may take whatever the size of the file, in bytes.
const DECODED_BASE: u64 = 64 << 20;
/// Memory that decoding may take for each byte of the file. The node of a scalar constant, the
/// densest thing in real models, takes about 20.
const DECODED_PER_BYTE: u64 = 32;

/// A decoded model. Weights inside the file are not copied yet, those beside it are not read.
#[derive(Clone, Debug)]
pub struct Model {
    pub(crate) name: String,
    pub(crate) folder: Option<Folder>,
    pub(crate) opset: i64,
    pub(crate) graph: GraphProto,
}

/// What a model takes and gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// Inputs in order, without those that have a constant as their value.
    pub inputs: Vec<ValueType>,
    /// Outputs in order.
    pub outputs: Vec<ValueType>,
}

/// Name and type of an input or output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueType {
    /// Name.
    pub name: String,
    /// Element type; outputs need not say it.
    pub dtype: Option<DType>,
    /// Extents, where the rank is known.
    pub dims: Option<Vec<Dim>>,
}

/// An extent as the file gives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Dim {
    /// A number above 0.
    Fixed(usize),
    /// A name: the same extent wherever the name occurs.
    Named(String),
    /// Nothing usable: no value, 0, a negative number, or the name `?`.
    Open,
}

impl ValueType {
    /// Refuses an element type and a shape that this cannot have.
    ///
    /// # Errors
    /// [`Error::Input`] with what it has and what it was given.
    pub fn accepts(&self, dtype: DType, shape: &[usize]) -> Result<()> {
        let name = &self.name;
        if let Some(own) = self.dtype.filter(|own| *own != dtype) {
            return Err(Error::input(format!(
                "input `{name}` has elements of type {own}, and was given {dtype}"
            ))
            .help(format!("convert the tensor to {own}")));
        }
        let Some(dims) = &self.dims else { return Ok(()) };
        let fits = |(dim, size): (&Dim, &usize)| !matches!(dim, Dim::Fixed(own) if own != size);
        if dims.len() == shape.len() && dims.iter().zip(shape).all(fits) {
            return Ok(());
        }
        let dims: Vec<String> = dims.iter().map(Dim::to_string).collect();
        Err(Error::input(format!(
            "input `{name}` has the shape [{}], and was given {shape:?}",
            dims.join(", ")
        )))
    }

    /// The key of [`ImportOptions::dims`](crate::ImportOptions::dims) for its first dimension,
    /// where this is open and neither its size nor its name is given.
    pub fn open_batch(&self, is_given: impl Fn(&str) -> bool) -> Option<String> {
        let axis = format!("{}.0", self.name);
        let key = match self.dims.as_ref()?.first()? {
            Dim::Fixed(_) => return None,
            Dim::Named(name) => name.clone(),
            Dim::Open => axis.clone(),
        };
        (!is_given(&key) && !is_given(&axis)).then_some(key)
    }
}

impl fmt::Display for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Dim::Fixed(size) => write!(f, "{size}"),
            Dim::Named(name) => f.write_str(name),
            Dim::Open => f.write_str("?"),
        }
    }
}

impl Model {
    /// Reads a model file. Fails where it cannot be read or is no ONNX model.
    pub fn read(path: impl AsRef<Path>) -> Result<Model> {
        let path = path.as_ref();
        let name = path.display().to_string();
        let failed = |e: std::io::Error| Error::io(format!("cannot read `{name}`: {e}"));
        let meta = path.metadata().map_err(failed)?;
        if !meta.is_file() {
            return Err(Error::io(format!("cannot read `{name}`: it is not a plain file")));
        }
        let mut bytes = Vec::new();
        let expected = usize::try_from(meta.len()).unwrap_or(usize::MAX);
        bytes.try_reserve_exact(expected).map_err(|_| {
            Error::io(format!("cannot read `{name}`: no memory for {expected} bytes"))
        })?;
        let file = File::open(path).map_err(failed)?;
        file.take(meta.len()).read_to_end(&mut bytes).map_err(failed)?;
        Self::new(name, bytes.into(), Folder::of(path))
    }

    /// Decodes a model that is already in memory; `name` stands for it in messages. Such a model
    /// cannot keep data in other files.
    pub fn decode(name: impl Into<String>, bytes: impl Into<Bytes>) -> Result<Model> {
        Self::new(name.into(), bytes.into(), None)
    }

    /// Whether the file holds all of the model: no constant lies in a file beside it. One with graphs
    /// inside of its nodes is not looked through, and counts as one that does not.
    pub fn is_self_contained(&self) -> bool {
        let attributes = self.graph.node.iter().flat_map(|node| &node.attribute);
        self.graph.initializer.iter().all(|t| t.external_data.is_empty())
            && attributes
                .into_iter()
                .all(|a| a.g.is_none() && a.t.as_ref().is_none_or(|t| t.external_data.is_empty()))
    }

    fn new(name: String, bytes: Bytes, folder: Option<Folder>) -> Result<Model> {
        Self::build(&name, bytes, folder).map_err(|e| e.context(format!("`{name}`")))
    }

    fn build(name: &str, bytes: Bytes, folder: Option<Folder>) -> Result<Model> {
        let total = bytes.len();
        if total == 0 {
            return Err(Error::model("the file is empty"));
        }
        let size = wire::decoded_size(&bytes).map_err(|at| {
            Error::model(format!(
                "the file is truncated, corrupt or no ONNX model: its structure breaks at byte {at} of {total}"
            ))
        })?;
        if size > DECODED_BASE.saturating_add(DECODED_PER_BYTE.saturating_mul(total as u64)) {
            return Err(Error::model(format!(
                "the file of {total} bytes would take {size} bytes of memory beside its weights: it is corrupt or hostile"
            )));
        }
        let model = ModelProto::decode(bytes).map_err(|e| {
            Error::model("the file is truncated, corrupt or no ONNX model").note(e.to_string())
        })?;
        let graph = model.graph.ok_or_else(|| {
            Error::model("the file has no graph: it is truncated or no ONNX model")
        })?;
        let standard = |domain: &str| domain.is_empty() || domain == "ai.onnx";
        let mut opsets = model.opset_import.iter().filter(|o| standard(&o.domain));
        let opset = match (opsets.next(), opsets.next()) {
            (Some(opset), None) => opset.version,
            (None, _) => {
                return Err(Error::model(
                    "the file does not say which version of ONNX's operators it uses",
                ));
            }
            (Some(_), Some(_)) => {
                return Err(Error::model("the file gives the version of ONNX's operators twice"));
            }
        };
        let graph = functions::inline(graph, model.functions, opset)?;
        Ok(Model { name: name.to_owned(), folder, opset, graph })
    }

    /// The file's name, as it was given.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Version of ONNX's operator set that the model is written in.
    pub fn opset(&self) -> i64 {
        self.opset
    }

    /// Names, element types and extents of the inputs and outputs.
    ///
    /// Fails where an input or output is no tensor, has an unsupported element type, or where
    /// names are missing or given twice.
    pub fn signature(&self) -> Result<Signature> {
        self.read_signature().map_err(|e| e.context(format!("`{}`", self.name)))
    }

    pub(crate) fn read_signature(&self) -> Result<Signature> {
        let constants: HashSet<&str> =
            self.graph.initializer.iter().map(|t| t.name.as_str()).collect();
        let given = |v: &&ValueInfoProto| !constants.contains(v.name.as_str());
        let inputs: Vec<ValueType> = self
            .graph
            .input
            .iter()
            .filter(given)
            .map(|v| value_type(v, "input"))
            .collect::<Result<_>>()?;
        let outputs: Vec<ValueType> =
            self.graph.output.iter().map(|v| value_type(v, "output")).collect::<Result<_>>()?;
        for (values, what) in [(&inputs, "input"), (&outputs, "output")] {
            let mut seen = HashSet::new();
            if let Some(twice) = values.iter().find(|v| !seen.insert(&v.name)) {
                return Err(Error::model(format!("two {what}s are named `{}`", twice.name)));
            }
        }
        if let Some(v) = inputs.iter().find(|v| v.dtype.is_none()) {
            return Err(Error::model(format!("the type of input `{}` is not given", v.name)));
        }
        if outputs.is_empty() {
            return Err(Error::model("the graph has no outputs"));
        }
        Ok(Signature { inputs, outputs })
    }
}

fn value_type(value: &ValueInfoProto, what: &str) -> Result<ValueType> {
    let name = value.name.clone();
    if name.is_empty() {
        return Err(Error::model(format!("an {what} has no name")));
    }
    let kind = match value.r#type.as_ref().and_then(|t| t.value.as_ref()) {
        None => return Ok(ValueType { name, dtype: None, dims: None }),
        Some(TypeValue::Tensor(tensor)) => {
            let dtype = match (tensor.elem_type, what) {
                (0, "output") => None,
                (number, _) => {
                    Some(stored_type(number).map_err(|e| e.context(format!("{what} `{name}`")))?)
                }
            };
            let dims = tensor.shape.as_ref().map(|shape| {
                let dims = shape.dim.iter();
                dims.map(|d| match &d.value {
                    Some(DimensionValue::Value(v)) if *v > 0 => {
                        usize::try_from(*v).map_or(Dim::Open, Dim::Fixed)
                    }
                    Some(DimensionValue::Param(name)) if !name.is_empty() && name != "?" => {
                        Dim::Named(name.clone())
                    }
                    _ => Dim::Open,
                })
                .collect()
            });
            return Ok(ValueType { name, dtype, dims });
        }
        Some(TypeValue::Sequence(_)) => "a sequence",
        Some(TypeValue::Map(_)) => "a map",
        Some(TypeValue::Opaque(_)) => "opaque",
        Some(TypeValue::SparseTensor(_)) => "a sparse tensor",
        Some(TypeValue::Optional(_)) => "optional",
    };
    Err(Error::unsupported(format!("{what} `{name}` is {kind}; only dense tensors are supported")))
}

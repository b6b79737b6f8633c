//! Reading a model file, and what it says about its inputs and outputs.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use tilewright_ir::hash::HashSet;

use prost::Message;
use tilewright_ir::signature::{DataFile, Dim, Signature, ValueKind, ValueType};
use tilewright_ir::{DType, Error, Result};
use tilewright_runtime::file;

use crate::data::{self, Element, External, Folder, MappedFile, element_type};
use crate::functions;
use crate::proto::{
    Bytes, DataType, DimensionValue, EXTERNAL, ElementTypeProto, GraphProto, MapTypeProto,
    ModelProto, TensorProto, TensorTypeProto, TypeProto, TypeValue, ValueInfoProto,
};
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
    /// Version of ONNX's own operators; 0 where the file does not say it.
    pub(crate) opset: i64,
    /// Versions of other domains.
    pub(crate) opsets: BTreeMap<String, i64>,
    pub(crate) graph: GraphProto,
}

/// A message of protobuf has fewer bytes.
const MODEL_END: u64 = 1 << 31;

/// The length of a file that may be a model.
fn checked_length(file: &File, path: &Path) -> Result<u64> {
    let length = file.metadata().map_err(|e| file::unreadable(path, &e))?.len();
    if length >= MODEL_END {
        return Err(Error::model(format!(
            "`{}`: the file has {length} bytes, where a model has less than {MODEL_END}",
            path.display()
        ))
        .help("weights of larger models lie in files beside them, as external data"));
    }
    Ok(length)
}

impl Model {
    /// Reads a model file. Fails where it cannot be read or is no ONNX model.
    pub fn read(path: impl AsRef<Path>) -> Result<Model> {
        let path = path.as_ref();
        let file = file::open(path).map_err(|e| file::unreadable(path, &e))?;
        Model::read_file(&file, path)
    }

    /// Reads a model from the start of an open file, which `path` names.
    pub fn read_file(mut file: &File, path: &Path) -> Result<Model> {
        let length = checked_length(file, path)?;
        let mut bytes = Vec::new();
        let expected = usize::try_from(length).unwrap_or(usize::MAX);
        bytes.try_reserve_exact(expected).map_err(|_| {
            file::unreadable(
                path,
                &std::io::Error::other(format!("no memory for {expected} bytes")),
            )
        })?;
        file.rewind().map_err(|e| file::unreadable(path, &e))?;
        file.take(length).read_to_end(&mut bytes).map_err(|e| file::unreadable(path, &e))?;
        Self::new(path.display().to_string(), bytes.into(), Folder::beside(path))
    }

    /// Decodes a model from an open file that is mapped: what it says of its inputs and nodes is read now, and
    /// weights where something asks for their elements. The constants of its modules lie in the file, as far as they
    /// can: what is to outlast a change of the file has to be copied ([`Tensor::copied_from_file`](tilewright_ir::Tensor::copied_from_file)).
    pub fn map_file(file: &File, path: &Path) -> Result<Model> {
        if cfg!(target_family = "wasm") {
            // There are no pages.
            return Model::read_file(file, path);
        }
        checked_length(file, path)?;
        let map = Arc::new(data::mapped(file).map_err(|e| file::unreadable(path, &e))?);
        let folder = Folder::beside(path).map(|folder| folder.of_mapped(map.clone()));
        let bytes = Bytes::from_owner(MappedFile(map));
        Self::new(path.display().to_string(), bytes, folder)
    }

    /// Decodes a model that is already in memory; `name` stands for it in messages. Such a model
    /// cannot keep data in other files.
    pub fn decode(name: impl Into<String>, bytes: impl Into<Bytes>) -> Result<Model> {
        Self::new(name.into(), bytes.into(), None)
    }

    /// The files beside the model in which constants lie, each once, in the order of their names. `None`
    /// where that is not known: a model with graphs inside of its nodes is not looked through.
    pub fn data_files(&self) -> Option<Vec<DataFile>> {
        let attributes = self.graph.node.iter().flat_map(|node| &node.attribute);
        let mut tensors: Vec<&TensorProto> = self.graph.initializer.iter().collect();
        for attribute in attributes {
            if attribute.g.is_some() {
                return None;
            }
            tensors.extend(attribute.t.as_deref());
        }
        let mut files: BTreeMap<&str, Vec<Range<u64>>> = BTreeMap::new();
        for tensor in tensors.into_iter().filter(|t| t.data_location == EXTERNAL) {
            let external = External::from_proto(tensor).ok()?;
            let bytes = external.length.or_else(|| data::stored_bytes(tensor))?;
            let end = external.offset.checked_add(bytes)?;
            files.entry(external.location).or_default().push(external.offset..end);
        }
        Some(
            files
                .into_iter()
                .map(|(name, parts)| DataFile { name: name.to_owned(), parts: data::merged(parts) })
                .collect(),
        )
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
        // Of several entries of a domain the last one counts, as in ONNX Runtime.
        let opset = model.opset_import.iter().rfind(|o| is_standard(&o.domain));
        let opset = opset.map_or(0, |o| o.version);
        if model.opset_import.is_empty() {
            return Err(Error::model(
                "the file does not say which version of ONNX's operators it uses",
            ));
        }
        let others = model.opset_import.iter().filter(|o| !is_standard(&o.domain));
        let opsets = others.map(|o| (o.domain.clone(), o.version)).collect();
        let graph = functions::inline(graph, model.functions)?;
        Ok(Model { name: name.to_owned(), folder, opset, opsets, graph })
    }

    /// The file's name, as it was given.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Version of ONNX's operator set that the model is written in; 0 where the file does not say it,
    /// which it need not where it uses operators of other domains only.
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
        let inputs = self.graph.input.iter().filter(|v| !constants.contains(v.name.as_str()));
        let inputs: Vec<Vec<ValueType>> = inputs.map(input_types).collect::<Result<_>>()?;
        let inputs = inputs.concat();
        let outputs: Vec<ValueType> =
            self.graph.output.iter().map(|v| value_type(v, "output")).collect::<Result<_>>()?;
        for (values, what) in [(&inputs, "input"), (&outputs, "output")] {
            let mut seen = HashSet::default();
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

/// Whether a domain is that of ONNX's own operators.
pub(crate) fn is_standard(domain: &str) -> bool {
    domain.is_empty() || domain == "ai.onnx"
}

fn value_type(value: &ValueInfoProto, what: &str) -> Result<ValueType> {
    let name = value.name.clone();
    if name.is_empty() {
        return Err(Error::model(format!("an {what} has no name")));
    }
    let Some(ty) = value.r#type.as_ref().and_then(|t| t.value.as_ref()) else {
        return Ok(ValueType { name, kind: ValueKind::Tensor, dtype: None, dims: None });
    };
    described(ty, what).map(|(kind, dtype, dims)| ValueType { name, kind, dtype, dims }).map_err(
        |e| match e {
            Error::Unsupported(_) | Error::Model(_) => {
                e.context(format!("{what} `{}`", value.name))
            }
            e => e,
        },
    )
}

/// What is given for an input: itself, or the numbers and the keys of a map.
fn input_types(value: &ValueInfoProto) -> Result<Vec<ValueType>> {
    let ty = value_type(value, "input")?;
    if ty.kind != ValueKind::Map {
        return Ok(vec![ty]);
    }
    let Some(TypeValue::Map(bytes)) = value.r#type.as_ref().and_then(|t| t.value.as_ref()) else {
        return Err(Error::unsupported("it is a sequence of maps; single maps are supported")
            .context(format!("input `{}`", value.name)));
    };
    let size = Dim::Named(format!("{}.size", ty.name));
    let (kind, dtype, more) = match MapTypes::read(bytes)?.keys {
        KeyType::Ints => (ValueKind::Tensor, DType::I64, None),
        KeyType::Texts => (ValueKind::Text, DType::U8, Some(Dim::Open)),
    };
    let keys = ValueType {
        name: map_keys(&ty.name),
        kind,
        dtype: Some(dtype),
        dims: Some([size.clone()].into_iter().chain(more).collect()),
    };
    Ok(vec![ValueType { kind: ValueKind::Tensor, dims: Some(vec![size]), ..ty }, keys])
}

/// The name under which the keys of a map are given, and come.
pub(crate) fn map_keys(name: &str) -> String {
    format!("{name}.keys")
}

/// What the keys of a map are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KeyType {
    Ints,
    Texts,
}

/// The types of the keys and of the numbers of a map.
struct MapTypes {
    keys: KeyType,
    values: DType,
}

impl MapTypes {
    /// Those of an encoded type.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for other keys than `int64` and strings, and for other values than numbers.
    fn read(bytes: &Bytes) -> Result<MapTypes> {
        let ty = MapTypeProto::decode(bytes.clone())
            .map_err(|_| Error::model("the type of the map is damaged"))?;
        let keys = match DataType::try_from(ty.key_type) {
            Ok(DataType::Int64) => KeyType::Ints,
            Ok(DataType::String) => KeyType::Texts,
            _ => {
                return Err(Error::unsupported(
                    "it is a map whose keys are neither int64 nor strings",
                ));
            }
        };
        match ty.value_type {
            Some(TypeProto { value: Some(TypeValue::Tensor(t)) })
                if t.elem_type != DataType::String as i32 =>
            {
                Ok(MapTypes { keys, values: element_type(t.elem_type)? })
            }
            _ => Err(Error::unsupported("it is a map whose values are no numbers")),
        }
    }
}

/// Whether a value is declared as a map.
pub(crate) fn is_map(value: &ValueInfoProto) -> bool {
    matches!(value.r#type, Some(TypeProto { value: Some(TypeValue::Map(_)) }))
}

/// Kind, element type and extents of a type.
pub(crate) fn described(
    ty: &TypeValue,
    what: &str,
) -> Result<(ValueKind, Option<DType>, Option<Vec<Dim>>)> {
    let kind = match ty {
        TypeValue::Tensor(tensor) if tensor.elem_type == DataType::String as i32 => {
            let numbers = TensorTypeProto { elem_type: DataType::Uint8 as i32, ..tensor.clone() };
            let (_, dtype, dims) = described(&TypeValue::Tensor(numbers), what)?;
            let dims = dims.map(|dims| dims.into_iter().chain([Dim::Open]).collect());
            return Ok((ValueKind::Text, dtype, dims));
        }
        TypeValue::Tensor(tensor) => {
            let dtype = match (tensor.elem_type, what) {
                (0, "output") => None,
                (number, _) => Some(Element::from_number(number)?.stored()),
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
            return Ok((ValueKind::Tensor, dtype, dims));
        }
        TypeValue::Sequence(bytes) => match elem_type(bytes)? {
            TypeValue::Tensor(t) => {
                let dtype = if t.elem_type == 0 { None } else { Some(element_type(t.elem_type)?) };
                let (_, _, dims) = described(&TypeValue::Tensor(t), what)?;
                // The tensors of a sequence need not have the same extents.
                let dims = dims.map(|dims| vec![Dim::Open; dims.len()]);
                return Ok((ValueKind::Sequence, dtype, dims));
            }
            TypeValue::Map(bytes) => {
                let types = MapTypes::read(&bytes)?;
                return Ok((ValueKind::Map, Some(types.values), Some(vec![Dim::Open, Dim::Open])));
            }
            _ => "a sequence of values that are no tensors",
        },
        TypeValue::Optional(bytes) => match elem_type(bytes)? {
            inner @ (TypeValue::Tensor(_) | TypeValue::Sequence(_)) => {
                if let TypeValue::Tensor(t) = &inner {
                    element_type(t.elem_type)?;
                }
                let (kind, dtype, dims) = described(&inner, what)?;
                let kind = match kind {
                    ValueKind::Tensor => ValueKind::Optional,
                    _ => ValueKind::OptionalSequence,
                };
                return Ok((kind, dtype, dims));
            }
            _ => "optional, and neither a tensor nor a sequence of them",
        },
        TypeValue::Map(bytes) => {
            let types = MapTypes::read(bytes)?;
            return Ok((ValueKind::Map, Some(types.values), Some(vec![Dim::Open])));
        }
        TypeValue::Opaque(_) => "opaque",
        TypeValue::SparseTensor(_) => "a sparse tensor",
    };
    Err(Error::unsupported(format!(
        "it is {kind}; only dense tensors, sequences of them, and optional ones are supported"
    )))
}

fn elem_type(bytes: &Bytes) -> Result<TypeValue> {
    let ty = ElementTypeProto::decode(bytes.clone()).ok();
    ty.and_then(|t| t.elem_type?.value)
        .ok_or_else(|| Error::model("the type of the elements is not given"))
}

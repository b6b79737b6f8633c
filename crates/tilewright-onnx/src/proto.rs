//! The part of ONNX's protocol-buffer schema that an importer needs.
//!
//! Field numbers and types are those of the format; fields that are not listed are skipped when
//! a file is read. Two liberties, both invisible on the wire: payloads are [`Bytes`], so that
//! decoding shares the file's memory instead of copying weights, and types that are refused anyway stay
//! encoded, since a message and a byte string look alike.

pub use prost::bytes::Bytes;

/// A model file.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ModelProto {
    /// Version of the file format; 3 is the oldest in use.
    #[prost(int64, tag = "1")]
    pub ir_version: i64,
    /// The operator sets that the nodes refer to.
    #[prost(message, repeated, tag = "8")]
    pub opset_import: Vec<OperatorSetId>,
    /// The computation.
    #[prost(message, optional, tag = "7")]
    pub graph: Option<GraphProto>,
    /// Operators that the model defines itself.
    #[prost(message, repeated, tag = "25")]
    pub functions: Vec<FunctionProto>,
}

/// An operator set: a domain, empty for ONNX's own, and a version.
#[derive(Clone, PartialEq, prost::Message)]
pub struct OperatorSetId {
    /// Empty or `ai.onnx` for the standard operators.
    #[prost(string, tag = "1")]
    pub domain: String,
    /// Version of the set.
    #[prost(int64, tag = "2")]
    pub version: i64,
}

/// An operator that a model defines itself.
#[derive(Clone, PartialEq, prost::Message)]
pub struct FunctionProto {
    /// Name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Names of the inputs inside of the body.
    #[prost(string, repeated, tag = "4")]
    pub input: Vec<String>,
    /// Names of the outputs inside of the body.
    #[prost(string, repeated, tag = "5")]
    pub output: Vec<String>,
    /// The body.
    #[prost(message, repeated, tag = "7")]
    pub node: Vec<NodeProto>,
    /// The operator sets that the body refers to.
    #[prost(message, repeated, tag = "9")]
    pub opset_import: Vec<OperatorSetId>,
    /// Domain.
    #[prost(string, tag = "10")]
    pub domain: String,
    /// Attributes with the values that they have where a call does not give them.
    #[prost(message, repeated, tag = "11")]
    pub attribute_proto: Vec<AttributeProto>,
    /// Which of several functions of one name.
    #[prost(string, tag = "13")]
    pub overload: String,
}

/// A graph: nodes in an order in which they can run, constants, inputs and outputs.
#[derive(Clone, PartialEq, prost::Message)]
pub struct GraphProto {
    /// Nodes, producers before consumers.
    #[prost(message, repeated, tag = "1")]
    pub node: Vec<NodeProto>,
    /// Name.
    #[prost(string, tag = "2")]
    pub name: String,
    /// Constants by name.
    #[prost(message, repeated, tag = "5")]
    pub initializer: Vec<TensorProto>,
    /// Inputs; before format version 4 also one for each constant.
    #[prost(message, repeated, tag = "11")]
    pub input: Vec<ValueInfoProto>,
    /// Outputs.
    #[prost(message, repeated, tag = "12")]
    pub output: Vec<ValueInfoProto>,
}

/// A call of an operator.
#[derive(Clone, PartialEq, prost::Message)]
pub struct NodeProto {
    /// Names of the inputs; empty for an optional input that is absent.
    #[prost(string, repeated, tag = "1")]
    pub input: Vec<String>,
    /// Names of the outputs; empty for an output that is not used.
    #[prost(string, repeated, tag = "2")]
    pub output: Vec<String>,
    /// Name, for people.
    #[prost(string, tag = "3")]
    pub name: String,
    /// The operator.
    #[prost(string, tag = "4")]
    pub op_type: String,
    /// The operator's domain.
    #[prost(string, tag = "7")]
    pub domain: String,
    /// Which of several operators of one name.
    #[prost(string, tag = "8")]
    pub overload: String,
    /// Attributes.
    #[prost(message, repeated, tag = "5")]
    pub attribute: Vec<AttributeProto>,
    /// The versions of operators that a function says which the node came from; those of the model count for other
    /// domains. No file has this field.
    #[prost(message, repeated, tag = "536870911")]
    pub written_in: Vec<OperatorSetId>,
}

/// A named attribute of a node.
#[derive(Clone, PartialEq, prost::Message)]
pub struct AttributeProto {
    /// Name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Inside a function: the function's attribute that gives the value.
    #[prost(string, tag = "21")]
    pub ref_attr_name: String,
    /// Which of the following fields counts, an [`AttributeType`].
    #[prost(enumeration = "AttributeType", tag = "20")]
    pub r#type: i32,
    /// Number.
    #[prost(float, tag = "2")]
    pub f: f32,
    /// Integer.
    #[prost(int64, tag = "3")]
    pub i: i64,
    /// Text in UTF-8.
    #[prost(bytes = "bytes", tag = "4")]
    pub s: Bytes,
    /// Tensor.
    #[prost(message, optional, boxed, tag = "5")]
    pub t: Option<Box<TensorProto>>,
    /// Subgraph. How deep they are nested is bounded by the decoder.
    #[prost(message, optional, boxed, tag = "6")]
    pub g: Option<Box<GraphProto>>,
    /// Numbers.
    #[prost(float, repeated, packed = "false", tag = "7")]
    pub floats: Vec<f32>,
    /// Type.
    #[prost(message, optional, tag = "14")]
    pub tp: Option<TypeProto>,
    /// Integers.
    #[prost(int64, repeated, packed = "false", tag = "8")]
    pub ints: Vec<i64>,
    /// Texts.
    #[prost(bytes = "bytes", repeated, tag = "9")]
    pub strings: Vec<Bytes>,
}

/// The kinds of attribute values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum AttributeType {
    /// Not said; files of the first format version.
    Undefined = 0,
    /// Number.
    Float = 1,
    /// Integer.
    Int = 2,
    /// Text.
    String = 3,
    Tensor = 4,
    /// Subgraph.
    Graph = 5,
    /// Numbers.
    Floats = 6,
    /// Integers.
    Ints = 7,
    /// Texts.
    Strings = 8,
    Tensors = 9,
    /// Subgraphs.
    Graphs = 10,
    SparseTensor = 11,
    SparseTensors = 12,
    TypeProto = 13,
    /// Types.
    TypeProtos = 14,
}

/// A constant tensor: raw bytes, or a typed list, or a place in another file.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TensorProto {
    /// Extents.
    #[prost(int64, repeated, packed = "false", tag = "1")]
    pub dims: Vec<i64>,
    /// Element type, a [`DataType`].
    #[prost(int32, tag = "2")]
    pub data_type: i32,
    /// Which part of a larger tensor this is, encoded.
    #[prost(bytes = "bytes", optional, tag = "3")]
    pub segment: Option<Bytes>,
    /// Elements of `float32`.
    #[prost(float, repeated, tag = "4")]
    pub float_data: Vec<f32>,
    /// Elements of the integers up to 32 bits, of `bool`, and bits of the 16-bit floats.
    #[prost(int32, repeated, tag = "5")]
    pub int32_data: Vec<i32>,
    /// Elements that are strings.
    #[prost(bytes = "bytes", repeated, tag = "6")]
    pub string_data: Vec<Bytes>,
    /// Elements of `int64`.
    #[prost(int64, repeated, tag = "7")]
    pub int64_data: Vec<i64>,
    /// Name.
    #[prost(string, tag = "8")]
    pub name: String,
    /// Elements as little-endian bytes.
    #[prost(bytes = "bytes", optional, tag = "9")]
    pub raw_data: Option<Bytes>,
    /// Where the elements lie in another file: `location`, `offset`, `length`.
    #[prost(message, repeated, tag = "13")]
    pub external_data: Vec<StringStringEntry>,
    /// 0 for elements in here, 1 for elements in another file.
    #[prost(int32, tag = "14")]
    pub data_location: i32,
    /// Elements of `float64`.
    #[prost(double, repeated, tag = "10")]
    pub double_data: Vec<f64>,
    /// Elements of `uint32` and `uint64`.
    #[prost(uint64, repeated, tag = "11")]
    pub uint64_data: Vec<u64>,
}

/// [`TensorProto::data_location`] of elements in another file.
pub const EXTERNAL: i32 = 1;

/// A key and its value.
#[derive(Clone, PartialEq, prost::Message)]
pub struct StringStringEntry {
    /// Key.
    #[prost(string, tag = "1")]
    pub key: String,
    /// Value.
    #[prost(string, tag = "2")]
    pub value: String,
}

/// A named value with its type.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ValueInfoProto {
    /// Name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Type.
    #[prost(message, optional, tag = "2")]
    pub r#type: Option<TypeProto>,
}

/// The type of a value. Only tensors are read; the others stay encoded.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TypeProto {
    /// Which type it is.
    #[prost(oneof = "TypeValue", tags = "1, 4, 5, 7, 8, 9")]
    pub value: Option<TypeValue>,
}

/// The kinds of types.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum TypeValue {
    /// A dense tensor.
    #[prost(message, tag = "1")]
    Tensor(TensorTypeProto),
    /// A list of values.
    #[prost(bytes = "bytes", tag = "4")]
    Sequence(Bytes),
    /// A dictionary.
    #[prost(bytes = "bytes", tag = "5")]
    Map(Bytes),
    /// Something else.
    #[prost(bytes = "bytes", tag = "7")]
    Opaque(Bytes),
    /// A sparse tensor.
    #[prost(bytes = "bytes", tag = "8")]
    SparseTensor(Bytes),
    /// A value or nothing.
    #[prost(bytes = "bytes", tag = "9")]
    Optional(Bytes),
}

/// The type of a sequence or of an optional.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ElementTypeProto {
    /// What is inside.
    #[prost(message, optional, tag = "1")]
    pub elem_type: Option<TypeProto>,
}

/// The type of a dictionary.
#[derive(Clone, PartialEq, prost::Message)]
pub struct MapTypeProto {
    /// Type of the keys, a [`DataType`].
    #[prost(int32, tag = "1")]
    pub key_type: i32,
    /// What belongs to a key.
    #[prost(message, optional, tag = "2")]
    pub value_type: Option<TypeProto>,
}

/// The type of a dense tensor.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TensorTypeProto {
    /// Element type, a [`DataType`].
    #[prost(int32, tag = "1")]
    pub elem_type: i32,
    /// Shape; absent where not even the rank is known.
    #[prost(message, optional, tag = "2")]
    pub shape: Option<TensorShapeProto>,
}

/// A shape.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TensorShapeProto {
    /// Extents.
    #[prost(message, repeated, tag = "1")]
    pub dim: Vec<DimensionProto>,
}

/// An extent: a number, a name, or nothing.
#[derive(Clone, PartialEq, prost::Message)]
pub struct DimensionProto {
    /// Number or name.
    #[prost(oneof = "DimensionValue", tags = "1, 2")]
    pub value: Option<DimensionValue>,
}

/// A number or a name.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum DimensionValue {
    /// The extent; 0 and -1 are also written where it is not known.
    #[prost(int64, tag = "1")]
    Value(i64),
    /// A name; the same name is the same extent everywhere.
    #[prost(string, tag = "2")]
    Param(String),
}

/// Element types of tensors, by their number in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
#[allow(missing_docs, reason = "the names say it")]
pub enum DataType {
    Undefined = 0,
    Float = 1,
    Uint8 = 2,
    Int8 = 3,
    Uint16 = 4,
    Int16 = 5,
    Int32 = 6,
    Int64 = 7,
    String = 8,
    Bool = 9,
    Float16 = 10,
    Double = 11,
    Uint32 = 12,
    Uint64 = 13,
    Complex64 = 14,
    Complex128 = 15,
    Bfloat16 = 16,
    Float8e4m3fn = 17,
    Float8e4m3fnuz = 18,
    Float8e5m2 = 19,
    Float8e5m2fnuz = 20,
    Uint4 = 21,
    Int4 = 22,
    Float4e2m1 = 23,
    Float8e8m0 = 24,
    Uint2 = 25,
    Int2 = 26,
    Float6e2m3 = 27,
    Float6e3m2 = 28,
}

/// The number of dimensions that a value is declared with.
pub(crate) fn declared_rank(info: &ValueInfoProto) -> Option<usize> {
    match info.r#type.as_ref()?.value.as_ref()? {
        TypeValue::Tensor(tensor) => Some(tensor.shape.as_ref()?.dim.len()),
        _ => None,
    }
}

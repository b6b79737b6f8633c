//! Small models, written down in a few words.

#![allow(dead_code, reason = "each test file uses its own part")]

use prost::Message;
use tilewright_ir::{DType, Module, Result, Tensor};
use tilewright_onnx::proto::{
    AttributeProto, AttributeType, DataType, DimensionProto, DimensionValue, GraphProto,
    ModelProto, NodeProto, OperatorSetId, TensorProto, TensorShapeProto, TensorTypeProto,
    TypeProto, TypeValue, ValueInfoProto,
};
use tilewright_onnx::{ImportOptions, import_bytes};

/// A model of one graph, in the opset 13 unless said otherwise.
pub struct M {
    pub opset: i64,
    pub graph: GraphProto,
}

/// An extent: a number, or a name.
pub enum D {
    N(i64),
    S(&'static str),
}

impl From<i64> for D {
    fn from(v: i64) -> D {
        D::N(v)
    }
}

impl From<&'static str> for D {
    fn from(v: &'static str) -> D {
        D::S(v)
    }
}

pub fn model() -> M {
    M { opset: 13, graph: GraphProto::default() }
}

impl M {
    pub fn copy(&self) -> Self {
        M { opset: self.opset, graph: self.graph.clone() }
    }

    pub fn opset(mut self, opset: i64) -> Self {
        self.opset = opset;
        self
    }

    /// A `float32` input.
    pub fn input<T: Into<D>>(self, name: &str, dims: impl IntoIterator<Item = T>) -> Self {
        self.typed_input(name, DataType::Float, dims)
    }

    pub fn typed_input<T: Into<D>>(
        mut self,
        name: &str,
        dtype: DataType,
        dims: impl IntoIterator<Item = T>,
    ) -> Self {
        self.graph.input.push(value(name, dtype, dims));
        self
    }

    /// An output without a type.
    pub fn output(mut self, name: &str) -> Self {
        self.graph.output.push(ValueInfoProto { name: name.into(), r#type: None });
        self
    }

    pub fn typed_output<T: Into<D>>(
        mut self,
        name: &str,
        dtype: DataType,
        dims: impl IntoIterator<Item = T>,
    ) -> Self {
        self.graph.output.push(value(name, dtype, dims));
        self
    }

    pub fn node(self, op: &str, inputs: &[&str], outputs: &[&str]) -> Self {
        self.node_with(op, inputs, outputs, [])
    }

    pub fn node_with(
        mut self,
        op: &str,
        inputs: &[&str],
        outputs: &[&str],
        attribute: impl IntoIterator<Item = AttributeProto>,
    ) -> Self {
        self.graph.node.push(NodeProto {
            input: inputs.iter().map(|s| (*s).into()).collect(),
            output: outputs.iter().map(|s| (*s).into()).collect(),
            op_type: op.into(),
            attribute: attribute.into_iter().collect(),
            ..Default::default()
        });
        self
    }

    /// A `float32` constant.
    pub fn floats(self, name: &str, dims: &[i64], values: &[f32]) -> Self {
        self.constant(TensorProto { name: name.into(), ..float_tensor(dims, values) })
    }

    /// A list of `int64`.
    pub fn ints(self, name: &str, values: &[i64]) -> Self {
        self.constant(TensorProto {
            name: name.into(),
            ..int_tensor(&[values.len() as i64], values)
        })
    }

    pub fn constant(mut self, t: TensorProto) -> Self {
        self.graph.initializer.push(t);
        self
    }

    pub fn bytes(&self) -> Vec<u8> {
        ModelProto {
            ir_version: 8,
            opset_import: vec![OperatorSetId { domain: String::new(), version: self.opset }],
            graph: Some(self.graph.clone()),
            ..Default::default()
        }
        .encode_to_vec()
    }

    pub fn import_with(&self, options: &ImportOptions) -> Result<Module> {
        import_bytes("m.onnx", self.bytes(), options)
    }

    pub fn import(&self) -> Result<Module> {
        self.import_with(&ImportOptions::default())
    }

    /// What importing says where it fails.
    pub fn refused(&self) -> String {
        match self.import() {
            Ok(_) => "it was imported".into(),
            Err(e) => e.render(),
        }
    }
}

pub fn value<T: Into<D>>(
    name: &str,
    dtype: DataType,
    dims: impl IntoIterator<Item = T>,
) -> ValueInfoProto {
    let dim = |d: T| DimensionProto {
        value: Some(match d.into() {
            D::N(v) => DimensionValue::Value(v),
            D::S(s) => DimensionValue::Param(s.into()),
        }),
    };
    let shape = Some(TensorShapeProto { dim: dims.into_iter().map(dim).collect() });
    let tensor = TensorTypeProto { elem_type: dtype as i32, shape };
    let r#type = Some(TypeProto { value: Some(TypeValue::Tensor(tensor)) });
    ValueInfoProto { name: name.into(), r#type }
}

pub fn float_tensor(dims: &[i64], values: &[f32]) -> TensorProto {
    TensorProto {
        dims: dims.to_vec(),
        data_type: DataType::Float as i32,
        float_data: values.to_vec(),
        ..Default::default()
    }
}

pub fn int_tensor(dims: &[i64], values: &[i64]) -> TensorProto {
    TensorProto {
        dims: dims.to_vec(),
        data_type: DataType::Int64 as i32,
        int64_data: values.to_vec(),
        ..Default::default()
    }
}

fn attribute(name: &str, kind: AttributeType) -> AttributeProto {
    AttributeProto { name: name.into(), r#type: kind as i32, ..Default::default() }
}

pub fn int(name: &str, i: i64) -> AttributeProto {
    AttributeProto { i, ..attribute(name, AttributeType::Int) }
}

pub fn ints(name: &str, v: &[i64]) -> AttributeProto {
    AttributeProto { ints: v.to_vec(), ..attribute(name, AttributeType::Ints) }
}

pub fn float(name: &str, f: f32) -> AttributeProto {
    AttributeProto { f, ..attribute(name, AttributeType::Float) }
}

pub fn floats(name: &str, v: &[f32]) -> AttributeProto {
    AttributeProto { floats: v.to_vec(), ..attribute(name, AttributeType::Floats) }
}

pub fn text(name: &str, s: &str) -> AttributeProto {
    AttributeProto { s: s.as_bytes().to_vec().into(), ..attribute(name, AttributeType::String) }
}

pub fn tensor(name: &str, t: TensorProto) -> AttributeProto {
    AttributeProto { t: Some(Box::new(t)), ..attribute(name, AttributeType::Tensor) }
}

/// A graph inside of another one.
pub fn graph(name: &str, m: M) -> AttributeProto {
    AttributeProto { g: Some(Box::new(m.graph)), ..attribute(name, AttributeType::Graph) }
}

/// Numbers that differ from each other and are not round.
pub fn sample(shape: &[usize], seed: u32) -> Tensor {
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(12345);
    let values: Vec<f32> = (0..shape.iter().product::<usize>())
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / (1 << 23) as f32 - 1.0
        })
        .collect();
    Tensor::from_slice(shape, &values).unwrap_or_else(|e| panic!("{e}"))
}

/// Largest difference of two tensors of one shape and type.
pub fn distance(a: &Tensor, b: &Tensor) -> f64 {
    assert_eq!((a.shape(), a.dtype()), (b.shape(), b.dtype()));
    (0..a.len()).map(|i| (a.get_f64(i) - b.get_f64(i)).abs()).fold(0.0, f64::max)
}

pub const F32: DType = DType::F32;

/// A model of nodes of another domain, but for those that say theirs.
pub fn foreign(domain: &str, m: &M, versions: &[(&str, i64)]) -> Vec<u8> {
    let mut graph = m.graph.clone();
    let own = graph.node.iter_mut().filter(|node| node.domain.is_empty());
    own.for_each(|node| node.domain = domain.into());
    let opset = |(domain, version): &(&str, i64)| OperatorSetId {
        domain: (*domain).into(),
        version: *version,
    };
    ModelProto {
        ir_version: 8,
        opset_import: versions.iter().map(opset).collect(),
        graph: Some(graph),
        ..Default::default()
    }
    .encode_to_vec()
}

/// A list of texts.
pub fn texts(name: &str, words: &[&str]) -> AttributeProto {
    AttributeProto {
        name: name.into(),
        r#type: AttributeType::Strings as i32,
        strings: words.iter().map(|w| w.as_bytes().to_vec().into()).collect(),
        ..Default::default()
    }
}

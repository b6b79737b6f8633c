//! What a model or module takes and gives, as its file says it: before sizes are settled.

use std::fmt;
use std::ops::Range;

use crate::dtype::DType;
use crate::error::{Error, Result};

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
    /// Its name.
    pub name: String,
    /// Whether it is a tensor.
    pub kind: ValueKind,
    /// Element type; outputs need not say it.
    pub dtype: Option<DType>,
    /// Extents, where the rank is known.
    pub dims: Option<Vec<Dim>>,
}

/// What a value is; the types of sequences and optionals are those of the tensors in them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ValueKind {
    /// A tensor.
    #[default]
    Tensor,
    /// Tensors in order: `NAME.0`, `NAME.1`, ... are given for `NAME`.
    Sequence,
    /// A tensor that need not be there.
    Optional,
    /// A sequence that need not be there.
    OptionalSequence,
    /// A tensor of strings: it is given and comes as `uint8` with one more axis, along which the UTF-8
    /// bytes of each string lie, filled up with zeros.
    Text,
    /// Maps from keys to numbers, which only outputs are: one map, or a sequence of maps with the same
    /// keys. The numbers are the output `NAME`, with one row for each map of a sequence, and the keys are
    /// the output `NAME.keys`: `int64`, or strings. An input that is a map is two inputs of these names.
    Map,
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
    /// Whether what is given under a name is this value, or a tensor of this sequence.
    pub fn takes(&self, key: &str) -> bool {
        match self.kind {
            ValueKind::Tensor | ValueKind::Optional | ValueKind::Text | ValueKind::Map => {
                self.name == key
            }
            ValueKind::Sequence | ValueKind::OptionalSequence => {
                let at = key.strip_prefix(self.name.as_str()).and_then(|k| k.strip_prefix('.'));
                at.is_some_and(|at| at.parse::<usize>().is_ok_and(|n| n.to_string() == at))
            }
        }
    }

    /// The tensors that stand for it: itself, those of the sequence that are given, or none for an
    /// optional that is not.
    pub fn tensors(&self, is_given: impl Fn(&str) -> bool) -> Vec<ValueType> {
        let tensor = |name: String| ValueType { name, kind: ValueKind::Tensor, ..self.clone() };
        match self.kind {
            ValueKind::Tensor | ValueKind::Text | ValueKind::Map => vec![self.clone()],
            ValueKind::Optional if is_given(&self.name) => vec![tensor(self.name.clone())],
            ValueKind::Optional => Vec::new(),
            ValueKind::Sequence | ValueKind::OptionalSequence => {
                let names = (0usize..).map(|k| format!("{}.{k}", self.name));
                names.take_while(|name| is_given(name)).map(tensor).collect()
            }
        }
    }

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
        let mut sizes = dims.iter().zip(shape);
        if dims.len() == shape.len()
            && sizes.all(|(dim, size)| !matches!(dim, Dim::Fixed(own) if own != size))
        {
            return Ok(());
        }
        let dims: Vec<String> = dims.iter().map(Dim::to_string).collect();
        Err(Error::input(format!(
            "input `{name}` has the shape [{}], and was given {shape:?}",
            dims.join(", ")
        )))
    }

    /// The key of a size by name (`Sizes::dims` of `tilewright-graph`) for its first dimension,
    /// where this is open and neither its size nor its name is given.
    pub fn open_batch(&self, is_given: impl Fn(&str) -> bool) -> Option<String> {
        if self.kind != ValueKind::Tensor {
            return None;
        }
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

/// A file beside a model in which constants lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataFile {
    /// As the model names it: relative to the folder of the model.
    pub name: String,
    /// The bytes in which they lie, in the order of the file; no two touch.
    pub parts: Vec<Range<u64>>,
}

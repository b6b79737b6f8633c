//! Values while a graph is imported.

use std::sync::Arc;

use tilewright_ir::dim::{self, Integer};
use tilewright_ir::{DType, Dim, Error, GraphVar, Result, Tensor, TensorType};
use tilewright_ops::Operand;

use crate::texts::Texts;

/// A value while a graph is imported.
#[derive(Clone, Debug)]
pub(crate) enum Imported {
    /// Known at import.
    Const(Tensor),
    /// Integers that are known but for open sizes, such as a shape.
    Sizes(Sizes),
    /// Computed when the model runs; its shape is known.
    Var {
        /// The variable in the graph function.
        var: GraphVar,
        /// Extents.
        shape: Vec<Dim>,
        /// Element type.
        dtype: DType,
    },
    /// A list or an optional, when the model runs. Operators on tensors never see one.
    Item {
        /// The variable in the graph function.
        var: GraphVar,
        what: Like,
    },
    /// Strings, which are known at import. Operators on numbers never see them.
    Text(Texts),
    /// Strings of a list, each by its position in it: which ones they are is known when the model runs.
    /// Operators on numbers never see them.
    Chosen {
        /// The positions, `int64`.
        at: Box<Imported>,
        /// The list.
        of: Texts,
    },
    /// A map from keys to numbers, or a sequence of maps with the same keys. Operators on tensors never
    /// see one.
    Map {
        /// `int64` or strings `[K]`.
        keys: Box<Imported>,
        /// The numbers `[K]`, or `[N, K]` of a sequence.
        values: Box<Imported>,
    },
}

/// What a value is, without what it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Like {
    pub(crate) kind: Kind,
    /// The tensor, or the tensors inside; those extents of it are missing that its value brings.
    pub(crate) element: Element,
}

/// Whether a value is a tensor, or what holds some.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Tensor,
    /// Tensors, in order.
    List,
    /// A tensor, or nothing.
    OptionalTensor,
    /// A list of tensors, or nothing.
    OptionalList,
}

impl Like {
    /// What a value is.
    pub(crate) fn new(value: &Imported) -> Like {
        match value {
            Imported::Item { what, .. } => what.clone(),
            tensor => Like { kind: Kind::Tensor, element: Element::from_value(tensor) },
        }
    }

    /// What is either of two.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for values of different kinds, types or ranks.
    pub(crate) fn join(&self, other: &Like) -> Result<Like> {
        use Kind::{List, OptionalList, OptionalTensor, Tensor};
        let kind = match (self.kind, other.kind) {
            (a, b) if a == b => a,
            (OptionalTensor, Tensor) | (Tensor, OptionalTensor) => OptionalTensor,
            (OptionalList, List) | (List, OptionalList) => OptionalList,
            _ => return Err(Error::unsupported("a value that is a tensor or a list")),
        };
        let joined = self.element.join(&other.element);
        if kind == Tensor && !joined.as_ref().is_ok_and(|e| e.shape.is_some()) {
            let [(a, m), (b, n)] = [self, other].map(|of| {
                let Element { dtype, shape, .. } = &of.element;
                (dtype.unwrap_or(DType::HANDLE), shape.as_ref().map_or(0, Vec::len))
            });
            let error = format!("a value that is {a} of {m} dimensions or {b} of {n}");
            let error = Error::unsupported(error);
            return Err(if a == b { error.because(RanksDiffer) } else { error });
        }
        Ok(Like { kind, element: joined? })
    }

    /// Without the sizes that are known only inside of a body.
    pub(crate) fn outside(self, is_outside: impl Fn(Dim) -> bool) -> Like {
        let shape = self
            .element
            .shape
            .map(|s| s.into_iter().map(|d| d.filter(|d| is_outside(*d))).collect());
        Like { element: Element { shape, ..self.element }, ..self }
    }
}

/// The cause of an error: tensors that would have to be one have different numbers of dimensions.
pub(crate) struct RanksDiffer;

/// What is known of the tensors of a list.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) struct Element {
    /// Element type; nothing where there is no tensor yet.
    pub(crate) dtype: Option<DType>,
    /// Extents, of which those that are not known or differ are missing; nothing where there is no
    /// tensor yet.
    pub(crate) shape: Option<Vec<Option<Dim>>>,
    /// There are tensors of different numbers of dimensions; `shape` is nothing then.
    pub(crate) mixed: bool,
}

impl Element {
    /// Of tensors without axes.
    pub(crate) fn scalar(dtype: DType) -> Element {
        Element { dtype: Some(dtype), shape: Some(Vec::new()), mixed: false }
    }

    /// Of one tensor.
    pub(crate) fn from_value(value: &Imported) -> Element {
        let shape = value.shape().into_iter().map(Some).collect();
        Element { dtype: Some(value.dtype()), shape: Some(shape), ..Element::default() }
    }

    /// Of the tensors of both.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for tensors of different types.
    pub(crate) fn join(&self, other: &Element) -> Result<Element> {
        let dtype = match (self.dtype, other.dtype) {
            (Some(a), Some(b)) if a != b => {
                return Err(Error::unsupported(format!("a list of {a} and {b}")));
            }
            (a, b) => a.or(b),
        };
        let (mut mixed, mut shape) = (self.mixed || other.mixed, None);
        match (&self.shape, &other.shape) {
            (Some(a), Some(b)) if a.len() != b.len() => mixed = true,
            (Some(a), Some(b)) => {
                shape = Some(a.iter().zip(b).map(|(a, b)| a.filter(|_| a == b)).collect());
            }
            (a, b) => shape = a.clone().or(b.clone()),
        }
        Ok(Element { dtype, shape: shape.filter(|_| !mixed), mixed })
    }
}

impl Imported {
    /// The strings of a list that stand at some positions: which ones is known at once where these are.
    pub(crate) fn chosen(at: &Imported, of: &Texts) -> Result<Imported> {
        let Some(positions) = at.constant() else {
            return Ok(Imported::Chosen { at: Box::new(at.clone()), of: of.clone() });
        };
        let picked = (0..positions.len())
            .map(|k| {
                let text =
                    usize::try_from(positions.get_i128(k)).ok().and_then(|k| of.values().get(k));
                text.cloned().ok_or_else(|| Error::internal("a string that is not there"))
            })
            .collect::<Result<_>>()?;
        Texts::new(positions.shape(), picked).map(Imported::Text)
    }

    /// A new variable of the graph for a tensor, and its value.
    pub(crate) fn var_of(name: &str, operand: Operand) -> (GraphVar, Imported) {
        let var = GraphVar::tensor(name, tensor_type(&operand));
        let Operand { shape, dtype } = operand;
        (var.clone(), Imported::Var { var, shape, dtype })
    }

    /// Extents.
    pub(crate) fn shape(&self) -> Vec<Dim> {
        match self {
            Imported::Const(t) => dim::shape(t.shape()),
            Imported::Sizes(s) => dim::shape(&s.shape),
            Imported::Var { shape, .. } => shape.clone(),
            Imported::Item { .. } | Imported::Map { .. } => Vec::new(),
            Imported::Text(t) => dim::shape(t.shape()),
            Imported::Chosen { at, .. } => at.shape(),
        }
    }

    /// Number of axes.
    pub(crate) fn rank(&self) -> usize {
        match self {
            Imported::Const(t) => t.shape().len(),
            Imported::Sizes(s) => s.shape.len(),
            Imported::Var { shape, .. } => shape.len(),
            Imported::Item { .. } | Imported::Map { .. } => 0,
            Imported::Text(t) => t.shape().len(),
            Imported::Chosen { at, .. } => at.rank(),
        }
    }

    /// Element type.
    pub(crate) fn dtype(&self) -> DType {
        match self {
            Imported::Const(t) => t.dtype(),
            Imported::Sizes(s) => s.dtype,
            Imported::Var { dtype, .. } => *dtype,
            Imported::Item { .. }
            | Imported::Text(_)
            | Imported::Chosen { .. }
            | Imported::Map { .. } => DType::HANDLE,
        }
    }

    /// The tensor, where it is known at import.
    pub(crate) fn constant(&self) -> Option<&Tensor> {
        match self {
            Imported::Const(t) => Some(t),
            _ => None,
        }
    }

    /// The variable, where it is not known at import.
    pub(crate) fn var(&self) -> Option<&GraphVar> {
        match self {
            Imported::Var { var, .. } | Imported::Item { var, .. } => Some(var),
            _ => None,
        }
    }
}

/// Integers that are known but for open sizes, in row-major order.
#[derive(Clone, Debug)]
pub(crate) struct Sizes {
    /// Extents.
    pub(crate) shape: Vec<usize>,
    pub(crate) values: Arc<[Integer]>,
    /// Element type: `int64` or `int32`.
    pub(crate) dtype: DType,
}

/// Shape and type of a value, as the operators take them.
pub(crate) fn operand(value: &Imported) -> Operand {
    Operand { shape: value.shape(), dtype: value.dtype() }
}

/// The type of an operand in the graph.
pub(crate) fn tensor_type(o: &Operand) -> TensorType {
    TensorType { shape: o.shape.iter().map(|d| d.wide()).collect(), dtype: o.dtype }
}

//! Operators that are made of others: [`Compose`] calls the importers of those.
//!
//! Each call stands for a node of the newest operator set, whatever the model's own is. Constants are
//! folded on the way, as everywhere.

use tilewright_ir::{DType, Dim, Error, Result};

use tilewright_ops::Scalar;

use super::value;
use crate::build::Builder;
use crate::imported::Imported;
use crate::node::Node;
use crate::operator::OPSETS;
use crate::proto::{AttributeProto, AttributeType, Bytes, NodeProto};
use crate::sizes;

/// A node that is imported as several others.
pub(crate) struct Compose<'n, 'a, 'b> {
    outer: &'n Node<'a>,
    pub(crate) b: &'b mut Builder,
}

/// An integer attribute.
pub(crate) fn int(name: &str, value: i64) -> AttributeProto {
    let kind = AttributeType::Int;
    AttributeProto { i: value, ..named(name, kind) }
}

/// An attribute that is a list of integers.
pub(crate) fn ints(name: &str, values: &[i64]) -> AttributeProto {
    AttributeProto { ints: values.to_vec(), ..named(name, AttributeType::Ints) }
}

/// An attribute that is a number.
pub(crate) fn float(name: &str, value: f32) -> AttributeProto {
    AttributeProto { f: value, ..named(name, AttributeType::Float) }
}

/// An attribute that is a text.
pub(crate) fn text(name: &str, value: &str) -> AttributeProto {
    let s = Bytes::copy_from_slice(value.as_bytes());
    AttributeProto { s, ..named(name, AttributeType::String) }
}

fn named(name: &str, kind: AttributeType) -> AttributeProto {
    AttributeProto { name: name.to_owned(), r#type: kind as i32, ..Default::default() }
}

impl<'n, 'a, 'b> Compose<'n, 'a, 'b> {
    pub(crate) fn new(outer: &'n Node<'a>, b: &'b mut Builder) -> Self {
        Compose { outer, b }
    }

    /// The first result of an operator without attributes.
    pub(crate) fn op(&mut self, op: &str, inputs: &[&Imported]) -> Result<Imported> {
        self.with(op, inputs, [])
    }

    /// The first result of an operator.
    pub(crate) fn with(
        &mut self,
        op: &str,
        inputs: &[&Imported],
        attributes: impl IntoIterator<Item = AttributeProto>,
    ) -> Result<Imported> {
        let inputs: Vec<Option<&Imported>> = inputs.iter().map(|v| Some(*v)).collect();
        self.first(op, &inputs, attributes)
    }

    /// The first result of an operator, some of whose inputs may be absent.
    pub(crate) fn first(
        &mut self,
        op: &str,
        inputs: &[Option<&Imported>],
        attributes: impl IntoIterator<Item = AttributeProto>,
    ) -> Result<Imported> {
        let results = self.all(op, inputs, attributes, 1)?;
        let first = results.into_iter().next();
        first.ok_or_else(|| Error::internal(format!("`{op}` has no result")))
    }

    /// As many results of an operator as are wanted, some of whose inputs may be absent.
    pub(crate) fn all(
        &mut self,
        op: &str,
        inputs: &[Option<&Imported>],
        attributes: impl IntoIterator<Item = AttributeProto>,
        outputs: usize,
    ) -> Result<Vec<Imported>> {
        let proto = NodeProto {
            op_type: op.to_owned(),
            attribute: attributes.into_iter().collect(),
            output: (0..outputs).map(|k| format!("{op}_{k}")).collect(),
            ..Default::default()
        };
        let inputs = inputs.iter().map(|v| v.cloned()).collect();
        let node = Node::new(&proto, self.outer.label.clone(), OPSETS.1, inputs, None)?;
        let import = (self.b.importers)(op)?;
        let results = import(&node, self.b);
        self.outer.pass_on(&node);
        results.and_then(|results| node.finish().map(|()| results))
    }

    /// One number of a type.
    pub(crate) fn number(&mut self, dtype: DType, value: f64) -> Result<Imported> {
        value::constant(dtype, &[], &[value])
    }

    pub(crate) fn reshape<D: Into<Dim> + Copy>(
        &mut self,
        x: &Imported,
        shape: &[D],
    ) -> Result<Imported> {
        value::reshape_to(self.b, x, shape)
    }

    pub(crate) fn cast(&mut self, x: &Imported, to: DType) -> Result<Imported> {
        value::convert(self.b, x, to)
    }

    pub(crate) fn transpose(&mut self, x: &Imported, order: &[usize]) -> Result<Imported> {
        if order.iter().copied().eq(0..order.len()) {
            return Ok(x.clone());
        }
        value::transpose_by(self.b, x, order)
    }

    pub(crate) fn expand<D: Into<Dim> + Copy>(
        &mut self,
        x: &Imported,
        shape: &[D],
    ) -> Result<Imported> {
        let shape: Vec<Dim> = shape.iter().map(|d| (*d).into()).collect();
        let shape = sizes::list(&shape)?;
        self.op("Expand", &[x, &shape])
    }

    /// An open size or a number as a tensor without axes.
    pub(crate) fn size(&mut self, size: impl Into<Dim>) -> Result<Imported> {
        sizes::value(&[], vec![size.into().into()], DType::I64)
    }

    /// The numbers from zero up to a size, as `int64`.
    pub(crate) fn positions(&mut self, count: impl Into<Dim>) -> Result<Imported> {
        let count = count.into();
        match count.known() {
            Some(count) => value::list(&(0..count as i64).collect::<Vec<_>>()),
            None => value::called_range(self.b, Scalar::Int(0), Scalar::Int(1), count, DType::I64),
        }
    }

    /// Complex numbers, as their real and imaginary parts, turned by angles, as their cosines and sines.
    pub(crate) fn turned(
        &mut self,
        [re, im]: [&Imported; 2],
        [cos, sin]: [&Imported; 2],
    ) -> Result<(Imported, Imported)> {
        let [x, y] = [self.op("Mul", &[cos, re])?, self.op("Mul", &[sin, im])?];
        let real = self.op("Sub", &[&x, &y])?;
        let [x, y] = [self.op("Mul", &[cos, im])?, self.op("Mul", &[sin, re])?];
        Ok((real, self.op("Add", &[&x, &y])?))
    }

    /// The part of an axis from one position up to another.
    pub(crate) fn slice(
        &mut self,
        x: &Imported,
        axis: usize,
        from: impl Into<Dim>,
        to: impl Into<Dim>,
    ) -> Result<Imported> {
        let (from, to) = (from.into(), to.into());
        if from == 0 && x.shape().get(axis) == Some(&to) {
            return Ok(x.clone());
        }
        let [from, to, axis] = [from, to, axis.into()].map(|v| sizes::list(&[v]));
        self.op("Slice", &[x, &from?, &to?, &axis?])
    }

    /// The elements along the first axis from the last one to the first.
    pub(crate) fn reversed(&mut self, x: &Imported) -> Result<Imported> {
        let [from, to, axes, steps] = [-1, i64::MIN + 1, 0, -1].map(|n| value::list(&[n]));
        self.op("Slice", &[x, &from?, &to?, &axes?, &steps?])
    }

    /// The position that lies as far from the end of so many as one that is given lies from the start.
    pub(crate) fn counted_back(
        &mut self,
        count: impl Into<Dim>,
        position: &Imported,
    ) -> Result<Imported> {
        let (count, one) = (self.size(count)?, self.number(DType::I64, 1.0)?);
        let last = self.op("Sub", &[&count, &one])?;
        self.op("Sub", &[&last, position])
    }

    pub(crate) fn concat(&mut self, parts: &[&Imported], axis: usize) -> Result<Imported> {
        self.with("Concat", parts, [int("axis", axis as i64)])
    }

    /// What a value holds but for channels of zeros behind it, if that is known.
    pub(crate) fn filled(&self, x: &Imported) -> Option<&Imported> {
        self.b.filled.get(&x.var()?.id())
    }

    /// Notes that a value is another one with channels of zeros behind it.
    pub(crate) fn note_filled(&mut self, whole: &Imported, part: &Imported) {
        if let Some(var) = whole.var() {
            self.b.filled.insert(var.id(), part.clone());
        }
    }

    /// Where all of some conditions hold, and one more.
    pub(crate) fn also(&mut self, all: Option<Imported>, more: Imported) -> Result<Imported> {
        all.map_or(Ok(more.clone()), |all| self.op("And", &[&all, &more]))
    }

    /// A reduction over some axes, which stay with extent one if `keep`.
    pub(crate) fn reduce(
        &mut self,
        op: &str,
        x: &Imported,
        axes: &[usize],
        keep: bool,
    ) -> Result<Imported> {
        let axes: Vec<i64> = axes.iter().map(|&a| a as i64).collect();
        let empty = int("noop_with_empty_axes", 1);
        self.with(op, &[x, &value::list(&axes)?], [int("keepdims", keep.into()), empty])
    }
}

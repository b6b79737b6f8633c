//! Values that importers of many operators make.

use std::slice;

use tilewright_ir::dim::Integer;
use tilewright_ir::list::ListOp;
use tilewright_ir::signature::ValueKind;
use tilewright_ir::{Attr, Attrs, DType, Dim, Error, Result, Tensor, dim};
use tilewright_ops::{Operand, Scalar, creation, elementwise, movement};

use crate::build::{Builder, Entry};
use crate::extents::check_rank;
use crate::fold::{self, View, row_major};
use crate::imported::{Element, Imported, Kind, operand};
use crate::texts::Texts;

/// The element of a tensor with one element.
pub(crate) fn scalar(t: &Tensor) -> Scalar {
    if t.dtype().is_float() {
        Scalar::Float(t.get_f64(0))
    } else {
        // An unsigned number above the signed range goes by its bits.
        Scalar::Int(t.get_i128(0) as i64)
    }
}

/// So many numbers from one on, each by a number above the one before.
pub(crate) fn called_range(
    b: &mut Builder,
    start: Scalar,
    delta: Scalar,
    count: impl Into<Dim>,
    dtype: DType,
) -> Result<Imported> {
    let count = count.into();
    b.call("range", &(start, delta, count, dtype), [], || {
        creation::range(start, delta, count, dtype)
    })
}

/// Converts a value; a constant at once.
pub(crate) fn convert(b: &mut Builder, x: &Imported, to: DType) -> Result<Imported> {
    match x {
        _ if x.dtype() == to => Ok(x.clone()),
        Imported::Const(t) => {
            b.budget.charge(&Operand::new(t.shape(), to))?;
            fold::cast(t, to).map(Imported::Const)
        }
        _ => {
            let made = b.call_on("cast", [x], to, |[x]| elementwise::cast(x, to))?;
            if matches!(x.dtype(), DType::I64 | DType::I32) {
                b.note_parts(&made, slice::from_ref(x));
            }
            Ok(made)
        }
    }
}

/// A list of numbers that the import has computed.
pub(crate) fn list(values: &[i64]) -> Result<Imported> {
    Tensor::from_slice(&[values.len()], values).map(Imported::Const)
}

/// A constant of a type, from numbers.
pub(crate) fn constant(dtype: DType, shape: &[usize], values: &[f64]) -> Result<Imported> {
    fold::cast(&Tensor::from_slice(shape, values)?, dtype).map(Imported::Const)
}

/// One element everywhere: a constant, where no size is open.
pub(crate) fn full(b: &mut Builder, shape: &[Dim], value: &Tensor) -> Result<Imported> {
    let dtype = value.dtype();
    match dim::known(shape) {
        Some(known) => {
            b.budget.charge(&Operand::new(&known, dtype))?;
            fold::full(dtype, &known, value.bytes()).map(Imported::Const)
        }
        None => {
            let value = scalar(value);
            let full =
                b.call("full", &(shape, value, dtype), [], || creation::full(shape, value, dtype))?;
            if let Some(var) = full.var() {
                b.uniform.insert(var.id(), value);
            }
            Ok(full)
        }
    }
}

/// The same elements under another shape of as many elements.
pub(crate) fn reshape_to<D: Into<Dim> + Copy>(
    b: &mut Builder,
    x: &Imported,
    shape: &[D],
) -> Result<Imported> {
    let shape: &[Dim] = &shape.iter().map(|d| (*d).into()).collect::<Vec<_>>();
    check_rank(shape.len())?;
    match x {
        _ if x.shape() == shape => Ok(x.clone()),
        Imported::Const(t) if dim::is_known(shape) => {
            let made = t.reshape(&dim::fixed(shape, "reshape")?).map(Imported::Const)?;
            if b.has_origin(t) {
                let of = operand(x);
                b.keep_origin(&made, "reshape", &([&of], shape), [x], || {
                    movement::reshape(&of, shape)
                })?;
            }
            Ok(made)
        }
        _ => {
            let made = b.call_on("reshape", [x], shape, |[x]| movement::reshape(x, shape))?;
            b.note_parts(&made, slice::from_ref(x));
            Ok(made)
        }
    }
}

/// The entries of a short list of integers: what is known of them, and sizes where data decide.
pub(crate) fn integers(b: &mut Builder, list: &Imported) -> Result<Vec<Integer>> {
    let entries = b.entries(list).unwrap_or_default();
    if entries.iter().all(|entry| matches!(entry, Entry::Of(of, _) if of.var() == list.var())) {
        let flat = reshape_to(b, list, &[entries.len()])?;
        return Ok(b.sizes_of(&flat, entries.len())?.into_iter().map(Integer::from).collect());
    }
    let mut found = Vec::with_capacity(entries.len());
    for entry in entries {
        found.push(match entry {
            Entry::Known(value) => value,
            Entry::Of(of, at) => {
                let only = entry_of(b, &of, at)?;
                let size = b.sizes_of(&only, 1)?.pop();
                size.ok_or_else(|| Error::internal("there is no size"))?.into()
            }
        });
    }
    Ok(found)
}

/// The list of the one element that stands at a position of a value, in row-major order.
fn entry_of(b: &mut Builder, of: &Imported, at: usize) -> Result<Imported> {
    let count = dim::product(of.shape());
    let flat = reshape_to(b, of, &[count])?;
    if count == 1 {
        return Ok(flat);
    }
    let (from, to) = ([at as i64], [at as i64 + 1]);
    b.call_on("slice", [&flat], (from, to), |[x]| movement::slice(x, &from, &to, &[0], &[1]))
}

/// Axes in another order.
pub(crate) fn transpose_by(b: &mut Builder, x: &Imported, order: &[usize]) -> Result<Imported> {
    if let Imported::Const(t) = x {
        let steps = row_major(t.shape());
        let view = View {
            offset: 0,
            shape: order.iter().map(|&k| t.shape()[k]).collect(),
            steps: order.iter().map(|&k| steps[k]).collect(),
        };
        let made = moved(b, t, &view)?;
        if b.has_origin(t) {
            let of = operand(x);
            b.keep_origin(&made, "transpose", &([&of], order), [x], || {
                movement::transpose(&of, order)
            })?;
        }
        return Ok(made);
    }
    b.call_on("transpose", [x], order, |[x]| movement::transpose(x, order))
}

/// The bytes of strings that stand at some positions of a list, along one more axis.
pub(crate) fn bytes_of(b: &mut Builder, at: &Imported, of: &Texts) -> Result<Imported> {
    let table = Imported::Const(of.to_bytes()?);
    b.call_on("texts", [&table, at], (), |[table, at]| movement::gather(table, at, 0))
}

/// A view of a constant as a constant.
pub(crate) fn moved(b: &mut Builder, t: &Tensor, view: &View) -> Result<Imported> {
    b.budget.charge(&Operand::new(&view.shape, t.dtype()))?;
    fold::materialize(t, view).map(Imported::Const)
}

/// Attributes of an operator on lists.
pub(crate) fn numbers(list: &[(&str, i64)]) -> Attrs {
    list.iter().map(|(name, n)| ((*name).into(), Attr::Int(*n))).collect()
}

/// What is given for an input of the model that is a sequence or an optional, which may be absent.
pub(crate) fn given(
    b: &mut Builder,
    kind: ValueKind,
    values: &[Imported],
    declared: Element,
) -> Result<Imported> {
    let none = Attrs::new();
    match kind {
        ValueKind::Optional | ValueKind::Tensor | ValueKind::Text | ValueKind::Map => {
            b.list(ListOp::Nothing, &[], none, Kind::OptionalTensor, declared)
        }
        ValueKind::OptionalSequence if values.is_empty() => {
            let declared = Element { shape: None, ..declared };
            b.list(ListOp::Nothing, &[], none, Kind::OptionalList, declared)
        }
        ValueKind::Sequence | ValueKind::OptionalSequence => {
            let element = match values {
                // It may come to hold tensors of any shape.
                [] => Element { shape: None, ..declared },
                [first, rest @ ..] => rest
                    .iter()
                    .try_fold(Element::from_value(first), |e, v| e.join(&Element::from_value(v)))?,
            };
            b.list(ListOp::Of, values, none, Kind::List, element)
        }
    }
}

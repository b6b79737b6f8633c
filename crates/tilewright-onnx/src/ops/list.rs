//! Sequences and optionals.
//!
//! Which values a sequence holds is often known at import: what is taken from it at a known position is that value
//! then, and no sequence is left when the model runs.

use tilewright_ir::list::{ListOp, integer};
use tilewright_ir::signature::ValueKind;
use tilewright_ir::{Attrs, DType, Dim, Error, Result, Tensor};
use tilewright_ops::Scalar;

use super::{arithmetic, one};
use crate::build::Builder;
use crate::data;
use crate::imported::{Element, Imported, Kind, Like};
use crate::model::described;
use crate::node::{Node, axis, required};
use crate::operator::{MANY, Operator, lists, maps, op, texts};
use crate::ops::compose::Compose;
use crate::ops::value::numbers;

/// The operators that are imported here.
pub(crate) static OPERATORS: &[Operator] = &[
    lists(op("ConcatFromSequence", 11, 1, concat_from)),
    maps(texts(lists(op("Identity", 1, 1, identity)))),
    lists(op("Optional", 15, 1, optional)),
    lists(op("OptionalGetElement", 15, 1, optional_get)),
    lists(op("OptionalHasElement", 15, 1, optional_has)),
    lists(op("SequenceAt", 11, 2, at)),
    lists(op("SequenceConstruct", 11, MANY, construct)),
    lists(op("SequenceEmpty", 11, 0, empty)),
    lists(op("SequenceErase", 11, 2, erase)),
    lists(op("SequenceInsert", 11, 3, insert)),
    lists(op("SequenceLength", 11, 1, length)),
    lists(op("SplitToSequence", 11, 2, split_to)),
];

/// The list of an input, and what it holds.
fn list(node: &Node, at: usize) -> Result<(Imported, Element)> {
    match node.input(at)? {
        value @ Imported::Item { what: Like { kind: Kind::List, element }, .. } => {
            Ok((value.clone(), element.clone()))
        }
        _ => Err(Error::model(format!("input {at} is no sequence"))),
    }
}

/// A position: one integer.
fn position(node: &Node, at: usize) -> Result<Option<Imported>> {
    let Some(value) = node.optional(at) else { return Ok(None) };
    if value.dtype().is_int() && value.shape().iter().all(|d| *d == 1) {
        Ok(Some(value.clone()))
    } else {
        Err(Error::model(format!("input {at}, a position, is not one integer")))
    }
}

fn tensor(node: &Node, at: usize) -> Result<Imported> {
    match node.input(at)? {
        Imported::Item { .. } => Err(Error::model(format!("input {at} is no tensor"))),
        value => Ok(value.clone()),
    }
}

/// Most parts of a tensor that are known one by one.
const MOST_PARTS: usize = 64;

/// The elements of a list, where they are known.
fn elements<'b>(b: &'b Builder, list: &Imported) -> Option<&'b Vec<Imported>> {
    match list {
        Imported::Item { var, .. } => b.elements_of.get(&var.id()),
        _ => None,
    }
}

/// A list whose elements are known, or are not.
fn holding(b: &mut Builder, list: Imported, elements: Option<Vec<Imported>>) -> Vec<Imported> {
    if let (Imported::Item { var, .. }, Some(elements)) = (&list, elements) {
        b.elements_of.insert(var.id(), elements);
    }
    vec![list]
}

/// Where a known position lies in so many elements; negative ones are counted from the end.
fn known_place(position: &Imported, count: usize) -> Option<usize> {
    let at = integer(position.constant()?).ok()?;
    let at = if at < 0 { at.checked_add(i64::try_from(count).ok()?)? } else { at };
    usize::try_from(at).ok()
}

pub(crate) fn identity(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    match node.input(0)? {
        value @ (Imported::Item { .. }
        | Imported::Text(_)
        | Imported::Chosen { .. }
        | Imported::Map { .. }) => one(value.clone()),
        _ => arithmetic::identity(node, b),
    }
}

pub(crate) fn construct(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let values = (0..node.input_count()).map(|at| tensor(node, at)).collect::<Result<Vec<_>>>()?;
    let element =
        values.iter().try_fold(Element::default(), |e, v| e.join(&Element::from_value(v)))?;
    let list = b.list(ListOp::Of, &values, Attrs::new(), Kind::List, element)?;
    Ok(holding(b, list, Some(values)))
}

pub(crate) fn empty(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let dtype = node.element("dtype", data::element_type)?.unwrap_or(DType::F32);
    let element = Element { dtype: Some(dtype), ..Element::default() };
    let list = b.list(ListOp::Of, &[], Attrs::new(), Kind::List, element)?;
    Ok(holding(b, list, Some(Vec::new())))
}

pub(crate) fn at(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let (value, element) = list(node, 0)?;
    let at = required(position(node, 1)?, "input 1")?;
    if let Some(all) = elements(b, &value)
        && let Some(element) = known_place(&at, all.len()).and_then(|k| all.get(k))
    {
        return one(element.clone());
    }
    one(b.out_of_list(ListOp::At, &[value, at], Attrs::new(), &element)?)
}

pub(crate) fn insert(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let (value, element) = list(node, 0)?;
    let new = tensor(node, 1)?;
    let element = element.join(&Element::from_value(&new))?;
    let place = position(node, 2)?;
    let known = elements(b, &value).cloned().and_then(|mut all| {
        let at = match &place {
            Some(place) => known_place(place, all.len()).filter(|at| *at <= all.len())?,
            None => all.len(),
        };
        all.insert(at, new.clone());
        Some(all)
    });
    let args: Vec<Imported> = [value, new].into_iter().chain(place).collect();
    let list = b.list(ListOp::Insert, &args, Attrs::new(), Kind::List, element)?;
    Ok(holding(b, list, known))
}

pub(crate) fn erase(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let (value, element) = list(node, 0)?;
    let place = position(node, 1)?;
    let known = elements(b, &value).cloned().and_then(|mut all| {
        let at = match &place {
            Some(place) => known_place(place, all.len()),
            None => all.len().checked_sub(1),
        };
        let at = at.filter(|at| *at < all.len())?;
        all.remove(at);
        Some(all)
    });
    let args: Vec<Imported> = [value].into_iter().chain(place).collect();
    let list = b.list(ListOp::Erase, &args, Attrs::new(), Kind::List, element)?;
    Ok(holding(b, list, known))
}

pub(crate) fn length(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let (value, _) = list(node, 0)?;
    if let Some(all) = elements(b, &value) {
        let count = i64::try_from(all.len()).unwrap_or(i64::MAX);
        return one(Imported::Const(Tensor::from_slice(&[], &[count])?));
    }
    one(b.out_of_list(ListOp::Length, &[value], Attrs::new(), &Element::scalar(DType::I64))?)
}

pub(crate) fn split_to(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let x = tensor(node, 0)?;
    let along = axis(node.int_or("axis", 0)?, x.rank())?;
    let keep = node.int_or("keepdims", 1)? != 0;
    let lengths = node.optional(1).map(|_| tensor(node, 1)).transpose()?;
    if let Some(l) = lengths.as_ref().filter(|l| !l.dtype().is_int() || l.rank() > 1) {
        return Err(Error::model(format!("the lengths of the parts are {}", l.dtype())));
    }
    let mut shape: Vec<Option<Dim>> = x.shape().into_iter().map(Some).collect();
    match (&lengths, keep) {
        (None, false) => drop(shape.remove(along)),
        (None, true) => shape[along] = Some(1.into()),
        (Some(l), _) => shape[along] = length_of_each(b, x.shape()[along], l),
    }
    let element = Element { dtype: Some(x.dtype()), shape: Some(shape), ..Element::default() };
    let attrs = numbers(&[("axis", along as i64), ("keepdims", i64::from(keep))]);
    let known = known_parts(node, b, &x, along, lengths.as_ref(), keep)?;
    let args: Vec<Imported> = [x].into_iter().chain(lengths).collect();
    let list = b.list(ListOp::Split, &args, attrs, Kind::List, element)?;
    Ok(holding(b, list, known))
}

/// The parts of a tensor along an axis, where their lengths are known.
fn known_parts(
    node: &Node,
    b: &mut Builder,
    x: &Imported,
    along: usize,
    lengths: Option<&Imported>,
    keep: bool,
) -> Result<Option<Vec<Imported>>> {
    let Some(parts) = lengths_of_parts(x.shape()[along], lengths) else { return Ok(None) };
    let mut c = Compose::new(node, b);
    let (mut all, mut from) = (Vec::with_capacity(parts.len()), Dim::from(0));
    for length in parts {
        let to = from + length;
        let mut part = c.slice(x, along, from, to)?;
        if lengths.is_none() && !keep {
            let mut shape = part.shape();
            shape.remove(along);
            part = c.reshape(&part, &shape)?;
        }
        all.push(part);
        from = to;
    }
    Ok(Some(all))
}

/// The length that all parts of an axis have, where that is known: parts of one need not divide anything.
fn length_of_each(b: &Builder, extent: Dim, lengths: &Imported) -> Option<Dim> {
    if let Some(Scalar::Int(each)) = lengths.var().and_then(|v| b.uniform.get(&v.id())) {
        return usize::try_from(*each)
            .ok()
            .filter(|n| *n > 0 && lengths.rank() == 1)
            .map(Dim::from);
    }
    let Imported::Const(t) = lengths else { return None };
    let all: Vec<i128> = (0..t.len()).map(|k| t.get_i128(k)).collect();
    let (first, others) = all.split_first()?;
    let each = usize::try_from(*first).ok().filter(|n| *n > 0)?;
    let whole = !t.shape().is_empty() || each == 1 || extent.known().is_some_and(|n| n % each == 0);
    (whole && others.iter().all(|n| n == first)).then(|| each.into())
}

/// The lengths of the parts of an axis, where they are known and make up all of it.
fn lengths_of_parts(extent: Dim, lengths: Option<&Imported>) -> Option<Vec<Dim>> {
    let count = |n: i64| usize::try_from(n).ok().filter(|n| *n > 0);
    let listed: Vec<Dim> = match lengths {
        Some(Imported::Const(t)) if t.shape().len() == 1 => {
            let lengths = (0..t.len()).map(|k| i64::try_from(t.get_i128(k)).ok().and_then(count));
            lengths.map(|n| n.map(Dim::from)).collect::<Option<_>>()?
        }
        Some(Imported::Sizes(s)) if s.shape.len() == 1 => {
            let lengths = s.values.iter().map(|v| v.dim().filter(|d| d.at_least(1)));
            lengths.collect::<Option<_>>()?
        }
        _ => Vec::new(),
    };
    if !listed.is_empty() {
        let total = listed.iter().fold(Dim::from(0), |sum, n| sum + *n);
        return (total == extent && listed.len() <= MOST_PARTS).then_some(listed);
    }
    let each = match lengths {
        None => 1,
        Some(Imported::Const(t)) if t.shape().is_empty() => count(integer(t).ok()?)?,
        Some(_) => return None,
    };
    let extent = extent.known().filter(|n| n.div_ceil(each) <= MOST_PARTS)?;
    let lengths = (0..extent).step_by(each).map(|from| Dim::from(each.min(extent - from)));
    Some(lengths.collect())
}

pub(crate) fn concat_from(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let (value, element) = list(node, 0)?;
    let new = node.int_or("new_axis", 0)? != 0;
    let along = required(node.int("axis")?, "attribute `axis`")?;
    let Some(mut shape) = element.shape.clone() else {
        return Err(Error::unsupported(
            "the number of dimensions of what the sequence holds is not known",
        ));
    };
    let along = axis(along, shape.len() + usize::from(new))?;
    if let Some(joined) = joined(node, b, &value, along, new)? {
        return one(joined);
    }
    if new {
        shape.insert(along, None)
    } else {
        shape[along] = None
    }
    let attrs = numbers(&[("axis", along as i64), ("new_axis", i64::from(new))]);
    let element = Element { shape: Some(shape), ..element };
    one(b.out_of_list(ListOp::Join, &[value], attrs, &element)?)
}

/// The elements of a list along an axis, where they are known, and as large as one another along the others.
fn joined(
    node: &Node,
    b: &mut Builder,
    list: &Imported,
    along: usize,
    new: bool,
) -> Result<Option<Imported>> {
    let Some(all) = elements(b, list).cloned().filter(|all| !all.is_empty()) else {
        return Ok(None);
    };
    let others = |value: &Imported| {
        let mut shape = value.shape();
        if !new && along < shape.len() {
            shape.remove(along);
        }
        (value.dtype(), shape)
    };
    let first = others(&all[0]);
    if all.iter().any(|value| others(value) != first) {
        return Ok(None);
    }
    let mut c = Compose::new(node, b);
    let parts = all.iter().map(|value| {
        if !new {
            return Ok(value.clone());
        }
        let mut shape = value.shape();
        shape.insert(along, 1.into());
        c.reshape(value, &shape)
    });
    let parts: Vec<Imported> = parts.collect::<Result<_>>()?;
    c.concat(&parts.iter().collect::<Vec<_>>(), along).map(Some)
}

pub(crate) fn optional(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let ty = node.type_proto("type")?;
    if let Some(value) = node.optional(0) {
        return one(value.clone());
    }
    let (kind, dtype) = match ty {
        Some(ty) => {
            let (kind, dtype, _) = described(ty, "output")?;
            (kind, dtype)
        }
        None => (ValueKind::Tensor, None),
    };
    let element = Element { dtype, ..Element::default() };
    let kind = match kind {
        ValueKind::Sequence | ValueKind::OptionalSequence => Kind::OptionalList,
        _ => Kind::OptionalTensor,
    };
    one(b.list(ListOp::Nothing, &[], Attrs::new(), kind, element)?)
}

pub(crate) fn optional_has(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    match node.optional(0) {
        None => truth(false),
        Some(value)
            if matches!(Like::new(value).kind, Kind::OptionalTensor | Kind::OptionalList) =>
        {
            let flag = Element::scalar(DType::BOOL);
            one(b.out_of_list(ListOp::Has, std::slice::from_ref(value), Attrs::new(), &flag)?)
        }
        Some(_) => truth(true),
    }
}

fn truth(v: bool) -> Result<Vec<Imported>> {
    one(Imported::Const(Tensor::from_bools(&[], &[v])?))
}

pub(crate) fn optional_get(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let value = node.input(0)?;
    let (Like { kind, element }, args) = (Like::new(value), std::slice::from_ref(value));
    one(match kind {
        Kind::OptionalTensor => b.out_of_list(ListOp::Get, args, Attrs::new(), &element)?,
        Kind::OptionalList => b.list(ListOp::Get, args, Attrs::new(), Kind::List, element)?,
        Kind::Tensor | Kind::List => value.clone(),
    })
}

//! Lists and optionals: values of graph functions that are no tensors, and what can be done to them.
//!
//! A [`Item`] is a tensor, a list of values, or nothing. The operators ([`ListOp`]) are few and move
//! values; what they compute is here once, for the interpreter and for compiled code. Positions may
//! count from the end.

use std::sync::Arc;

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::stmt::{Attr, Attrs};
use crate::tensor::Tensor;

/// A value.
#[derive(Clone, Debug)]
pub enum Item {
    Tensor(Tensor),
    /// Values in order.
    List(Arc<Vec<Item>>),
    /// An optional without a value; one with a value is that value.
    Nothing,
}

/// An operator on lists and optionals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ListOp {
    /// A list of the arguments.
    Of,
    /// The value at a position.
    At,
    /// A list with one more value: before a position, or at the end.
    Insert,
    /// A list without the value at a position, or without the last one.
    Erase,
    /// How many values there are, one `int64`.
    Length,
    /// The parts of a tensor along `axis`: of the lengths that the second argument lists, of one
    /// length each where that is a scalar, or of length one; `keepdims=0` drops the axis of these.
    Split,
    /// The tensors of a list, joined along `axis`; with `new_axis=1` along an axis that they lack.
    Join,
    /// No value.
    Nothing,
    /// Whether an optional has a value, one `bool`.
    Has,
    /// The value of an optional.
    Get,
}

const OPS: [(&str, ListOp); 10] = [
    ("R.list.of", ListOp::Of),
    ("R.list.at", ListOp::At),
    ("R.list.insert", ListOp::Insert),
    ("R.list.erase", ListOp::Erase),
    ("R.list.length", ListOp::Length),
    ("R.list.split", ListOp::Split),
    ("R.list.join", ListOp::Join),
    ("R.optional.nothing", ListOp::Nothing),
    ("R.optional.has", ListOp::Has),
    ("R.optional.get", ListOp::Get),
];

impl ListOp {
    /// The operator of a name.
    pub fn find(name: &str) -> Option<ListOp> {
        OPS.iter().find(|(n, _)| *n == name).map(|(_, op)| *op)
    }

    pub fn name(self) -> &'static str {
        OPS.iter().find(|(_, op)| *op == self).map_or("R.list", |(name, _)| name)
    }

    /// Fewest and most arguments.
    pub fn arity(self) -> (usize, usize) {
        match self {
            ListOp::Of => (0, usize::MAX),
            ListOp::At => (2, 2),
            ListOp::Insert => (2, 3),
            ListOp::Erase => (1, 2),
            ListOp::Length | ListOp::Join | ListOp::Has | ListOp::Get => (1, 1),
            ListOp::Split => (1, 2),
            ListOp::Nothing => (0, 0),
        }
    }

    /// The type of its result, where that is one number or truth value.
    pub fn scalar(self) -> Option<DType> {
        match self {
            ListOp::Length => Some(DType::I64),
            ListOp::Has => Some(DType::BOOL),
            _ => None,
        }
    }

    /// What it gives for these arguments, which are as many as it takes.
    ///
    /// # Errors
    /// [`Error::Execution`] for a position that is not there, lengths that do not fit, tensors that
    /// cannot be joined, and the value of an optional without one.
    pub fn apply(self, args: Vec<Item>, attrs: &Attrs) -> Result<Item> {
        let mut args = args.into_iter();
        let mut next = || args.next().ok_or_else(|| wrong("an argument is missing"));
        Ok(match self {
            ListOp::Of => Item::List(Arc::new(args.collect())),
            ListOp::At => {
                let list = next()?.list()?;
                let at = position(&next()?, list.len(), list.len())?;
                list[at].clone()
            }
            ListOp::Insert => {
                let mut list = next()?.list()?;
                let value = next()?;
                let at = match args.next() {
                    Some(at) => position(&at, list.len(), list.len() + 1)?,
                    None => list.len(),
                };
                Arc::make_mut(&mut list).insert(at, value);
                Item::List(list)
            }
            ListOp::Erase => {
                let mut list = next()?.list()?;
                let at = match args.next() {
                    Some(at) => position(&at, list.len(), list.len())?,
                    None => list.len().checked_sub(1).ok_or_else(empty)?,
                };
                Arc::make_mut(&mut list).remove(at);
                Item::List(list)
            }
            ListOp::Length => {
                let length = next()?.list()?.len();
                Item::Tensor(Tensor::from_slice(&[], &[length as i64])?)
            }
            ListOp::Split => {
                let x = next()?.tensor()?;
                let lengths = args.next().map(Item::tensor).transpose()?;
                let axis = axis(number_of("axis", 0, attrs), x.shape().len())?;
                split(&x, lengths.as_ref(), axis, number_of("keepdims", 1, attrs) != 0)?
            }
            ListOp::Join => {
                let list = next()?.list()?;
                let parts: Vec<Tensor> =
                    list.iter().cloned().map(Item::tensor).collect::<Result<_>>()?;
                Item::Tensor(join(
                    &parts,
                    number_of("axis", 0, attrs),
                    number_of("new_axis", 0, attrs) != 0,
                )?)
            }
            ListOp::Nothing => Item::Nothing,
            ListOp::Has => {
                let has = !matches!(next()?, Item::Nothing);
                Item::Tensor(Tensor::from_bools(&[], &[has])?)
            }
            ListOp::Get => match next()? {
                Item::Nothing => return Err(wrong("the optional has no value")),
                value => value,
            },
        })
    }
}

fn number_of(key: &str, default: i64, attrs: &Attrs) -> i64 {
    match attrs.get(key) {
        Some(Attr::Int(n)) => *n,
        Some(Attr::Bool(b)) => i64::from(*b),
        _ => default,
    }
}

impl Item {
    /// Its tensors by name: a tensor has the name itself, those of a list `NAME.0`, `NAME.1`, ... An
    /// optional without a value has none.
    pub fn named(self, name: &str) -> Vec<(String, Tensor)> {
        match self {
            Item::Tensor(t) => vec![(name.to_owned(), t)],
            Item::Nothing => Vec::new(),
            Item::List(items) => {
                let items = items.iter().cloned().enumerate();
                items.flat_map(|(k, item)| item.named(&format!("{name}.{k}"))).collect()
            }
        }
    }

    /// The tensor.
    ///
    /// # Errors
    /// [`Error::Execution`] where it is none.
    pub fn tensor(self) -> Result<Tensor> {
        match self {
            Item::Tensor(t) => Ok(t),
            Item::List(_) => Err(wrong("there is a list where a tensor is needed")),
            Item::Nothing => Err(wrong("the optional has no value")),
        }
    }

    fn list(self) -> Result<Arc<Vec<Item>>> {
        match self {
            Item::List(list) => Ok(list),
            Item::Tensor(_) => Err(wrong("there is a tensor where a list is needed")),
            Item::Nothing => Err(wrong("the optional has no value")),
        }
    }
}

fn wrong(message: impl Into<String>) -> Error {
    Error::execution(message)
}

fn empty() -> Error {
    wrong("the list is empty")
}

/// The one integer of a tensor.
///
/// # Errors
/// [`Error::Execution`] where there is not one, or it is none.
pub fn integer(t: &Tensor) -> Result<i64> {
    let whole = t.dtype().is_int() || t.dtype().is_bool();
    match (t.len() == 1 && whole).then(|| t.get_i128(0)).map(i64::try_from) {
        Some(Ok(n)) => Ok(n),
        _ => {
            Err(wrong(format!("one integer is needed, not {} of shape {:?}", t.dtype(), t.shape())))
        }
    }
}

/// A position in a list of `length`, below `end`; a negative one counts from the end of the list.
fn position(at: &Item, length: usize, end: usize) -> Result<usize> {
    let given = integer(&at.clone().tensor()?)?;
    from_start(given, length, end)
        .ok_or_else(|| wrong(format!("there is no position {given} in a list of {length} values")))
}

fn axis(axis: i64, rank: usize) -> Result<usize> {
    from_start(axis, rank, rank)
        .ok_or_else(|| wrong(format!("there is no axis {axis} in a tensor of {rank} dimensions")))
}

/// A position below `end`; a negative one counts from `length`.
fn from_start(given: i64, length: usize, end: usize) -> Option<usize> {
    let at = if given < 0 { given.saturating_add_unsigned(length as u64) } else { given };
    usize::try_from(at).ok().filter(|at| *at < end)
}

/// Elements before an axis, and bytes of one position of it.
fn around(t: &Tensor, axis: usize) -> (usize, usize) {
    let outer = t.shape()[..axis].iter().product();
    let inner: usize = t.shape()[axis + 1..].iter().product();
    (outer, inner * t.dtype().bytes())
}

fn split(x: &Tensor, lengths: Option<&Tensor>, axis: usize, keep: bool) -> Result<Item> {
    let extent = x.shape()[axis];
    let single = lengths.is_none();
    let lengths: Vec<usize> = match lengths {
        None => vec![1; extent],
        Some(t) if t.shape().is_empty() => {
            let each = usize::try_from(integer(t)?).ok().filter(|n| *n > 0);
            let each = each.ok_or_else(|| wrong("a part is not positive"))?;
            (0..extent).step_by(each).map(|at| each.min(extent - at)).collect()
        }
        Some(t) => {
            let lengths: Option<Vec<usize>> = if t.dtype().is_int() {
                (0..t.len()).map(|i| usize::try_from(t.get_i128(i)).ok()).collect()
            } else {
                None
            };
            let sum = |l: &[usize]| l.iter().try_fold(0usize, |n, l| n.checked_add(*l));
            lengths.filter(|l| sum(l) == Some(extent)).ok_or_else(|| {
                wrong(format!("the lengths of the parts do not sum up to {extent}"))
            })?
        }
    };
    let (outer, inner) = around(x, axis);
    let mut parts = Vec::with_capacity(lengths.len());
    let mut start = 0;
    for length in lengths {
        let mut shape = x.shape().to_vec();
        shape[axis] = length;
        let mut part = Tensor::zeros(x.dtype(), &shape)?;
        let row = length * inner;
        for (k, to) in part.bytes_mut().chunks_exact_mut(row.max(1)).take(outer).enumerate() {
            let from = (k * extent + start) * inner;
            to.copy_from_slice(&x.bytes()[from..from + row]);
        }
        if single && !keep {
            shape.remove(axis);
            part = part.reshape(&shape)?;
        }
        parts.push(Item::Tensor(part));
        start += length;
    }
    Ok(Item::List(Arc::new(parts)))
}

/// Tensors joined along an axis; with `new` along one that they lack.
///
/// # Errors
/// [`Error::Execution`] where there is none, or their types and shapes do not fit each other.
pub fn join(parts: &[Tensor], along: i64, new: bool) -> Result<Tensor> {
    let first = parts.first().ok_or_else(empty)?;
    let rank = first.shape().len() + usize::from(new);
    let axis = axis(along, rank)?;
    let widened: Vec<Tensor>;
    let parts = if new {
        widened = parts
            .iter()
            .map(|t| {
                let mut shape = t.shape().to_vec();
                shape.insert(axis.min(shape.len()), 1);
                t.reshape(&shape)
            })
            .collect::<Result<_>>()?;
        &widened
    } else {
        parts
    };
    let mut shape = parts[0].shape().to_vec();
    shape[axis] = 0;
    for t in parts {
        let same = t.shape().len() == rank
            && t.dtype() == first.dtype()
            && (0..rank).all(|a| a == axis || t.shape()[a] == shape[a]);
        if !same {
            return Err(wrong(format!(
                "{} of shape {:?} and {} of shape {:?} cannot be joined along axis {axis}",
                first.dtype(),
                first.shape(),
                t.dtype(),
                t.shape()
            )));
        }
        shape[axis] = shape[axis].checked_add(t.shape()[axis]).ok_or_else(empty)?;
    }
    let mut all = Tensor::zeros(first.dtype(), &shape)?;
    let (outer, inner) = around(&all, axis);
    let bytes = all.bytes_mut();
    let mut at = 0;
    for k in 0..outer {
        for t in parts {
            let row = t.shape()[axis] * inner;
            bytes[at..at + row].copy_from_slice(&t.bytes()[k * row..(k + 1) * row]);
            at += row;
        }
    }
    Ok(all)
}

/// What the iterations of a loop gave, along a new first axis. Without iterations the shape of one
/// is that of the type, in which sizes that are not known count as zero.
///
/// # Errors
/// As [`join`].
pub fn stack(parts: &[Tensor], dtype: DType, shape: &[usize]) -> Result<Tensor> {
    match parts {
        [] => Tensor::zeros(dtype, &[&[0], shape].concat()),
        parts => join(parts, 0, true),
    }
}

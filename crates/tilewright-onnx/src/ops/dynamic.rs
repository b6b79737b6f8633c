//! Operators whose results have sizes that data decide: how much is found becomes a size, and everything
//! after is an expression of it.

use tilewright_ir::dim::{self, Integer};
use tilewright_ir::{DType, Dim, Error, Result, Tensor};
use tilewright_ops::dynamic;
use tilewright_ops::suppression::{Suppression, non_max_suppression as suppress};
use tilewright_ops::unique::{unique_kinds, unique_rows};

use super::compose::{Compose, int};
use super::{one, value};
use crate::build::Builder;
use crate::imported::{Imported, operand};
use crate::node::{Node, axis};
use crate::operator::{Operator, op};

/// The operators that are imported here.
pub(crate) static OPERATORS: &[Operator] = &[
    op("Compress", 9, 2, compress),
    op("NonMaxSuppression", 10, 5, non_max_suppression),
    op("NonZero", 9, 1, non_zero),
    op("Unique", 11, 1, unique),
];

/// A tensor as a list.
fn flat(b: &mut Builder, x: &Imported) -> Result<Imported> {
    let cells = dim::product(x.shape());
    value::reshape_to(b, x, &[cells])
}

/// The positions of the elements of a list that are not zero.
fn found(b: &mut Builder, x: &Imported) -> Result<(Imported, Dim)> {
    let found = counted(b, x)?;
    let positions = b.call_on("positions", [x], found, |[x]| dynamic::positions(x, found))?;
    Ok((positions, found))
}

/// How many elements of a list are not zero.
fn counted(b: &mut Builder, x: &Imported) -> Result<Dim> {
    let count = b.call_on("count", [x], (), |[x]| dynamic::count(x))?;
    one_size(b, &count)
}

/// The element of a list of one integer as a size.
fn one_size(b: &mut Builder, list: &Imported) -> Result<Dim> {
    if let Some(t) = list.constant() {
        let n = usize::try_from(t.get_i128(0));
        return n.map(Dim::from).map_err(|_| Error::model("a size is negative"));
    }
    b.sizes_of(list, 1)?.pop().ok_or_else(|| Error::internal("there is no size"))
}

pub(crate) fn non_zero(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let x = node.input(0)?;
    // A scalar counts as a list of one.
    let x = if x.rank() == 0 { flat(b, x)? } else { x.clone() };
    let list = flat(b, &x)?;
    let found = counted(b, &list)?;
    one(b.call_on("indices", [&x], found, |[x]| dynamic::indices(x, found))?)
}

pub(crate) fn compress(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let (x, cond) = (node.input(0)?, node.input(1)?);
    if !cond.dtype().is_bool() {
        return Err(Error::model(format!("the condition must be bool, but is {}", cond.dtype())));
    }
    let (x, along) = match node.int("axis")? {
        Some(a) => (x.clone(), axis(a, x.rank())?),
        None => (flat(b, x)?, 0),
    };
    // Files exist whose condition has several dimensions: its elements count as a list.
    let cond = flat(b, cond)?;
    let (positions, _) = found(b, &cond)?;
    let mut c = Compose::new(node, b);
    one(c.with("Gather", &[&x, &positions], [int("axis", along as i64)])?)
}

pub(crate) fn unique(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let x = node.input(0)?;
    let sorted = node.flag("sorted", true)?;
    let along = node.int("axis")?.map(|a| axis(a, x.rank())).transpose()?;
    // The slices along the axis as rows, or the elements.
    let (source, rows) = match along {
        None => {
            let list = flat(b, x)?;
            let n = list.shape()[0];
            (list.clone(), value::reshape_to(b, &list, &[n, 1.into()])?)
        }
        Some(along) => {
            let mut order: Vec<usize> = (0..x.rank()).collect();
            order.remove(along);
            order.insert(0, along);
            let moved = Compose::new(node, b).transpose(x, &order)?;
            let shape = moved.shape();
            let m = dim::product(shape[1..].iter().copied());
            (x.clone(), value::reshape_to(b, &moved, &[shape[0], m])?)
        }
    };
    let rows =
        if rows.dtype().is_bool() { Compose::new(node, b).cast(&rows, DType::U8)? } else { rows };
    let of = operand(&rows);
    let kinds = b.call_many("unique", &(&of, sorted), [&rows], || unique_kinds(&of, sorted))?;
    let first = operand(&kinds[0]);
    let found = counted(b, &kinds[0])?;
    let parts =
        b.call_many("unique_rows", &(&first, found), &kinds, || unique_rows(&first, found))?;
    let mut c = Compose::new(node, b);
    let along = int("axis", along.unwrap_or(0) as i64);
    let values = c.with("Gather", &[&source, &parts[0]], [along])?;
    Ok(vec![values, parts[0].clone(), kinds[1].clone(), parts[1].clone()])
}

pub(crate) fn range(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let parts: Vec<Imported> = (0..3).map(|at| node.input(at).cloned()).collect::<Result<_>>()?;
    let dtype = parts[0].dtype();
    if parts.iter().any(|v| v.dtype() != dtype || v.shape().iter().any(|d| *d != 1)) {
        return Err(Error::model("start, limit and delta must be one number each, of one type"));
    }
    let parts: Vec<Imported> =
        parts.iter().map(|v| value::reshape_to::<Dim>(b, v, &[])).collect::<Result<_>>()?;
    let count = b.call("range_count", &dtype, &parts, || dynamic::range_count(dtype))?;
    let found = one_size(b, &count)?;
    let mut c = Compose::new(node, b);
    let at = c.positions(found)?;
    let at = c.cast(&at, dtype)?;
    let steps = c.op("Mul", &[&at, &parts[2]])?;
    one(c.op("Add", &[&steps, &parts[0]])?)
}

pub(crate) fn non_max_suppression(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let (boxes, scores) = (node.input(0)?, node.input(1)?);
    let centred = node.switch("center_point_box")?;
    let most = node.integer(2, "max_output_boxes_per_class")?;
    let most = most.and_then(Integer::dim).unwrap_or_else(|| Dim::from(0));
    let candidates = scores.shape().get(2).copied().unwrap_or_else(|| Dim::from(0));
    let most = most.min(candidates);
    if most == 0 {
        return one(Imported::Const(Tensor::zeros(DType::I64, &[0, 3])?));
    }
    let [overlap, least] =
        [(3, 0.0), (4, f32::NEG_INFINITY)].map(|(at, default)| match node.optional(at) {
            None => Tensor::from_slice(&[1], &[default]).map(Imported::Const),
            Some(v) if v.dtype() == DType::F32 => value::reshape_to(b, v, &[1usize]),
            Some(v) => Err(Error::model(format!("input {at} is {}, not float32", v.dtype()))),
        });
    let (overlap, least) = (overlap?, least?);
    let p = Suppression { boxes: operand(boxes), scores: operand(scores), most, centred };
    let keep =
        b.call("non_max_suppression", &p, [boxes, scores, &overlap, &least], || suppress(&p))?;
    let classes = keep.shape()[1];
    let list = flat(b, &keep)?;
    let mut c = Compose::new(node, b);
    let zero = c.number(DType::I64, 0.0)?;
    let kept = c.op("GreaterOrEqual", &[&list, &zero])?;
    let (positions, _) = found(b, &kept)?;
    let mut c = Compose::new(node, b);
    let (row, class) = (c.size(most)?, c.size(classes)?);
    let of_class = c.op("Div", &[&positions, &row])?;
    let (batch, class) = (c.op("Div", &[&of_class, &class])?, c.op("Mod", &[&of_class, &class])?);
    let chosen = c.op("Gather", &[&list, &positions])?;
    let last = Imported::Const(Tensor::from_slice(&[1], &[1i64])?);
    let columns = [batch, class, chosen]
        .iter()
        .map(|v| c.op("Unsqueeze", &[v, &last]))
        .collect::<Result<Vec<_>>>()?;
    one(c.concat(&columns.iter().collect::<Vec<_>>(), 1)?)
}

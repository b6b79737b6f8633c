//! Operators that move data.
//!
//! A shape, an axis or a bound is a parameter of the function that is called, so an input that
//! holds one must be known. Constants are moved at once: weights often pass through here.

use tilewright_ir::dim::{self, Integer};
use tilewright_ir::{DType, Dim, Error, Expr, Result, Tensor, TensorFunc};
use tilewright_ops::check::Need;
use tilewright_ops::movement::{self, DepthOrder};
use tilewright_ops::pad::{self, PadMode};
use tilewright_ops::{Operand, Scalar, broadcast_shapes, te, unequal};

use super::check::demand;
use super::compose::Compose;
use super::one;
use super::value::{moved, reshape_to, scalar, transpose_by};
use crate::build::{Blocked, Builder};
use crate::extents::{check_extents, check_rank, checked_dims};
use crate::fold::{self, View, row_major};
use crate::graphs::NeedsMany;
use crate::imported::{Imported, operand};
use crate::node::{Node, axes, axes_or_all, axis, axis_or_end, required};
use crate::operator::{MANY, Operator, moves, op};
use crate::sizes;

/// The operators that are imported here.
pub(crate) static OPERATORS: &[Operator] = &[
    op("Concat", 7, MANY, concat),
    op("DepthToSpace", 7, 1, depth_to_space),
    moves(op("Expand", 8, 2, expand)),
    moves(op("Flatten", 7, 1, flatten)),
    op("OneHot", 9, 3, one_hot),
    op("Pad", 7, 4, pad),
    moves(op("Reshape", 7, 2, reshape)),
    op("ReverseSequence", 10, 2, reverse_sequence),
    moves(op("Slice", 7, 5, slice)),
    op("SpaceToDepth", 7, 1, space_to_depth),
    op("Split", 7, 2, split),
    moves(op("Squeeze", 7, 2, squeeze)),
    moves(op("Tile", 7, 2, tile)),
    moves(op("Transpose", 7, 1, transpose)),
    op("Trilu", 14, 2, trilu),
    moves(op("Unsqueeze", 7, 2, unsqueeze)),
];

/// Zero keeps an extent (unless `allowzero`), -1 is what remains.
pub(crate) fn reshape(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let x = node.input(0)?;
    let wanted = required(node.integers(1, "shape")?, "the input `shape`")?;
    check_rank(wanted.len())?;
    let keep_zero = node.opset >= 14 && node.flag("allowzero", false)?;
    let contradiction = || {
        Error::model(format!("a tensor of shape {:?} cannot take the shape {wanted:?}", x.shape()))
    };
    let mut shape = Vec::with_capacity(wanted.len());
    let mut open = None;
    for (k, &d) in wanted.iter().enumerate() {
        shape.push(match d {
            Integer::Number(-1) if open.replace(k).is_some() => return Err(contradiction()),
            Integer::Number(-1) => Dim::from(1),
            Integer::Number(0) if !keep_zero => {
                x.shape().get(k).copied().ok_or_else(contradiction)?
            }
            d => d.dim().ok_or_else(contradiction)?,
        });
    }
    check_extents(&shape)?;
    let have = dim::product(x.shape().iter().copied());
    let given = dim::product(shape.iter().copied());
    if let Some(k) = open {
        if given == 0 {
            return Err(contradiction());
        }
        shape[k] = have.floordiv(given);
    }
    let total = dim::product(shape.iter().copied());
    if total != have && may_be_equal(b, have, total) {
        // As many elements as there must be, which a run sees to.
        let flat = reshape_to(b, x, &[have])?;
        let flat = b.with_shape(&flat, vec![total], None);
        return one(reshape_to(b, &flat, &shape)?);
    }
    if total != have {
        return Err(unequal(contradiction(), [(have, total)]));
    }
    one(reshape_to(b, x, &shape)?)
}

/// Whether two sizes that are not equal as expressions are left to a run, since no fact of a name would make them equal.
fn may_be_equal(b: &Builder, x: Dim, y: Dim) -> bool {
    let open = x.known().is_none() || y.known().is_none();
    open && (b.depth() > 1 || !b.facts.can_take(x, y))
}

pub(crate) fn flatten(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let x = node.input(0)?;
    let at = axis_or_end(node.int_or("axis", 1)?, x.rank())?;
    let extents = x.shape();
    let (rows, columns) = extents.split_at(at);
    let shape = [rows, columns].map(|part| dim::product(part.iter().copied()));
    one(reshape_to(b, x, &shape)?)
}

pub(crate) fn squeeze(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let x = node.input(0)?;
    let Some(list) = node.axes(13)? else {
        let x = with_many(node, b, x)?;
        let shape: Vec<Dim> = x.shape().into_iter().filter(|d| *d != 1).collect();
        return one(reshape_to(b, &x, &shape)?);
    };
    let gone = axes(&list, x.rank())?;
    let extents = x.shape();
    if let Some(&k) = gone.iter().find(|&&k| extents[k] != 1) {
        let error =
            Error::model(format!("axis {k} of the shape {extents:?} is not 1 and cannot go"));
        return Err(unequal(error, [(extents[k], Dim::from(1))]));
    }
    let left = extents.iter().enumerate().filter(|(k, _)| !gone.contains(k));
    let shape: Vec<Dim> = left.map(|(_, &d)| d).collect();
    one(reshape_to(b, x, &shape)?)
}

/// A value none of whose open extents is one, which a run sees to: only then is it known how many dimensions
/// are left without those that are one.
fn with_many(node: &Node, b: &mut Builder, x: &Imported) -> Result<Imported> {
    let mut shape = x.shape();
    for (axis, d) in shape.iter_mut().enumerate() {
        if d.known().is_some() || Integer::from(*d).equals(1) == Some(false) {
            continue;
        }
        if b.depth() == 1 && b.facts.can_take_many(*d) {
            let error = Error::unsupported(format!("axes of one element go, and `{d}` may be one"));
            return Err(error.because(NeedsMany { size: *d, node: node.label.clone() }));
        }
        let one_less = Imported::Const(Tensor::from_slice(&[1], &[1i64])?);
        let mut c = Compose::new(node, b);
        let less = c.op("Sub", &[&sizes::list(&[*d])?, &one_less])?;
        let what = format!("size of axis {axis}, which is dropped where it is one, less one");
        let less = demand(node, c.b, &what, &less, &Need::NonZero)?;
        let size = c.op("Add", &[&less, &one_less])?;
        *d = b.sizes_of(&size, 1)?[0];
    }
    Ok(b.with_shape(x, shape, None))
}

pub(crate) fn unsqueeze(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let x = node.input(0)?;
    let list = node.axes(13)?.ok_or_else(|| Error::model("the axes are not given"))?;
    let rank = x.rank() + list.len();
    check_rank(rank)?;
    let new = axes(&list, rank)?;
    let one_cell = Dim::from(1);
    let mut old = x.shape().into_iter();
    let shape: Vec<Dim> = (0..rank)
        .map(|k| if new.contains(&k) { one_cell } else { old.next().unwrap_or(one_cell) })
        .collect();
    one(reshape_to(b, x, &shape)?)
}

pub(crate) fn transpose(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let x = node.input(0)?;
    let rank = x.rank();
    let order = match node.ints("perm")? {
        None => (0..rank).rev().collect(),
        Some(list) if list.len() != rank => {
            return Err(Error::model(format!("the order {list:?} of {rank} axes")));
        }
        Some(list) => axes(&list, rank)?,
    };
    let uses = b.products;
    let Some(weights) = b.blocked_of(x) else { return one(transpose_by(b, x, &order)?) };
    b.note_product(x);
    let turned = if order == [1, 0] { weights.swapped(uses) } else { Blocked { uses, ..weights } };
    one(b.blocked(turned))
}

pub(crate) fn concat(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let parts = node.all_inputs()?;
    let first = &parts.first().cloned().ok_or_else(|| Error::model("there are no inputs"))?;
    let at = axis(required(node.int("axis")?, "attribute `axis`")?, first.rank())?;
    for part in &parts {
        let mut like = part.shape();
        if let Some(d) = like.get_mut(at) {
            *d = first.shape()[at];
        }
        if like != first.shape() || part.dtype() != first.dtype() {
            let error = Error::model(format!(
                "{} and {} cannot be joined along axis {at}",
                operand(first),
                operand(part)
            ));
            let fits = first.rank() == part.rank() && part.dtype() == first.dtype();
            let pairs = first.shape().into_iter().zip(like).filter(|_| fits);
            return Err(unequal(error, pairs));
        }
    }
    if parts.len() == 1 {
        return one(first.clone());
    }
    let constants: Option<Vec<Tensor>> = parts.iter().map(|p| p.constant().cloned()).collect();
    if let Some(constants) = constants {
        let mut shape = first.shape().to_vec();
        shape[at] = parts.iter().fold(Dim::from(0), |sum, p| sum + p.shape()[at]);
        check_extents(&shape)?;
        b.budget.charge(&Operand::new(&shape, first.dtype()))?;
        return one(Imported::Const(fold::concat(&constants, at)?));
    }
    // A part without elements adds nothing.
    let parts: Vec<Imported> = parts.into_iter().filter(|p| p.shape()[at] != 0).collect();
    match parts.as_slice() {
        [] => one(first.clone()),
        [only] => one(only.clone()),
        parts => {
            let whole = b.joined_before(at, parts);
            let joined = {
                let parts = whole.as_deref().unwrap_or(parts);
                let of: Vec<Operand> = parts.iter().map(operand).collect();
                let at = at as i64;
                b.call("concat", &(&of, at), parts, || movement::concat(&of, at))?
            };
            b.note_joined(at, parts, &joined);
            if joined.rank() == 1 {
                b.note_parts(&joined, parts);
            }
            one(joined)
        }
    }
}

/// Sizes are an attribute before opset 13, an input from then on; without them the parts are
/// equal, but for a smaller last one from opset 18 on.
pub(crate) fn split(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let x = node.input(0)?;
    let at = axis(node.int_or("axis", 0)?, x.rank())?;
    let extent = x.shape()[at];
    let given = match node.opset {
        ..13 => node.ints("split")?.map(integers),
        _ => node.integers(1, "split")?,
    };
    let count = match node.opset {
        18.. => node.int("num_outputs")?,
        _ => None,
    };
    let outputs = node.output_count();
    let sizes = match given {
        Some(_) if count.is_some() => {
            return Err(Error::model("both sizes and their number are given"));
        }
        Some(list) => checked_sizes(&list)?,
        None => {
            let count = match count.map(usize::try_from) {
                None => outputs,
                Some(Ok(count @ 1..)) if count == outputs => count,
                Some(_) => {
                    return Err(Error::model(format!(
                        "attribute `num_outputs` does not fit {outputs} outputs"
                    )));
                }
            };
            let each = extent.ceildiv(count.max(1));
            if node.opset < 18 && each * count != extent {
                let error = Error::model(format!(
                    "{extent} elements do not split into {count} equal parts"
                ));
                return Err(unequal(error, [(extent, each * count)]));
            }
            unequal_parts(extent, each, count)?
        }
    };
    let total = sizes.iter().fold(Dim::from(0), |sum, &d| sum + d);
    let mut given = x.clone();
    if total != extent && sizes.len() == outputs && may_be_equal(b, extent, total) {
        // A run sees to that.
        let mut shape = x.shape().to_vec();
        shape[at] = total;
        given = b.with_shape(x, shape, None);
    } else if total != extent || sizes.len() != outputs {
        let error = Error::model(format!(
            "{extent} elements do not split into {outputs} outputs of the sizes {sizes:?}"
        ));
        let fits = sizes.len() == outputs;
        return Err(unequal(error, fits.then_some((extent, total))));
    }
    if let (Imported::Const(t), Some(sizes)) = (x, dim::known(&sizes)) {
        let steps = row_major(t.shape());
        let mut offset = 0;
        let mut parts = Vec::with_capacity(outputs);
        for &size in &sizes {
            let mut shape = t.shape().to_vec();
            shape[at] = size;
            parts.push(moved(b, t, &View { offset, shape, steps: steps.clone() })?);
            offset += steps[at] * size as i64;
        }
        return Ok(parts);
    }
    let of = operand(&given);
    let at = at as i64;
    b.call_many("split", &(&of, at, &sizes), [&given], || movement::split(&of, at, &sizes))
}

/// Parts of `each` elements, of which the last ones have what is left.
fn unequal_parts(extent: Dim, each: Dim, count: usize) -> Result<Vec<Dim>> {
    let mut parts: Vec<Dim> = Vec::with_capacity(count);
    for k in 0..count {
        let before = parts.iter().fold(Dim::from(0), |sum, d| sum + *d);
        let left = Integer::from(extent).minus(before);
        // The last one has the rest; before it, there may be less than a whole one.
        let part = if k + 1 == count { left } else { left.and_then(|left| left.max(0)?.min(each)) };
        parts.push(part.and_then(Integer::dim).ok_or_else(|| {
            Error::model(format!("{extent} elements do not split into {count} parts"))
        })?);
    }
    Ok(parts)
}

/// The numbers of an attribute, which are known in any case.
fn integers(list: Vec<i64>) -> Vec<Integer> {
    list.into_iter().map(Integer::from).collect()
}

/// Sizes of parts: as many as there are outputs, so their number is bounded by the file.
fn checked_sizes(list: &[Integer]) -> Result<Vec<Dim>> {
    list.iter()
        .map(|d| d.dim().ok_or_else(|| Error::model(format!("the size {d} is negative"))))
        .collect()
}

/// The inputs that say a slice are lists of one length: what is known of one is known of all.
fn equally_long(node: &Node) -> Result<()> {
    let lists = (1..5).filter_map(|at| node.optional(at).map(Imported::shape));
    let lengths: Vec<Dim> =
        lists.filter_map(|s| s.first().copied().filter(|_| s.len() == 1)).collect();
    let known = lengths.iter().find(|d| d.known().is_some());
    let open = lengths.iter().find(|d| d.known().is_none());
    match (known, open) {
        (Some(known), Some(open)) => {
            let error = Error::model("starts, ends, axes and steps differ in length");
            Err(unequal(error, [(*open, *known)]))
        }
        _ => Ok(()),
    }
}

/// Bounds are attributes before opset 10, inputs from then on.
pub(crate) fn slice(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let x = node.input(0)?;
    let (starts, ends, along, steps) = if node.opset < 10 {
        let [starts, ends] = ["starts", "ends"]
            .map(|name| required(node.ints(name)?.map(integers), &format!("`{name}`")));
        (starts?, ends?, node.ints("axes")?, None)
    } else {
        equally_long(node)?;
        let starts = required(node.integers(1, "starts")?, "`starts`")?;
        let ends = required(node.integers(2, "ends")?, "`ends`")?;
        (starts, ends, node.constant_ints(3, "axes")?, node.constant_ints(4, "steps")?)
    };
    let along = match along {
        Some(list) => axes(&list, x.rank())?,
        None if starts.len() <= x.rank() => (0..starts.len()).collect(),
        None => return Err(Error::model(format!("{} bounds for {} axes", starts.len(), x.rank()))),
    };
    let steps = steps.unwrap_or_else(|| vec![1; starts.len()]);
    if [ends.len(), along.len(), steps.len()] != [starts.len(); 3] {
        return Err(Error::model("starts, ends, axes and steps differ in length"));
    }
    if steps.contains(&0) {
        return Err(Error::model("a step is 0"));
    }
    // Smaller steps than this cannot be told apart: none reaches a second element.
    let steps: Vec<i64> = steps.iter().map(|s| s.clamp(&-(1 << 40), &(1 << 40))).copied().collect();
    let are_numbers = starts.iter().chain(&ends).all(|v| v.number().is_some());
    if let (Imported::Const(t), true) = (x, are_numbers) {
        let mut view = View { offset: 0, shape: t.shape().to_vec(), steps: row_major(t.shape()) };
        for (k, &at) in along.iter().enumerate() {
            let found = movement::positions(t.shape()[at].into(), (starts[k], ends[k]), steps[k]);
            let known = found.and_then(|(first, count)| Some((first.number()?, count.known()?)));
            let (first, count) =
                known.ok_or_else(|| Error::internal("a slice of numbers is open"))?;
            view.offset += first * view.steps[at];
            view.shape[at] = count;
            view.steps[at] = view.steps[at].saturating_mul(steps[k]);
        }
        return one(moved(b, t, &view)?);
    }
    let along: Vec<i64> = along.into_iter().map(|a| a as i64).collect();
    one(b.call_on("slice", [x], (&starts, &ends, &along, &steps), |[x]| {
        movement::slice(x, &starts, &ends, &along, &steps)
    })?)
}

/// Amounts and value are attributes before opset 11, inputs from then on.
pub(crate) fn pad(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let x = node.input(0)?;
    let rank = x.rank();
    // A value that is known only when the model runs.
    let late = node.optional(2).filter(|v| node.opset >= 11 && v.constant().is_none());
    let (amounts, value, along) = if node.opset < 11 {
        (node.ints("pads")?.map(integers), Some(node.float_or("value", 0.0)?.into()), None)
    } else {
        if let Some(v) = node.optional(2)
            && v.dtype() != x.dtype()
        {
            return Err(Error::model(format!(
                "the data are {}, the value is {}",
                x.dtype(),
                v.dtype()
            )));
        }
        let value = match late {
            Some(_) => None,
            None => node.constant_scalar(2, "constant_value")?,
        };
        let along = if node.opset >= 18 { node.constant_ints(3, "axes")? } else { None };
        (node.integers(1, "pads")?, value.map(scalar), along)
    };
    let amounts = required(amounts, "`pads`")?;
    let along = axes_or_all(along, rank)?;
    if amounts.len() != 2 * along.len() {
        return Err(Error::model(format!("{} amounts for {} axes", amounts.len(), along.len())));
    }
    let mode = match node.text_or("mode", "constant")? {
        "constant" => PadMode::Constant(value.unwrap_or(Scalar::Int(0))),
        "edge" => PadMode::Edge,
        "reflect" => PadMode::Reflect,
        "wrap" if node.opset >= 19 => PadMode::Wrap,
        other => {
            return Err(node.unsupported_value(
                "mode",
                other,
                "constant, edge, reflect, and wrap from opset 19 on",
            ));
        }
    };
    let (mut before, mut after) = (vec![Integer::from(0); rank], vec![Integer::from(0); rank]);
    for (k, &at) in along.iter().enumerate() {
        (before[at], after[at]) = (amounts[k], amounts[along.len() + k]);
    }
    if before.iter().chain(&after).any(|v| v.number().is_some_and(|v| i32::try_from(v).is_err())) {
        return Err(Error::model(format!("the amounts {amounts:?} are out of range")));
    }
    if let (Some(v), PadMode::Constant(_)) = (late, mode) {
        return one(b.call_on("pad", [x, v], (&before, &after), |[x, v]| {
            pad::pad_with(x, &before, &after, &v.shape)
        })?);
    }
    one(b.call_on("pad", [x], (&before, &after, mode), |[x]| pad::pad(x, &before, &after, mode))?)
}

pub(crate) fn expand(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let x = node.input(0)?;
    let wanted = required(node.integers(1, "shape")?, "the input `shape`")?;
    let wanted = checked_dims(&wanted)?;
    let shape = broadcast_shapes("expand", &[x.shape(), wanted])?;
    check_extents(&shape)?;
    if shape == x.shape() {
        return one(x.clone());
    }
    if let (Imported::Const(t), Some(shape)) = (x, dim::known(&shape)) {
        return one(moved(b, t, &View::stretched(t.shape(), &shape))?);
    }
    one(b.call_on("expand", [x], &shape, |[x]| movement::expand(x, &shape))?)
}

pub(crate) fn tile(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let x = node.input(0)?;
    let repeats = required(node.integers(1, "repeats")?, "the input `repeats`")?;
    let repeats = checked_dims(&repeats)?;
    if repeats.len() != x.rank() {
        return Err(Error::model(format!("{} repeats for {} axes", repeats.len(), x.rank())));
    }
    let sizes: Vec<Dim> = x.shape().iter().zip(&repeats).map(|(&d, &r)| d * r).collect();
    check_extents(&sizes)?;
    // Copies of an axis of open size lie along an axis of their own: no index is a remainder of a size.
    let (mut apart, mut times) = (Vec::new(), Vec::new());
    for (&d, &r) in x.shape().iter().zip(&repeats) {
        if d.known().is_none() && r != 1 {
            apart.extend([Dim::from(1), d]);
            times.extend([r, Dim::from(1)]);
        } else {
            apart.push(d);
            times.push(r);
        }
    }
    if check_rank(apart.len()).is_err() {
        return one(b.call_on("tile", [x], &repeats, |[x]| movement::tile(x, &repeats))?);
    }
    let x = reshape_to(b, x, &apart)?;
    let tiled = b.call_on("tile", [&x], &times, |[x]| movement::tile(x, &times))?;
    one(reshape_to(b, &tiled, &sizes)?)
}

/// How the channels of a block are ordered, from an opset on.
fn depth_order(node: &Node, from: i64) -> Result<DepthOrder> {
    let all = [("DCR", DepthOrder::Dcr), ("CRD", DepthOrder::Crd)];
    if node.opset >= from { node.choice("mode", "DCR", &all) } else { Ok(DepthOrder::Dcr) }
}

pub(crate) fn depth_to_space(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let x = node.input(0)?;
    let block = node.positive("blocksize")?;
    let order = depth_order(node, 11)?;
    one(b.call_on("depth_to_space", [x], (block, order), |[x]| {
        movement::depth_to_space(x, block, order)
    })?)
}

/// The order of the channels can be chosen from opset 28 on.
pub(crate) fn space_to_depth(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let x = node.input(0)?;
    let block = node.positive("blocksize")?;
    match depth_order(node, 28)? {
        DepthOrder::Dcr => {
            one(b.call_on("space_to_depth", [x], block, |[x]| movement::space_to_depth(x, block))?)
        }
        DepthOrder::Crd => {
            let [n, c, h, w] = x.shape()[..] else {
                return Err(Error::model(format!("{} is no image", operand(x))));
            };
            let error =
                Error::model(format!("{} does not split into blocks of {block}", operand(x)));
            movement::require_blocks([h, w], block, error)?;
            let (rows, columns, cell) = (h.floordiv(block), w.floordiv(block), block.into());
            let cut = reshape_to(b, x, &[n, c, rows, cell, columns, cell])?;
            let moved = transpose_by(b, &cut, &[0, 1, 3, 5, 2, 4])?;
            one(reshape_to(b, &moved, &[n, c * block * block, rows, columns])?)
        }
    }
}

/// The diagonal may be data.
pub(crate) fn trilu(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let x = node.input(0)?;
    let upper = node.flag("upper", true)?;
    let k = match node.optional(1) {
        None => 0,
        Some(k) if k.shape().iter().any(|&d| d != 1) || k.dtype() != DType::I64 => {
            return Err(Error::model(format!(
                "the input `k` must be one int64, but is {}",
                operand(k)
            )));
        }
        Some(Imported::Const(k)) => k.get_i128(0) as i64,
        Some(k) => {
            let k = reshape_to::<Dim>(b, k, &[])?;
            return one(b.call_on("trilu_at", [x, &k], upper, |[x, _]| trilu_at(x, upper))?);
        }
    };
    one(b.call_on("trilu", [x], (k, upper), |[x]| movement::trilu(x, k, upper))?)
}

/// The last two axes' upper or lower triangle, with the diagonal that the second operand, an
/// `int64` without axes, says.
fn trilu_at(x: &Operand, upper: bool) -> Result<TensorFunc> {
    if x.rank() < 2 {
        return Err(Error::input(format!("trilu: {x} has no matrices")));
    }
    let t = te::placeholder("x", &x.shape, x.dtype);
    let k = te::placeholder::<Dim>("k", &[], DType::I64);
    let out = te::compute("trilu", &x.shape, |i| {
        let [row, column] = [&i[i.len() - 2], &i[i.len() - 1]].map(|e| e.clone().cast(DType::I64));
        let kept = if upper {
            (column - row).greater_equal(k.scalar())
        } else {
            (column - row).less_equal(k.scalar())
        };
        Expr::select(kept, t.at(i), Scalar::Int(0).expr(x.dtype))
    });
    te::func([&t, &k], [&out])
}

pub(crate) fn reverse_sequence(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let (x, lengths) = (node.input(0)?, node.input(1)?);
    let pair = (node.int_or("batch_axis", 1)?, node.int_or("time_axis", 0)?);
    let (batch, time) = match pair {
        (0, 1) | (1, 0) if x.rank() >= 2 => (pair.0 as usize, pair.1 as usize),
        _ => {
            return Err(Error::model(format!(
                "batch axis {} and time axis {} of {} axes",
                pair.0,
                pair.1,
                x.rank()
            )));
        }
    };
    if lengths.dtype() != DType::I64 || lengths.shape() != [x.shape()[batch]] {
        let error = Error::model(format!(
            "the lengths must be int64 of shape [{}], but are {}",
            x.shape()[batch],
            operand(lengths)
        ));
        return Err(match lengths.shape()[..] {
            [own] if lengths.dtype() == DType::I64 => unequal(error, [(own, x.shape()[batch])]),
            _ => error,
        });
    }
    let whole = Integer::from(x.shape()[time]);
    let lengths = demand(node, b, "length", lengths, &Need::Within(vec![(0.into(), whole)]))?;
    one(b.call_on("reverse_sequence", [x, &lengths], (batch, time), |[x, _]| {
        movement::reverse_sequence(x, batch, time)
    })?)
}

pub(crate) fn one_hot(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let (indices, values) = (node.input(0)?, node.input(2)?);
    let depth = match node.optional(1) {
        Some(Imported::Sizes(s)) if s.values.len() == 1 => s.values[0]
            .dim()
            .ok_or_else(|| Error::model(format!("the depth is {}", s.values[0])))?,
        _ => {
            let depth = required(node.constant_scalar(1, "depth")?, "the input `depth`")?;
            usize::try_from(depth.get_i128(0))
                .ok()
                .filter(|&d| d < 1 << 31)
                .map(Dim::from)
                .ok_or_else(|| Error::model(format!("the depth is {}", depth.get_f64(0))))?
        }
    };
    if values.shape() != [2] {
        let error = Error::model(format!(
            "the values must be two, but have the shape {:?}",
            values.shape()
        ));
        let list = values.shape().first().copied().filter(|_| values.rank() == 1);
        return Err(unequal(error, list.map(|count| (count, Dim::from(2)))));
    }
    let at = axis(node.int_or("axis", -1)?, indices.rank() + 1)? as i64;
    one(b.call_on("one_hot", [indices, values], (depth, at), |[indices, values]| {
        movement::one_hot(indices, depth, at, values.dtype)
    })?)
}

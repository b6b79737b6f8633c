//! Data that only moves: every element of the result is an element of an operand or a constant.
//!
//! Types are free. An index from data that points outside is not an error at run time: it is
//! clamped where it reads and ignored where it writes; [`crate::check`] makes it one. Negative ones
//! count from the end.

use tilewright_ir::control::TAKES_EMPTY;
use tilewright_ir::dim::Integer;
use tilewright_ir::{
    Attr, Buffer, DType, Dim, Error, Expr, Result, Stmt, StmtKind, TensorFunc, dim,
};

use crate::creation::diagonal;
use crate::operand::{
    Operand, Scalar, at_broadcast, broadcast_shapes, first, normalize_axis, placeholders,
    require_number, require_same, unequal, unsupported_type,
};
use crate::te::{self, Axis, Reducer, Stage, Tensor};

/// The operand itself. Parameters: `x`, the result.
pub fn copy(x: &Operand) -> Result<TensorFunc> {
    injective("copy", x, &x.shape, |i| i.to_vec())
}

/// A function whose result at `i` is the operand at `from(i)`.
pub(crate) fn injective(
    name: &str,
    x: &Operand,
    shape: &[Dim],
    from: impl Fn(&[Expr]) -> Vec<Expr>,
) -> Result<TensorFunc> {
    let t = x.placeholder("x");
    let out = te::compute(name, shape, |i| t.at(from(i)));
    te::func([&t], [&out])
}

/// The same elements in row-major order under another shape; also for squeeze, unsqueeze and
/// flatten. Parameters: `x`, the result.
pub fn reshape<D: Into<Dim> + Copy>(x: &Operand, shape: &[D]) -> Result<TensorFunc> {
    let shape = &te::dims(shape)[..];
    let (have, want) = (dim::product(x.shape.iter().copied()), dim::product(shape.iter().copied()));
    if have != want || have == usize::MAX {
        let error = Error::input(format!("reshape: {x} does not have the shape {shape:?}"));
        return Err(unequal(error, [(have, want)]));
    }
    injective("reshape", x, shape, |i| reshaped_index(&x.shape, shape, i))
}

/// The index into the shape `from` of the element at `i` in the shape `to` of the same size.
///
/// Axes fall into groups that keep their size, such as `[4 | 2, 3]` and `[4 | 6]`; only inside a
/// group are indices multiplied and divided.
fn reshaped_index(from: &[Dim], to: &[Dim], i: &[Expr]) -> Vec<Expr> {
    let mut index = vec![Expr::i32(0); from.len()];
    if from.iter().any(|d| *d == 0) {
        return index;
    }
    let (from_axes, to_axes) = (long_axes(from), long_axes(to));
    let (mut f, mut t) = (0, 0);
    while f < from_axes.len() && t < to_axes.len() {
        let (f0, t0) = (f, t);
        // The shortest group: prefixes of both sides of one size. The whole is one.
        let (fs, ts) = (running_sizes(&from_axes[f..], from), running_sizes(&to_axes[t..], to));
        let pairs = (0..fs.len()).flat_map(|f| (0..ts.len()).map(move |t| (f, t)));
        let group = pairs.filter(|&(f, t)| fs[f] == ts[t]).min_by_key(|&(f, t)| f + t);
        let (f_len, t_len) = group.map_or((fs.len(), ts.len()), |(f, t)| (f + 1, t + 1));
        (f, t) = (f + f_len, t + t_len);
        let offset = to_axes[t0..t].iter().fold(Expr::i32(0), |sum, &a| sum * to[a].expr() + &i[a]);
        for (k, &a) in from_axes[f0..f].iter().enumerate() {
            let stride = dim::product(from_axes[f0 + k + 1..f].iter().map(|&a| from[a]));
            let quotient = offset.clone().floordiv(stride.expr());
            index[a] = match k {
                0 => quotient,
                _ => quotient.floormod(from[a].expr()),
            };
        }
    }
    index
}

fn long_axes(s: &[Dim]) -> Vec<usize> {
    (0..s.len()).filter(|&a| s[a] != 1).collect::<Vec<_>>()
}

/// The sizes of the first axes together: one, two, and so on.
fn running_sizes(axes: &[usize], shape: &[Dim]) -> Vec<Dim> {
    let mut size = Dim::from(1);
    axes.iter()
        .map(|&a| {
            size = size * shape[a];
            size
        })
        .collect()
}

/// Axes in another order: axis `k` of the result is axis `perm[k]` of `x`. Parameters: `x`, the
/// result.
pub fn transpose(x: &Operand, perm: &[usize]) -> Result<TensorFunc> {
    let mut seen = vec![false; x.rank()];
    for &a in perm {
        if let Some(seen) = seen.get_mut(a) {
            *seen = true;
        }
    }
    if perm.len() != x.rank() || seen.contains(&false) {
        return Err(Error::input(format!("transpose: {perm:?} does not order the axes of {x}")));
    }
    let shape: Vec<Dim> = perm.iter().map(|&a| x.shape[a]).collect();
    injective("transpose", x, &shape, |i| {
        let mut at = i.to_vec();
        for (e, &a) in i.iter().zip(perm) {
            at[a] = e.clone();
        }
        at
    })
}

/// Operands one behind the other along an axis. Parameters: the operands, the result.
pub fn concat(operands: &[Operand], axis: i64) -> Result<TensorFunc> {
    let name = "concat";
    let first = first(name, operands)?;
    let axis = normalize_axis(name, axis, first.rank())?;
    let mut total = Dim::from(0);
    for x in operands {
        require_same(name, first.dtype, x.dtype)?;
        if x.rank() != first.rank()
            || !x.shape.iter().enumerate().all(|(a, d)| a == axis || *d == first.shape[a])
        {
            let error = Error::input(format!(
                "{name}: {first} and {x} do not fit together along axis {axis}"
            ));
            let pairs = (0..first.rank())
                .filter(|a| *a != axis && x.rank() == first.rank())
                .map(|a| (first.shape[a], x.shape[a]));
            return Err(unequal(error, pairs));
        }
        total = total + x.shape[axis];
        if total == usize::MAX {
            return Err(Error::input(format!("{name}: the result is too long along axis {axis}")));
        }
    }
    let mut shape = first.shape.clone();
    shape[axis] = total;
    let inputs = placeholders(operands);
    let out = te::stages(name, &shape, first.dtype, |out| {
        let mut offset = Dim::from(0);
        let mut stages = Vec::new();
        for t in &inputs {
            let axes = te::axes_along(t.shape(), |_| false);
            let from: Vec<Expr> = axes.iter().map(Axis::expr).collect();
            let mut to = from.clone();
            to[axis] = &to[axis] + offset.expr();
            offset = offset + t.shape()[axis];
            // One empty operand may stay, so that the result has a stage even if it is empty.
            if t.shape()[axis] != 0 || stages.is_empty() && offset == total {
                stages.push(Stage::new(out, axes, to, t.at(&from)));
            }
        }
        stages
    });
    te::func(&inputs, [&out])
}

/// Parts along an axis, of the given sizes. Parameters: `x`, the results.
pub fn split<D: Into<Dim> + Copy>(x: &Operand, axis: i64, sizes: &[D]) -> Result<TensorFunc> {
    let name = "split";
    let sizes = te::dims(sizes);
    let axis = normalize_axis(name, axis, x.rank())?;
    let total = sizes.iter().fold(Dim::from(0), |n, &d| n + d);
    if sizes.is_empty() || total != x.shape[axis] || total == usize::MAX {
        let error = Error::input(format!(
            "{name}: the sizes {sizes:?} do not add up to axis {axis} of {x}"
        ));
        return Err(unequal(error, [(x.shape[axis], total)]));
    }
    let t = x.placeholder("x");
    let mut start = Dim::from(0);
    let outputs: Vec<Tensor> = sizes
        .iter()
        .enumerate()
        .map(|(k, &size)| {
            let mut shape = x.shape.clone();
            shape[axis] = size;
            let part = te::compute(format!("{name}_{k}"), &shape, |i| {
                let mut at = i.to_vec();
                at[axis] = &at[axis] + start.expr();
                t.at(at)
            });
            start = start + size;
            part
        })
        .collect();
    te::func([&t], &outputs)
}

/// Every `steps[k]`-th position of `axes[k]` from `starts[k]` up to but without `ends[k]`; bounds
/// may count from the end and are clamped as in ONNX's `Slice`, steps may be negative. Without
/// `axes` they are the first ones, without `steps` these are one. Parameters: `x`, the result.
///
/// # Errors
/// [`Error::Input`] where the parameters contradict each other, [`Error::Unsupported`] where it is
/// open whether a bound counts from the end.
pub fn slice<I: Into<Integer> + Copy>(
    x: &Operand,
    starts: &[I],
    ends: &[I],
    axes: &[i64],
    steps: &[i64],
) -> Result<TensorFunc> {
    let name = "slice";
    let n = starts.len();
    let axes = list_or(axes, (0..n as i64).collect());
    let steps = list_or(steps, vec![1; n]);
    if ends.len() != n || axes.len() != n || steps.len() != n {
        return Err(Error::input(format!(
            "{name}: {n} starts, {} ends, {} axes and {} steps",
            ends.len(),
            axes.len(),
            steps.len()
        )));
    }
    // First position and step of every axis.
    let mut from = vec![(Integer::from(0), 1i64); x.rank()];
    let mut shape = x.shape.clone();
    for k in 0..n {
        let axis = normalize_axis(name, axes[k], x.rank())?;
        if steps[k] == 0 {
            return Err(Error::input(format!("{name}: the step along axis {axis} is zero")));
        }
        let bounds = (starts[k].into(), ends[k].into());
        let (start, count) = positions(x.shape[axis], bounds, steps[k])
            .ok_or_else(|| undecided(name, axis, x.shape[axis], &[bounds.0, bounds.1]))?;
        shape[axis] = count;
        let step = steps[k].unsigned_abs().min(i32::MAX as u64) as i64;
        from[axis] = (start, if steps[k] > 0 { step } else { -step });
    }
    injective(name, x, &shape, |i| {
        // A single element needs no step; that of a long step would not fit the index type.
        i.iter()
            .zip(&from)
            .zip(&shape)
            .map(|((e, &(start, step)), &count)| match step {
                _ if count == 0 || count == 1 => e + start.expr(),
                1.. => e * step + start.expr(),
                _ => Expr::i32(0) + start.expr() - e * -step,
            })
            .collect()
    })
}

fn list_or(given: &[i64], default: Vec<i64>) -> Vec<i64> {
    if given.is_empty() { default } else { given.to_vec() }
}

/// Refuses parameters whose order is not certain for all sizes.
pub(crate) fn undecided(op: &str, axis: usize, extent: Dim, values: &[Integer]) -> Error {
    let open = values.iter().filter_map(|v| v.dim());
    let open: Vec<Dim> = open.chain([extent]).filter(|d| d.known().is_none()).collect();
    let error = Error::unsupported(format!(
        "{op}: {values:?} along axis {axis} of extent {extent} is not decided while sizes are open"
    ));
    let names: Vec<String> = open
        .iter()
        .flat_map(|d| d.vars())
        .map(|v| format!("--dim {}=SIZE", v.name()))
        .collect::<std::collections::BTreeSet<_>>()
        .into_iter()
        .collect();
    error.help(format!("give the sizes: {}", names.join(" ")))
}

/// A bound of a slice, counted from the start of an axis of so many elements; a negative one counts from
/// its end.
fn from_start(bound: Integer, extent: Integer) -> Option<Integer> {
    let Integer::Number(v) = bound else {
        return match bound.is_less(0) {
            Some(true) => bound.plus(extent),
            Some(false) => Some(bound),
            // The extent is added as often as it is negative: once, or not at all.
            None => {
                let is_position = bound.plus(1)?.max(0)?.min(1)?;
                bound.plus(extent.times(Integer::from(1).minus(is_position)?)?)
            }
        };
    };
    match extent.number() {
        Some(extent) => Some(if v < 0 { v.saturating_add(extent) } else { v }.into()),
        // Beyond the largest extent, everything is the end.
        None if v < -i64::from(i32::MAX) => Some(Integer::from(-1)),
        None if v < 0 => extent.plus(v),
        None => Some(v.min(i32::MAX.into()).into()),
    }
}

/// The first position of a slice of an axis of so many elements, and how many positions there are, by
/// the rules of ONNX's `Slice`; `step` is not zero. `None` where it is open whether a bound counts from
/// the end. Where there is no position, the first one means nothing.
pub fn positions(extent: Dim, bounds: (Integer, Integer), step: i64) -> Option<(Integer, Dim)> {
    let whole = Integer::from(extent);
    let (first, end) = (from_start(bounds.0, whole)?, from_start(bounds.1, whole)?);
    let (start, way, is_inside) = if step > 0 {
        let start = clamped_bound(first, whole)?;
        (start, clamped_bound(end, whole)?.minus(start)?, true)
    } else {
        // A step back begins at an element, however far before the first one its start lies.
        let last = whole.minus(1)?;
        let start = clamped_bound(first, last)?;
        let way = start.plus(1)?.minus(clamped_bound(end.plus(1)?, whole)?)?;
        (start, way, first == last || first.is_less(0) == Some(false))
    };
    let way = way.max(0)?.dim()?;
    // There may be no element at all.
    let way = if is_inside { way } else { way.min(extent) };
    let step = usize::try_from(step.unsigned_abs()).unwrap_or(usize::MAX).min(i32::MAX as usize);
    Some((start, way.ceildiv(step)))
}

fn clamped_bound(v: Integer, high: Integer) -> Option<Integer> {
    match v.number() {
        _ if v == high => Some(high),
        // No extent is longer.
        Some(v) if v >= i64::from(i32::MAX) => Some(high),
        // A bound that counts from the end may lie before the first element.
        _ => v.max(0)?.min(high),
    }
}

/// `x` stretched to the shape that its own and `shape` broadcast to (so that ones in `shape` keep
/// `x`'s extents). Parameters: `x`, the result.
pub fn expand<D: Into<Dim> + Copy>(x: &Operand, shape: &[D]) -> Result<TensorFunc> {
    let shape = broadcast_shapes("expand", &[&x.shape, &te::dims(shape)])?;
    let t = x.placeholder("x");
    let out = te::compute("expand", &shape, |i| at_broadcast(&t, i, &shape));
    te::func([&t], [&out])
}

/// `x` repeated along each axis. Parameters: `x`, the result.
pub fn tile<D: Into<Dim> + Copy>(x: &Operand, repeats: &[D]) -> Result<TensorFunc> {
    let repeats = &te::dims(repeats)[..];
    let shape: Vec<Dim> = x.shape.iter().zip(repeats).map(|(&d, &r)| d * r).collect();
    if repeats.len() != x.rank() {
        return Err(Error::input(format!("tile: the repeats {repeats:?} do not fit {x}")));
    }
    injective("tile", x, &shape, |i| {
        i.iter()
            .zip(&x.shape)
            .zip(repeats)
            .map(|((e, &d), &r)| match d {
                _ if d == 0 || d == 1 => Expr::i32(0),
                _ if r == 1 => e.clone(),
                _ => e.clone().floormod(d.expr()),
            })
            .collect()
    })
}

/// Slices of `data` along an axis, at the indices, whose axes replace that axis. Parameters:
/// `data`, `indices`, the result.
pub fn gather(data: &Operand, indices: &Operand, axis: i64) -> Result<TensorFunc> {
    let name = "gather";
    check_indices(name, indices)?;
    let axis = normalize_axis(name, axis, data.rank())?;
    let (outer, inner) = (&data.shape[..axis], &data.shape[axis + 1..]);
    let shape = [outer, &indices.shape, inner].concat();
    check_not_empty(name, data, &[axis], &shape)?;
    let (t, ix) = (data.placeholder("data"), indices.placeholder("indices"));
    let out = te::compute(name, &shape, |i| {
        let (outer, rest) = i.split_at(axis);
        let (at, inner) = rest.split_at(indices.rank());
        let found = clamped(ix.at(at), data.shape[axis]);
        t.at(outer.iter().chain([&found]).chain(inner))
    });
    te::func([&t, &ix], [&out])
}

fn check_indices(op: &str, indices: &Operand) -> Result<()> {
    if indices.dtype.is_int() {
        Ok(())
    } else {
        Err(unsupported_type(op, indices.dtype, "indices that are integers"))
    }
}

/// Refuses to look up elements where there are none.
fn check_not_empty(op: &str, data: &Operand, axes: &[usize], result: &[Dim]) -> Result<()> {
    match axes.iter().find(|&&a| data.shape[a] == 0) {
        Some(a) if !result.iter().any(|d| *d == 0) => {
            Err(Error::input(format!("{op}: {data} has no elements along axis {a}")))
        }
        _ => Ok(()),
    }
}

/// An index from data as `int64`, negative ones counted from the end, with no regard to bounds.
fn wrapped(index: Expr, extent: Dim) -> Expr {
    let index = index.cast(DType::I64);
    let from_end = &index + extent.long();
    Expr::select(index.clone().less(0), from_end, index)
}

/// An index from data, brought inside of `0..extent`.
fn clamped(index: Expr, extent: Dim) -> Expr {
    let last = match extent.known() {
        Some(n) => Expr::int(n as i64 - 1, DType::I64),
        None => (extent - 1).long(),
    };
    wrapped(index, extent).min(last).max(0).cast(DType::I32)
}

/// `out[i, j, k] = data[i, indices[i, j, k], k]` for axis 1. Parameters: `data`, `indices`, the
/// result of the shape of `indices`.
pub fn gather_elements(data: &Operand, indices: &Operand, axis: i64) -> Result<TensorFunc> {
    let name = "gather_elements";
    check_indices(name, indices)?;
    let axis = normalize_axis(name, axis, data.rank())?;
    check_elements(name, data, indices, axis)?;
    let (t, ix) = (data.placeholder("data"), indices.placeholder("indices"));
    let out = te::compute(name, &indices.shape, |i| {
        let mut at = i.to_vec();
        at[axis] = clamped(ix.at(i), data.shape[axis]);
        t.at(at)
    });
    te::func([&t, &ix], [&out])
}

/// Indices must have the data's rank and stay inside of them along the other axes. Where open sizes leave it
/// undecided whether they do, both extents have to be equal.
fn check_elements(op: &str, data: &Operand, indices: &Operand, axis: usize) -> Result<()> {
    let error = || Error::input(format!("{op}: indices {indices} do not fit {data}"));
    if data.rank() != indices.rank() {
        return Err(error());
    }
    let pairs = data.shape.iter().copied().zip(indices.shape.iter().copied()).enumerate();
    let mut outside = pairs.filter(|(a, (d, i))| *a != axis && !d.at_least(*i));
    if let Some((_, pair)) = outside.next() {
        return Err(unequal(error(), [pair]));
    }
    check_not_empty(op, data, &[axis], &indices.shape)
}

/// Slices of `data` at the tuples of indices in the last axis of `indices`, behind `batch_dims`
/// axes that both share. Parameters: `data`, `indices`, the result.
pub fn gather_nd(data: &Operand, indices: &Operand, batch_dims: usize) -> Result<TensorFunc> {
    let name = "gather_nd";
    check_indices(name, indices)?;
    let at = Tuples::new(name, data, indices, batch_dims)?;
    let shape = [at.outer, &data.shape[batch_dims + at.depth..]].concat();
    check_not_empty(name, data, &at.axes(), &shape)?;
    let (t, ix) = (data.placeholder("data"), indices.placeholder("indices"));
    let out = te::compute(name, &shape, |i| {
        let (outer, inner) = i.split_at(at.outer.len());
        let found = (0..at.depth).map(|k| clamped(at.index(&ix, outer, k), at.extent(k)));
        t.at(outer[..batch_dims].iter().cloned().chain(found).chain(inner.iter().cloned()))
    });
    te::func([&t, &ix], [&out])
}

/// Tuples of indices in the last axis of a tensor.
struct Tuples<'a> {
    data: &'a Operand,
    /// Axes of the indices without the last.
    outer: &'a [Dim],
    /// Length of a tuple.
    depth: usize,
    /// Leading axes that data and indices share.
    batch: usize,
}

impl<'a> Tuples<'a> {
    fn new(op: &str, data: &'a Operand, indices: &'a Operand, batch: usize) -> Result<Self> {
        let error = Error::input(format!(
            "{op}: indices {indices} with {batch} batch axes do not fit {data}"
        ));
        if let Some((depth, outer)) = indices.shape.split_last()
            && let depth = depth.fixed(op)?
            && batch <= outer.len()
            && batch.checked_add(depth).is_some_and(|n| n <= data.rank())
        {
            if data.shape[..batch] == outer[..batch] {
                return Ok(Tuples { data, outer, depth, batch });
            }
            let pairs = data.shape[..batch].iter().copied().zip(outer[..batch].iter().copied());
            return Err(unequal(error, pairs));
        }
        Err(error)
    }

    /// The axes of the data that tuples index.
    fn axes(&self) -> Vec<usize> {
        (self.batch..self.batch + self.depth).collect()
    }

    fn extent(&self, k: usize) -> Dim {
        self.data.shape[self.batch + k]
    }

    /// Index `k` of the tuple at `outer`.
    fn index(&self, indices: &Tensor, outer: &[Expr], k: usize) -> Expr {
        indices.at(outer.iter().cloned().chain([Expr::int(k as i64, DType::I32)]))
    }
}

/// `data` with `out[indices[i, j, k], j, k]` replaced by `updates[i, j, k]` for axis 0, by the last
/// one where several meet, or combined with them by a reducer. Parameters: `data`, `indices`, `updates`
/// (of the shape of `indices`), the result.
pub fn scatter_elements(
    data: &Operand,
    indices: &Operand,
    axis: i64,
    reducer: Option<Reducer>,
) -> Result<TensorFunc> {
    let name = "scatter_elements";
    check_indices(name, indices)?;
    check_combined(name, data, reducer)?;
    let axis = normalize_axis(name, axis, data.rank())?;
    check_elements(name, data, indices, axis)?;
    let (t, ix) = (data.placeholder("data"), indices.placeholder("indices"));
    let updates = te::placeholder("updates", &indices.shape, data.dtype);
    let out = te::stages(name, &data.shape, data.dtype, |out| {
        // Along the axis, several updates may meet.
        let axes = te::axes_along(&indices.shape, |a| a == axis);
        let i: Vec<Expr> = axes.iter().map(Axis::expr).collect();
        let index = wrapped(ix.at(&i), data.shape[axis]);
        let mut at = i.clone();
        at[axis] = clamped(ix.at(&i), data.shape[axis]);
        let there = in_range(index, data.shape[axis]);
        scattered(out, &t, axes, at, there, updates.at(&i), reducer)
    });
    let func = te::func([&t, &ix, &updates], [&out])?;
    Ok(takes_no_updates(func, &data.shape[axis..=axis]))
}

fn check_combined(op: &str, data: &Operand, reducer: Option<Reducer>) -> Result<()> {
    reducer.map_or(Ok(()), |_| require_number(op, data.dtype))
}

fn in_range(index: Expr, extent: Dim) -> Expr {
    index.clone().greater_equal(0).and(index.less(extent.long()))
}

/// Copies all of the data, and then combines updates with the elements at indices that are in range.
fn scattered(
    out: &Buffer,
    data: &Tensor,
    axes: Vec<Axis>,
    at: Vec<Expr>,
    in_range: Expr,
    update: Expr,
    reducer: Option<Reducer>,
) -> Vec<Stage> {
    let all = te::axes_along(data.shape(), |_| false);
    let each: Vec<Expr> = all.iter().map(Axis::expr).collect();
    let old = out.load(at.clone());
    let new = match reducer {
        Some(reducer) => reducer.combine(old.clone(), update),
        None => update,
    };
    let value = Expr::select(in_range, new, old);
    vec![Stage::new(out, all, each.clone(), data.at(each)), Stage::new(out, axes, at, value)]
}

/// Without updates, a scatter is a copy. That its indices are in range needs elements along these extents: updates
/// are looked at where there are some.
fn takes_no_updates(mut func: TensorFunc, extents: &[Dim]) -> TensorFunc {
    let maybe_none = extents.iter().filter(|extent| extent.known().is_none());
    let some = maybe_none.map(|extent| extent.expr().greater_equal(1)).reduce(Expr::and);
    if let Some(some) = some {
        let (allocs, body) = func.root_parts();
        let StmtKind::Seq(parts) = body.kind() else { return func };
        let [copy, updates @ ..] = &parts[..] else { return func };
        let updates = updates.iter().map(|s| Stmt::guard(some.clone(), s.clone()));
        let body = Stmt::seq(std::iter::once(copy.clone()).chain(updates).collect::<Vec<_>>());
        func = func.with_root(allocs.to_vec(), body);
    }
    func.attrs.insert(TAKES_EMPTY.into(), Attr::Int(1));
    func
}

/// `data` with the slices at the tuples of indices in the last axis of `indices` replaced by those of
/// `updates`, or combined with them by a reducer. Parameters: `data`, `indices`, `updates`, the result.
pub fn scatter_nd(
    data: &Operand,
    indices: &Operand,
    reducer: Option<Reducer>,
) -> Result<TensorFunc> {
    let name = "scatter_nd";
    check_indices(name, indices)?;
    check_combined(name, data, reducer)?;
    let tuples = Tuples::new(name, data, indices, 0)?;
    let inner = &data.shape[tuples.depth..];
    let shape = [tuples.outer, inner].concat();
    check_not_empty(name, data, &tuples.axes(), &shape)?;
    let (t, ix) = (data.placeholder("data"), indices.placeholder("indices"));
    let updates = te::placeholder("updates", &shape, data.dtype);
    let out = te::stages(name, &data.shape, data.dtype, |out| {
        // Tuples may come twice, so they are taken one after the other.
        let axes = te::axes_along(&shape, |k| k < tuples.outer.len());
        let i: Vec<Expr> = axes.iter().map(Axis::expr).collect();
        let (outer, rest) = i.split_at(tuples.outer.len());
        let mut there = Expr::bool(true);
        let mut at = Vec::new();
        for k in 0..tuples.depth {
            let index = tuples.index(&ix, outer, k);
            there = there.and(in_range(wrapped(index.clone(), tuples.extent(k)), tuples.extent(k)));
            at.push(clamped(index, tuples.extent(k)));
        }
        at.extend(rest.iter().cloned());
        scattered(out, &t, axes, at, there, updates.at(&i), reducer)
    });
    let func = te::func([&t, &ix, &updates], [&out])?;
    Ok(takes_no_updates(func, &data.shape[..tuples.depth]))
}

/// How [`depth_to_space`] reads the channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DepthOrder {
    /// Block positions outermost.
    Dcr,
    /// Block positions innermost.
    Crd,
}

/// `[N, C * b * b, H, W]` to `[N, C, H * b, W * b]`. Parameters: `x`, the result.
pub fn depth_to_space(x: &Operand, block: usize, order: DepthOrder) -> Result<TensorFunc> {
    let name = "depth_to_space";
    let [n, depth, h, w] = x.shape[..] else {
        return Err(Error::input(format!("{name}: {x} must be [N, C, H, W]")));
    };
    let error = Error::input(format!("{name}: {depth} channels for blocks of {block}"));
    let Some(area) = block.checked_mul(block).filter(|&a| a > 0) else {
        return Err(error);
    };
    let channels = depth.floordiv(area);
    if channels * area != depth {
        return Err(unequal(error, [(depth, channels * area)]));
    }
    let shape = [n, channels, h * block, w * block];
    injective(name, x, &shape, |i| {
        let b = block as i64;
        let cell = i[2].clone().floormod(b) * b + i[3].clone().floormod(b);
        let channel = match order {
            DepthOrder::Dcr => cell * channels.expr() + &i[1],
            DepthOrder::Crd => &i[1] * (area as i64) + cell,
        };
        vec![i[0].clone(), channel, i[2].clone().floordiv(b), i[3].clone().floordiv(b)]
    })
}

/// Whether axes split into blocks of so many elements, which are not zero.
pub fn require_blocks(axes: [Dim; 2], block: usize, error: Error) -> Result<()> {
    let whole = axes.map(|d| (d, d.floordiv(block) * block));
    if whole.iter().all(|(d, blocks)| d == blocks) { Ok(()) } else { Err(unequal(error, whole)) }
}

/// `[N, C, H * b, W * b]` to `[N, b * b * C, H, W]`, block positions outermost. Parameters: `x`,
/// the result.
pub fn space_to_depth(x: &Operand, block: usize) -> Result<TensorFunc> {
    let name = "space_to_depth";
    let [n, c, h, w] = x.shape[..] else {
        return Err(Error::input(format!("{name}: {x} must be [N, C, H, W]")));
    };
    let error = Error::input(format!("{name}: {x} in blocks of {block}"));
    if block == 0 {
        return Err(error);
    }
    require_blocks([h, w], block, error)?;
    let depth = c * block * block;
    // Without channels there is nothing to divide.
    let c = if c == 0 { Dim::from(1) } else { c };
    injective(name, x, &[n, depth, h.floordiv(block), w.floordiv(block)], |i| {
        let b = block as i64;
        let cell = i[1].clone().floordiv(c.expr());
        let (row, col) = (cell.clone().floordiv(b), cell.floormod(b));
        let channel = i[1].clone().floormod(c.expr());
        vec![i[0].clone(), channel, &i[2] * b + row, &i[3] * b + col]
    })
}

/// The last two axes' upper or lower triangle, with the `k`-th diagonal; zeros elsewhere.
/// Parameters: `x`, the result.
pub fn trilu(x: &Operand, k: i64, upper: bool) -> Result<TensorFunc> {
    let [.., rows, cols] = x.shape[..] else {
        return Err(Error::input(format!("trilu: {x} has no matrices")));
    };
    let k = diagonal(k, rows, cols);
    let t = x.placeholder("x");
    let out = te::compute("trilu", &x.shape, |i| {
        let (row, col) = (&i[i.len() - 2], &i[i.len() - 1]);
        let kept = if upper {
            col.clone().greater_equal(row + k)
        } else {
            col.clone().less_equal(row + k)
        };
        Expr::select(kept, t.at(i), Scalar::Int(0).expr(x.dtype))
    });
    te::func([&t], [&out])
}

/// The first `lengths[b]` elements along the time axis of each batch, reversed; the others stay.
/// The two axes are 0 and 1 in some order. Parameters: `x`, `lengths` (`int64`), the result.
pub fn reverse_sequence(x: &Operand, batch_axis: usize, time_axis: usize) -> Result<TensorFunc> {
    let name = "reverse_sequence";
    if x.rank() < 2 || batch_axis.max(time_axis) > 1 || batch_axis == time_axis {
        return Err(Error::input(format!(
            "{name}: batch axis {batch_axis} and time axis {time_axis} of {x}"
        ))
        .help("they are axes 0 and 1 in some order"));
    }
    let (batch, time) = (x.shape[batch_axis], x.shape[time_axis]);
    let t = x.placeholder("x");
    let lengths = te::placeholder("lengths", &[batch], DType::I64);
    let out = te::compute(name, &x.shape, |i| {
        let length = lengths.at([&i[batch_axis]]);
        let step = i[time_axis].clone().cast(DType::I64);
        let mirrored = &length - 1 - &step;
        let from = Expr::select(step.clone().less(length), mirrored, step);
        let mut at = i.to_vec();
        at[time_axis] = clamped(from, time);
        t.at(at)
    });
    te::func([&t, &lengths], [&out])
}

/// One-hot vectors along a new axis. Parameters: `indices`, `values` (`[off, on]` of type
/// `dtype`), the result. Indices outside of `-depth..depth` give a vector of off values.
pub fn one_hot(
    indices: &Operand,
    depth: impl Into<Dim>,
    axis: i64,
    dtype: DType,
) -> Result<TensorFunc> {
    let name = "one_hot";
    let depth = depth.into();
    require_number(name, indices.dtype)?;
    let axis = normalize_axis(name, axis, indices.rank() + 1)?;
    let mut shape = indices.shape.clone();
    shape.insert(axis, depth);
    let ix = indices.placeholder("indices");
    let values = te::placeholder("values", &[2], dtype);
    let out = te::compute(name, &shape, |i| {
        let mut at = i.to_vec();
        let here = at.remove(axis).cast(DType::I64);
        let hot = wrapped(ix.at(at), depth).equal(here);
        Expr::select(hot, values.at([1i64]), values.at([0i64]))
    });
    te::func([&ix, &values], [&out])
}

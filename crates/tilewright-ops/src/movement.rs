//! Data that only moves: every element of the result is an element of an operand or a constant.
//!
//! Types are free. An index from data that points outside is not an error at run time: it is
//! clamped where it reads and ignored where it writes; [`crate::check`] makes it one. Negative ones
//! count from the end.

use tilewright_ir::{DType, Error, Expr, Result, TensorFunc};

use crate::operand::{
    Operand, Scalar, at_broadcast, broadcast_shapes, normalize_axis, require_number, require_same,
    unsupported_type,
};
use crate::te::{self, Axis, Stage, Tensor};

/// The operand itself. Parameters: `x`, the result.
pub fn copy(x: &Operand) -> Result<TensorFunc> {
    injective("copy", x, &x.shape, |i| i.to_vec())
}

/// A function whose result at `i` is the operand at `from(i)`.
fn injective(
    name: &str,
    x: &Operand,
    shape: &[usize],
    from: impl Fn(&[Expr]) -> Vec<Expr>,
) -> Result<TensorFunc> {
    let t = x.placeholder("x");
    let out = te::compute(name, shape, |i| t.at(from(i)));
    te::func([&t], [&out])
}

/// The same elements in row-major order under another shape; also for squeeze, unsqueeze and
/// flatten. Parameters: `x`, the result.
pub fn reshape(x: &Operand, shape: &[usize]) -> Result<TensorFunc> {
    let count = |s: &[usize]| s.iter().try_fold(1usize, |n, &d| n.checked_mul(d));
    if count(&x.shape).is_none() || count(&x.shape) != count(shape) {
        return Err(Error::input(format!("reshape: {x} does not have the shape {shape:?}")));
    }
    injective("reshape", x, shape, |i| reshaped_index(&x.shape, shape, i))
}

/// The index into the shape `from` of the element at `i` in the shape `to` of the same size.
///
/// Axes fall into groups that keep their size, such as `[4 | 2, 3]` and `[4 | 6]`; only inside a
/// group are indices multiplied and divided.
fn reshaped_index(from: &[usize], to: &[usize], i: &[Expr]) -> Vec<Expr> {
    let mut index = vec![Expr::i32(0); from.len()];
    if from.contains(&0) {
        return index;
    }
    let longer = |s: &[usize]| (0..s.len()).filter(|&a| s[a] != 1).collect::<Vec<_>>();
    let (from_axes, to_axes) = (longer(from), longer(to));
    let (mut f, mut t) = (0, 0);
    while f < from_axes.len() && t < to_axes.len() {
        let (f0, t0) = (f, t);
        let (mut f_size, mut t_size) = (from[from_axes[f]], to[to_axes[t]]);
        (f, t) = (f + 1, t + 1);
        while f_size != t_size {
            // The sizes of the shapes agree, so the smaller side has more axes.
            match f_size < t_size {
                true => {
                    f_size *= from_axes.get(f).map_or(t_size, |&a| from[a]);
                    f += 1;
                }
                false => {
                    t_size *= to_axes.get(t).map_or(f_size, |&a| to[a]);
                    t += 1;
                }
            }
        }
        let offset =
            to_axes[t0..t].iter().fold(Expr::i32(0), |sum, &a| sum * (to[a] as i64) + &i[a]);
        let mut stride = f_size;
        for (k, &a) in from_axes[f0..f].iter().enumerate() {
            stride /= from[a];
            let quotient = offset.clone().floordiv(stride as i64);
            index[a] = match k {
                0 => quotient,
                _ => quotient.floormod(from[a] as i64),
            };
        }
    }
    index
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
    let shape: Vec<usize> = perm.iter().map(|&a| x.shape[a]).collect();
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
    let Some(first) = operands.first() else {
        return Err(Error::input(format!("{name}: there is no operand")));
    };
    let axis = normalize_axis(name, axis, first.rank())?;
    let mut total = 0usize;
    for x in operands {
        require_same(name, first.dtype, x.dtype)?;
        let others =
            |s: &[usize]| s.iter().enumerate().all(|(a, d)| a == axis || *d == first.shape[a]);
        if x.rank() != first.rank() || !others(&x.shape) {
            return Err(Error::input(format!(
                "{name}: {first} and {x} do not fit together along axis {axis}"
            )));
        }
        total = total.checked_add(x.shape[axis]).ok_or_else(|| {
            Error::input(format!("{name}: the result is too long along axis {axis}"))
        })?;
    }
    let mut shape = first.shape.clone();
    shape[axis] = total;
    let inputs: Vec<Tensor> =
        operands.iter().enumerate().map(|(k, x)| x.placeholder(&format!("x{k}"))).collect();
    let out = te::stages(name, &shape, first.dtype, |out| {
        let mut offset = 0;
        let mut stages = Vec::new();
        for t in &inputs {
            let axes = axes_of(t.shape());
            let from: Vec<Expr> = axes.iter().map(Axis::expr).collect();
            let mut to = from.clone();
            to[axis] = &to[axis] + offset as i64;
            offset += t.shape()[axis];
            // One empty operand may stay, so that the result has a stage even if it is empty.
            if t.shape()[axis] > 0 || stages.is_empty() && offset == total {
                stages.push(Stage::new(out, axes, to, t.at(&from)));
            }
        }
        stages
    });
    te::func(&inputs, [&out])
}

fn axes_of(shape: &[usize]) -> Vec<Axis> {
    shape.iter().enumerate().map(|(k, &d)| te::axis(d, format!("i{k}"))).collect()
}

/// Parts along an axis, of the given sizes. Parameters: `x`, the results.
pub fn split(x: &Operand, axis: i64, sizes: &[usize]) -> Result<TensorFunc> {
    let name = "split";
    let axis = normalize_axis(name, axis, x.rank())?;
    let total = sizes.iter().try_fold(0usize, |n, &d| n.checked_add(d));
    if sizes.is_empty() || total != Some(x.shape[axis]) {
        return Err(Error::input(format!(
            "{name}: the sizes {sizes:?} do not add up to axis {axis} of {x}"
        )));
    }
    let t = x.placeholder("x");
    let mut start = 0;
    let outputs: Vec<Tensor> = sizes
        .iter()
        .enumerate()
        .map(|(k, &size)| {
            let mut shape = x.shape.clone();
            shape[axis] = size;
            let part = te::compute(format!("{name}_{k}"), &shape, |i| {
                let mut at = i.to_vec();
                at[axis] = &at[axis] + start as i64;
                t.at(at)
            });
            start += size;
            part
        })
        .collect();
    te::func([&t], &outputs)
}

/// Every `steps[k]`-th position of `axes[k]` from `starts[k]` up to but without `ends[k]`; bounds
/// may count from the end and are clamped as in ONNX's `Slice`, steps may be negative. Without
/// `axes` they are the first ones, without `steps` these are one. Parameters: `x`, the result.
pub fn slice(
    x: &Operand,
    starts: &[i64],
    ends: &[i64],
    axes: &[i64],
    steps: &[i64],
) -> Result<TensorFunc> {
    let name = "slice";
    let n = starts.len();
    let list = |given: &[i64], default: Vec<i64>| match given.is_empty() {
        true => default,
        false => given.to_vec(),
    };
    let axes = list(axes, (0..n as i64).collect());
    let steps = list(steps, vec![1; n]);
    if ends.len() != n || axes.len() != n || steps.len() != n {
        return Err(Error::input(format!(
            "{name}: {n} starts, {} ends, {} axes and {} steps",
            ends.len(),
            axes.len(),
            steps.len()
        )));
    }
    // First position and step of every axis.
    let mut from = vec![(0i64, 1i64); x.rank()];
    let mut shape = x.shape.clone();
    for k in 0..n {
        let axis = normalize_axis(name, axes[k], x.rank())?;
        let extent = i64::try_from(x.shape[axis]).unwrap_or(i64::MAX);
        let wrap = |v: i64| if v < 0 { v.saturating_add(extent) } else { v };
        let (low, high) = match steps[k] {
            0 => return Err(Error::input(format!("{name}: the step along axis {axis} is zero"))),
            1.. => (0, extent),
            _ => (-1, extent - 1),
        };
        let [start, end] = [starts[k], ends[k]].map(|v| wrap(v).max(low).min(high));
        let way = if steps[k] > 0 { end - start } else { start - end };
        let step = steps[k].unsigned_abs().min(i32::MAX as u64);
        let count = u64::try_from(way).unwrap_or(0).div_ceil(step);
        shape[axis] = usize::try_from(count).unwrap_or(usize::MAX);
        from[axis] = (start, if steps[k] > 0 { step as i64 } else { -(step as i64) });
    }
    injective(name, x, &shape, |i| {
        // A single element needs no step; that of a long step would not fit the index type.
        let at = |((e, &(start, step)), &count): ((&Expr, &(i64, i64)), &usize)| match step {
            _ if count <= 1 => e + start,
            1.. => e * step + start,
            _ => Expr::i32(0) + start - e * -step,
        };
        i.iter().zip(&from).zip(&shape).map(at).collect()
    })
}

/// What [`pad`] puts around.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PadMode {
    /// A constant.
    Constant(Scalar),
    /// The nearest element.
    Edge,
    /// The mirror image, without the element at the edge.
    Reflect,
    /// The other end.
    Wrap,
}

/// Adds cells before and behind each axis; negative numbers cut off, which comes first.
/// Parameters: `x`, the result.
pub fn pad(x: &Operand, before: &[i64], after: &[i64], mode: PadMode) -> Result<TensorFunc> {
    let axes = paddings(x, before, after)?;
    let t = x.placeholder("x");
    let PadMode::Constant(fill) = mode else {
        if let Some(a) = axes.iter().position(|p| p.kept == 0 && p.count > 0) {
            return Err(Error::input(format!("pad: axis {a} of {x} has no element to repeat")));
        }
        let shape: Vec<usize> = axes.iter().map(|p| p.count).collect();
        return injective("pad", x, &shape, |i| {
            i.iter().zip(&axes).map(|(e, p)| p.nearest(e, mode)).collect()
        });
    };
    let out = filled(&t, &axes, || fill.expr(x.dtype));
    te::func([&t], [&out])
}

/// [`pad`] with the one element of an operand of shape `value` (ones, or no axes) as the constant.
/// Parameters: `x`, the value, the result.
pub fn pad_with(x: &Operand, before: &[i64], after: &[i64], value: &[usize]) -> Result<TensorFunc> {
    if value.iter().any(|&d| d != 1) {
        return Err(Error::input(format!("pad: a value of shape {value:?} is not one element")));
    }
    let axes = paddings(x, before, after)?;
    let (t, v) = (x.placeholder("x"), te::placeholder("value", value, x.dtype));
    let out = filled(&t, &axes, || v.at(value.iter().map(|_| 0i64)));
    te::func([&t, &v], [&out])
}

fn paddings(x: &Operand, before: &[i64], after: &[i64]) -> Result<Vec<Padding>> {
    if before.len() != x.rank() || after.len() != x.rank() {
        return Err(Error::input(format!(
            "pad: {} numbers before and {} behind the axes of {x}",
            before.len(),
            after.len()
        )));
    }
    let along = |a: usize| {
        let (before, after) = (before[a], after[a]);
        Padding::new(x.shape[a], before, after).ok_or_else(|| {
            Error::input(format!(
                "pad: {before} and {after} cells do not fit around axis {a} of {x}"
            ))
        })
    };
    (0..x.rank()).map(along).collect()
}

/// The tensor with `fill` around it.
fn filled(t: &Tensor, axes: &[Padding], fill: impl Fn() -> Expr) -> Tensor {
    let shape: Vec<usize> = axes.iter().map(|p| p.count).collect();
    te::compute("pad", &shape, |i| {
        let inside = i.iter().zip(axes).fold(Expr::bool(true), |c, (e, p)| c.and(p.inside(e)));
        let at: Vec<Expr> = i.iter().zip(axes).map(|(e, p)| p.shifted(e)).collect();
        match inside.is_true() {
            true => t.at(at),
            false => Expr::if_then_else(inside, t.at(at), fill()),
        }
    })
}

/// One padded axis: `lead` new cells, then the `kept` elements from `first` on.
struct Padding {
    lead: i64,
    first: i64,
    kept: i64,
    after: i64,
    /// Extent of the result.
    count: usize,
}

impl Padding {
    /// `None` where more is cut off than there is, or the result is too long.
    fn new(extent: usize, before: i64, after: i64) -> Option<Self> {
        let extent = i64::from(i32::try_from(extent).ok()?);
        let cut = |v: i64| v.min(0).checked_neg();
        let kept = extent.checked_sub(cut(before)?)?.checked_sub(cut(after)?)?;
        let count = kept.checked_add(before.max(0))?.checked_add(after.max(0))?;
        let fits = kept >= 0 && i32::try_from(count).is_ok();
        fits.then_some(Padding {
            lead: before.max(0),
            first: cut(before)?,
            kept,
            after: after.max(0),
            count: usize::try_from(count).ok()?,
        })
    }

    fn shifted(&self, i: &Expr) -> Expr {
        i + (self.first - self.lead)
    }

    fn inside(&self, i: &Expr) -> Expr {
        let low = match self.lead {
            0 => Expr::bool(true),
            lead => i.clone().greater_equal(lead),
        };
        match self.after {
            0 => low,
            _ => low.and(i.clone().less(self.lead + self.kept)),
        }
    }

    /// The element that stands for cell `i`.
    fn nearest(&self, i: &Expr, mode: PadMode) -> Expr {
        let from = i - self.lead;
        let last = self.kept - 1;
        let inner = match mode {
            _ if self.lead == 0 && self.after == 0 => from,
            _ if last == 0 => Expr::i32(0),
            PadMode::Constant(_) | PadMode::Edge => from.max(0).min(last),
            PadMode::Wrap => from.floormod(self.kept.max(1)),
            PadMode::Reflect => {
                let way = match self.lead.max(self.after) <= last {
                    // One reflection: the distance from the first element.
                    true => from.clone().max(Expr::i32(0) - &from),
                    false => from.floormod((2 * last).max(1)),
                };
                way.clone().min(Expr::i32(0) + 2 * last - &way)
            }
        };
        inner + self.first
    }
}

/// `x` stretched to the shape that its own and `shape` broadcast to (so that ones in `shape` keep
/// `x`'s extents). Parameters: `x`, the result.
pub fn expand(x: &Operand, shape: &[usize]) -> Result<TensorFunc> {
    let shape = broadcast_shapes("expand", &[&x.shape, shape])?;
    let t = x.placeholder("x");
    let out = te::compute("expand", &shape, |i| at_broadcast(&t, i, &shape));
    te::func([&t], [&out])
}

/// `x` repeated along each axis. Parameters: `x`, the result.
pub fn tile(x: &Operand, repeats: &[usize]) -> Result<TensorFunc> {
    let times = |(&d, &r): (&usize, &usize)| d.saturating_mul(r);
    let shape: Vec<usize> = x.shape.iter().zip(repeats).map(times).collect();
    if repeats.len() != x.rank() {
        return Err(Error::input(format!("tile: the repeats {repeats:?} do not fit {x}")));
    }
    injective("tile", x, &shape, |i| {
        let at = |((e, &d), &r): ((&Expr, &usize), &usize)| match (d, r) {
            (0 | 1, _) => Expr::i32(0),
            (_, 1) => e.clone(),
            _ => e.clone().floormod(d as i64),
        };
        i.iter().zip(&x.shape).zip(repeats).map(at).collect()
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
    match indices.dtype.is_int() {
        true => Ok(()),
        false => Err(unsupported_type(op, indices.dtype, "indices that are integers")),
    }
}

/// Refuses to look up elements where there are none.
fn check_not_empty(op: &str, data: &Operand, axes: &[usize], result: &[usize]) -> Result<()> {
    match axes.iter().find(|&&a| data.shape[a] == 0) {
        Some(a) if !result.contains(&0) => {
            Err(Error::input(format!("{op}: {data} has no elements along axis {a}")))
        }
        _ => Ok(()),
    }
}

/// An index from data as `int64`, negative ones counted from the end, with no regard to bounds.
fn wrapped(index: Expr, extent: usize) -> Expr {
    let index = index.cast(DType::I64);
    let from_end = &index + extent as i64;
    Expr::select(index.clone().less(0), from_end, index)
}

/// An index from data, brought inside of `0..extent`.
fn clamped(index: Expr, extent: usize) -> Expr {
    wrapped(index, extent).min(extent as i64 - 1).max(0).cast(DType::I32)
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

/// Indices must have the data's rank and stay inside of them along the other axes.
fn check_elements(op: &str, data: &Operand, indices: &Operand, axis: usize) -> Result<()> {
    let inside = data.shape.iter().zip(&indices.shape).enumerate();
    let inside = inside.into_iter().all(|(a, (d, i))| a == axis || i <= d);
    if data.rank() != indices.rank() || !inside {
        return Err(Error::input(format!("{op}: indices {indices} do not fit {data}")));
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
    outer: &'a [usize],
    /// Length of a tuple.
    depth: usize,
    /// Leading axes that data and indices share.
    batch: usize,
}

impl<'a> Tuples<'a> {
    fn new(op: &str, data: &'a Operand, indices: &'a Operand, batch: usize) -> Result<Self> {
        if let Some((&depth, outer)) = indices.shape.split_last()
            && batch <= outer.len()
            && batch.checked_add(depth).is_some_and(|n| n <= data.rank())
            && data.shape[..batch] == outer[..batch]
        {
            return Ok(Tuples { data, outer, depth, batch });
        }
        Err(Error::input(format!(
            "{op}: indices {indices} with {batch} batch axes do not fit {data}"
        )))
    }

    /// The axes of the data that tuples index.
    fn axes(&self) -> Vec<usize> {
        (self.batch..self.batch + self.depth).collect()
    }

    fn extent(&self, k: usize) -> usize {
        self.data.shape[self.batch + k]
    }

    /// Index `k` of the tuple at `outer`.
    fn index(&self, indices: &Tensor, outer: &[Expr], k: usize) -> Expr {
        indices.at(outer.iter().cloned().chain([Expr::int(k as i64, DType::I32)]))
    }
}

/// What becomes of an old and a new value in a scatter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ScatterMode {
    /// The new value, the last one where several meet.
    Replace,
    /// Their sum.
    Add,
    /// Their product.
    Mul,
    /// The smaller.
    Min,
    /// The larger.
    Max,
}

/// `data` with `out[indices[i, j, k], j, k]` replaced by or combined with `updates[i, j, k]` for
/// axis 0. Parameters: `data`, `indices`, `updates` (of the shape of `indices`), the result.
pub fn scatter_elements(
    data: &Operand,
    indices: &Operand,
    axis: i64,
    mode: ScatterMode,
) -> Result<TensorFunc> {
    let name = "scatter_elements";
    check_indices(name, indices)?;
    check_mode(name, data, mode)?;
    let axis = normalize_axis(name, axis, data.rank())?;
    check_elements(name, data, indices, axis)?;
    let (t, ix) = (data.placeholder("data"), indices.placeholder("indices"));
    let updates = te::placeholder("updates", &indices.shape, data.dtype);
    let out = te::stages(name, &data.shape, data.dtype, |out| {
        let mut axes = axes_of(&indices.shape);
        // Along the axis, several updates may meet.
        axes[axis] = te::scan_axis(indices.shape[axis], format!("i{axis}"));
        let i: Vec<Expr> = axes.iter().map(Axis::expr).collect();
        let index = wrapped(ix.at(&i), data.shape[axis]);
        let mut at = i.clone();
        at[axis] = clamped(ix.at(&i), data.shape[axis]);
        let value = mode.combine(out.load(at.clone()), updates.at(&i));
        let value = Expr::select(in_range(index, data.shape[axis]), value, out.load(at.clone()));
        vec![copy_stage(out, &t), Stage::new(out, axes, at, value)]
    });
    te::func([&t, &ix, &updates], [&out])
}

fn check_mode(op: &str, data: &Operand, mode: ScatterMode) -> Result<()> {
    match mode {
        ScatterMode::Replace => Ok(()),
        _ => require_number(op, data.dtype),
    }
}

impl ScatterMode {
    fn combine(self, old: Expr, new: Expr) -> Expr {
        match self {
            ScatterMode::Replace => new,
            ScatterMode::Add => old + new,
            ScatterMode::Mul => old * new,
            ScatterMode::Min => old.min(new),
            ScatterMode::Max => old.max(new),
        }
    }
}

fn in_range(index: Expr, extent: usize) -> Expr {
    index.clone().greater_equal(0).and(index.less(extent as i64))
}

/// Copies all of `t`.
fn copy_stage(out: &tilewright_ir::Buffer, t: &Tensor) -> Stage {
    let axes = axes_of(t.shape());
    let at: Vec<Expr> = axes.iter().map(Axis::expr).collect();
    Stage::new(out, axes, at.clone(), t.at(at))
}

/// `data` with the slices at the tuples of indices in the last axis of `indices` replaced by or
/// combined with those of `updates`. Parameters: `data`, `indices`, `updates`, the result.
pub fn scatter_nd(data: &Operand, indices: &Operand, mode: ScatterMode) -> Result<TensorFunc> {
    let name = "scatter_nd";
    check_indices(name, indices)?;
    check_mode(name, data, mode)?;
    let tuples = Tuples::new(name, data, indices, 0)?;
    let inner = &data.shape[tuples.depth..];
    let shape = [tuples.outer, inner].concat();
    check_not_empty(name, data, &tuples.axes(), &shape)?;
    let (t, ix) = (data.placeholder("data"), indices.placeholder("indices"));
    let updates = te::placeholder("updates", &shape, data.dtype);
    let out = te::stages(name, &data.shape, data.dtype, |out| {
        // Tuples may come twice, so they are taken one after the other.
        let scan = |(k, &d): (usize, &usize)| match k < tuples.outer.len() {
            true => te::scan_axis(d, format!("i{k}")),
            false => te::axis(d, format!("i{k}")),
        };
        let axes: Vec<Axis> = shape.iter().enumerate().map(scan).collect();
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
        let value = mode.combine(out.load(at.clone()), updates.at(&i));
        let value = Expr::select(there, value, out.load(at.clone()));
        vec![copy_stage(out, &t), Stage::new(out, axes, at, value)]
    });
    te::func([&t, &ix, &updates], [&out])
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
    let area = block.checked_mul(block).filter(|&a| a > 0 && depth % a == 0);
    let Some(area) = area else {
        return Err(Error::input(format!("{name}: {depth} channels for blocks of {block}")));
    };
    let channels = depth / area;
    let shape = [n, channels, h.saturating_mul(block), w.saturating_mul(block)];
    injective(name, x, &shape, |i| {
        let b = block as i64;
        let cell = i[2].clone().floormod(b) * b + i[3].clone().floormod(b);
        let channel = match order {
            DepthOrder::Dcr => cell * (channels as i64) + &i[1],
            DepthOrder::Crd => &i[1] * (area as i64) + cell,
        };
        vec![i[0].clone(), channel, i[2].clone().floordiv(b), i[3].clone().floordiv(b)]
    })
}

/// `[N, C, H * b, W * b]` to `[N, b * b * C, H, W]`, block positions outermost. Parameters: `x`,
/// the result.
pub fn space_to_depth(x: &Operand, block: usize) -> Result<TensorFunc> {
    let name = "space_to_depth";
    let [n, c, h, w] = x.shape[..] else {
        return Err(Error::input(format!("{name}: {x} must be [N, C, H, W]")));
    };
    if block == 0 || h % block != 0 || w % block != 0 {
        return Err(Error::input(format!("{name}: {x} in blocks of {block}")));
    }
    let depth = c.saturating_mul(block).saturating_mul(block);
    injective(name, x, &[n, depth, h / block, w / block], |i| {
        let b = block as i64;
        let cell = i[1].clone().floordiv(c.max(1) as i64);
        let (row, col) = (cell.clone().floordiv(b), cell.floormod(b));
        let channel = i[1].clone().floormod(c.max(1) as i64);
        vec![i[0].clone(), channel, &i[2] * b + row, &i[3] * b + col]
    })
}

/// The last two axes' upper or lower triangle, with the `k`-th diagonal; zeros elsewhere.
/// Parameters: `x`, the result.
pub fn trilu(x: &Operand, k: i64, upper: bool) -> Result<TensorFunc> {
    let [.., rows, cols] = x.shape[..] else {
        return Err(Error::input(format!("trilu: {x} has no matrices")));
    };
    // Diagonals outside of the matrix are all alike.
    let edge = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
    let k = k.clamp(-edge(rows), edge(cols));
    let t = x.placeholder("x");
    let out = te::compute("trilu", &x.shape, |i| {
        let (row, col) = (&i[i.len() - 2], &i[i.len() - 1]);
        let kept = match upper {
            true => col.clone().greater_equal(row + k),
            false => col.clone().less_equal(row + k),
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
pub fn one_hot(indices: &Operand, depth: usize, axis: i64, dtype: DType) -> Result<TensorFunc> {
    let name = "one_hot";
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

//! Softmax and the normalisations.

use tilewright_ir::{DType, Dim, Error, Expr, Intrin, Result, TensorFunc};

use crate::elementwise::pow_const;
use crate::operand::{
    Operand, broadcast_index, broadcast_shapes, call, normalize_axes, normalize_axis, positions,
    require_float, require_number, shared, unequal, working,
};
use crate::reduce::{Arg, Reduction, extreme_at, fold, kept_index, reduced};
use crate::te::{self, Axis, Reducer, Stage, Tensor};
use crate::window::data_axes;

/// `1 / sqrt(e)`.
fn inverse_root(e: Expr) -> Expr {
    Expr::float(1.0, e.dtype()) / call(Intrin::Sqrt, e)
}

/// `exp(x) / sum(exp(x))` along one axis. Parameters: `x`, the result.
pub fn softmax(x: &Operand, axis: i64) -> Result<TensorFunc> {
    let axis = normalize_axis("softmax", axis, x.rank())?;
    soft(x, &[axis], false)
}

/// `x - log(sum(exp(x)))` along one axis. Parameters: `x`, the result.
pub fn log_softmax(x: &Operand, axis: i64) -> Result<TensorFunc> {
    let axis = normalize_axis("log_softmax", axis, x.rank())?;
    soft(x, &[axis], true)
}

/// [`softmax`] over all axes from `axis` on together (ONNX before opset 13); `axis` may equal the
/// rank.
pub fn softmax_from(x: &Operand, axis: i64) -> Result<TensorFunc> {
    soft(x, &from_axis("softmax", axis, x.rank())?, false)
}

/// [`log_softmax`] over all axes from `axis` on together (ONNX before opset 13); `axis` may equal
/// the rank.
pub fn log_softmax_from(x: &Operand, axis: i64) -> Result<TensorFunc> {
    soft(x, &from_axis("log_softmax", axis, x.rank())?, true)
}

/// The axes from `axis` on.
fn from_axis(op: &str, axis: i64, rank: usize) -> Result<Vec<usize>> {
    match usize::try_from(axis) {
        Ok(axis) if axis == rank => Ok(Vec::new()),
        _ => Ok((normalize_axis(op, axis, rank)?..rank).collect()),
    }
}

fn soft(x: &Operand, axes: &[usize], log: bool) -> Result<TensorFunc> {
    let name = if log { "log_softmax" } else { "softmax" };
    require_float(name, x.dtype)?;
    let t = x.placeholder("x");
    let (shape, work) = (t.shape(), working(x.dtype));
    // Machines without arithmetic on halves find the largest of wider numbers sooner.
    let top = fold(format!("{name}_max"), shape, axes, false, Reducer::Max, |i| t.at(i).cast(work));
    let out = if log {
        let sum = fold(format!("{name}_sum"), shape, axes, false, Reducer::Sum, |i| {
            call(Intrin::Exp, below_top(i, &t, work, &top, axes))
        });
        // The logarithm once a sum, not once an element.
        let log = te::compute(format!("{name}_log"), sum.shape(), |i| call(Intrin::Log, sum.at(i)));
        te::compute(name, shape, |i| {
            (below_top(i, &t, work, &top, axes) - log.at(kept_index(i, axes, false))).cast(x.dtype)
        })
    } else {
        let exp = te::compute(format!("{name}_exp"), shape, |i| {
            call(Intrin::Exp, below_top(i, &t, work, &top, axes))
        });
        let sum = fold(format!("{name}_sum"), shape, axes, false, Reducer::Sum, |i| exp.at(i));
        te::compute(name, shape, |i| (exp.at(i) / sum.at(kept_index(i, axes, false))).cast(x.dtype))
    };
    te::func([&t], [&out])
}

fn below_top(i: &[Expr], t: &Tensor, work: DType, top: &Tensor, axes: &[usize]) -> Expr {
    t.at(i).cast(work) - top.at(kept_index(i, axes, false))
}

/// One at the first largest element along an axis, zero elsewhere. Parameters: `x`, the result.
pub fn hardmax(x: &Operand, axis: i64) -> Result<TensorFunc> {
    let name = "hardmax";
    require_number(name, x.dtype)?;
    let axis = normalize_axis(name, axis, x.rank())?;
    let t = x.placeholder("x");
    let first = extreme_at("hardmax_first", Arg::Max, &t, axis, false, false);
    let out = te::compute(name, &x.shape, |i| {
        let here = i[axis].clone().cast(DType::I64);
        let [one, zero] = [1.0, 0.0].map(|v| Expr::constant(v, x.dtype));
        Expr::select(here.equal(first.at(kept_index(i, &[axis], false))), one, zero)
    });
    te::func([&t], [&out])
}

/// Batch normalisation with known statistics.
#[derive(Clone, Debug, PartialEq)]
pub struct BatchNorm {
    /// `[N, C, ...]`, or `[N]` with one channel.
    pub x: Operand,
    /// Type of scale and bias, each `[C]`.
    pub scale: DType,
    /// Type of mean and variance, each `[C]`.
    pub stats: DType,
    /// Added to the variance.
    pub epsilon: f64,
}

impl BatchNorm {
    /// All of `x`'s type, with ONNX's default epsilon.
    pub fn new(x: Operand) -> Self {
        let dtype = x.dtype;
        BatchNorm { x, scale: dtype, stats: dtype, epsilon: 1e-5 }
    }
}

/// `scale * (x - mean) / sqrt(var + epsilon) + bias` for each channel. Parameters: `x`, scale,
/// bias, mean, variance, the result.
pub fn batch_norm(p: &BatchNorm) -> Result<TensorFunc> {
    let name = "batch_norm";
    for dtype in [p.x.dtype, p.scale, p.stats] {
        require_float(name, dtype)?;
    }
    let channels = match p.x.shape.as_slice() {
        [] => return Err(Error::input(format!("{name}: {} must be [N, C, ...]", p.x))),
        [_] => Dim::from(1),
        [_, c, ..] => *c,
    };
    let x = p.x.placeholder("x");
    let [scale, bias] = ["scale", "bias"].map(|name| te::placeholder(name, &[channels], p.scale));
    let [mean, var] = ["mean", "var"].map(|name| te::placeholder(name, &[channels], p.stats));
    // One factor and one summand a channel.
    let types = [p.x.dtype, p.scale, p.stats].map(working);
    let work = if types.contains(&DType::F64) { DType::F64 } else { DType::F32 };
    let factor = te::compute_over("factor", [te::axis(channels, "c")], |c| {
        scale.at(c).cast(work) * inverse_root(var.at(c).cast(work) + p.epsilon)
    });
    let shift = te::compute_over("shift", [te::axis(channels, "c")], |c| {
        bias.at(c).cast(work) - mean.at(c).cast(work) * factor.at(c)
    });
    let out = te::compute_over(name, data_axes(&p.x.shape), |i| {
        let c = i.get(1).cloned().unwrap_or_else(|| Expr::i32(0));
        (x.at(i).cast(work) * factor.at([&c]) + shift.at([&c])).cast(p.x.dtype)
    });
    te::func([&x, &scale, &bias, &mean, &var], [&out])
}

/// Statistics over some axes, which are gone in them; in the working type.
struct Statistics {
    mean: Tensor,
    /// One over the standard deviation.
    inverse: Tensor,
}

impl Statistics {
    /// Over the values of `x`, an expression of the index into `shape`. `inverse` makes the
    /// inverse standard deviation from the variance.
    fn new(
        shape: &[Dim],
        axes: &[usize],
        x: impl Fn(&[Expr]) -> Expr,
        inverse: impl Fn(Expr) -> Expr,
    ) -> Self {
        let wide = |i: &[Expr]| {
            let e = x(i);
            let work = working(e.dtype());
            e.cast(work)
        };
        let count = positions(shape, axes);
        let sum = fold("sum", shape, axes, false, Reducer::Sum, wide);
        let mean = te::compute("mean", sum.shape(), |i| shared(sum.at(i), count));
        let squares = fold("squares", shape, axes, false, Reducer::Sum, |i| {
            let centred = wide(i) - mean.at(kept_index(i, axes, false));
            &centred * &centred
        });
        let inverse =
            te::compute("inv_std", squares.shape(), |i| inverse(shared(squares.at(i), count)));
        Statistics { mean, inverse }
    }

    /// `(x - mean) / std` for the element at `at`, with the statistics at `row`.
    fn normal(&self, x: &Tensor, at: &[Expr], row: &[Expr]) -> Expr {
        let centred = x.at(at).cast(self.mean.dtype()) - self.mean.at(row);
        centred * self.inverse.at(row)
    }
}

/// Requires a shape that broadcasts to another without changing it.
fn require_broadcast(op: &str, what: &str, shape: &[Dim], to: &[Dim]) -> Result<()> {
    match broadcast_shapes(op, &[shape, to]) {
        Ok(s) if s == to => Ok(()),
        _ => {
            let error = Error::input(format!(
                "{op}: the {what}'s shape {shape:?} does not broadcast to {to:?}"
            ));
            let pairs = shape.iter().rev().zip(to.iter().rev()).map(|(a, b)| (*a, *b));
            Err(unequal(error, pairs.filter(|(a, _)| *a != 1)))
        }
    }
}

/// Normalisation over the trailing axes.
#[derive(Clone, Debug, PartialEq)]
pub struct LayerNorm {
    /// What is normalised.
    pub x: Operand,
    /// The first of the axes over which mean and variance are taken; may count from the end.
    pub axis: i64,
    /// Shape of the scale, which broadcasts to `x`'s.
    pub scale: Vec<Dim>,
    /// Shape of the bias, which broadcasts to `x`'s; nothing for no bias.
    pub bias: Option<Vec<Dim>>,
    /// Added to the variance.
    pub epsilon: f64,
    /// Whether mean and inverse standard deviation (`float32`, the normalised axes of extent
    /// one) are results too.
    pub statistics: bool,
}

/// `scale * (x - mean) / sqrt(var + epsilon) + bias`. Parameters: `x`, scale, the bias if there
/// is one, the result, then mean and inverse standard deviation if asked for.
pub fn layer_norm(p: &LayerNorm) -> Result<TensorFunc> {
    let name = "layer_norm";
    let (shape, dtype) = (p.x.shape.as_slice(), p.x.dtype);
    require_float(name, dtype)?;
    let first = normalize_axis(name, p.axis, shape.len())?;
    let axes: Vec<usize> = (first..shape.len()).collect();
    require_broadcast(name, "scale", &p.scale, shape)?;
    if let Some(bias) = &p.bias {
        require_broadcast(name, "bias", bias, shape)?;
    }
    let x = p.x.placeholder("x");
    let scale = te::placeholder("scale", &p.scale, dtype);
    let bias = p.bias.as_ref().map(|b| te::placeholder("bias", b, dtype));
    let work = working(dtype);
    let stats = Statistics::new(shape, &axes, |i| x.at(i), |var| inverse_root(var + p.epsilon));
    let out = te::compute(name, shape, |i| {
        let normal = stats.normal(&x, i, &kept_index(i, &axes, false));
        let scaled = normal * parameter_at(&scale, i, shape, work);
        bias.iter().fold(scaled, |e, b| e + parameter_at(b, i, shape, work)).cast(dtype)
    });
    let mut outputs = vec![out];
    if p.statistics {
        let mut kept = shape.to_vec();
        kept[first..].fill(Dim::from(1));
        for (name, t) in [("mean_out", &stats.mean), ("inv_std_out", &stats.inverse)] {
            outputs.push(te::compute(name, &kept, |i| t.at(&i[..first]).cast(DType::F32)));
        }
    }
    te::func([x, scale].into_iter().chain(bias), &outputs)
}

fn parameter_at(t: &Tensor, i: &[Expr], shape: &[Dim], work: DType) -> Expr {
    t.at(broadcast_index(t.shape(), i, shape)).cast(work)
}

/// `scale * x / sqrt(mean(x * x) + epsilon)` over the axes from `axis` on; the scale broadcasts
/// to `x`'s shape. Parameters: `x`, scale, the result.
pub fn rms_norm<D: Into<Dim> + Copy>(
    x: &Operand,
    axis: i64,
    scale: &[D],
    epsilon: f64,
) -> Result<TensorFunc> {
    let scale = &te::dims(scale)[..];
    let name = "rms_norm";
    require_float(name, x.dtype)?;
    let first = normalize_axis(name, axis, x.rank())?;
    let axes: Vec<usize> = (first..x.rank()).collect();
    require_broadcast(name, "scale", scale, &x.shape)?;
    let (t, s) = (x.placeholder("x"), te::placeholder("scale", scale, x.dtype));
    let work = working(x.dtype);
    let squares = fold("squares", &x.shape, &axes, false, Reducer::Sum, |i| {
        t.at(i).cast(work) * t.at(i).cast(work)
    });
    let count = positions(&x.shape, &axes);
    let inverse = te::compute("inv_rms", squares.shape(), |i| {
        inverse_root(shared(squares.at(i), count) + epsilon)
    });
    let out = te::compute(name, &x.shape, |i| {
        let scaled = t.at(i).cast(work) * inverse.at(kept_index(i, &axes, false));
        (scaled * s.at(broadcast_index(scale, i, &x.shape)).cast(work)).cast(x.dtype)
    });
    te::func([&t, &s], [&out])
}

/// Normalisation of each channel of each sample of `[N, C, ...]`. Parameters: `x`, scale `[C]`,
/// bias `[C]`, the result.
pub fn instance_norm(x: &Operand, epsilon: f64) -> Result<TensorFunc> {
    let name = "instance_norm";
    require_float(name, x.dtype)?;
    let [_, channels, ..] = x.shape[..] else {
        return Err(Error::input(format!("{name}: {x} must be [N, C, ...]")));
    };
    let t = x.placeholder("x");
    let [scale, bias] = ["scale", "bias"].map(|name| te::placeholder(name, &[channels], x.dtype));
    let axes: Vec<usize> = (2..x.rank()).collect();
    let stats = Statistics::new(&x.shape, &axes, |i| t.at(i), |var| inverse_root(var + epsilon));
    let out = te::compute_over(name, data_axes(&x.shape), |i| {
        affine(stats.normal(&t, i, &i[..2]), &scale, &bias, &i[1]).cast(x.dtype)
    });
    te::func([&t, &scale, &bias], [&out])
}

/// Normalisation of each group of channels of each sample of `[N, C, ...]`. Parameters: `x`,
/// scale, bias, the result. Scale and bias are `[C]`, or (`per_group`) `[groups]`.
pub fn group_norm(x: &Operand, groups: usize, epsilon: f64, per_group: bool) -> Result<TensorFunc> {
    let name = "group_norm";
    require_float(name, x.dtype)?;
    let [n, channels, ..] = x.shape[..] else {
        return Err(Error::input(format!("{name}: {x} must be [N, C, ...]")));
    };
    let channels = channels.fixed(name)?;
    if groups == 0 || channels % groups != 0 {
        return Err(Error::input(format!("{name}: {channels} channels in {groups} groups")));
    }
    let t = x.placeholder("x");
    let factors = [if per_group { groups } else { channels }];
    let [scale, bias] = ["scale", "bias"].map(|name| te::placeholder(name, &factors, x.dtype));
    // The channels of a group side by side: [N, groups, C / groups, ...].
    let members = channels / groups;
    let split: Vec<Dim> = [n, groups.into(), members.into()]
        .into_iter()
        .chain(x.shape[2..].iter().copied())
        .collect();
    let axes: Vec<usize> = (2..split.len()).collect();
    let stats = Statistics::new(
        &split,
        &axes,
        |i| t.at(whole_index(i, members)),
        |var| inverse_root(var + epsilon),
    );
    let out = te::stages(name, &x.shape, x.dtype, |out| {
        let axes = te::axes_along(&split, |_| false);
        let i: Vec<Expr> = axes.iter().map(Axis::expr).collect();
        let at = whole_index(&i, members);
        let parameter = if per_group { &i[1] } else { &at[1] };
        let value = affine(stats.normal(&t, &at, &i[..2]), &scale, &bias, parameter);
        vec![Stage::new(out, axes, at.clone(), value.cast(x.dtype))]
    });
    te::func([&t, &scale, &bias], [&out])
}

fn whole_index(i: &[Expr], members: usize) -> Vec<Expr> {
    let channel = &i[1] * (members as i64) + &i[2];
    [i[0].clone(), channel].into_iter().chain(i[3..].iter().cloned()).collect()
}

/// A normalised value times a scale plus a bias, both at the index `parameter`.
fn affine(normal: Expr, scale: &Tensor, bias: &Tensor, parameter: &Expr) -> Expr {
    let work = normal.dtype();
    normal * scale.at([parameter]).cast(work) + bias.at([parameter]).cast(work)
}

/// `(x - mean) / (sqrt(var) + 1e-9)` over the given axes. Parameters: `x`, the result.
pub fn mean_variance_norm(x: &Operand, axes: &[i64]) -> Result<TensorFunc> {
    let name = "mean_variance_norm";
    require_float(name, x.dtype)?;
    let axes = normalize_axes(name, axes, x.rank())?;
    let t = x.placeholder("x");
    // ONNX defines the operator with this constant beside the standard deviation.
    let stats = Statistics::new(
        &x.shape,
        &axes,
        |i| t.at(i),
        |var| Expr::float(1.0, var.dtype()) / (call(Intrin::Sqrt, var) + 1e-9),
    );
    let out = te::compute(name, &x.shape, |i| {
        stats.normal(&t, i, &kept_index(i, &axes, false)).cast(x.dtype)
    });
    te::func([&t], [&out])
}

/// `x` divided by its p-norm along an axis, for p 1 or 2; zeros stay. Parameters: `x`, the
/// result.
pub fn lp_norm(x: &Operand, axis: i64, p: u32) -> Result<TensorFunc> {
    let name = "lp_norm";
    require_float(name, x.dtype)?;
    let axis = normalize_axis(name, axis, x.rank())?;
    let op = match p {
        1 => Reduction::L1,
        2 => Reduction::L2,
        _ => {
            return Err(Error::unsupported(format!("{name}: the {p}-norm")).help("p may be 1 or 2"));
        }
    };
    let t = x.placeholder("x");
    let work = working(x.dtype);
    let wide = if work == x.dtype {
        t.clone()
    } else {
        te::compute("x_wide", &x.shape, |i| t.at(i).cast(work))
    };
    let size = reduced("size", op, &wide, &[axis], false);
    let out = te::compute(name, &x.shape, |i| {
        let size = size.at(kept_index(i, &[axis], false));
        let zero = size.clone().equal(0.0);
        // A size of zero means zeros everywhere.
        let divisor = Expr::select(zero, Expr::float(1.0, work), size);
        (wide.at(i) / divisor).cast(x.dtype)
    });
    te::func([&t], [&out])
}

/// Local response normalisation across the channels of `[N, C, ...]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Lrn {
    /// What is normalised.
    pub x: Operand,
    /// Number of channels in a window, of which the larger half lies behind its channel.
    pub size: usize,
    /// Weight of the window's mean square.
    pub alpha: f64,
    /// The power.
    pub beta: f64,
    /// Added to it.
    pub bias: f64,
}

impl Lrn {
    /// With ONNX's default constants.
    pub fn new(x: Operand, size: usize) -> Self {
        Lrn { x, size, alpha: 1e-4, beta: 0.75, bias: 1.0 }
    }
}

/// `x / (bias + alpha / size * sum(x * x))^beta`, with the sum over the channels from
/// `c - floor((size - 1) / 2)` to `c + ceil((size - 1) / 2)` that exist. Parameters: `x`, the
/// result.
pub fn lrn(p: &Lrn) -> Result<TensorFunc> {
    let name = "lrn";
    let (shape, dtype) = (p.x.shape.as_slice(), p.x.dtype);
    require_float(name, dtype)?;
    let [_, channels, ..] = *shape else {
        return Err(Error::input(format!("{name}: {} must be [N, C, ...]", p.x)));
    };
    let channels = channels.fixed(name)?;
    if p.size == 0 || i32::try_from(channels.saturating_add(p.size)).is_err() {
        return Err(Error::input(format!("{name}: a window of {} channels", p.size)));
    }
    let x = p.x.placeholder("x");
    let work = working(dtype);
    // Squares behind `before` channels of zeros, so that a window is read without conditions.
    let before = (p.size - 1) / 2;
    let mut padded = shape.to_vec();
    padded[1] = Dim::from(channels + p.size - 1);
    let squares = te::compute_over("squares", data_axes(&padded), |i| {
        let channel = &i[1] - before as i64;
        let low = i[1].clone().greater_equal(before as i64);
        let high = i[1].clone().less((before + channels) as i64);
        let mut at = i.to_vec();
        at[1] = channel;
        let value = x.at(at).cast(work);
        Expr::if_then_else(low.and(high), &value * &value, Expr::float(0.0, work))
    });
    let k = te::reduce_axis(p.size, "k");
    let sum = te::compute_over("sum", data_axes(shape), |i| {
        let mut at = i.to_vec();
        at[1] = &i[1] + &k;
        te::reduce(Reducer::Sum, squares.at(at), [&k])
    });
    let out = te::compute_over(name, data_axes(shape), |i| {
        let base = sum.at(i) * (p.alpha / p.size as f64) + p.bias;
        let power = match p.beta {
            0.75 => {
                call(Intrin::Sqrt, base.clone())
                    * call(Intrin::Sqrt, call(Intrin::Sqrt, base.clone()).clone())
            }
            beta => pow_const(base, beta),
        };
        (x.at(i).cast(work) / power).cast(dtype)
    });
    te::func([&x], [&out])
}

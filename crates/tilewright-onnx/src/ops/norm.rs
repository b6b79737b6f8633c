//! Softmax and the normalisations.

use tilewright_ir::{DType, Dim, Error, Result, Tensor, TensorFunc, dim};
use tilewright_ops::elementwise::Binary;
use tilewright_ops::norm::{self, BatchNorm, LayerNorm, Lrn};
use tilewright_ops::{Operand, unequal};

use super::compose::Compose;
use super::{arithmetic, contraction, one, value};
use crate::build::Builder;
use crate::imported::{Imported, operand};
use crate::node::{Node, axes, axis, axis_or_end};
use crate::operator::{Operator, op};

/// The operators that are imported here.
pub(crate) static OPERATORS: &[Operator] = &[
    op("BatchNormalization", 7, 5, batch_norm),
    op("GroupNormalization", 18, 3, group_norm),
    op("Hardmax", 7, 1, |n, b| softmax(n, b, ("hardmax", norm::hardmax), None)),
    op("InstanceNormalization", 7, 3, instance_norm),
    op("LRN", 7, 1, lrn),
    op("LayerNormalization", 17, 3, layer_norm),
    op("LogSoftmax", 7, 1, |n, b| {
        let from: Along = ("log_softmax_from", norm::log_softmax_from);
        softmax(n, b, ("log_softmax", norm::log_softmax), Some(from))
    }),
    op("LpNormalization", 7, 1, lp_norm),
    op("MeanVarianceNormalization", 9, 1, mean_variance_norm),
    op("RMSNormalization", 23, 2, rms_norm),
    op("Softmax", 7, 1, |n, b| {
        softmax(n, b, ("softmax", norm::softmax), Some(("softmax_from", norm::softmax_from)))
    }),
];

/// A function of the softmax family along an axis, and its name.
type Along = (&'static str, fn(&Operand, i64) -> Result<TensorFunc>);

fn call_along(b: &mut Builder, x: &Imported, (name, make): Along, at: usize) -> Result<Imported> {
    let at = at as i64;
    b.call_on(name, [x], at, |[x]| make(x, at))
}

/// Before opset 13, all axes from the given one on count as one. `from` does so; without it, the data
/// become a matrix.
fn softmax(node: &Node, b: &mut Builder, of: Along, from: Option<Along>) -> Result<Vec<Imported>> {
    let x = node.input(0)?;
    if node.opset >= 13 {
        return one(call_along(b, x, of, axis(node.int_or("axis", -1)?, x.rank())?)?);
    }
    let at = axis_or_end(node.int_or("axis", 1)?, x.rank())?;
    if let Some(from) = from {
        // Over one axis, both say the same.
        return one(call_along(b, x, if at + 1 == x.rank() { of } else { from }, at)?);
    }
    let shape = x.shape();
    let (rows, columns) = shape.split_at(at);
    let sizes = [rows, columns].map(|part| dim::product(part.iter().copied()));
    let flat = value::reshape_to(b, x, &sizes)?;
    let (base, make) = of;
    let found = b.call_on(base, [&flat], 1, |[x]| make(x, 1))?;
    one(value::reshape_to(b, &found, &shape)?)
}

/// With constant statistics this is a factor and an addend a channel, which go into the weights
/// of a convolution before it where there is one.
pub(crate) fn batch_norm(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let x = node.input(0)?;
    let parts: Vec<&Imported> = (1..5).map(|i| node.input(i)).collect::<Result<_>>()?;
    let epsilon = f64::from(node.float_or("epsilon", 1e-5)?);
    let momentum = node.float_or("momentum", 0.9)?;
    if node.opset < 9 && !node.flag("spatial", true)? {
        return Err(Error::unsupported("statistics of single elements are not supported")
            .note("`spatial` is 0, which no opset from 9 on has"));
    }
    if node.opset >= 14 && node.flag("training_mode", false)? {
        return batch_statistics(node, b, epsilon, f64::from(momentum));
    }
    if node.output_count() > 1 {
        return Err(Error::unsupported("training is not supported: only one output is computed"));
    }
    let channels = x.shape().get(1).copied().unwrap_or(Dim::from(1));
    if let Some(p) = parts.iter().find(|p| p.shape() != [channels]) {
        let error = Error::model(format!(
            "{} channels are normalised with {} numbers",
            channels,
            p.shape().iter().map(Dim::to_string).collect::<Vec<_>>().join("x")
        ));
        let numbers = p.shape().first().copied().filter(|_| p.rank() == 1);
        return Err(unequal(error, numbers.map(|numbers| (channels, numbers))));
    }
    let known: Option<Vec<&Tensor>> = parts.iter().map(|p| p.constant()).collect();
    let wide = matches!(x.dtype(), DType::F32 | DType::F64);
    if let (Some([gamma, beta, mean, variance]), true) = (known.as_deref(), wide)
        && x.constant().is_none()
    {
        let channels = gamma.len();
        let floats = [gamma, beta, mean, variance].iter().all(|t| t.dtype().is_float());
        if !floats {
            return Err(Error::model("scale, bias, mean and variance must be floating-point"));
        }
        let scale: Vec<f64> = (0..channels)
            .map(|c| gamma.get_f64(c) / (variance.get_f64(c) + epsilon).sqrt())
            .collect();
        let shift: Vec<f64> =
            (0..channels).map(|c| beta.get_f64(c) - mean.get_f64(c) * scale[c]).collect();
        if let Some(value) = contraction::rescale(b, x, &scale, &shift)? {
            return one(value);
        }
        let mut shape = vec![channels];
        shape.resize(x.rank().saturating_sub(1).max(1), 1);
        let scaled =
            arithmetic::combine(b, "mul", Binary::Mul, x, &constant_like(&scale, x, &shape)?)?;
        return one(arithmetic::combine(
            b,
            "add",
            Binary::Add,
            &scaled,
            &constant_like(&shift, x, &shape)?,
        )?);
    }
    let params =
        BatchNorm { x: operand(x), scale: parts[0].dtype(), stats: parts[2].dtype(), epsilon };
    if parts[1].dtype() != params.scale || parts[3].dtype() != params.stats {
        return Err(Error::model("scale and bias, and mean and variance, must have equal types"));
    }
    let args = [x].into_iter().chain(parts);
    one(b.call("batch_norm", &params, args, || norm::batch_norm(&params))?)
}

fn constant_like(values: &[f64], x: &Imported, shape: &[usize]) -> Result<Imported> {
    value::constant(x.dtype(), shape, values)
}

/// Normalisation by the statistics of the batch, which also move the running ones.
fn batch_statistics(
    node: &Node,
    b: &mut Builder,
    epsilon: f64,
    momentum: f64,
) -> Result<Vec<Imported>> {
    let mut c = Compose::new(node, b);
    let (x, mean, variance) = (node.input(0)?, node.input(3)?, node.input(4)?);
    let rank = x.rank();
    let channels = *x.shape().get(1).ok_or_else(|| Error::model("the data have no channels"))?;
    if (1..5).any(|at| node.input(at).is_ok_and(|p| p.shape() != [channels])) {
        return Err(Error::model(format!(
            "scale, bias and statistics do not have {channels} numbers"
        )));
    }
    let over: Vec<usize> = (0..rank).filter(|axis| *axis != 1).collect();
    let work = mean.dtype();
    let wide = c.cast(x, work)?;
    let own_mean = c.reduce("ReduceMean", &wide, &over, true)?;
    let centred = c.op("Sub", &[&wide, &own_mean])?;
    let squares = c.op("Mul", &[&centred, &centred])?;
    let own_variance = c.reduce("ReduceMean", &squares, &over, true)?;
    let epsilon = c.number(work, epsilon)?;
    let spread = c.op("Add", &[&own_variance, &epsilon])?;
    let spread = c.op("Sqrt", &[&spread])?;
    let mut y = c.op("Div", &[&centred, &spread])?;
    let single = Dim::from(1);
    let along: Vec<Dim> = (0..rank).map(|a| if a == 1 { channels } else { single }).collect();
    for (at, op) in [(1, "Mul"), (2, "Add")] {
        let parameter = c.cast(node.input(at)?, work)?;
        let parameter = c.reshape(&parameter, &along)?;
        y = c.op(op, &[&y, &parameter])?;
    }
    let mut all = vec![c.cast(&y, x.dtype())?];
    for (running, own) in [(mean, &own_mean), (variance, &own_variance)] {
        let (keep, take) = (c.number(work, momentum)?, c.number(work, 1.0 - momentum)?);
        let own = c.reshape(own, &[channels])?;
        let (kept, taken) = (c.op("Mul", &[running, &keep])?, c.op("Mul", &[&own, &take])?);
        all.push(c.op("Add", &[&kept, &taken])?);
    }
    Ok(all)
}

/// Scale or bias must have the type of the data and this shape.
fn check_channels(value: &Imported, x: &Imported, count: impl Into<Dim>) -> Result<()> {
    let count = count.into();
    if value.dtype() == x.dtype() && value.shape() == [count] {
        Ok(())
    } else {
        let error = Error::model(format!(
            "scale and bias must be {} of shape [{count}], but there is {}",
            x.dtype(),
            operand(value)
        ));
        Err(match value.shape()[..] {
            [own] if value.dtype() == x.dtype() => unequal(error, [(own, count)]),
            _ => error,
        })
    }
}

pub(crate) fn instance_norm(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let (x, scale, bias) = (node.input(0)?, node.input(1)?, node.input(2)?);
    let channels = x.shape().get(1).copied().unwrap_or(Dim::from(0));
    check_channels(scale, x, channels)?;
    check_channels(bias, x, channels)?;
    let epsilon = f64::from(node.float_or("epsilon", 1e-5)?);
    one(b.call_on("instance_norm", [x, scale, bias], epsilon, |[x, ..]| {
        norm::instance_norm(x, epsilon)
    })?)
}

/// Statistics are computed in `float32`, the only choice that is supported.
fn stash_type(node: &Node) -> Result<()> {
    match node.int_or("stash_type", 1)? {
        1 => Ok(()),
        other => Err(node.unsupported_value("stash_type", other, "1 (float32)")),
    }
}

pub(crate) fn group_norm(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let (x, scale, bias) = (node.input(0)?, node.input(1)?, node.input(2)?);
    let groups = node.positive("num_groups")?;
    // One factor a group before opset 21, one a channel since.
    let per_group = node.opset < 21;
    if !per_group {
        stash_type(node)?;
    }
    let channels = x.shape().get(1).copied().unwrap_or(Dim::from(0));
    let count = if per_group { Dim::from(groups) } else { channels };
    check_channels(scale, x, count)?;
    check_channels(bias, x, count)?;
    let epsilon = f64::from(node.float_or("epsilon", 1e-5)?);
    one(b.call_on("group_norm", [x, scale, bias], (groups, epsilon, per_group), |[x, ..]| {
        norm::group_norm(x, groups, epsilon, per_group)
    })?)
}

pub(crate) fn layer_norm(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let (x, scale, bias) = (node.input(0)?, node.input(1)?, node.optional(2));
    stash_type(node)?;
    if let Some(v) = [Some(scale), bias].into_iter().flatten().find(|v| v.dtype() != x.dtype()) {
        return Err(Error::model(format!("the inputs are {} and {}", x.dtype(), v.dtype())));
    }
    let params = LayerNorm {
        axis: axis(node.int_or("axis", -1)?, x.rank())? as i64,
        scale: scale.shape(),
        bias: bias.map(Imported::shape),
        epsilon: node.float_or("epsilon", 1e-5)?.into(),
        statistics: node.output_count() > 1,
        x: operand(x),
    };
    let args = [x, scale].into_iter().chain(bias);
    b.call_many("layer_norm", &params, args, || norm::layer_norm(&params))
}

pub(crate) fn rms_norm(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let (x, scale) = (node.input(0)?, node.input(1)?);
    stash_type(node)?;
    if scale.dtype() != x.dtype() {
        return Err(Error::model(format!("the inputs are {} and {}", x.dtype(), scale.dtype())));
    }
    let at = axis(node.int_or("axis", -1)?, x.rank())? as i64;
    let epsilon = f64::from(node.float_or("epsilon", 1e-5)?);
    one(b.call_on("rms_norm", [x, scale], (at, epsilon), |[x, scale]| {
        norm::rms_norm(x, at, &scale.shape, epsilon)
    })?)
}

pub(crate) fn mean_variance_norm(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let x = node.input(0)?;
    let list = node.ints("axes")?.unwrap_or_else(|| vec![0, 2, 3]);
    let over: Vec<i64> = axes(&list, x.rank())?.into_iter().map(|a| a as i64).collect();
    one(b.call_on("mean_variance_norm", [x], &over, |[x]| norm::mean_variance_norm(x, &over))?)
}

pub(crate) fn lp_norm(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let x = node.input(0)?;
    let at = axis(node.int_or("axis", -1)?, x.rank())? as i64;
    let p = match node.int_or("p", 2)? {
        1 => 1,
        2 => 2,
        other => return Err(node.unsupported_value("p", other, "1, 2")),
    };
    one(b.call_on("lp_norm", [x], (at, p), |[x]| norm::lp_norm(x, at, p))?)
}

pub(crate) fn lrn(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let x = node.input(0)?;
    let size = node.positive("size")?;
    let params = Lrn {
        alpha: node.float_or("alpha", 1e-4)?.into(),
        beta: node.float_or("beta", 0.75)?.into(),
        bias: node.float_or("bias", 1.0)?.into(),
        ..Lrn::new(operand(x), size)
    };
    one(b.call("lrn", &params, [x], || norm::lrn(&params))?)
}

//! Operators of the domain `com.microsoft` on integers that stand for numbers, which ONNX Runtime's tools and
//! optimisers write: each computes with the numbers, and quantises the result.

use tilewright_ir::{DType, Dim, Error, Result, dim};

use super::compose::{Compose, float, int};
use super::microsoft::{attend_all, split_projection};
use super::quantized::{self, scaled_product};
use super::{one, window};
use crate::build::Builder;
use crate::imported::{Imported, operand};
use crate::node::{Node, required};
use crate::operator::{MANY, Operator, op};

/// Those of the domain `com.microsoft`.
pub(crate) static OPERATORS: &[Operator] = &[
    op("DequantizeLinear", 9, 3, |n, b| renamed(n, b, "DequantizeLinear")),
    op("NhwcMaxPool", 9, 1, nhwc_max_pool),
    op("QAttention", 9, 9, q_attention),
    op("QGemm", 9, 9, q_gemm),
    op("QLinearAdd", 9, 8, qlinear_add),
    op("QLinearAveragePool", 9, 5, qlinear_average_pool),
    op("QLinearConcat", 9, MANY, qlinear_concat),
    op("QLinearConv", 9, 9, qlinear_conv),
    op("QLinearGlobalAveragePool", 9, 5, qlinear_global_average_pool),
    op("QLinearLeakyRelu", 9, 5, qlinear_leaky_relu),
    op("QLinearMul", 9, 8, qlinear_mul),
    op("QLinearReduceMean", 9, 5, qlinear_reduce_mean),
    op("QLinearSigmoid", 9, 5, qlinear_sigmoid),
    op("QLinearSoftmax", 9, 5, qlinear_softmax),
    op("QLinearWhere", 9, 9, qlinear_where),
    op("QuantizeLinear", 9, 3, |n, b| renamed(n, b, "QuantizeLinear")),
];

/// What integers stand for, from their position among the inputs.
fn real(node: &Node, c: &mut Compose, at: usize) -> Result<Imported> {
    let inputs = [Some(node.input(at)?), Some(node.input(at + 1)?), node.optional(at + 2)];
    c.first("DequantizeLinear", &inputs, [])
}

/// The way back; scale and zero point stand at a position among the inputs.
fn quantized(
    node: &Node,
    c: &mut Compose,
    x: &Imported,
    at: usize,
    like: DType,
) -> Result<Imported> {
    let zero = match node.optional(at + 1) {
        Some(zero) => zero.clone(),
        None => c.number(like, 0.0)?,
    };
    c.op("QuantizeLinear", &[x, node.input(at)?, &zero])
}

/// The scale and zero point at a position among the inputs as `float32`.
fn parameters(node: &Node, c: &mut Compose, at: usize) -> Result<[Imported; 2]> {
    let zero = match node.optional(at + 1) {
        Some(zero) => c.cast(zero, DType::F32)?,
        None => c.number(DType::F32, 0.0)?,
    };
    Ok([node.input(at)?.clone(), zero])
}

/// Numbers as the nearest integers of a type, even ones where two are as near, and those beyond its ends as
/// these.
fn nearest(c: &mut Compose, x: &Imported, like: DType) -> Result<Imported> {
    let (Some(low), Some(high)) = (like.min_int(), like.max_int()) else {
        return Err(Error::model(format!("quantised elements are integers, not {like}")));
    };
    let x = c.op("Round", &[x])?;
    let [low, high] = [low, high].map(|v| c.number(DType::F32, v as f64));
    let x = c.op("Clip", &[&x, &low?, &high?])?;
    c.cast(&x, like)
}

/// A sum in the order of ONNX Runtime, on which it depends where two integers are as near:
/// `x * (sx / sz) + (y * (sy / sz) + (zz - (zx * sx / sz + zy * sy / sz)))`.
fn qlinear_add(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let c = &mut Compose::new(node, b);
    let [scale, mut rest] = parameters(node, c, 6)?;
    let mut parts = Vec::new();
    let mut zeros = None;
    for at in [0, 3] {
        let [own, zero] = parameters(node, c, at + 1)?;
        let ratio = c.op("Div", &[&own, &scale])?;
        let zero = c.op("Mul", &[&ratio, &zero])?;
        zeros = Some(match zeros {
            None => zero,
            Some(zeros) => c.op("Add", &[&zeros, &zero])?,
        });
        let x = c.cast(node.input(at)?, DType::F32)?;
        parts.push(c.op("Mul", &[&x, &ratio])?);
    }
    let zeros = zeros.ok_or_else(|| Error::internal("two operands"))?;
    rest = c.op("Sub", &[&rest, &zeros])?;
    for part in parts.iter().rev() {
        rest = c.op("Add", &[part, &rest])?;
    }
    one(nearest(c, &rest, node.input(0)?.dtype())?)
}

/// A product in the order of ONNX Runtime, on which it depends where two integers are as near: that of the
/// integers is exact.
fn qlinear_mul(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let c = &mut Compose::new(node, b);
    let [[sx, zx], [sy, zy], [sz, zz]] =
        [parameters(node, c, 1)?, parameters(node, c, 4)?, parameters(node, c, 6)?];
    let ratio = c.op("Mul", &[&sx, &sy])?;
    let ratio = c.op("Div", &[&ratio, &sz])?;
    let [x, y] = [c.cast(node.input(0)?, DType::F32)?, c.cast(node.input(3)?, DType::F32)?];
    let (x, y) = (c.op("Sub", &[&x, &zx])?, c.op("Sub", &[&y, &zy])?);
    let z = c.op("Mul", &[&x, &y])?;
    let z = c.op("Mul", &[&z, &ratio])?;
    let z = c.op("Add", &[&z, &zz])?;
    one(nearest(c, &z, node.input(0)?.dtype())?)
}

pub(crate) fn qlinear_sigmoid(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let c = &mut Compose::new(node, b);
    let x = real(node, c, 0)?;
    let y = c.op("Sigmoid", &[&x])?;
    one(quantized(node, c, &y, 3, node.input(0)?.dtype())?)
}

pub(crate) fn qlinear_global_average_pool(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let c = &mut Compose::new(node, b);
    let x = node.input(0)?;
    let axes: Vec<usize> = if node.flag("channels_last", false)? {
        (1..x.rank().saturating_sub(1)).collect()
    } else {
        (2..x.rank()).collect()
    };
    let [[sx, zx], [sy, zy]] = [parameters(node, c, 1)?, parameters(node, c, 3)?];
    let zero = c.cast(&zx, DType::I32)?;
    let whole = c.cast(x, DType::I32)?;
    let centred = c.op("Sub", &[&whole, &zero])?;
    let sum = c.reduce("ReduceSum", &centred, &axes, true)?;
    let sum = c.cast(&sum, DType::F32)?;
    let count = c.size(dim::product(axes.iter().map(|axis| x.shape()[*axis])))?;
    let count = c.cast(&count, DType::F32)?;
    let under = c.op("Mul", &[&sy, &count])?;
    let ratio = c.op("Div", &[&sx, &under])?;
    let mean = c.op("Mul", &[&sum, &ratio])?;
    let mean = c.op("Round", &[&mean])?;
    let mean = c.op("Add", &[&mean, &zy])?;
    one(nearest(c, &mean, x.dtype())?)
}

pub(crate) fn qlinear_concat(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let c = &mut Compose::new(node, b);
    let axis = required(node.int("axis")?, "attribute `axis`")?;
    let parts: Vec<Imported> =
        (2..node.input_count()).step_by(3).map(|at| real(node, c, at)).collect::<Result<_>>()?;
    let all = c.with("Concat", &parts.iter().collect::<Vec<_>>(), [int("axis", axis)])?;
    one(quantized(node, c, &all, 0, node.input(2)?.dtype())?)
}

/// ONNX's own operator of that name; the axis of several scales is the second one where nothing is said.
fn renamed(node: &Node, b: &mut Builder, op: &str) -> Result<Vec<Imported>> {
    let c = &mut Compose::new(node, b);
    let inputs = [Some(node.input(0)?), Some(node.input(1)?), node.optional(2)];
    let axis = match node.input(1)?.rank() {
        0 => None,
        _ => Some(int("axis", node.int_or("axis", 1)?)),
    };
    node.ignore("axis");
    one(c.first(op, &inputs, axis)?)
}

pub(crate) fn qlinear_leaky_relu(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let c = &mut Compose::new(node, b);
    let x = real(node, c, 0)?;
    let alpha = float("alpha", node.float_or("alpha", 0.01)?);
    let y = c.with("LeakyRelu", &[&x], [alpha])?;
    one(quantized(node, c, &y, 3, node.input(0)?.dtype())?)
}

pub(crate) fn qlinear_softmax(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let c = &mut Compose::new(node, b);
    let x = real(node, c, 0)?;
    // The version of ONNX's operator that it stands for.
    let version = node.int_or("opset", node.opset)?;
    let y = match version {
        ..13 => {
            // All axes from the given one on count as one.
            let at = crate::node::axis_or_end(node.int_or("axis", 1)?, x.rank())?;
            let rows = dim::product(x.shape()[..at].iter().copied());
            let columns = dim::product(x.shape()[at..].iter().copied());
            let flat = c.reshape(&x, &[rows, columns])?;
            let y = c.with("Softmax", &[&flat], [int("axis", 1)])?;
            c.reshape(&y, &x.shape())?
        }
        _ => c.with("Softmax", &[&x], [int("axis", node.int_or("axis", -1)?)])?,
    };
    one(quantized(node, c, &y, 3, node.input(0)?.dtype())?)
}

pub(crate) fn qlinear_where(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let c = &mut Compose::new(node, b);
    let (x, y) = (real(node, c, 1)?, real(node, c, 4)?);
    let z = c.op("Where", &[node.input(0)?, &x, &y])?;
    one(quantized(node, c, &z, 7, node.input(1)?.dtype())?)
}

pub(crate) fn qlinear_reduce_mean(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let c = &mut Compose::new(node, b);
    let x = real(node, c, 0)?;
    let axes = crate::node::axes_or_all(node.ints("axes")?, x.rank())?;
    let y = c.reduce("ReduceMean", &x, &axes, node.flag("keepdims", true)?)?;
    one(quantized(node, c, &y, 3, node.input(0)?.dtype())?)
}

/// The order of axes that brings the last one behind the first one, and the way back.
fn channels_second(x: &Imported) -> Result<[Vec<usize>; 2]> {
    let rank = x.rank();
    if rank < 3 {
        return Err(Error::model(format!("{} is no image", operand(x))));
    }
    let second = [0, rank - 1].into_iter().chain(1..rank - 1).collect();
    let last = [0].into_iter().chain(2..rank).chain([1]).collect();
    Ok([second, last])
}

/// The attributes of a pool but for those that only maxima have.
const POOL: [&str; 6] = ["auto_pad", "ceil_mode", "dilations", "kernel_shape", "pads", "strides"];

pub(crate) fn qlinear_average_pool(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let c = &mut Compose::new(node, b);
    let mut x = real(node, c, 0)?;
    let order = if node.flag("channels_last", false)? { Some(channels_second(&x)?) } else { None };
    if let Some([second, _]) = &order {
        x = c.transpose(&x, second)?;
    }
    let mut y = if node.flag("count_include_pad", false)? {
        average_of_all(node, c, &x)?
    } else {
        c.with("AveragePool", &[&x], node.attributes(&POOL))?
    };
    if let Some([_, last]) = &order {
        y = c.transpose(&y, last)?;
    }
    // ONNX Runtime adds the zero point before it rounds, which decides where two integers are nearly as near.
    let [scale, zero] = parameters(node, c, 3)?;
    y = c.op("Div", &[&y, &scale])?;
    y = c.op("Add", &[&y, &zero])?;
    one(nearest(c, &y, node.input(0)?.dtype())?)
}

/// The sum of each window over the number of its cells, whatever of it is padding or lies behind that.
fn average_of_all(node: &Node, c: &mut Compose, x: &Imported) -> Result<Imported> {
    let attributes = node.attributes(&POOL);
    if !node.flag("ceil_mode", false)? {
        let attributes = attributes.into_iter().chain([int("count_include_pad", 1)]);
        return c.with("AveragePool", &[x], attributes);
    }
    let mean = c.with("AveragePool", &[x], attributes.clone())?;
    // How many cells have data.
    let mut shape = x.shape();
    shape[..2].fill(Dim::from(1));
    let unit = c.number(DType::F32, 1.0)?;
    let ones = c.expand(&unit, &shape)?;
    let counts = c.with("LpPool", &[&ones], attributes.into_iter().chain([int("p", 1)]))?;
    let cells: i64 = node.ints("kernel_shape")?.unwrap_or_default().iter().product();
    let share = c.number(DType::F32, 1.0 / cells as f64)?;
    let share = c.op("Mul", &[&counts, &share])?;
    c.op("Mul", &[&mean, &share])
}

/// The largest integers of windows of an image whose channels are the last axis.
pub(crate) fn nhwc_max_pool(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let c = &mut Compose::new(node, b);
    let x = node.input(0)?;
    let [second, last] = channels_second(x)?;
    let x = c.transpose(x, &second)?;
    let y = c.with("MaxPool", &[&x], node.attributes(&POOL))?;
    one(c.transpose(&y, &last)?)
}

/// ONNX's own, of which the channels may be the last axis.
pub(crate) fn qlinear_conv(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    node.attributes(&window::ATTRIBUTES);
    if !node.flag("channels_last", false)? {
        return quantized::qlinear_conv(node, b);
    }
    let [second, last] = channels_second(node.input(0)?)?;
    let x = Compose::new(node, b).transpose(node.input(0)?, &second)?;
    let inner = node.with_input(0, x)?;
    let all = quantized::qlinear_conv(&inner, b);
    node.pass_on(&inner);
    let y = required(all?.pop(), "the result")?;
    one(Compose::new(node, b).transpose(&y, &last)?)
}

/// A product of integers and a sum in `int32` of its scale, as integers of another scale or as floats.
pub(crate) fn q_gemm(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let c = &mut Compose::new(node, b);
    let [x, w] = [(0, "transA"), (3, "transB")].map(|(at, transposed)| {
        if node.flag(transposed, false)? {
            c.transpose(node.input(at)?, &[1, 0])
        } else {
            Ok(node.input(at)?.clone())
        }
    });
    let (x, w) = (x?, w?);
    if x.rank() != 2 || w.rank() != 2 {
        return Err(Error::model(format!("{} and {} are no matrices", operand(&x), operand(&w))));
    }
    let zeros = [Some(node.input(2)?), Some(node.input(5)?)];
    let mut sums = c.first("MatMulInteger", &[Some(&x), Some(&w), zeros[0], zeros[1]], [])?;
    if let Some(bias) = node.optional(6) {
        sums = c.op("Add", &[&sums, bias])?;
    }
    let scale = c.op("Mul", &[node.input(1)?, node.input(4)?])?;
    let alpha = c.number(scale.dtype(), node.float_or("alpha", 1.0)?.into())?;
    let scale = c.op("Mul", &[&scale, &alpha])?;
    let sums = c.cast(&sums, scale.dtype())?;
    let y = c.op("Mul", &[&sums, &scale])?;
    match node.optional(7) {
        None => one(y),
        Some(_) => one(quantized(node, c, &y, 7, x.dtype())?),
    }
}

/// `Attention` whose projection is a product of integers.
pub(crate) fn q_attention(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let c = &mut Compose::new(node, b);
    let (x, w) = (node.input(0)?, node.input(1)?);
    if node.flag("do_rotary", false)? {
        return Err(node.unsupported_value("do_rotary", 1, "0"));
    }
    node.ignore("past_present_share_buffer");
    let scales = [node.input(3)?, node.input(4)?];
    let all = scaled_product(c, [x, w], scales, [node.optional(6), node.optional(7)])?;
    let all = c.op("Add", &[&all, node.input(2)?])?;
    let [q, k, v] = split_projection(node, c, &all)?;
    attend_all(node, c, [&q, &k, &v], node.optional(5), None, node.optional(8))
}

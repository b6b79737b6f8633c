//! Operators of the domain `com.microsoft`, which exporters and optimisers of ONNX Runtime emit. Each
//! is what its documentation says in terms of ONNX's own operators.

use tilewright_ir::{DType, Dim, Error, Result, Tensor};
use tilewright_ops::unequal;

use super::channels::each_channel;
use super::compose::{Compose, float, int, text};
use super::quantized::{dynamic_product, scaled_product};
use super::{one, window};
use crate::build::Builder;
use crate::imported::{Imported, operand};
use crate::node::{Node, required};
use crate::operator::{Operator, op};

/// Those of the domain `com.microsoft`.
pub(crate) static OPERATORS: &[Operator] = &[
    op("Attention", 9, 6, attention),
    op("BiasDropout", 9, 5, bias_dropout),
    op("BiasGelu", 9, 2, bias_gelu),
    op("BiasSoftmax", 9, 2, bias_softmax),
    op("CDist", 9, 2, distances),
    op("DynamicQuantizeMatMul", 9, 5, dynamic_quantize_matmul),
    op("EmbedLayerNormalization", 9, 9, embed_layer_norm),
    op("ExpandDims", 9, 2, expand_dims),
    op("FastGelu", 9, 2, fast_gelu),
    op("FusedConv", 9, 4, fused_conv),
    op("FusedGemm", 9, 3, fused_gemm),
    op("FusedMatMul", 9, 2, fused_matmul),
    op("FusedMatMulActivation", 9, 2, fused_matmul_activation),
    op("GatherND", 9, 2, |n, b| own(n, b, "GatherND", &[])),
    op("Gelu", 9, 1, gelu),
    op("GridSample", 9, 2, grid_sample),
    op("MatMulIntegerToFloat", 9, 7, matmul_integer_to_float),
    op("MultiHeadAttention", 9, 8, multi_head_attention),
    op("NhwcConv", 9, 3, nhwc_conv),
    op("Pad", 9, 3, pad),
    op("QuickGelu", 9, 1, quick_gelu),
    op("Range", 9, 3, range),
    op("RotaryEmbedding", 9, 4, rotary_embedding),
    op("SimplifiedLayerNormalization", 9, 2, simplified_layer_norm),
    op("SkipLayerNormalization", 9, 5, skip_layer_norm),
    op("SkipSimplifiedLayerNormalization", 9, 4, skip_rms_norm),
    op("TransposeMatMul", 9, 2, fused_matmul),
    op("Trilu", 9, 2, |n, b| own(n, b, "Trilu", &["upper"])),
    op("Unique", 9, 1, unique),
];

/// Those that ONNX Runtime writes into ONNX's own domain.
pub(crate) static PLAIN: &[Operator] =
    &[op("SimplifiedLayerNormalization", 1, 2, simplified_layer_norm)];

/// `x + y`, where there is a `y`.
pub(super) fn plus(c: &mut Compose, x: &Imported, y: Option<&Imported>) -> Result<Imported> {
    y.map_or_else(|| Ok(x.clone()), |y| c.op("Add", &[x, y]))
}

/// ONNX's own operator of a name, with some of the attributes of the node.
fn own(
    node: &Node,
    b: &mut Builder,
    op: &str,
    attributes: &[&'static str],
) -> Result<Vec<Imported>> {
    let inputs: Vec<Option<&Imported>> =
        (0..node.input_count()).map(|at| node.optional(at)).collect();
    one(Compose::new(node, b).first(op, &inputs, node.attributes(attributes))?)
}

pub(crate) fn expand_dims(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let axis = node.constant_int(1, "axis")?;
    let axis = super::value::list(&[required(axis, "the input `axis`")?])?;
    one(Compose::new(node, b).op("Unsqueeze", &[node.input(0)?, &axis])?)
}

/// ONNX's own, whose modes had other names once.
pub(crate) fn grid_sample(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let modes = [("bilinear", "linear"), ("nearest", "nearest"), ("bicubic", "cubic")];
    let mode = text("mode", node.choice("mode", "bilinear", &modes)?);
    let others = node.attributes(&["align_corners", "padding_mode"]);
    let c = &mut Compose::new(node, b);
    let attributes = others.into_iter().chain([mode]);
    one(c.with("GridSample", &[node.input(0)?, node.input(1)?], attributes)?)
}

/// ONNX's own, whose numbers of cells may be a row.
pub(crate) fn pad(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let c = &mut Compose::new(node, b);
    let pads = node.input(1)?;
    let pads = c.reshape(pads, &[tilewright_ir::dim::product(pads.shape())])?;
    let inputs = [Some(node.input(0)?), Some(&pads), node.optional(2)];
    one(c.first("Pad", &inputs, node.attributes(&["mode"]))?)
}

/// ONNX's own, with steps of one where nothing is said.
pub(crate) fn range(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let c = &mut Compose::new(node, b);
    let start = node.input(0)?;
    let step = match node.optional(2) {
        Some(step) => step.clone(),
        None => c.number(start.dtype(), 1.0)?,
    };
    let [start, end, step] = [start, node.input(1)?, &step].map(|v| c.reshape::<Dim>(v, &[]));
    one(c.op("Range", &[&start?, &end?, &step?])?)
}

/// Different elements in the order in which they come first, where each element is among them, and how
/// often each occurs.
pub(crate) fn unique(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let c = &mut Compose::new(node, b);
    let mut all = c.all("Unique", &[Some(node.input(0)?)], [int("sorted", 0)], 4)?;
    if all.len() == 4 {
        all.remove(1);
    }
    Ok(all)
}

/// The distances of the rows of two matrices.
pub(crate) fn distances(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let c = &mut Compose::new(node, b);
    let root =
        node.choice("metric", "sqeuclidean", &[("euclidean", true), ("sqeuclidean", false)])?;
    let (x, y) = (node.input(0)?, node.input(1)?);
    let shapes = [x.shape(), y.shape()];
    let [[rows, size], [others, _]] = shapes.each_ref().map(|s| &s[..]) else {
        return Err(Error::model(format!("{} and {} are no matrices", operand(x), operand(y))));
    };
    let x = c.reshape(x, &[*rows, Dim::from(1), *size])?;
    let apart = c.op("Sub", &[&x, y])?;
    let squares = c.reduce("ReduceSumSquare", &apart, &[2], false)?;
    let squares = c.reshape(&squares, &[*rows, *others])?;
    one(if root { c.op("Sqrt", &[&squares])? } else { squares })
}

pub(crate) fn gelu(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    one(Compose::new(node, b).op("Gelu", &[node.input(0)?])?)
}

pub(crate) fn bias_gelu(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let mut c = Compose::new(node, b);
    let x = plus(&mut c, node.input(0)?, Some(node.input(1)?))?;
    one(c.op("Gelu", &[&x])?)
}

pub(crate) fn fast_gelu(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let mut c = Compose::new(node, b);
    let x = plus(&mut c, node.input(0)?, node.optional(1))?;
    one(c.with("Gelu", &[&x], [text("approximate", "tanh")])?)
}

pub(crate) fn quick_gelu(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let alpha = node.float_or("alpha", 1.702)?;
    each_channel(node, b, |c, x| c.with("Swish", &[x], [float("alpha", alpha)]))
}

pub(crate) fn fused_matmul(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    one(scaled_matmul(node, &mut Compose::new(node, b))?)
}

pub(crate) fn fused_matmul_activation(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let c = &mut Compose::new(node, b);
    let z = scaled_matmul(node, c)?;
    one(activated_by_name(node, c, &z)?)
}

pub(crate) fn fused_gemm(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let c = &mut Compose::new(node, b);
    let inputs = [Some(node.input(0)?), Some(node.input(1)?), node.optional(2)];
    let attributes = node.attributes(&["alpha", "beta", "transA", "transB"]);
    let z = c.first("Gemm", &inputs, attributes)?;
    one(activated_by_name(node, c, &z)?)
}

/// The activation of a product, whose parameters are attributes with names of their own.
fn activated_by_name(node: &Node, c: &mut Compose, x: &Imported) -> Result<Imported> {
    let all = ["activation_alpha", "activation_beta", "activation_gamma"];
    let names = ["alpha", "beta", "gamma"];
    let mut given = Vec::new();
    for (own, name) in all.into_iter().zip(names) {
        given.extend(node.float(own)?.map(|v| float(name, v)));
    }
    if let Some(axis) = node.int("activation_axis")? {
        given.push(int("axis", axis));
    }
    match node.text_or("activation", "")? {
        "" => Ok(x.clone()),
        // Others have no such parameter.
        name @ ("Relu" | "Sigmoid" | "Softplus" | "Softsign" | "Tanh") => c.op(name, &[x]),
        name @ ("Elu" | "HardSigmoid" | "LeakyRelu" | "Selu" | "Softmax" | "ThresholdedRelu") => {
            c.with(name, &[x], given)
        }
        other => {
            let all = "Elu, HardSigmoid, LeakyRelu, Relu, Selu, Sigmoid, Softmax, Softplus, Softsign, Tanh, ThresholdedRelu";
            Err(node.unsupported_value("activation", other, all))
        }
    }
}

/// An operand with its axes exchanged as two attributes say: the last two, and the first one among them.
fn exchanged(
    node: &Node,
    c: &mut Compose,
    at: usize,
    last: &'static str,
    batch: &'static str,
) -> Result<Imported> {
    let x = node.input(at)?;
    let rank = x.rank();
    let mut order: Vec<usize> = (0..rank).collect();
    // The first axis goes before the last one.
    if node.flag(batch, false)? && rank > 2 {
        order[..rank - 1].rotate_left(1);
    }
    if node.flag(last, false)? && rank > 1 {
        order.swap(rank - 2, rank - 1);
    }
    c.transpose(x, &order)
}

/// A product of matrices, some of whose axes are exchanged before, times a number.
fn scaled_matmul(node: &Node, c: &mut Compose) -> Result<Imported> {
    let x = exchanged(node, c, 0, "transA", "transBatchA")?;
    let y = exchanged(node, c, 1, "transB", "transBatchB")?;
    let z = c.op("MatMul", &[&x, &y])?;
    let alpha = node.float_or("alpha", 1.0)?;
    if alpha == 1.0 {
        return Ok(z);
    }
    let alpha = c.number(z.dtype(), alpha.into())?;
    c.op("Mul", &[&z, &alpha])
}

/// Softmax of a sum, over all axes from one on. Along which axes the bias is stretched follows from its
/// shape.
pub(crate) fn bias_softmax(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let c = &mut Compose::new(node, b);
    let (x, bias) = (node.input(0)?, node.input(1)?);
    node.ignore("is_inner_broadcast");
    let sum = c.op("Add", &[x, bias])?;
    let at = crate::node::axis_or_end(node.int_or("axis", 1)?, x.rank())?;
    let rows = tilewright_ir::dim::product(x.shape()[..at].iter().copied());
    let columns = tilewright_ir::dim::product(x.shape()[at..].iter().copied());
    let flat = c.reshape(&sum, &[rows, columns])?;
    let y = c.with("Softmax", &[&flat], [int("axis", 1)])?;
    one(c.reshape(&y, &x.shape())?)
}

/// The sum of its inputs: nothing is dropped outside of training.
pub(crate) fn bias_dropout(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let c = &mut Compose::new(node, b);
    node.ignore("seed");
    if node.constant_scalar(4, "training_mode")?.is_some_and(|t| t.get_f64(0) != 0.0) {
        return Err(Error::unsupported("training is not supported"));
    }
    let sum = plus(c, node.input(0)?, Some(node.input(1)?))?;
    one(plus(c, &sum, node.optional(2))?)
}

/// The activation that attributes of a fused operator name.
pub(super) fn activated(node: &Node, c: &mut Compose, x: &Imported) -> Result<Imported> {
    let params = node.floats("activation_params")?.unwrap_or_default();
    match node.text_or("activation", "")? {
        "" => Ok(x.clone()),
        name @ ("HardSwish" | "Relu" | "Sigmoid" | "Tanh") => c.op(name, &[x]),
        "LeakyRelu" => c.with("LeakyRelu", &[x], [float("alpha", param_or(0, 0.01, &params))]),
        "HardSigmoid" => {
            let attributes = [
                float("alpha", param_or(0, 0.2, &params)),
                float("beta", param_or(1, 0.5, &params)),
            ];
            c.with("HardSigmoid", &[x], attributes)
        }
        "Clip" => {
            let low = c.number(x.dtype(), param_or(0, f32::MIN, &params).into())?;
            let high = c.number(x.dtype(), param_or(1, f32::MAX, &params).into())?;
            c.op("Clip", &[x, &low, &high])
        }
        other => {
            let all = "Clip, HardSigmoid, HardSwish, LeakyRelu, Relu, Sigmoid, Tanh";
            Err(node.unsupported_value("activation", other, all))
        }
    }
}

fn param_or(at: usize, default: f32, params: &[f32]) -> f32 {
    params.get(at).copied().unwrap_or(default)
}

pub(crate) fn fused_conv(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let c = &mut Compose::new(node, b);
    let inputs = [Some(node.input(0)?), Some(node.input(1)?), node.optional(2)];
    let y = c.first("Conv", &inputs, node.attributes(&window::ATTRIBUTES))?;
    let y = plus(c, &y, node.optional(3))?;
    one(activated(node, c, &y)?)
}

/// A convolution whose channels are the last axis.
pub(crate) fn nhwc_conv(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let c = &mut Compose::new(node, b);
    let x = node.input(0)?;
    let rank = x.rank();
    if rank < 3 {
        return Err(Error::model(format!("{} is no image", operand(x))));
    }
    let first: Vec<usize> = [0, rank - 1].into_iter().chain(1..rank - 1).collect();
    let last: Vec<usize> = [0].into_iter().chain(2..rank).chain([1]).collect();
    let x = c.transpose(x, &first)?;
    let inputs = [Some(&x), Some(node.input(1)?), node.optional(2)];
    let y = c.first("Conv", &inputs, node.attributes(&window::ATTRIBUTES))?;
    one(c.transpose(&y, &last)?)
}

pub(crate) fn simplified_layer_norm(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let c = &mut Compose::new(node, b);
    node.ignore("stash_type");
    let attributes =
        [int("axis", node.int_or("axis", -1)?), float("epsilon", node.float_or("epsilon", 1e-5)?)];
    one(c.with("RMSNormalization", &[node.input(0)?, node.input(1)?], attributes)?)
}

fn layer_norm(
    c: &mut Compose,
    x: &Imported,
    scale: &Imported,
    bias: Option<&Imported>,
    epsilon: f32,
) -> Result<Imported> {
    let attributes = [int("axis", -1), float("epsilon", epsilon)];
    c.first("LayerNormalization", &[Some(x), Some(scale), bias], attributes)
}

/// The four outputs of a normalised sum, of which the statistics are not computed.
fn with_sum(node: &Node, y: Imported, sum: Imported) -> Result<Vec<Imported>> {
    match node.output_count() {
        0 | 1 => one(y),
        _ if node.names_output(1) || node.names_output(2) => {
            Err(Error::unsupported("the outputs `mean` and `inv_std_var` are not supported"))
        }
        _ => Ok(vec![y.clone(), y.clone(), y, sum]),
    }
}

pub(crate) fn skip_layer_norm(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let c = &mut Compose::new(node, b);
    let sum = c.op("Add", &[node.input(0)?, node.input(1)?])?;
    let sum = plus(c, &sum, node.optional(4))?;
    let epsilon = node.float_or("epsilon", 1e-12)?;
    let y = layer_norm(c, &sum, node.input(2)?, node.optional(3), epsilon)?;
    with_sum(node, y, sum)
}

pub(crate) fn skip_rms_norm(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let c = &mut Compose::new(node, b);
    let sum = c.op("Add", &[node.input(0)?, node.input(1)?])?;
    let sum = plus(c, &sum, node.optional(3))?;
    let epsilon = float("epsilon", node.float_or("epsilon", 1e-5)?);
    let y = c.with("RMSNormalization", &[&sum, node.input(2)?], [int("axis", -1), epsilon])?;
    with_sum(node, y, sum)
}

/// The sum of what words, positions and segments stand for, normalised.
pub(crate) fn embed_layer_norm(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let c = &mut Compose::new(node, b);
    let ids = node.input(0)?;
    let [batch, length] = ids.shape()[..] else {
        return Err(Error::model(format!("words along two axes, not {:?}", ids.shape())));
    };
    let mut sum = look_up(c, node.input(2)?, ids)?;
    let positions = match node.optional(8) {
        Some(positions) => look_up(c, node.input(3)?, positions)?,
        None => c.slice(node.input(3)?, 0, 0, length)?,
    };
    sum = c.op("Add", &[&sum, &positions])?;
    if let (Some(segments), Some(table)) = (node.optional(1), node.optional(4)) {
        let segments = look_up(c, table, segments)?;
        sum = c.op("Add", &[&sum, &segments])?;
    }
    let epsilon = node.float_or("epsilon", 1e-12)?;
    let y = layer_norm(c, &sum, node.input(5)?, node.optional(6), epsilon)?;
    // How many words of each example count.
    let counts = match (node.optional(7), node.int_or("mask_index_type", 1)?) {
        (Some(mask), 1) => {
            let counts = c.reduce("ReduceSum", mask, &[1], false)?;
            c.cast(&counts, DType::I32)?
        }
        _ => {
            let zero = Tensor::zeros(DType::I32, &[1])?;
            super::value::full(c.b, &[batch], &zero)?
        }
    };
    Ok(vec![y, counts, sum])
}

fn look_up(c: &mut Compose, table: &Imported, at: &Imported) -> Result<Imported> {
    c.with("Gather", &[table, at], [int("axis", 0)])
}

/// A mask of keys as `bool` that broadcasts to `[batch, heads, queries, keys]`.
fn key_mask(c: &mut Compose, mask: &Imported, batch: Dim, keys: Dim) -> Result<Imported> {
    let single = Dim::from(1);
    match mask.shape()[..] {
        // Where the keys of each example end, and then where those of each begin.
        [n] if n == batch * 2 => {
            let positions = c.positions(keys)?;
            let mask = c.cast(mask, DType::I64)?;
            let [ends, starts] = [Dim::from(0), batch].map(|from| {
                let part = c.slice(&mask, 0, from, from + batch)?;
                c.reshape(&part, &[batch, single, single, single])
            });
            let (ends, starts) = (ends?, starts?);
            let before = c.op("Less", &[&positions, &ends])?;
            let behind = c.op("GreaterOrEqual", &[&positions, &starts])?;
            c.op("And", &[&before, &behind])
        }
        // How many keys of each example count.
        [n] if n == batch => {
            let positions = c.positions(keys)?;
            let mask = c.cast(mask, DType::I64)?;
            let mask = c.reshape(&mask, &[batch, single, single, single])?;
            c.op("Less", &[&positions, &mask])
        }
        [n, k] if n == batch && k == keys => {
            let mask = c.cast(mask, DType::BOOL)?;
            c.reshape(&mask, &[batch, single, single, keys])
        }
        [n, q, k] if n == batch && k == keys => {
            let mask = c.cast(mask, DType::BOOL)?;
            c.reshape(&mask, &[batch, single, q, keys])
        }
        _ => {
            let error =
                Error::unsupported(format!("a mask of shape {:?} is not supported", mask.shape()));
            let error = error.note(format!(
                "supported: [{batch}], [{}], [{batch}, {keys}], [{batch}, queries, {keys}]",
                batch * 2
            ));
            Err(match mask.shape()[..] {
                [n] => unequal(error, [(n, batch)]),
                [n, k] | [n, _, k] => unequal(error, [(n, batch), (k, keys)]),
                _ => error,
            })
        }
    }
}

/// Which keys a query sees that looks back only, as `bool[queries, keys]`: as many as it has before it,
/// and the last query sees all, as in ONNX Runtime.
fn seen_keys(c: &mut Compose, queries: Dim, keys: Dim, past: Dim) -> Result<Imported> {
    let (rows, columns) = (c.positions(queries)?, c.positions(keys)?);
    let rows = c.reshape(&rows, &[queries, Dim::from(1)])?;
    let (past, last) = (c.size(past)?, c.size(queries - 1)?);
    let own = c.op("Add", &[&rows, &past])?;
    let before = c.op("LessOrEqual", &[&columns, &own])?;
    let is_last = c.op("Equal", &[&rows, &last])?;
    c.op("Or", &[&before, &is_last])
}

/// Attention of values that are there, with a mask of keys, an addend to the scores and keys and values
/// `[batch, heads, length, size]` of before. Also all keys and values.
fn attend(
    node: &Node,
    c: &mut Compose,
    [q, k, v]: [&Imported; 3],
    mask: Option<&Imported>,
    addend: Option<&Imported>,
    past: Option<[&Imported; 2]>,
) -> Result<Vec<Imported>> {
    let heads = node.int_or("num_heads", 0)?;
    let own_keys = if k.rank() == 4 { k.shape()[2] } else { k.shape()[1] };
    let mut keys = own_keys;
    if let Some([past, _]) = past {
        keys = keys + past.shape().get(2).copied().unwrap_or_else(|| Dim::from(0));
    }
    let mut bias = addend.cloned();
    if let Some(mask) = mask {
        let mask = key_mask(c, mask, q.shape()[0], keys)?;
        // Not minus infinity: a row of which nothing counts is a mean.
        let low = c.number(q.dtype(), node.float_or("mask_filter_value", -10000.0)?.into())?;
        let zero = c.number(q.dtype(), 0.0)?;
        let masked = c.op("Where", &[&mask, &zero, &low])?;
        bias = Some(plus(c, &masked, bias.as_ref())?);
    } else {
        node.ignore("mask_filter_value");
    }
    let mut causal = node.flag("unidirectional", false)?;
    let queries = if q.rank() == 4 { q.shape()[2] } else { q.shape()[1] };
    if causal && own_keys != queries {
        let seen = seen_keys(c, queries, keys, keys - own_keys)?;
        let (zero, low) = (c.number(q.dtype(), 0.0)?, c.number(q.dtype(), f64::NEG_INFINITY)?);
        let hidden = c.op("Where", &[&seen, &zero, &low])?;
        bias = Some(plus(c, &hidden, bias.as_ref())?);
        causal = false;
    }
    let mut attributes =
        vec![float("scale", node.float_or("scale", 0.0)?), int("is_causal", causal.into())];
    // Where heads are an axis, nothing says how many there are.
    for (name, x) in [("q_num_heads", q), ("kv_num_heads", k)] {
        attributes.extend((x.rank() == 3).then(|| int(name, heads)));
    }
    let [past_k, past_v] = past.map_or([None; 2], |p| p.map(Some));
    c.all("Attention", &[Some(q), Some(k), Some(v), bias.as_ref(), past_k, past_v], attributes, 3)
}

/// Queries, keys and values side by side in the last of three axes.
pub(super) fn split_projection(
    node: &Node,
    c: &mut Compose,
    all: &Imported,
) -> Result<[Imported; 3]> {
    let width = match all.shape()[..] {
        [_, _, width] => width.fixed(node.op())?,
        _ => return Err(Error::model(format!("{} has not three axes", operand(all)))),
    };
    let [first, second] = ends_of_parts(node, all, width)?;
    Ok([
        c.slice(all, 2, 0, first)?,
        c.slice(all, 2, first, second)?,
        c.slice(all, 2, second, width)?,
    ])
}

/// Where queries and keys end among so many numbers side by side; values end with these.
fn ends_of_parts(node: &Node, all: &Imported, width: usize) -> Result<[usize; 2]> {
    let sizes: Vec<usize> = match node.ints("qkv_hidden_sizes")? {
        Some(list) => list.iter().filter_map(|&d| usize::try_from(d).ok()).collect(),
        None => vec![width / 3; 3],
    };
    if sizes.len() != 3 || sizes.iter().sum::<usize>() != width {
        return Err(Error::model(format!("{sizes:?} numbers of {width} in {}", operand(all))));
    }
    Ok([sizes[0], sizes[0] + sizes[1]])
}

/// Queries, keys and values of a projection whose weights and bias are constants: three products, which need no
/// parts of a larger result.
fn projected(
    node: &Node,
    c: &mut Compose,
    x: &Imported,
    w: &Imported,
    bias: Option<&Imported>,
) -> Result<[Imported; 3]> {
    let width = match w.shape()[..] {
        [_, width] => width.fixed(node.op())?,
        _ => return Err(Error::model(format!("{} has not two axes", operand(w)))),
    };
    let [first, second] = ends_of_parts(node, w, width)?;
    let mut part = |from: usize, to: usize| {
        let w = c.slice(w, 1, from, to)?;
        let y = c.op("MatMul", &[x, &w])?;
        let bias = bias.map(|bias| c.slice(bias, 0, from, to)).transpose()?;
        plus(c, &y, bias.as_ref())
    };
    Ok([part(0, first)?, part(first, second)?, part(second, width)?])
}

/// Attention with keys and values of before as one tensor `[2, batch, heads, length, size]`, and all of them
/// as another one.
pub(super) fn attend_all(
    node: &Node,
    c: &mut Compose,
    qkv: [&Imported; 3],
    mask: Option<&Imported>,
    addend: Option<&Imported>,
    past: Option<&Imported>,
) -> Result<Vec<Imported>> {
    let parts = match past {
        None => None,
        Some(past) => {
            if past.rank() != 5 || past.shape()[0] != 2 {
                return Err(Error::model(format!("{} are no keys and values", operand(past))));
            }
            let shape = past.shape()[1..].to_vec();
            let [keys, values] = [0, 1].map(|k| {
                let part = c.slice(past, 0, k, k + 1)?;
                c.reshape(&part, &shape)
            });
            Some([keys?, values?])
        }
    };
    let all = attend(node, c, qkv, mask, addend, parts.as_ref().map(<[Imported; 2]>::each_ref))?;
    let [y, keys, values, ..] = &all[..] else {
        return Err(Error::internal("attention has three results"));
    };
    if !node.names_output(1) {
        return one(y.clone());
    }
    let zero = super::value::list(&[0])?;
    let keys = c.op("Unsqueeze", &[keys, &zero])?;
    let values = c.op("Unsqueeze", &[values, &zero])?;
    Ok(vec![y.clone(), c.concat(&[&keys, &values], 0)?])
}

/// Attention with the projection to queries, keys and values inside.
pub(crate) fn attention(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let c = &mut Compose::new(node, b);
    let (x, w) = (node.input(0)?, node.input(1)?);
    if node.flag("do_rotary", false)? {
        return Err(node.unsupported_value("do_rotary", 1, "0"));
    }
    for name in ["past_present_share_buffer", "rotary_embedding_dim"] {
        node.ignore(name);
    }
    if node.optional(6).is_some() {
        return Err(Error::unsupported("the input `past_sequence_length` is not supported"));
    }
    let bias = node.optional(2);
    let is_known = w.constant().is_some() && bias.is_none_or(|b| b.constant().is_some());
    let [q, k, v] = if is_known {
        projected(node, c, x, w, bias)?
    } else {
        let all = c.op("MatMul", &[x, w])?;
        let all = plus(c, &all, bias)?;
        split_projection(node, c, &all)?
    };
    attend_all(node, c, [&q, &k, &v], node.optional(3), node.optional(5), node.optional(4))
}

/// The parts of a tensor that are stacked along the last axis but one.
fn unstacked(c: &mut Compose, x: &Imported, parts: usize) -> Result<Vec<Imported>> {
    let [batch, length, heads, count, size] = x.shape()[..] else {
        return Err(Error::model(format!("{} has not five axes", operand(x))));
    };
    if count != parts {
        return Err(Error::model(format!("{} has not {parts} parts", operand(x))));
    }
    (0..parts)
        .map(|k| {
            let part = c.slice(x, 3, k, k + 1)?;
            c.reshape(&part, &[batch, length, heads * size])
        })
        .collect()
}

pub(crate) fn multi_head_attention(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let c = &mut Compose::new(node, b);
    let first = node.input(0)?;
    let mut parts: Vec<Imported> = match (node.optional(1), node.optional(2)) {
        (None, None) => unstacked(c, first, 3)?,
        (Some(both), None) => [first.clone()].into_iter().chain(unstacked(c, both, 2)?).collect(),
        (Some(k), Some(v)) => vec![first.clone(), k.clone(), v.clone()],
        (None, Some(_)) => return Err(Error::model("there are values, and no keys")),
    };
    if let Some(bias) = node.optional(3) {
        let mut from = Dim::from(0);
        for part in &mut parts {
            let [_, _, width] = part.shape()[..] else {
                return Err(Error::unsupported(format!(
                    "a bias of {}, which has its heads apart",
                    operand(part)
                )));
            };
            let own = c.slice(bias, 0, from, from + width)?;
            *part = c.op("Add", &[part, &own])?;
            from = from + width;
        }
        if bias.shape() != [from] {
            return Err(Error::model(format!("the bias {} does not fit", operand(bias))));
        }
    }
    let [q, k, v] = &parts[..] else { return Err(Error::internal("three parts")) };
    let past = match (node.optional(6), node.optional(7)) {
        (None, None) => None,
        (Some(k), Some(v)) => Some([k, v]),
        _ => return Err(Error::model("`past_key` and `past_value` come together only")),
    };
    let mut all = attend(node, c, [q, k, v], node.optional(4), node.optional(5), past)?;
    all.truncate(3);
    Ok(all)
}

/// Like ONNX's own, with the positions before the tables.
pub(crate) fn rotary_embedding(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let c = &mut Compose::new(node, b);
    let (x, positions) = (node.input(0)?, node.input(1)?);
    let (cos, sin) = (node.input(2)?, node.input(3)?);
    for name in ["scale", "is_packed_batching"] {
        node.ignore(name);
    }
    let (batch, length) = match x.shape()[..] {
        [batch, length, _] | [batch, _, length, _] => (batch, length),
        _ => return Err(Error::model(format!("{} has neither three axes nor four", operand(x)))),
    };
    // One number is that of the first position.
    let alone = batch == 1 && length == 1;
    let positions = if positions.shape() == [1] && !alone {
        let steps = c.positions(length)?;
        let first = c.cast(positions, DType::I64)?;
        let all = c.op("Add", &[&steps, &first])?;
        c.expand(&all, &[batch, length])?
    } else {
        if let [own, steps] = positions.shape()[..]
            && (own, steps) != (batch, length)
        {
            let error = Error::model(format!(
                "positions of shape [{own}, {steps}], where [{batch}, {length}] is needed"
            ));
            return Err(unequal(error, [(own, batch), (steps, length)]));
        }
        c.reshape(positions, &[batch, length])?
    };
    let size = cos.shape().get(1).map_or(Ok(0), |d| d.fixed(node.op()))? * 2;
    let stated = node.int_or("rotary_embedding_dim", 0)?;
    let heads = match (node.int_or("num_heads", 0)?, &x.shape()[..]) {
        (0, [_, _, hidden]) if size > 0 => (hidden.fixed(node.op())? / size) as i64,
        (heads, _) => heads,
    };
    let attributes = [
        int("interleaved", node.int_or("interleaved", 0)?),
        int("num_heads", heads),
        int("rotary_embedding_dim", stated),
    ];
    one(c.with("RotaryEmbedding", &[x, cos, sin, &positions], attributes)?)
}

/// A product of floats, quantised on the way, with integers.
pub(crate) fn dynamic_quantize_matmul(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let c = &mut Compose::new(node, b);
    let (x, w, w_scale) = (node.input(0)?, node.input(1)?, node.input(2)?);
    let y = dynamic_product(c, x, w, w_scale, node.optional(3))?;
    one(plus(c, &y, node.optional(4))?)
}

/// A product of integers, each with a scale and a zero point, as floats.
pub(crate) fn matmul_integer_to_float(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let c = &mut Compose::new(node, b);
    let operands = [node.input(0)?, node.input(1)?];
    let scales = [node.input(2)?, node.input(3)?];
    let y = scaled_product(c, operands, scales, [node.optional(4), node.optional(5)])?;
    one(plus(c, &y, node.optional(6))?)
}

//! Operators of the domain `com.microsoft`, which exporters and optimisers of ONNX Runtime emit. Each
//! is what its documentation says in terms of ONNX's own operators.

use tilewright_ir::{DType, Dim, Error, Result, Tensor};

use super::compose::{Compose, float, int, text};
use super::quantized::{dynamic_product, scaled_product};
use super::{one, window};
use crate::build::Builder;
use crate::imported::{Imported, operand};
use crate::node::{Node, required};
use crate::operator::{MANY, Operator, op};

/// Those of the domain `com.microsoft`.
pub(crate) static OPERATORS: &[Operator] = &[
    op("Attention", 9, 6, attention),
    op("BiasGelu", 9, 2, bias_gelu),
    op("DynamicQuantizeMatMul", 9, 5, dynamic_quantize_matmul),
    op("EmbedLayerNormalization", 9, 9, embed_layer_norm),
    op("FastGelu", 9, 2, fast_gelu),
    op("FusedConv", 9, 4, fused_conv),
    op("FusedMatMul", 9, 2, fused_matmul),
    op("Gelu", 9, 1, gelu),
    op("MatMulIntegerToFloat", 9, 7, matmul_integer_to_float),
    op("MatMulNBits", 9, 6, matmul_nbits),
    op("MultiHeadAttention", 9, 8, multi_head_attention),
    op("NhwcConv", 9, 3, nhwc_conv),
    op("QLinearAdd", 9, 8, |n, b| qlinear_binary(n, b, "Add")),
    op("QLinearConcat", 9, MANY, qlinear_concat),
    op("QLinearGlobalAveragePool", 9, 5, qlinear_global_average_pool),
    op("QLinearMul", 9, 8, |n, b| qlinear_binary(n, b, "Mul")),
    op("QLinearSigmoid", 9, 5, qlinear_sigmoid),
    op("QuickGelu", 9, 1, quick_gelu),
    op("RotaryEmbedding", 9, 4, rotary_embedding),
    op("SkipLayerNormalization", 9, 5, skip_layer_norm),
    op("SkipSimplifiedLayerNormalization", 9, 4, skip_rms_norm),
];

/// `x + y`, where there is a `y`.
fn plus(c: &mut Compose, x: &Imported, y: Option<&Imported>) -> Result<Imported> {
    y.map_or_else(|| Ok(x.clone()), |y| c.op("Add", &[x, y]))
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
    one(Compose::new(node, b).with("Swish", &[node.input(0)?], [float("alpha", alpha)])?)
}

pub(crate) fn fused_matmul(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let c = &mut Compose::new(node, b);
    let side = |c: &mut Compose, at: usize, last: &'static str, batch: &'static str| {
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
    };
    let x = side(c, 0, "transA", "transBatchA")?;
    let y = side(c, 1, "transB", "transBatchB")?;
    let z = c.op("MatMul", &[&x, &y])?;
    let alpha = node.float_or("alpha", 1.0)?;
    if alpha == 1.0 {
        return one(z);
    }
    let alpha = c.number(z.dtype(), alpha.into())?;
    one(c.op("Mul", &[&z, &alpha])?)
}

/// The activation that attributes of a fused operator name.
fn activated(node: &Node, c: &mut Compose, x: &Imported) -> Result<Imported> {
    let params = node.floats("activation_params")?.unwrap_or_default();
    let param = |at: usize, default: f32| params.get(at).copied().unwrap_or(default);
    match node.text_or("activation", "")? {
        "" => Ok(x.clone()),
        name @ ("Relu" | "Sigmoid" | "Tanh") => c.op(name, &[x]),
        "LeakyRelu" => c.with("LeakyRelu", &[x], [float("alpha", param(0, 0.01))]),
        "HardSigmoid" => {
            let attributes = [float("alpha", param(0, 0.2)), float("beta", param(1, 0.5))];
            c.with("HardSigmoid", &[x], attributes)
        }
        "Clip" => {
            let low = c.number(x.dtype(), param(0, f32::MIN).into())?;
            let high = c.number(x.dtype(), param(1, f32::MAX).into())?;
            c.op("Clip", &[x, &low, &high])
        }
        other => {
            let all = "Clip, HardSigmoid, LeakyRelu, Relu, Sigmoid, Tanh";
            Err(node.unsupported_value("activation", other, all))
        }
    }
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
    let look_up = |c: &mut Compose, table: &Imported, at: &Imported| {
        c.with("Gather", &[table, at], [int("axis", 0)])
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

/// A mask of keys as `bool` that broadcasts to `[batch, heads, queries, keys]`.
fn key_mask(c: &mut Compose, mask: &Imported, batch: Dim, keys: Dim) -> Result<Imported> {
    let single = Dim::from(1);
    match mask.shape()[..] {
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
            Err(Error::unsupported(format!("a mask of shape {:?} is not supported", mask.shape()))
                .note(format!(
                    "supported: [{batch}], [{batch}, {keys}], [{batch}, queries, {keys}]"
                )))
        }
    }
}

/// Attention of values that are there, with a mask of keys and an addend to the scores.
fn attend(
    node: &Node,
    c: &mut Compose,
    [q, k, v]: [&Imported; 3],
    mask: Option<&Imported>,
    addend: Option<&Imported>,
) -> Result<Imported> {
    let heads = node.int_or("num_heads", 0)?;
    let keys = k.shape()[1];
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
    let attributes = [
        int("q_num_heads", heads),
        int("kv_num_heads", heads),
        float("scale", node.float_or("scale", 0.0)?),
        int("is_causal", node.int_or("unidirectional", 0)?),
    ];
    c.first("Attention", &[Some(q), Some(k), Some(v), bias.as_ref()], attributes)
}

/// Attention with the projection to queries, keys and values inside.
pub(crate) fn attention(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let c = &mut Compose::new(node, b);
    let (x, w) = (node.input(0)?, node.input(1)?);
    if node.optional(4).is_some() || node.output_count() > 1 {
        return Err(Error::unsupported("past keys and values are not supported"));
    }
    let width = w.fixed(node)?.get(1).copied().unwrap_or(0);
    let sizes: Vec<usize> = match node.ints("qkv_hidden_sizes")? {
        Some(list) => list.iter().filter_map(|&d| usize::try_from(d).ok()).collect(),
        None => vec![width / 3; 3],
    };
    if x.rank() != 3 || sizes.len() != 3 || sizes.iter().sum::<usize>() != width {
        return Err(Error::model(format!("{} and weights {} do not fit", operand(x), operand(w))));
    }
    let all = c.op("MatMul", &[x, w])?;
    let all = plus(c, &all, node.optional(2))?;
    let q = c.slice(&all, 2, 0, sizes[0])?;
    let k = c.slice(&all, 2, sizes[0], sizes[0] + sizes[1])?;
    let v = c.slice(&all, 2, sizes[0] + sizes[1], width)?;
    one(attend(node, c, [&q, &k, &v], node.optional(3), node.optional(5))?)
}

pub(crate) fn multi_head_attention(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let c = &mut Compose::new(node, b);
    let packed = || Error::unsupported("packed queries, keys and values are not supported");
    let (Some(k), Some(v)) = (node.optional(1), node.optional(2)) else { return Err(packed()) };
    let q = node.input(0)?;
    if node.optional(6).is_some() || node.output_count() > 1 {
        return Err(Error::unsupported("past keys and values are not supported"));
    }
    let (&[_, _, wq], &[_, _, wk], &[_, _, wv]) = (&q.shape()[..], &k.shape()[..], &v.shape()[..])
    else {
        return Err(packed());
    };
    let mut parts = [q.clone(), k.clone(), v.clone()];
    if let Some(bias) = node.optional(3) {
        if bias.shape() != [wq + wk + wv] {
            return Err(Error::model(format!("the bias {} does not fit", operand(bias))));
        }
        let mut from = Dim::from(0);
        for (part, width) in parts.iter_mut().zip([wq, wk, wv]) {
            let own = c.slice(bias, 0, from, from + width)?;
            *part = c.op("Add", &[part, &own])?;
            from = from + width;
        }
    }
    let [q, k, v] = &parts;
    one(attend(node, c, [q, k, v], node.optional(4), node.optional(5))?)
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
    let positions = match positions.shape() == [1] && !alone {
        true => {
            let steps = c.positions(length)?;
            let first = c.cast(positions, DType::I64)?;
            let all = c.op("Add", &[&steps, &first])?;
            c.expand(&all, &[batch, length])?
        }
        false => c.reshape(positions, &[batch, length])?,
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

fn qlinear_binary(node: &Node, b: &mut Builder, op: &str) -> Result<Vec<Imported>> {
    let c = &mut Compose::new(node, b);
    let (x, y) = (real(node, c, 0)?, real(node, c, 3)?);
    let z = c.op(op, &[&x, &y])?;
    one(quantized(node, c, &z, 6, node.input(0)?.dtype())?)
}

pub(crate) fn qlinear_sigmoid(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let c = &mut Compose::new(node, b);
    let x = real(node, c, 0)?;
    let y = c.op("Sigmoid", &[&x])?;
    one(quantized(node, c, &y, 3, node.input(0)?.dtype())?)
}

pub(crate) fn qlinear_global_average_pool(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let c = &mut Compose::new(node, b);
    let x = real(node, c, 0)?;
    let axes: Vec<usize> = match node.flag("channels_last", false)? {
        true => (1..x.rank().saturating_sub(1)).collect(),
        false => (2..x.rank()).collect(),
    };
    let y = c.reduce("ReduceMean", &x, &axes, true)?;
    one(quantized(node, c, &y, 3, node.input(0)?.dtype())?)
}

pub(crate) fn qlinear_concat(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let c = &mut Compose::new(node, b);
    let axis = required(node.int("axis")?, "attribute `axis`")?;
    let parts: Vec<Imported> =
        (2..node.input_count()).step_by(3).map(|at| real(node, c, at)).collect::<Result<_>>()?;
    let all = c.with("Concat", &parts.iter().collect::<Vec<_>>(), [int("axis", axis)])?;
    one(quantized(node, c, &all, 0, node.input(2)?.dtype())?)
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

/// A product with weights of 4 or 8 bits in blocks, each with a scale and a zero point.
pub(crate) fn matmul_nbits(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let c = &mut Compose::new(node, b);
    let (x, w, scales) = (node.input(0)?, node.input(1)?, node.input(2)?);
    let (k, n) = (node.size_or("K", 0)?, node.size_or("N", 0)?);
    let (bits, block) = (node.size_or("bits", 4)?, node.size_or("block_size", 32)?);
    node.ignore("accuracy_level");
    if !matches!(bits, 4 | 8) {
        return Err(node.unsupported_value("bits", bits, "4, 8"));
    }
    if node.optional(4).is_some() {
        return Err(Error::unsupported("the input `g_idx` is not supported"));
    }
    let per_byte = 8 / bits;
    if block == 0 || !block.is_multiple_of(per_byte) || k == 0 || n == 0 {
        return Err(Error::model(format!("blocks of {block} for {k} x {n} weights")));
    }
    let blocks = k.div_ceil(block);
    // Bytes of a row, one number an element.
    let unpacked = |c: &mut Compose, x: &Imported, rows: usize, count: usize| -> Result<Imported> {
        let total: usize = x.fixed(node)?.iter().product();
        if x.dtype() != DType::U8 || rows == 0 || !total.is_multiple_of(rows) {
            return Err(Error::model(format!("{} does not hold the weights", operand(x))));
        }
        let bytes = total / rows;
        if bytes * per_byte < count {
            return Err(Error::model(format!("{} does not hold the weights", operand(x))));
        }
        let all = match bits {
            8 => c.reshape(x, &[rows, bytes])?,
            _ => {
                let x = c.reshape(x, &[rows, bytes, 1])?;
                let low = c.number(DType::U8, 15.0)?;
                let by = c.number(DType::U8, 4.0)?;
                let low = c.op("BitwiseAnd", &[&x, &low])?;
                let high = c.with("BitShift", &[&x, &by], [text("direction", "RIGHT")])?;
                let both = c.concat(&[&low, &high], 2)?;
                c.reshape(&both, &[rows, bytes * 2])?
            }
        };
        c.slice(&all, 1, 0, count)
    };
    let q = unpacked(c, w, n, blocks * block)?;
    let q = c.cast(&q, x.dtype())?;
    let q = c.reshape(&q, &[n, blocks, block])?;
    let scales = c.reshape(scales, &[n, blocks, 1])?;
    let scales = c.cast(&scales, x.dtype())?;
    let zero = match node.optional(3) {
        None => c.number(x.dtype(), f64::from(1u32 << (bits - 1)))?,
        Some(zero) => {
            let zero = match zero.dtype() {
                DType::U8 => unpacked(c, zero, n, blocks)?,
                _ => zero.clone(),
            };
            let zero = c.reshape(&zero, &[n, blocks, 1])?;
            c.cast(&zero, x.dtype())?
        }
    };
    let centred = c.op("Sub", &[&q, &zero])?;
    let weights = c.op("Mul", &[&centred, &scales])?;
    let weights = c.reshape(&weights, &[n, blocks * block])?;
    let weights = c.slice(&weights, 1, 0, k)?;
    let weights = c.transpose(&weights, &[1, 0])?;
    let y = c.op("MatMul", &[x, &weights])?;
    one(plus(c, &y, node.optional(5))?)
}

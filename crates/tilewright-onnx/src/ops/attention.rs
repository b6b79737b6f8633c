//! Attention and what stands around it: rotations by position, caches, causal convolutions.

use tilewright_ir::dim::Integer;
use tilewright_ir::{DType, Dim, Error, Result, Tensor};
use tilewright_ops::cache::{Along, append_rows};
use tilewright_ops::check::Need;
use tilewright_ops::linear_attention::{LinearAttention, linear_attention};
use tilewright_ops::{unequal, unequal_shapes};

use super::check::demand;
use super::compose::{Compose, int, ints};
use super::{one, value};
use crate::build::Builder;
use crate::data;
use crate::graphs::{Graphs, Stop};
use crate::imported::{Imported, operand};
use crate::node::{Node, axis};
use crate::operator::{Operator, graphs, op, until};

/// The operators that are imported here.
pub(crate) static OPERATORS: &[Operator] = &[
    op("Attention", 23, 7, attention),
    op("CausalConvWithState", 27, 4, causal_conv),
    op("LinearAttention", 27, 6, linear),
    op("RotaryEmbedding", 23, 4, rotary_embedding),
    op("TensorScatter", 24, 3, tensor_scatter),
];

/// Of `ai.onnx.preview`.
pub(crate) static PREVIEW: &[Operator] = &[until(1, graphs("FlexAttention", 1, 3, flex_attention))];

/// A number of heads, which a tensor of three axes needs.
fn heads(node: &Node, name: &'static str, hidden: usize) -> Result<usize> {
    let heads = node.int_or(name, 0)?;
    match usize::try_from(heads) {
        Ok(heads @ 1..) if hidden.is_multiple_of(heads) => Ok(heads),
        _ => Err(Error::model(format!(
            "attribute `{name}` is {heads}, for {hidden} elements that are shared among heads"
        ))),
    }
}

/// `[batch, heads, sequence, size]` from that, or from `[batch, sequence, heads * size]`.
fn with_heads(c: &mut Compose, node: &Node, name: &'static str, x: &Imported) -> Result<Imported> {
    match *x.shape() {
        [_, _, _, _] => {
            node.ignore(name);
            Ok(x.clone())
        }
        [batch, sequence, hidden] => {
            let hidden = hidden.fixed(node.op())?;
            let heads = heads(node, name, hidden)?;
            let size = hidden / heads;
            let x = c.reshape(x, &[batch, sequence, heads.into(), size.into()])?;
            c.transpose(&x, &[0, 2, 1, 3])
        }
        _ => Err(Error::model(format!("{} has neither three axes nor four", operand(x)))),
    }
}

/// The way back: `[batch, sequence, heads * size]`.
pub(super) fn without_heads(c: &mut Compose, x: &Imported) -> Result<Imported> {
    let [batch, heads, sequence, size] = x.shape()[..] else {
        return Err(Error::internal("heads without four axes"));
    };
    let x = c.transpose(x, &[0, 2, 1, 3])?;
    c.reshape(&x, &[batch, sequence, heads * size])
}

/// A product of two values whose heads may be shared: each head of the right belongs to as many of
/// the left.
pub(super) fn product(c: &mut Compose, x: &Imported, y: &Imported) -> Result<Imported> {
    let (&[batch, heads, rows, inner], &[_, shared, _, columns]) = (&x.shape()[..], &y.shape()[..])
    else {
        return Err(Error::internal("a product of heads without four axes"));
    };
    if heads == shared {
        return c.op("MatMul", &[x, y]);
    }
    // Their rows are those of one product.
    let together = heads.floordiv(shared) * rows;
    let x = c.reshape(x, &[batch, shared, together, inner])?;
    let z = c.op("MatMul", &[&x, y])?;
    c.reshape(&z, &[batch, heads, rows, columns])
}

/// How many queries there are, and of what size, where the heads of queries, keys and values fit.
fn fitting(q: &Imported, k: &Imported, v: &Imported) -> Result<[Dim; 2]> {
    let [of_q, of_k, of_v] = [q, k, v].map(operand);
    let error = Error::model(format!("queries {of_q}, keys {of_k} and values {of_v} do not fit"));
    if let (&[batch, heads, queries, size], &[kb, shared, _, ks], &[vb, vh, _, _]) =
        (&q.shape()[..], &k.shape()[..], &v.shape()[..])
        && shared != 0
        && heads.modulo(shared) == 0
    {
        let pairs = [(batch, kb), (batch, vb), (shared, vh), (size, ks)];
        if pairs.iter().all(|(a, b)| a == b) {
            return Ok([queries, size]);
        }
        return Err(unequal(error, pairs));
    }
    Err(error)
}

/// `Q K' scale`, with half of the scale on each side, as the specification says, for narrow types.
pub(super) fn scaled_scores(
    c: &mut Compose,
    q: &Imported,
    k: &Imported,
    scale: f64,
) -> Result<Imported> {
    let half = scale.abs().sqrt();
    let (left, right) = (c.number(q.dtype(), half.copysign(scale))?, c.number(q.dtype(), half)?);
    let scaled_q = c.op("Mul", &[q, &left])?;
    let scaled_k = c.op("Mul", &[k, &right])?;
    let turned = c.transpose(&scaled_k, &[0, 1, 3, 2])?;
    product(c, &scaled_q, &turned)
}

/// Which keys a query sees by their positions, as `bool` that broadcasts to `[batch, heads, queries,
/// keys]`; nothing where it sees all.
fn visible(
    c: &mut Compose,
    node: &Node,
    queries: Dim,
    keys: Dim,
    past: Dim,
    valid: Option<&Imported>,
) -> Result<Option<Imported>> {
    let causal = node.flag("is_causal", false)?;
    let (left, right) =
        (window_size("left_window_size", node)?, window_size("right_window_size", node)?);
    let mut all: Option<Imported> = None;
    let single = Dim::from(1);
    let column =
        |c: &mut Compose, v: &Imported| c.reshape(v, &[v.shape()[0], single, single, single]);
    if causal || left.is_some() || right.is_some() {
        // What lies before the queries.
        let offset = match valid {
            Some(valid) => {
                let count = c.size(queries)?;
                let offset = c.op("Sub", &[valid, &count])?;
                column(c, &offset)?
            }
            None => c.size(past)?,
        };
        let distances = match (queries.known(), keys.known()) {
            (Some(queries), Some(keys)) => {
                let distances: Vec<i64> = (0..queries * keys)
                    .map(|at| (at % keys.max(1)) as i64 - (at / keys.max(1)) as i64)
                    .collect();
                Imported::Const(Tensor::from_slice(&[queries, keys], &distances)?)
            }
            _ => {
                let rows = c.positions(queries)?;
                let rows = c.reshape(&rows, &[queries, single])?;
                let columns = c.positions(keys)?;
                c.op("Sub", &[&columns, &rows])?
            }
        };
        let ahead = c.op("Sub", &[&distances, &offset])?;
        let bounds = [(causal.then_some(0), true), (left.map(|n| -n), false), (right, true)];
        for (bound, above) in bounds {
            let Some(bound) = bound else { continue };
            let op = if above { "LessOrEqual" } else { "GreaterOrEqual" };
            let seen = c.op(op, &[&ahead, &number(bound)?])?;
            all = Some(c.also(all, seen)?);
        }
    }
    if let Some(valid) = valid {
        let positions = c.positions(keys)?;
        let valid = column(c, valid)?;
        let seen = c.op("Less", &[&positions, &valid])?;
        all = Some(c.also(all, seen)?);
    }
    Ok(all)
}

fn window_size(name: &'static str, node: &Node<'_>) -> Result<Option<i64>> {
    let size = if node.opset >= 25 { node.int_or(name, -1)? } else { -1 };
    Ok((size >= 0).then_some(size))
}

fn number(v: i64) -> Result<Imported> {
    Tensor::from_slice(&[], &[v]).map(Imported::Const)
}

/// Fills the keys that a mask does not mention.
fn padded_mask(c: &mut Compose, mask: &Imported, keys: Dim) -> Result<Imported> {
    let have = mask.shape().last().copied().unwrap_or(keys);
    if have.at_least(keys) || mask.rank() == 0 || have == 1 {
        return Ok(mask.clone());
    }
    if !keys.at_least(have) {
        // Which one is longer is not certain: they must be equal, which what follows says.
        return Ok(mask.clone());
    }
    let mut shape = mask.shape();
    *shape.last_mut().ok_or_else(|| Error::internal("a mask without axes"))? = keys - have;
    let fill = if mask.dtype().is_bool() { 0.0 } else { f64::NEG_INFINITY };
    let fill = c.number(mask.dtype(), fill)?;
    let rest = c.expand(&fill, &shape)?;
    c.concat(&[mask, &rest], mask.rank() - 1)
}

/// Whether every row of a known mask has something that counts.
fn rows_count(mask: &Imported) -> bool {
    let Some(t) = mask.constant() else { return false };
    let width = t.shape().last().copied().unwrap_or(1).max(1);
    (0..t.len() / width).all(|row| {
        (row * width..(row + 1) * width).any(|i| {
            if t.dtype().is_bool() { t.bytes()[i] != 0 } else { t.get_f64(i) != f64::NEG_INFINITY }
        })
    })
}

/// Softmax along the last axis, where a row of minus infinities gives zeros if there may be some.
pub(super) fn probabilities(
    c: &mut Compose,
    scores: &Imported,
    dead_rows: bool,
) -> Result<Imported> {
    let last = [int("axis", -1)];
    if !dead_rows {
        return c.with("Softmax", &[scores], last);
    }
    let largest = c.reduce("ReduceMax", scores, &[scores.rank() - 1], true)?;
    let nothing = c.number(scores.dtype(), f64::NEG_INFINITY)?;
    let zero = c.number(scores.dtype(), 0.0)?;
    let dead = c.op("Equal", &[&largest, &nothing])?;
    let safe = c.op("Where", &[&dead, &zero, scores])?;
    let p = c.with("Softmax", &[&safe], last)?;
    c.op("Where", &[&dead, &zero, &p])
}

/// `softmax(Q K' scale + mask) V`, with heads of keys and values that several queries share.
pub(crate) fn attention(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let c = &mut Compose::new(node, b);
    let (q, k, v) = (node.input(0)?, node.input(1)?, node.input(2)?);
    let flat = q.rank() == 3;
    let q = with_heads(c, node, "q_num_heads", q)?;
    let mut k = with_heads(c, node, "kv_num_heads", k)?;
    let mut v = with_heads(c, node, "kv_num_heads", v)?;
    let [queries, size] = fitting(&q, &k, &v)?;
    let (mask, valid) = (node.optional(3), node.optional(6));
    let mut past = Dim::from(0);
    if let (Some(past_k), Some(past_v)) = (node.optional(4), node.optional(5)) {
        past = past_k.shape().get(2).copied().unwrap_or(past);
        k = c.concat(&[past_k, &k], 2)?;
        v = c.concat(&[past_v, &v], 2)?;
    } else if node.optional(4).is_some() || node.optional(5).is_some() {
        return Err(Error::model("`past_key` and `past_value` come together only"));
    }
    let keys = k.shape()[2];
    let scale = match f64::from(node.float_or("scale", 0.0)?) {
        0.0 => 1.0 / (size.fixed(node.op())? as f64).sqrt(),
        scale => scale,
    };
    let seen = visible(c, node, queries, keys, past, valid)?;
    let raw = scaled_scores(c, &q, &k, scale)?;
    let softcap = f64::from(node.float_or("softcap", 0.0)?);
    let capped = match softcap {
        0.0 => raw.clone(),
        cap => {
            let cap = c.number(raw.dtype(), cap)?;
            let part = c.op("Div", &[&raw, &cap])?;
            let part = c.op("Tanh", &[&part])?;
            c.op("Mul", &[&part, &cap])?
        }
    };
    let (mut scores, mut dead_rows) = (capped.clone(), false);
    let mut allowed = seen;
    if let Some(mask) = mask {
        let mask = padded_mask(c, mask, keys)?;
        if mask.dtype().is_bool() {
            allowed = Some(c.also(allowed, mask)?);
        } else {
            dead_rows = !rows_count(&mask);
            let mask = c.cast(&mask, scores.dtype())?;
            scores = c.op("Add", &[&scores, &mask])?;
        }
    }
    if let Some(allowed) = &allowed {
        dead_rows |= mask.is_some_and(|m| !m.dtype().is_bool()) || !rows_count(allowed);
        let nothing = c.number(scores.dtype(), f64::NEG_INFINITY)?;
        scores = c.op("Where", &[allowed, &scores, &nothing])?;
    }
    let precision = match node.int_or("softmax_precision", 0)? {
        0 => None,
        _ => node.element("softmax_precision", data::element_type)?,
    };
    let wide = c.cast(&scores, precision.unwrap_or(scores.dtype()))?;
    let p = probabilities(c, &wide, dead_rows)?;
    let p = c.cast(&p, q.dtype())?;
    let of_values = c.cast(&p, v.dtype())?;
    let y = product(c, &of_values, &v)?;
    let y = c.cast(&y, q.dtype())?;
    let y = if flat { without_heads(c, &y)? } else { y };
    let shown = match node.int_or("qk_matmul_output_mode", 0)? {
        0 => raw,
        1 => capped,
        2 => scores,
        3 => p,
        other => return Err(node.unsupported_value("qk_matmul_output_mode", other, "0 to 3")),
    };
    Ok(vec![y, k, v, shown])
}

/// A value as a graph of the node changes it, if there is that graph.
fn changed_by<'a>(
    importer: &mut dyn Graphs<'a>,
    node: &Node<'a>,
    name: &'static str,
    x: Imported,
) -> Result<Imported, Stop> {
    let Some(graph) = node.optional_graph(name)? else { return Ok(x) };
    let results = importer.graph(graph, std::slice::from_ref(&x))?;
    let error = match <[Imported; 1]>::try_from(results) {
        Ok([y]) if operand(&y) == operand(&x) => return Ok(y),
        Ok([y]) => format!("the graph `{name}` makes {} of {}", operand(&y), operand(&x)),
        Err(all) => format!("the graph `{name}` gives {} values", all.len()),
    };
    Err(Error::model(error).into())
}

/// Attention of heads whose scores and probabilities graphs of the node change.
fn flex_attention<'a>(
    importer: &mut dyn Graphs<'a>,
    node: &Node<'a>,
) -> Result<Vec<Imported>, Stop> {
    let (q, k, v) = (node.input(0)?, node.input(1)?, node.input(2)?);
    let [_, size] = fitting(q, k, v)?;
    let scale = match node.float("scale")? {
        Some(scale) => f64::from(scale),
        None => 1.0 / (size.fixed(node.op())? as f64).sqrt(),
    };
    let usual = if q.dtype() == DType::F64 { DType::F64 } else { DType::F32 };
    let precision = node.element("softmax_precision", data::element_type)?.unwrap_or(usual);

    let mut c = Compose::new(node, importer.builder());
    let raw = scaled_scores(&mut c, q, k, scale)?;
    let scores = c.cast(&raw, precision)?;
    let scores = changed_by(importer, node, "score_mod", scores)?;
    let mut c = Compose::new(node, importer.builder());
    let p = c.with("Softmax", &[&scores], [int("axis", -1)])?;
    let p = changed_by(importer, node, "prob_mod", p)?;
    let mut c = Compose::new(node, importer.builder());
    let wide_v = c.cast(v, precision)?;
    let y = product(&mut c, &p, &wide_v)?;
    Ok(vec![c.cast(&y, q.dtype())?])
}

/// Turns pairs of elements by angles that depend on the position.
pub(crate) fn rotary_embedding(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let c = &mut Compose::new(node, b);
    let (x, cos, sin) = (node.input(0)?, node.input(1)?, node.input(2)?);
    let flat = x.rank() == 3;
    let heads = with_heads(c, node, "num_heads", x)?;
    let [batch, _, sequence, size] = heads.shape()[..] else {
        return Err(Error::internal("heads without four axes"));
    };
    let size = size.fixed(node.op())?;
    let turned = match usize::try_from(node.int_or("rotary_embedding_dim", 0)?) {
        Ok(0) => size,
        Ok(n) if n <= size => n,
        _ => return Err(Error::model("attribute `rotary_embedding_dim` is out of range")),
    };
    if turned % 2 != 0 {
        return Err(Error::model(format!("{turned} elements do not form pairs")));
    }
    let half = turned / 2;
    let angle = |c: &mut Compose, cache: &Imported| -> Result<Imported> {
        let at = match node.optional(3) {
            Some(positions) => c.with("Gather", &[cache, positions], [int("axis", 0)])?,
            None => cache.clone(),
        };
        let half = Dim::from(half);
        let needed = [batch, sequence, half];
        if at.shape() != needed {
            let error = Error::model(format!(
                "the angles have the shape {:?}, where [{batch}, {sequence}, {half}] is needed",
                at.shape()
            ));
            return Err(unequal_shapes(error, &at.shape(), &needed));
        }
        c.reshape(&at, &[batch, Dim::from(1), sequence, half])
    };
    let (cos, sin) = (angle(c, cos)?, angle(c, sin)?);
    let rotated = c.slice(&heads, 3, 0, turned)?;
    let interleaved = node.flag("interleaved", false)?;
    let (x1, x2) = if interleaved {
        let [even, odd] = [0, 1].map(|from| {
            let inputs = [
                &rotated,
                &value::list(&[from])?,
                &value::list(&[turned as i64])?,
                &value::list(&[3])?,
                &value::list(&[2])?,
            ];
            c.op("Slice", &inputs)
        });
        (even?, odd?)
    } else {
        (c.slice(&rotated, 3, 0, half)?, c.slice(&rotated, 3, half, turned)?)
    };
    let (real, imaginary) = c.turned([&x1, &x2], [&cos, &sin])?;
    let joined = if interleaved {
        let mut single = real.shape();
        single.push(Dim::from(1));
        let (real, imaginary) = (c.reshape(&real, &single)?, c.reshape(&imaginary, &single)?);
        let pairs = c.concat(&[&real, &imaginary], 4)?;
        c.reshape(&pairs, &rotated.shape())?
    } else {
        c.concat(&[&real, &imaginary], 3)?
    };
    let y = if turned == size {
        joined
    } else {
        let rest = c.slice(&heads, 3, turned, size)?;
        c.concat(&[&joined, &rest], 3)?
    };
    one(if flat { without_heads(c, &y)? } else { y })
}

/// Writes rows into a cache, from a position on that each example has of its own.
pub(crate) fn tensor_scatter(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let c = &mut Compose::new(node, b);
    let (cache, update, starts) = (node.input(0)?, node.input(1)?, node.optional(2));
    let at = axis(node.int_or("axis", -2)?, cache.rank())?;
    let circular = node.choice("mode", "linear", &[("linear", false), ("circular", true)])?;
    let mut like = update.shape();
    if let Some(d) = like.get_mut(at) {
        *d = cache.shape()[at];
    }
    let misfit = || {
        Error::model(format!(
            "{} cannot be written into {} along axis {at}",
            operand(update),
            operand(cache)
        ))
    };
    if at == 0 {
        return Err(misfit());
    }
    if like != cache.shape() {
        return Err(unequal_shapes(misfit(), &like, &cache.shape()));
    }
    let (have, needed) = (cache.shape()[at], update.shape()[at]);
    if !have.at_least(needed) {
        return Err(unequal(misfit(), [(have, have.max(needed))]));
    }
    let (count, length) = (update.shape()[at], cache.shape()[at]);
    let batch = cache.shape()[0];
    let starts = match starts {
        Some(starts) => {
            let starts = c.reshape(starts, &[batch])?;
            let starts = if circular {
                starts
            } else {
                let last = Integer::from(length).minus(count);
                let last = last.ok_or_else(|| Error::internal("the difference of two sizes"))?;
                let need = Need::Within(vec![(Integer::Number(0), last)]);
                demand(node, c.b, "position", &starts, &need)?
            };
            c.cast(&starts, DType::I32)?
        }
        None => {
            let zero = c.number(DType::I32, 0.0)?;
            c.expand(&zero, &[batch])?
        }
    };
    let (old, new) = (operand(cache), operand(update));
    let along = Along { axis: at, circular };
    let args = [cache, update, &starts];
    let key = (&old, &new, along);
    one(c.b.call("append_rows", &key, args, || append_rows(&old, &new, length, along))?)
}

fn unfit(x: &Imported, w: &Imported) -> Error {
    let (x, w) = (operand(x), operand(w));
    Error::model(format!("data {x} and weights {w} do not fit"))
}

/// A convolution of each channel by itself that sees no later position, and what the next call needs.
pub(crate) fn causal_conv(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let c = &mut Compose::new(node, b);
    let (x, w, bias, past) = (node.input(0)?, node.input(1)?, node.optional(2), node.optional(3));
    let (&[batch, channels, _], &[_, _, kernel]) = (&x.shape()[..], &w.shape()[..]) else {
        return Err(unfit(x, w));
    };
    let (groups, kernel) = (channels.fixed(node.op())?, kernel.fixed(node.op())?);
    if kernel == 0 {
        return Err(unfit(x, w));
    }
    let past = match past {
        Some(past) => past.clone(),
        None => {
            let zero = c.number(x.dtype(), 0.0)?;
            c.expand(&zero, &[batch, channels, Dim::from(kernel - 1)])?
        }
    };
    let all = c.concat(&[&past, x], 2)?;
    let attributes = [int("group", groups as i64), ints("kernel_shape", &[kernel as i64])];
    let mut y = c.first("Conv", &[Some(&all), Some(w), bias], attributes)?;
    if node.choice("activation", "none", &[("none", false), ("silu", true), ("swish", true)])? {
        y = c.op("Swish", &[&y])?;
    }
    let end = all.shape()[2];
    let state = c.slice(&all, 2, end + 1 - kernel, end)?;
    Ok(vec![y, state])
}

/// Attention by a state for each head, one step after the other.
pub(crate) fn linear(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let (q, k, v) = (node.input(0)?, node.input(1)?, node.input(2)?);
    let (state, decay, beta) = (node.optional(3), node.optional(4), node.optional(5));
    // How many steps are computed at a time is left to the compiler.
    node.ignore("chunk_size");
    let rule = node.text_or("update_rule", "gated_delta")?;
    let rules = [
        ("linear", (false, false)),
        ("gated", (true, false)),
        ("delta", (false, true)),
        ("gated_delta", (true, true)),
    ];
    let (gated, delta) = node.choice("update_rule", "gated_delta", &rules)?;
    for (value, wanted, name) in [(decay, gated, "decay"), (beta, delta, "beta")] {
        if wanted && value.is_none() {
            return Err(Error::model(format!("`{rule}` needs the input `{name}`")));
        }
    }
    let (decay, beta) = (decay.filter(|_| gated), beta.filter(|_| delta));
    let query_heads = heads(node, "q_num_heads", width_of(q, node)?)?;
    let scale = match f64::from(node.float_or("scale", 0.0)?) {
        0.0 => 1.0 / ((width_of(q, node)? / query_heads) as f64).sqrt(),
        scale => scale,
    };
    let params = LinearAttention {
        query: operand(q),
        key: operand(k),
        value: operand(v),
        state: state.map(operand),
        decay: decay.map(operand),
        beta: beta.map(operand),
        query_heads,
        heads: heads(node, "kv_num_heads", width_of(k, node)?)?,
        scale,
        state_type: state.map_or(q.dtype(), Imported::dtype),
    };
    let args = [q, k, v].into_iter().chain(state).chain(decay).chain(beta);
    b.call_many("linear_attention", &params, args, || linear_attention(&params))
}

fn width_of(x: &Imported, node: &Node<'_>) -> Result<usize> {
    x.shape().get(2).map_or(Ok(0), |d| d.fixed(node.op()))
}

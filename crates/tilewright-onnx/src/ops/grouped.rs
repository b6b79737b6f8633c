//! `GroupQueryAttention`: attention of decoders, with a cache of keys and values that grows, heads of these
//! that several queries share, and rotations by position.
//!
//! Each example has so many keys of before; its queries stand behind them. A query sees the keys up to its own,
//! in a window where there is one. The cache is as long as the keys of the longest example, or longer, where
//! it was made for more.

use tilewright_ir::{DType, Dim, Error, Result};
use tilewright_ops::cache::{Along, append_rows};
use tilewright_ops::creation::integers;
use tilewright_ops::unequal;

use super::attention::{probabilities, product, scaled_scores, without_heads};
use super::compose::{Compose, int};
use crate::build::Builder;
use crate::imported::{Imported, operand};
use crate::node::Node;
use crate::operator::{Operator, op};

/// Of the domain `com.microsoft`.
pub(crate) static OPERATORS: &[Operator] =
    &[op("GroupQueryAttention", 9, 12, group_query_attention)];

/// The length of all keys, which an input says.
fn total_length(c: &mut Compose, total: &Imported) -> Result<Dim> {
    if let Imported::Sizes(s) = total
        && let [value] = s.values[..]
        && let Some(length) = value.dim()
    {
        return Ok(length);
    }
    if let Some(t) = total.constant().filter(|t| t.len() == 1) {
        let length = usize::try_from(t.get_i128(0));
        return length.map(Dim::from).map_err(|_| {
            Error::model(format!("the input `total_sequence_length` is {}", t.get_i128(0)))
        });
    }
    let list = c.reshape(total, &[1])?;
    let list = c.cast(&list, DType::I64)?;
    // The queries have keys of their own.
    c.b.positive_size_of(&list)
}

/// The larger one of two sizes: where that is open, a size of its own, since products of such lengths have
/// plain ones.
fn longer(c: &mut Compose, a: Dim, b: Dim) -> Result<Dim> {
    let length = a.max(b);
    if length == a || length == b || length.known().is_some() {
        return Ok(length);
    }
    let list = c.b.call("length", &length, [], || integers(&[1], &[length.into()], DType::I64))?;
    c.b.positive_size_of(&list)
}

/// Queries, keys and values, each `[batch, length, heads * size]`.
fn projections(node: &Node, c: &mut Compose, heads: [usize; 2]) -> Result<[Imported; 3]> {
    let first = node.input(0)?;
    match (node.optional(1), node.optional(2)) {
        (Some(k), Some(v)) => Ok([first.clone(), k.clone(), v.clone()]),
        (None, None) => {
            let width = match first.shape()[..] {
                [_, _, width] => width.fixed(node.op())?,
                _ => return Err(Error::model(format!("{} has not three axes", operand(first)))),
            };
            let parts = heads[0] + 2 * heads[1];
            if !width.is_multiple_of(parts) {
                let what = format!("{width} numbers are no {parts} heads");
                return Err(Error::model(what));
            }
            let size = width / parts;
            let (q, k) = (heads[0] * size, heads[1] * size);
            let queries = c.slice(first, 2, 0, q)?;
            Ok([queries, c.slice(first, 2, q, q + k)?, c.slice(first, 2, q + k, width)?])
        }
        _ => Err(Error::model("keys and values come together only")),
    }
}

/// `[batch, heads, length, size]` turned by the positions of its rows.
fn turned(node: &Node, c: &mut Compose, x: &Imported, positions: &Imported) -> Result<Imported> {
    let (cos, sin) = (node.input(7)?, node.input(8)?);
    let [_, _, _, size] = x.shape()[..] else {
        return Err(Error::internal("heads without four axes"));
    };
    let half = cos.shape().get(1).map_or(Ok(0), |d| d.fixed(node.op()))?;
    let all = size.fixed(node.op())? == half * 2;
    let attributes = [
        int("interleaved", node.int_or("rotary_interleaved", 0)?),
        int("rotary_embedding_dim", if all { 0 } else { half as i64 * 2 }),
    ];
    c.with("RotaryEmbedding", &[x, cos, sin, positions], attributes)
}

pub(crate) fn group_query_attention(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let c = &mut Compose::new(node, b);
    let heads = [node.positive("num_heads")?, node.positive("kv_num_heads")?];
    for name in ["k_quant_type", "v_quant_type"] {
        match node.text_or(name, "NONE")? {
            "NONE" => {}
            other => return Err(node.unsupported_value(name, other, "NONE")),
        }
    }
    node.ignore("kv_cache_bit_width");
    if node.int_or("qk_output", 0)? != 0 {
        return Err(node.unsupported_value("qk_output", node.int_or("qk_output", 0)?, "0"));
    }
    let [q, k, v] = projections(node, c, heads)?;
    let [q, k, v] =
        [(&q, heads[0]), (&k, heads[1]), (&v, heads[1])].map(|(x, n)| match x.shape()[..] {
            [batch, length, width] if width.modulo(n) == 0 => {
                let x = c.reshape(x, &[batch, length, n.into(), width.floordiv(n)])?;
                c.transpose(&x, &[0, 2, 1, 3])
            }
            _ => Err(Error::model(format!("{} has not {n} heads along three axes", operand(x)))),
        });
    let (mut q, mut k, v) = (q?, k?, v?);
    let (&[batch, _, queries, size], &[kb, _, kl, _], &[vb, _, vl, _]) =
        (&q.shape()[..], &k.shape()[..], &v.shape()[..])
    else {
        return Err(Error::internal("heads without four axes"));
    };
    if [kb, vb] != [batch; 2] || kl != vl {
        let [q, k, v] = [&q, &k, &v].map(operand);
        let error = Error::model(format!("queries {q}, keys {k} and values {v} do not fit"));
        return Err(unequal(error, [(batch, kb), (batch, vb), (kl, vl)]));
    }
    // How many keys of each example stand before its queries.
    let last = c.cast(node.input(5)?, DType::I64)?;
    let last = c.reshape(&last, &[batch])?;
    let others = c.size(queries)?;
    let one = c.number(DType::I64, 1.0)?;
    let others = c.op("Sub", &[&others, &one])?;
    let before = c.op("Sub", &[&last, &others])?;
    let none = c.number(DType::I64, 0.0)?;
    let before = c.op("Max", &[&before, &none])?;
    let single = Dim::from(1);
    let column = c.reshape(&before, &[batch, single])?;
    let steps = c.positions(queries)?;
    let own = c.op("Add", &[&column, &steps])?;
    if node.flag("do_rotary", false)? {
        let positions = match node.optional(9) {
            Some(positions) => c.cast(positions, DType::I64)?,
            None => own.clone(),
        };
        q = turned(node, c, &q, &positions)?;
        k = turned(node, c, &k, &positions)?;
    } else {
        node.ignore("rotary_interleaved");
    }
    let total = total_length(c, node.input(6)?)?;
    let mut length = total;
    let past = match (node.optional(3), node.optional(4)) {
        (None, None) => None,
        (Some(k), Some(v)) => Some([k, v]),
        _ => return Err(Error::model("`past_key` and `past_value` come together only")),
    };
    if let Some([past, _]) = past {
        let before = past.shape().get(2).copied().unwrap_or_else(|| Dim::from(0));
        length = longer(c, length, before)?;
    }
    let starts = c.cast(&before, DType::I32)?;
    let keys = appended(c, past.map(|p| p[0]), &k, &starts, length)?;
    let values = appended(c, past.map(|p| p[1]), &v, &starts, length)?;
    let scale = match f64::from(node.float_or("scale", 0.0)?) {
        0.0 => 1.0 / (size.fixed(node.op())? as f64).sqrt(),
        scale => scale,
    };
    // No query sees what a longer cache has behind the keys of the longest example.
    let seen = if length.known().is_some() && total.known().is_some() { total } else { length };
    let seen_keys = c.slice(&keys, 2, 0, seen)?;
    let seen_values = c.slice(&values, 2, 0, seen)?;
    let mut scores = scaled_scores(c, &q, &seen_keys, scale)?;
    let softcap = f64::from(node.float_or("softcap", 0.0)?);
    if softcap != 0.0 {
        let cap = c.number(scores.dtype(), softcap)?;
        let part = c.op("Div", &[&scores, &cap])?;
        let part = c.op("Tanh", &[&part])?;
        scores = c.op("Mul", &[&part, &cap])?;
    }
    if let Some(bias) = node.optional(10) {
        scores = c.op("Add", &[&scores, bias])?;
    }
    // A query sees the keys up to its own.
    let place = c.reshape(&own, &[batch, single, queries, single])?;
    let all = c.positions(seen)?;
    let mut seen = c.op("LessOrEqual", &[&all, &place])?;
    let window = node.int_or("local_window_size", -1)?;
    if window >= 0 {
        let window = c.number(DType::I64, window as f64)?;
        let first = c.op("Sub", &[&place, &window])?;
        let near = c.op("Greater", &[&all, &first])?;
        seen = c.op("And", &[&seen, &near])?;
    }
    let nothing = c.number(scores.dtype(), f64::NEG_INFINITY)?;
    let scores = c.op("Where", &[&seen, &scores, &nothing])?;
    let p = probabilities_with_sink(node, c, &scores, heads[0])?;
    let p = c.cast(&p, values.dtype())?;
    let y = product(c, &p, &seen_values)?;
    Ok(vec![without_heads(c, &y)?, keys, values])
}

/// Rows behind those of the past, as many as `length` in all.
fn appended(
    c: &mut Compose,
    past: Option<&Imported>,
    rows: &Imported,
    starts: &Imported,
    length: Dim,
) -> Result<Imported> {
    let new = operand(rows);
    let mut old = new.clone();
    match past {
        Some(past) => old = operand(past),
        None => old.shape[2] = Dim::from(0),
    }
    let kept = past.filter(|_| old.shape.get(2).is_some_and(|d| *d != 0));
    let args = kept.into_iter().chain([rows, starts]);
    let along = Along { axis: 2, circular: false };
    let key = (&old, &new, length, along);
    c.b.call("append_rows", &key, args, || append_rows(&old, &new, length, along))
}

/// Softmax of rows of scores `[batch, heads, queries, keys]`, where a further score of each head, which
/// belongs to no key, may take a part.
fn probabilities_with_sink(
    node: &Node,
    c: &mut Compose,
    scores: &Imported,
    heads: usize,
) -> Result<Imported> {
    let smooth = node.flag("smooth_softmax", false)?;
    let sink = match node.optional(11) {
        Some(sink) => Some(c.cast(sink, scores.dtype())?),
        None if smooth => {
            let zero = c.number(scores.dtype(), 0.0)?;
            Some(c.expand(&zero, &[heads])?)
        }
        None => None,
    };
    let Some(sink) = sink else { return probabilities(c, scores, false) };
    let [batch, _, queries, keys] = scores.shape()[..] else {
        return Err(Error::internal("scores without four axes"));
    };
    let single = Dim::from(1);
    let sink = c.reshape(&sink, &[single, heads.into(), single, single])?;
    let sink = c.expand(&sink, &[batch, heads.into(), queries, single])?;
    let all = c.concat(&[scores, &sink], 3)?;
    let p = probabilities(c, &all, false)?;
    c.slice(&p, 3, 0, keys)
}

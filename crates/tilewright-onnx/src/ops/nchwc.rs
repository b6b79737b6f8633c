//! Operators of `com.microsoft.nchwc`: what ONNX Runtime writes for processors whose vectors hold a block of
//! channels.
//!
//! Such a model belongs to machines with one size of blocks, which it does not say: as in ONNX Runtime it is that
//! of the machine that reads it. The tensors between these operators are taken as what they are, `[batch,
//! channels, ..]` with as many channels as fill blocks; how they lie in memory is not for a model to say.
//! Weights are constants in blocks, and are put in order here.

use tilewright_ir::{Error, Result, Tensor};

use super::compose::{Compose, text};
use super::microsoft::{activated, plus};
use super::{one, window};
use crate::build::Builder;
use crate::imported::{Imported, operand};
use crate::node::Node;
use crate::operator::{Operator, op};

/// Of the domain `com.microsoft.nchwc`.
pub(crate) static OPERATORS: &[Operator] = &[
    op("AveragePool", 1, 1, average_pool),
    op("Conv", 1, 4, conv),
    op("GlobalAveragePool", 1, 1, global_average_pool),
    op("GlobalMaxPool", 1, 1, global_max_pool),
    op("MaxPool", 1, 1, max_pool),
    op("ReorderInput", 1, 1, reorder_input),
    op("ReorderOutput", 1, 1, reorder_output),
    op("Upsample", 1, 1, upsample),
];

/// Channels of a block on this machine.
fn block() -> usize {
    #[cfg(target_arch = "x86_64")]
    if !std::arch::is_x86_feature_detected!("avx512f") {
        return 8;
    }
    16
}

/// Whether so many channels are whole blocks.
fn whole_blocks(channels: usize, what: &str) -> Result<()> {
    let block = block();
    if channels.is_multiple_of(block) {
        return Ok(());
    }
    Err(Error::model(format!("{channels} {what} are no blocks of {block} channels"))
        .note("blocks have the size of those of this machine, since the model does not say it")
        .help("save the model on this machine, or at a lower level of optimisation"))
}

/// Weights in the order of ONNX: `[outputs, inputs, ..]`. Their elements lie as `[outputs / b, inputs / b, ..,
/// b inputs, b outputs]`, or where inputs are no blocks as `[outputs / b, inputs, .., b outputs]`.
fn in_order(node: &Node, w: &Imported) -> Result<Tensor> {
    let (Some(t), block) = (w.constant(), block()) else {
        return Err(Error::unsupported(format!(
            "weights in blocks that are no constant: {}",
            operand(w)
        ))
        .note(format!("`{}` needs them", node.label)));
    };
    let (Some(from), [outputs, inputs, space @ ..]) = (t.as_slice::<f32>(), t.shape()) else {
        return Err(Error::unsupported(format!("weights in blocks: {}", operand(w))));
    };
    whole_blocks(*outputs, "outputs")?;
    let area: usize = space.iter().product();
    let each = if inputs.is_multiple_of(block) { block } else { 1 };
    let mut to = vec![0f32; from.len()];
    let mut cells = from.iter();
    for (o, i) in (0..outputs / block).flat_map(|o| (0..inputs / each).map(move |i| (o, i))) {
        for at in 0..area {
            for (inner, outer) in (0..each).flat_map(|i| (0..block).map(move |o| (i, o))) {
                let (output, input) = (o * block + outer, i * each + inner);
                let place = (output * inputs + input) * area + at;
                if let (Some(cell), Some(value)) = (to.get_mut(place), cells.next()) {
                    *cell = *value;
                }
            }
        }
    }
    Tensor::from_slice(t.shape(), &to)
}

/// How many outputs there are before those that only fill up the last block: their weights and bias are zero.
fn filled(w: &Tensor, bias: Option<&Tensor>) -> usize {
    let (Some(values), outputs) = (w.as_slice::<f32>(), w.shape().first().copied().unwrap_or(0))
    else {
        return 0;
    };
    let each = values.len() / outputs.max(1);
    let is_zero = |o: usize| {
        let row = values.get(o * each..(o + 1) * each).unwrap_or_default();
        row.iter().all(|v| *v == 0.0) && bias.is_none_or(|b| b.get_f64(o) == 0.0)
    };
    let most = block().min(outputs) - 1;
    outputs - (0..most).take_while(|k| is_zero(outputs - 1 - k)).count()
}

fn conv(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let c = &mut Compose::new(node, b);
    let w = in_order(node, node.input(1)?)?;
    let outputs = w.shape().first().copied().unwrap_or(0);
    let bias = node.optional(2);
    let kept = match bias {
        Some(bias) => bias.constant().map_or(outputs, |bias| filled(&w, Some(bias))),
        None => filled(&w, None),
    };
    let is_grouped = node.int_or("group", 1)? != 1;
    let kept = if is_grouped { outputs } else { kept };
    let shape: Vec<usize> = [kept].into_iter().chain(w.shape().iter().skip(1).copied()).collect();
    let used =
        Imported::Const(w.part(0, &shape).ok_or_else(|| Error::internal("a part of weights"))?);
    let bias = bias.map(|bias| c.slice(bias, 0, 0, kept)).transpose()?;
    let inputs = [Some(node.input(0)?), Some(&used), bias.as_ref()];
    let mut y = c.first("Conv", &inputs, node.attributes(&window::ATTRIBUTES))?;
    if kept < outputs {
        // What fills the block are zeros.
        let mut rest = y.shape();
        if let Some(channels) = rest.get_mut(1) {
            *channels = (outputs - kept).into();
        }
        let zero = c.number(y.dtype(), 0.0)?;
        let rest = c.expand(&zero, &rest)?;
        y = c.concat(&[&y, &rest], 1)?;
    }
    let y = plus(c, &y, node.optional(3))?;
    one(activated(node, c, &y)?)
}

/// The attributes of ONNX's pools, as far as both have them.
const POOL: [&str; 7] =
    ["auto_pad", "ceil_mode", "count_include_pad", "dilations", "kernel_shape", "pads", "strides"];

/// ONNX's own pool.
fn pool(node: &Node, b: &mut Builder, name: &str) -> Result<Vec<Imported>> {
    let attributes = node.attributes(&POOL);
    node.ignore("storage_order");
    one(Compose::new(node, b).with(name, &[node.input(0)?], attributes)?)
}

fn max_pool(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    pool(node, b, "MaxPool")
}

fn average_pool(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    pool(node, b, "AveragePool")
}

fn global_max_pool(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    one(Compose::new(node, b).op("GlobalMaxPool", &[node.input(0)?])?)
}

fn global_average_pool(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    one(Compose::new(node, b).op("GlobalAveragePool", &[node.input(0)?])?)
}

/// The axes of `[batch, .., channels]`, in the order `[batch, channels, ..]`, and the way back.
fn channels_last(x: &Imported) -> Result<[Vec<usize>; 2]> {
    let rank = x.rank();
    if rank < 3 {
        return Err(Error::model(format!("{} is no image", operand(x))));
    }
    let first = [0, rank - 1].into_iter().chain(1..rank - 1).collect();
    Ok([first, [0].into_iter().chain(2..rank).chain([1]).collect()])
}

fn reorder_input(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let c = &mut Compose::new(node, b);
    let mut x = node.input(0)?.clone();
    let [first, _] = channels_last(&x)?;
    if node.flag("channels_last", false)? {
        x = c.transpose(&x, &first)?;
    }
    let channels = x.shape()[1].fixed(node.op())?;
    let whole = channels.next_multiple_of(block());
    if whole > channels {
        let mut rest = x.shape();
        rest[1] = (whole - channels).into();
        let zero = c.number(x.dtype(), 0.0)?;
        let rest = c.expand(&zero, &rest)?;
        x = c.concat(&[&x, &rest], 1)?;
    }
    one(x)
}

fn reorder_output(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let c = &mut Compose::new(node, b);
    let x = node.input(0)?;
    let [_, last] = channels_last(x)?;
    let (all, channels) = (x.shape()[1].fixed(node.op())?, node.positive("channels")?);
    whole_blocks(all, "channels")?;
    if channels > all {
        return Err(Error::model(format!("attribute `channels` is {channels}, of {all} channels")));
    }
    let x = if channels < all { c.slice(x, 1, 0, channels)? } else { x.clone() };
    one(if node.flag("channels_last", false)? { c.transpose(&x, &last)? } else { x })
}

fn upsample(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let c = &mut Compose::new(node, b);
    let x = node.input(0)?;
    let scales: Vec<f32> =
        node.ints("scales")?.unwrap_or_default().iter().map(|n| *n as f32).collect();
    let scales = Imported::Const(Tensor::from_slice(&[scales.len()], &scales)?);
    let mode = node.text_or("mode", "nearest")?.to_owned();
    let place = node.text_or("coordinate_transformation_mode", "asymmetric")?.to_owned();
    let attributes = [
        text("mode", &mode),
        text("coordinate_transformation_mode", &place),
        text("nearest_mode", "floor"),
    ];
    one(c.first("Resize", &[Some(x), None, Some(&scales)], attributes)?)
}

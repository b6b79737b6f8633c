//! Operators of `com.microsoft.nchwc`: what ONNX Runtime writes for processors whose vectors hold a block of
//! channels.
//!
//! Such a model belongs to machines with one size of blocks, which it does not say: as in ONNX Runtime it is that
//! of the machine that reads it. The tensors between these operators are taken as what they are, `[batch,
//! channels, ..]` with as many channels as fill blocks; how they lie in memory is not for a model to say.
//! Weights are constants in blocks, and are put in order here.

use tilewright_ir::{Error, Result, Tensor};

use super::channels::{each_channel, fill};
use super::compose::{Compose, int, text};
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

/// How many outputs there are before those that only fill up the last block: their weights and bias are zero. Where
/// that may be `own` ones, these.
fn filled(w: &Tensor, bias: Option<&Tensor>, own: Option<usize>) -> usize {
    let (Some(values), outputs) = (w.as_slice::<f32>(), w.shape().first().copied().unwrap_or(0))
    else {
        return 0;
    };
    let each = values.len() / outputs.max(1);
    let is_zero = |o: usize| {
        let row = values.get(o * each..(o + 1) * each).unwrap_or_default();
        row.iter().all(|v| *v == 0.0) && bias.is_none_or(|b| b.get_f64(o) == 0.0)
    };
    if let Some(own) = own.filter(|own| (*own..outputs).all(is_zero)) {
        return own;
    }
    // Weights that are all zero do not tell which ones fill.
    if (0..outputs).all(is_zero) {
        return outputs;
    }
    let most = block().min(outputs) - 1;
    outputs - (0..most).take_while(|k| is_zero(outputs - 1 - k)).count()
}

fn conv(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let c = &mut Compose::new(node, b);
    let x = node.input(0)?;
    let w = in_order(node, node.input(1)?)?;
    let (outputs, inputs) = match w.shape() {
        [outputs, inputs, ..] => (*outputs, *inputs),
        _ => (0, 0),
    };
    let groups = usize::try_from(node.int_or("group", 1)?).unwrap_or(1).max(1);
    let bias = node.optional(2);
    // What is added has as many channels of its own.
    let of_sum = node.optional(3).and_then(|sum| c.filled(sum)?.shape().get(1)?.known());
    let of_sum = of_sum.filter(|own| *own <= outputs);
    let filled_outputs = match bias {
        Some(bias) => bias.constant().map_or(outputs, |bias| filled(&w, Some(bias), of_sum)),
        None => filled(&w, None, of_sum),
    };
    // What fills the blocks of the input is multiplied by weights: they do not matter.
    let part = c.filled(x).cloned();
    let of_part = part.as_ref().and_then(|p| p.shape().get(1)?.known());
    let (x, kept, used) = match (part, of_part) {
        (Some(part), Some(n)) if groups == 1 && all_finite(&w) => (part, filled_outputs, n),
        (Some(part), Some(n)) if groups == outputs && inputs == 1 => {
            let zeros = |bias: &Imported| {
                let bias = bias.constant();
                bias.is_some_and(|b| (n..outputs).all(|k| b.get_f64(k) == 0.0))
            };
            if all_finite(&w) && bias.is_none_or(zeros) {
                (part, n, inputs)
            } else {
                (x.clone(), outputs, inputs)
            }
        }
        _ => (x.clone(), if groups == 1 { filled_outputs } else { outputs }, inputs),
    };
    let groups = if groups == 1 { 1 } else { kept / (outputs / groups).max(1) };
    let w = first_channels(&w, [kept, used])?;
    let bias = bias.map(|bias| c.slice(bias, 0, 0, kept)).transpose()?;
    let operands = [Some(&x), Some(&w), bias.as_ref()];
    let mut attributes = node.attributes(&window::ATTRIBUTES);
    attributes.retain(|a| a.name != "group");
    attributes.push(int("group", groups as i64));
    let mut y = c.first("Conv", &operands, attributes)?;
    let rest = outputs - kept;
    let Some(sum) = node.optional(3) else {
        return one(finished(node, c, &y, rest)?);
    };
    match c.filled(sum).cloned() {
        Some(part) if part.shape().get(1) == y.shape().get(1) => {
            y = plus(c, &y, Some(&part))?;
            one(finished(node, c, &y, rest)?)
        }
        _ => {
            let y = fill(c, &y, rest)?;
            let y = plus(c, &y, Some(sum))?;
            one(activated(node, c, &y)?)
        }
    }
}

/// The activation of a node, and as many channels of zeros behind it as fill the last block.
fn finished(node: &Node, c: &mut Compose, y: &Imported, rest: usize) -> Result<Imported> {
    let params = node.floats("activation_params")?.unwrap_or_default();
    let keeps_zero = match node.text_or("activation", "")? {
        "Clip" => matches!(params[..], [low, high, ..] if low <= 0.0 && 0.0 <= high),
        name => matches!(name, "" | "HardSwish" | "LeakyRelu" | "Relu" | "Tanh"),
    };
    if !keeps_zero {
        let y = fill(c, y, rest)?;
        return activated(node, c, &y);
    }
    let y = activated(node, c, y)?;
    fill(c, &y, rest)
}

/// The first outputs and inputs of weights.
fn first_channels(w: &Tensor, [outputs, inputs]: [usize; 2]) -> Result<Imported> {
    let wrong = || Error::internal("a part of weights");
    let shape = w.shape();
    let (all, area) = (shape.get(1).copied().unwrap_or(0), shape.iter().skip(2).product::<usize>());
    let values = w.as_slice::<f32>().ok_or_else(wrong)?;
    let rows = values.chunks(all * area).take(outputs);
    let kept: Vec<f32> = rows.flat_map(|row| row.iter().take(inputs * area).copied()).collect();
    let shape: Vec<usize> =
        [outputs, inputs].into_iter().chain(shape.iter().skip(2).copied()).collect();
    Ok(Imported::Const(Tensor::from_slice(&shape, &kept)?))
}

/// Whether zero times any of them is zero.
fn all_finite(w: &Tensor) -> bool {
    w.as_slice::<f32>().is_some_and(|values| values.iter().all(|v| v.is_finite()))
}

/// The attributes of ONNX's pools, as far as both have them.
const POOL: [&str; 7] =
    ["auto_pad", "ceil_mode", "count_include_pad", "dilations", "kernel_shape", "pads", "strides"];

/// ONNX's own pool, for which channels of zeros are what they are.
fn pool(node: &Node, b: &mut Builder, name: &str) -> Result<Vec<Imported>> {
    let attributes = node.attributes(&POOL);
    node.ignore("storage_order");
    each_channel(node, b, |c, x| c.with(name, &[x], attributes))
}

fn max_pool(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    pool(node, b, "MaxPool")
}

fn average_pool(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    pool(node, b, "AveragePool")
}

fn global_max_pool(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    each_channel(node, b, |c, x| c.op("GlobalMaxPool", &[x]))
}

fn global_average_pool(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    each_channel(node, b, |c, x| c.op("GlobalAveragePool", &[x]))
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
    x = fill(c, &x, whole - channels)?;
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
    let part = c.filled(x).filter(|p| p.shape().get(1) == Some(&channels.into())).cloned();
    let x = match part {
        Some(part) => part,
        None if channels < all => c.slice(x, 1, 0, channels)?,
        None => x.clone(),
    };
    one(if node.flag("channels_last", false)? { c.transpose(&x, &last)? } else { x })
}

fn upsample(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
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
    each_channel(node, b, |c, x| c.first("Resize", &[Some(x), None, Some(&scales)], attributes))
}

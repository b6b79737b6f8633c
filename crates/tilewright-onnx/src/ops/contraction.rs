//! Matrix products and convolutions.

use tilewright_ir::{DType, Error, Result, Tensor, dim};
use tilewright_ops::contraction::{self, Conv, ConvTranspose, Gemm};
use tilewright_ops::subpixel::{Subpixel, subpixel};
use tilewright_ops::window::Same;
use tilewright_ops::{Operand, einsum};
use tilewright_runtime::parallel;

use super::compose::Compose;
use super::packed::product_with_blocked;
use super::quantize::numbers_of;
use super::{one, window};
use crate::build::{Builder, Convolution};
use crate::imported::{Imported, operand};
use crate::node::Node;
use crate::operator::{MANY, Operator, op};

/// The operators that are imported here.
pub(crate) static OPERATORS: &[Operator] = &[
    op("Conv", 7, 3, conv),
    op("ConvTranspose", 7, 3, conv_transpose),
    op("Einsum", 12, MANY, einsum),
    op("Gemm", 7, 3, gemm),
    op("MatMul", 7, 2, matmul),
];

pub(crate) fn matmul(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let (x, y) = (node.input(0)?, node.input(1)?);
    if let Some(weights) = b.blocked_of(y) {
        let made = match product_with_blocked(node, b, x, &weights)? {
            Some(product) => product,
            None => {
                let y = numbers_of(b, weights)?;
                b.call_on("matmul", [x, &y], (), |[x, y]| contraction::matmul(x, y))?
            }
        };
        b.note_product(y);
        return one(made);
    }
    one(b.call_on("matmul", [x, y], (), |[x, y]| contraction::matmul(x, y))?)
}

pub(crate) fn gemm(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let (x, y) = (node.input(0)?, node.input(1)?);
    let c = match node.opset {
        ..11 => Some(node.input(2)?),
        _ => node.optional(2),
    };
    if let Some(c) = c
        && c.dtype() != x.dtype()
    {
        return Err(Error::model(format!("the inputs are {} and {}", x.dtype(), c.dtype())));
    }
    let params = Gemm {
        c: c.map(Imported::shape),
        trans_a: node.flag("transA", false)?,
        trans_b: node.flag("transB", false)?,
        alpha: node.float_or("alpha", 1.0)?.into(),
        beta: node.float_or("beta", 1.0)?.into(),
        ..Gemm::new(operand(x), operand(y))
    };
    let Some(weights) = b.blocked_of(y) else {
        return one(
            b.call("gemm", &params, [x, y].into_iter().chain(c), || contraction::gemm(&params))?
        );
    };
    let plain = !params.trans_a && params.alpha == 1.0 && params.beta == 1.0;
    let turned = if params.trans_b { weights.clone().swapped(1) } else { weights.clone() };
    let plain = plain && c.is_none_or(|c| c.rank() <= 1);
    let product = if plain { product_with_blocked(node, b, x, &turned)? } else { None };
    let made = match (product, c) {
        (Some(product), Some(c)) => Compose::new(node, b).op("Add", &[&product, c])?,
        (Some(product), None) => product,
        (None, c) => {
            let numbers = numbers_of(b, weights)?;
            let args = [x, &numbers].into_iter().chain(c);
            b.call("gemm", &params, args, || contraction::gemm(&params))?
        }
    };
    b.note_product(y);
    one(made)
}

/// A sum of products in Einstein's notation.
pub(crate) fn einsum(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let inputs = node.all_inputs()?;
    let equation = node.text_or("equation", "")?;
    let of: Vec<Operand> = inputs.iter().map(operand).collect();
    one(b.call("einsum", &(equation, &of), &inputs, || einsum::einsum(equation, &of))?)
}

/// The weights' window, which the attribute may repeat.
fn kernel(node: &Node, w: &Imported) -> Result<Vec<usize>> {
    let of_weights = w.fixed(node)?.get(2..).unwrap_or_default().to_vec();
    let given = window::sizes(node, "kernel_shape", of_weights.len(), 1, 1)?;
    match node.ints("kernel_shape")? {
        Some(_) if given != of_weights => Err(Error::model(format!(
            "attribute `kernel_shape` is {given:?}, but the weights have the shape {:?}",
            w.shape()
        ))),
        _ => Ok(of_weights),
    }
}

fn groups(node: &Node) -> Result<usize> {
    match node.size_or("group", 1)? {
        0 => Err(Error::model("attribute `group` is 0")),
        groups => Ok(groups),
    }
}

/// The bias must have the type of the data; the operators check all else.
fn bias<'a>(node: &'a Node, x: &Imported, channels: usize) -> Result<Option<&'a Imported>> {
    let bias = node.optional(2);
    match bias {
        Some(b) if b.dtype() != x.dtype() || b.shape() != [channels] => Err(Error::model(format!(
            "the bias is {}, where {} of shape [{channels}] is needed",
            operand(b),
            x.dtype()
        ))),
        _ => Ok(bias),
    }
}

/// The convolution that a node says, without a bias.
pub(crate) fn convolution(node: &Node, x: &Imported, w: &Imported) -> Result<Conv> {
    let kernel = kernel(node, w)?;
    let windows = window::windows(node, x.rank().saturating_sub(2), &kernel)?;
    Ok(Conv {
        x: operand(x),
        w: operand(w),
        bias: false,
        strides: windows.strides,
        dilations: windows.dilations,
        pads_begin: windows.begin,
        pads_end: windows.end,
        same: windows.same,
        groups: groups(node)?,
    })
}

pub(crate) fn conv(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let (x, w) = (node.input(0)?, node.input(1)?);
    let plain = convolution(node, x, w)?;
    let channels = w.fixed(node)?.first().copied().unwrap_or(0);
    let bias = bias(node, x, channels)?;
    let params = Conv { bias: bias.is_some(), ..plain };
    let args = [x, w].into_iter().chain(bias);
    let result = b.call("conv", &params, args, || contraction::conv(&params))?;
    if let (Imported::Var { var, .. }, Some(weights)) = (&result, w.constant())
        && bias.is_none_or(|b| b.constant().is_some())
        && matches!(params.w.dtype, DType::F32 | DType::F64)
    {
        let conv = Convolution {
            params,
            x: x.clone(),
            weights: weights.clone(),
            bias: bias.and_then(Imported::constant).cloned(),
            result: var.clone(),
            uses: 0,
        };
        b.convolutions.insert(var.id(), conv);
    }
    one(result)
}

/// About as many weights are multiplied by one core at a time.
const PART: usize = 1 << 18;

/// The convolution that computes `x`, changed so that its result is multiplied by `scale` and
/// moved by `shift`, one number a channel. Nothing where there is none, or others read its result.
pub(crate) fn rescale(
    b: &mut Builder,
    x: &Imported,
    scale: &[f64],
    shift: &[f64],
) -> Result<Option<Imported>> {
    let Imported::Var { var, .. } = x else { return Ok(None) };
    if !b.convolutions.get(&var.id()).is_some_and(|c| fits_scale(c, scale)) {
        return Ok(None);
    }
    let Some(conv) = b.convolutions.remove(&var.id()) else { return Ok(None) };
    b.budget.charge(&conv.params.w)?;
    let count = conv.weights.len() / scale.len().max(1);
    let rows = (PART / count.max(1)).max(1);
    let mut weights = Tensor::zeros(conv.weights.dtype(), conv.weights.shape())?;
    let zero = Tensor::zeros(weights.dtype(), &[scale.len()])?;
    let mut bias = conv.bias.unwrap_or(zero);
    // In double precision, rounded once.
    macro_rules! multiply {
        ($t:ty) => {{
            let old = conv.weights.as_slice::<$t>().unwrap_or_default();
            let cells = weights.as_mut_slice::<$t>().unwrap_or_default();
            parallel::map_parts(cells, count * rows, |before, part| {
                let (old, scale) = (&old[before..], &scale[before / count..]);
                for ((new, old), s) in part.chunks_mut(count).zip(old.chunks(count)).zip(scale) {
                    new.iter_mut().zip(old).for_each(|(w, old)| *w = (f64::from(*old) * s) as $t);
                }
            });
            let cells = bias.as_mut_slice::<$t>().unwrap_or_default();
            for ((cell, &s), &t) in cells.iter_mut().zip(scale).zip(shift) {
                *cell = (f64::from(*cell) * s + t) as $t;
            }
        }};
    }
    match weights.dtype() {
        DType::F64 => multiply!(f64),
        _ => multiply!(f32),
    }
    b.take_back(&conv.result);
    let params = Conv { bias: true, ..conv.params };
    let args = [conv.x, Imported::Const(weights), Imported::Const(bias)];
    b.call("conv", &params, &args, || contraction::conv(&params)).map(Some)
}

fn fits_scale(c: &Convolution, scale: &[f64]) -> bool {
    c.uses == 1 && c.params.w.shape.first().is_some_and(|d| *d == scale.len())
}

pub(crate) fn conv_transpose(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let (x, w) = (node.input(0)?, node.input(1)?);
    let kernel = kernel(node, w)?;
    let extents = x.shape().get(2..).unwrap_or_default().to_vec();
    let n = extents.len();
    if kernel.len() != n {
        return Err(Error::model(format!(
            "data of shape {:?} and weights of shape {:?} do not fit",
            x.shape(),
            w.shape()
        )));
    }
    let strides = window::sizes(node, "strides", n, 1, 1)?;
    let dilations = window::sizes(node, "dilations", n, 1, 1)?;
    let output_padding = window::sizes(node, "output_padding", n, 0, 0)?;
    let auto = window::auto_pad(node)?;
    let output_shape = node.ints("output_shape")?;
    let explicit = window::signed_pads(node, n)?;
    // What is wanted beyond the extent times the stride: then the extents do not matter.
    let same = output_shape.is_none() && matches!(auto, window::AutoPad::Same(_));
    let known = if same {
        vec![1; n]
    } else if output_shape.is_some() {
        dim::fixed(&extents, node.op())?
    } else {
        Vec::new()
    };
    let wanted: Option<Vec<i64>> = match (&output_shape, same) {
        (Some(shape), _) => Some(shape.clone()),
        (None, true) => Some(strides.iter().map(|&s| s as i64).collect()),
        (None, false) => None,
    };
    let (mut pads_begin, mut pads_end) = (vec![0i64; n], vec![0i64; n]);
    match (wanted, auto) {
        (Some(wanted), auto) => {
            if wanted.len() != n {
                return Err(Error::model(format!(
                    "attribute `output_shape` is {wanted:?} for {n} spatial dimensions"
                )));
            }
            let odd_at_end = auto == window::AutoPad::Same(Same::OddAtEnd);
            for k in 0..n {
                // All numbers are below 2^31, but for the wanted extent.
                let [extent, size, stride, dilation, more] =
                    [known[k], kernel[k], strides[k], dilations[k], output_padding[k]]
                        .map(|v| v as i128);
                let full = (extent - 1) * stride + (size - 1) * dilation + 1 + more;
                let total = full - i128::from(wanted[k]);
                let total = i64::from(i32::try_from(total).map_err(|_| {
                    Error::model(format!("an output of {} cells cannot come about", wanted[k]))
                })?);
                (pads_begin[k], pads_end[k]) = match auto {
                    // What is missing lies at the end, unless both sides are asked for.
                    window::AutoPad::Explicit if total < 0 => (0, total),
                    _ => window::halves(total, odd_at_end),
                };
            }
        }
        (None, window::AutoPad::Explicit) => {
            (pads_begin, pads_end) = explicit;
        }
        (None, _) => {}
    }
    let groups = groups(node)?;
    let channels = w.fixed(node)?.get(1).copied().unwrap_or(0).saturating_mul(groups);
    let bias = bias(node, x, channels)?;
    let params = ConvTranspose {
        x: operand(x),
        w: operand(w),
        bias: bias.is_some(),
        strides,
        dilations,
        pads_begin,
        pads_end,
        output_padding,
        groups,
    };
    if let Some(Subpixel { weights, bias: all, conv, place }) = subpixel(&params)? {
        let w = b.call("subpixel_weights", &params, [w], || Ok(weights))?;
        let all = all.zip(bias);
        let bias = all
            .map(|(all, bias)| b.call("subpixel_bias", &params, [bias], || Ok(all)))
            .transpose()?;
        let args = [x, &w].into_iter().chain(&bias);
        let phases = b.call("conv", &conv, args, || contraction::conv(&conv))?;
        return one(b.call("subpixel", &params, [&phases], || Ok(place))?);
    }
    let args = [x, w].into_iter().chain(bias);
    one(b.call("conv_transpose", &params, args, || contraction::conv_transpose(&params))?)
}

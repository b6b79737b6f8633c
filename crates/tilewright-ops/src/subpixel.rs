//! Transposed convolutions as ordinary ones of fewer steps.
//!
//! With steps of `s`, a cell `o` of the result sums only taps `k` with `k = o + pad` modulo `s`. So the
//! cells with one remainder, a *phase*, are those of a convolution with every `s`-th tap, and all phases
//! are the channels of one convolution, whose result is written with the phases side by side: no
//! product has a zero between elements as an operand. (Shi and others, "Is the deconvolution layer the
//! same as a convolutional layer?", 2016.)
//!
//! ```text
//! e = o + pad = q*s + p,  k = p + s*t,  i = q - t
//! out[m, o] = sum over c and t of x[c, q - t] * w[c, m, p + s*t]
//! ```

use tilewright_ir::{Dim, Expr, Result, TensorFunc, dim};

use crate::contraction::{Conv, ConvTranspose, upsampled};
use crate::movement::injective;
use crate::operand::Operand;
use crate::te;

/// The functions of which a transposed convolution can be made.
pub struct Subpixel {
    /// From `w` of [`ConvTranspose`] to that of the convolution.
    pub weights: TensorFunc,
    /// The bias of the convolution, from that of [`ConvTranspose`].
    pub bias: Option<TensorFunc>,
    /// The convolution: channels are those of the result, each with all its phases.
    pub conv: Conv,
    /// From the result of the convolution to that of [`ConvTranspose`].
    pub place: TensorFunc,
}

struct SubpixelAxis {
    stride: usize,
    /// Taps of a window, and of the window of one phase.
    kernel: usize,
    taps: usize,
    /// Zeros before and behind.
    begin: usize,
    end: usize,
    /// By how much the first cell of the result is behind the first of the first window.
    shift: i64,
    /// Cells of the result.
    count: Dim,
}

impl SubpixelAxis {
    fn new(p: &ConvTranspose, axis: usize, kernel: usize, count: Dim) -> Option<SubpixelAxis> {
        let (stride, cut) = (p.strides[axis], p.pads_begin[axis]);
        let (s, k) = (signed(stride)?, signed(kernel)?);
        let taps = kernel.div_ceil(stride);
        // The first window; none begins behind the zeros before the data.
        let first = cut.div_euclid(s).min(signed(taps)? - 1);
        let begin = usize::try_from(signed(taps)? - 1 - first).ok()?;
        let last = signed(p.output_padding[axis])? + k - 1 - p.pads_end[axis];
        let end = usize::try_from(last.div_euclid(s)).unwrap_or(0);
        let shift = cut - s * first;
        Some(SubpixelAxis { stride, kernel, taps, begin, end, shift, count })
    }
}

fn signed(n: usize) -> Option<i64> {
    i64::try_from(n).ok()
}

/// The parts of a transposed convolution; `None` where it is one of steps of one, or with distances
/// between taps.
///
/// # Errors
/// As [`conv_transpose`](crate::contraction::conv_transpose).
pub fn subpixel(p: &ConvTranspose) -> Result<Option<Subpixel>> {
    let windows = upsampled(p)?;
    if p.strides.iter().all(|s| *s == 1) || p.dilations.iter().any(|d| *d != 1) {
        return Ok(None);
    }
    let shape = dim::fixed(&p.w.shape, "conv_transpose")?;
    let (channels, group, kernel) = (shape[0] / p.groups, shape[1], &shape[2..]);
    let axes = windows.iter().zip(kernel).enumerate();
    let axes = axes.map(|(a, (u, k))| SubpixelAxis::new(p, a, *k, u.window.count));
    let Some(axes) = axes.collect::<Option<Vec<SubpixelAxis>>>() else { return Ok(None) };
    let results = group * p.groups;
    let phases = axes.iter().try_fold(1usize, |n, a| n.checked_mul(a.stride));
    let Some((phases, all)) = phases.and_then(|n| Some((n, n.checked_mul(results)?))) else {
        return Ok(None);
    };

    let w = p.w.placeholder("w");
    let taken: Vec<usize> =
        [all, channels].into_iter().chain(axes.iter().map(|a| a.taps)).collect();
    let weights = te::compute("subpixel_weights", &taken, |at| {
        let result = at[0].clone().floordiv(phases as i64);
        let (of, within) = split(&result, group);
        let channel = of * channels as i64 + &at[1];
        let mut there = Expr::bool(true);
        let mut index = vec![channel, within];
        let mut inner = phases;
        for (a, tap) in axes.iter().zip(&at[2..]) {
            inner /= a.stride;
            let phase = at[0].clone().floordiv(inner as i64).floormod(a.stride as i64);
            let k = phase + (Expr::i32(a.taps as i32 - 1) - tap) * a.stride as i64;
            if a.taps * a.stride > a.kernel {
                there = there.and(k.clone().less(a.kernel as i64));
            }
            index.push(k);
        }
        Expr::if_then_else(there, w.at(index), Expr::constant(0.0, w.dtype()))
    });
    let weights = te::func([&w], [&weights])?;
    let bias = p.bias.then(|| {
        let bias = te::placeholder("bias", &[results], p.x.dtype);
        let all = te::compute("subpixel_bias", &[all], |at| {
            bias.at([at[0].clone().floordiv(phases as i64)])
        });
        te::func([&bias], [&all])
    });
    let conv = Conv {
        bias: p.bias,
        pads_begin: axes.iter().map(|a| a.begin).collect(),
        pads_end: axes.iter().map(|a| a.end).collect(),
        groups: p.groups,
        ..Conv::new(p.x.clone(), Operand::new(&taken, p.w.dtype))
    };
    let x = crate::results(&crate::contraction::conv(&conv)?, 1).remove(0);
    let shape: Vec<Dim> =
        [p.x.shape[0], results.into()].into_iter().chain(axes.iter().map(|a| a.count)).collect();
    let place = injective("subpixel", &x, &shape, |i| {
        let mut channel = i[1].clone();
        let mut at = Vec::new();
        for (a, o) in axes.iter().zip(&i[2..]) {
            let cell = o + a.shift;
            channel = channel * a.stride as i64 + cell.clone().floormod(a.stride as i64);
            at.push(cell.floordiv(a.stride as i64));
        }
        [i[0].clone(), channel].into_iter().chain(at).collect()
    })?;
    Ok(Some(Subpixel { weights, bias: bias.transpose()?, conv, place }))
}

/// Which group of so many an index is in, and where in it.
fn split(index: &Expr, group: usize) -> (Expr, Expr) {
    (index.clone().floordiv(group as i64), index.clone().floormod(group as i64))
}

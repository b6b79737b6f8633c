//! What transforms do to floats: their error, measured, and the data that they can take.
//!
//! **The error.** What is computed by transforms is compared with the exact sums of products, on random data and with
//! the weights of the convolution: all steps in `float32` as kernels make them, against 64 bits. Data are
//! uniform in [-1, 1) and, for another half of the samples, in [0, 1), as behind a clip at zero. How large
//! they are makes no difference, since all steps are linear, as long as none of them overflows. The
//! largest difference is that of samples, and no bound.
//!
//! **The limit.** Transforms add up numbers that the sums of products never see, so that large finite
//! data overflow where the sums would not. By the absolute values of the matrices and of the weights,
//! each step is at most so many times the largest of the data; below the largest `float32` over the
//! greatest of these numbers, nothing overflows, whatever the data are. That is a bound.

use tilewright_ir::index::Linear;
use tilewright_ir::tensor::row_major;
use tilewright_ir::{IterKind, Tensor, Var};

use super::build::sandwich;
use super::points::Matrices;
use super::recognise::{Convolution, TAPS};

/// How many tiles of one result channel are compared.
const SAMPLES: usize = 32;
/// What is left of a limit for the rounding of all steps.
const ROUNDING: f64 = 0.9;

/// Where the weights of a convolution lie in memory.
struct Places {
    first: i128,
    /// By how many cells they move along each axis of the results, and its extent.
    channels: Vec<(i128, i128)>,
    /// The cells of the products of one sum, of one tap, from the first on.
    depth: Vec<i128>,
    /// By how many cells they move from tap to tap, along rows and columns.
    taps: [i128; 2],
}

impl Places {
    /// The weights in memory of these strides; `None` where they are not read at places that are even
    /// in the variables.
    fn find(conv: &Convolution, strides: &[usize]) -> Option<Places> {
        let index: Vec<Linear> =
            conv.weights.1.iter().map(Linear::from_expr).collect::<Option<_>>()?;
        let step = |v: &Var| -> Option<i128> {
            index.iter().zip(strides).map(|(i, s)| Some(i.coefficient(v)? * *s as i128)).sum()
        };
        let first = index.iter().zip(strides).map(|(i, s)| i.constant * *s as i128).sum();
        let (mut channels, mut depth) = (Vec::new(), vec![0i128]);
        for (v, extent, kind) in
            conv.stage().dims().filter(|d| !conv.windows.iter().any(|w| w.tap == *d.0))
        {
            let step = step(v)?;
            match (kind, step) {
                (IterKind::Reduce, _) => {
                    let count = extent.known()? as i128;
                    depth = depth
                        .iter()
                        .flat_map(|at| (0..count).map(|k| at + k * step).collect::<Vec<_>>())
                        .collect();
                }
                (_, 0) => {}
                _ => channels.push((step, extent.known()? as i128)),
            }
        }
        let [Some(rows), Some(columns)] = conv.windows.each_ref().map(|w| step(&w.tap)) else {
            return None;
        };
        Some(Places { first, channels, depth, taps: [rows, columns] })
    }
}

/// The largest error among samples of the results, as a part of the largest of these; `None` where the
/// weights are not read at places that are even in the variables. `noise` gives numbers in [0, 1).
pub(super) fn measure_error(
    conv: &Convolution,
    f: &Matrices,
    weights: &Tensor,
    noise: &mut dyn FnMut() -> f64,
) -> Option<f64> {
    let (n, m, r) = (f.products(), f.results(), TAPS as usize);
    let given = weights.as_slice::<f32>()?;
    let Places { first, channels, depth, taps: [rows, columns] } =
        Places::find(conv, &row_major(weights.shape()))?;
    let (mut worst, mut largest) = (0f64, 0f64);
    for sample in 0..SAMPLES {
        let least = if sample % 2 == 0 { -1.0 } else { 0.0 };
        let channel: i128 =
            channels.iter().map(|(step, n)| step * (noise() * *n as f64).floor() as i128).sum();
        let mut sums = vec![0f32; n * n];
        let mut exact = vec![0f64; m * m];
        for at in &depth {
            let base = first + channel + at;
            let cell = |r: usize, s: usize| {
                let at = usize::try_from(base + r as i128 * rows + s as i128 * columns).ok();
                at.and_then(|at| given.get(at)).copied().map_or(f64::NAN, f64::from)
            };
            let tile: Vec<f32> =
                (0..n * n).map(|_| (least + noise() * (1.0 - least)) as f32).collect();
            for (k, sum) in exact.iter_mut().enumerate() {
                let (i, j) = (k / m, k % m);
                for (a, b) in (0..r).flat_map(|a| (0..r).map(move |b| (a, b))) {
                    *sum += cell(a, b) * f64::from(tile[(i + a) * n + j + b]);
                }
            }
            let weights = sandwich(f.taps, &cell);
            let transformed = both_sides(f.data, n, &tile);
            for ((sum, a), b) in sums.iter_mut().zip(&transformed).zip(&weights) {
                *sum = a.mul_add(*b as f32, *sum);
            }
        }
        for (got, exact) in both_sides(f.result, n, &sums).into_iter().zip(&exact) {
            worst = worst.max((f64::from(got) - exact).abs());
            largest = largest.max(exact.abs());
            if !(f64::from(got) - exact).is_finite() {
                return Some(f64::INFINITY);
            }
        }
    }
    Some(if worst == 0.0 { 0.0 } else { worst / largest })
}

/// The largest absolute value of data with which no step of a convolution overflows; `planes` are the
/// transformed weights, whose axes but the first two are those of the weights without the taps
/// (`others`). `None` as for [`measure_error`].
pub(super) fn limit(
    conv: &Convolution,
    f: &Matrices,
    planes: &Tensor,
    others: &[usize],
) -> Option<f64> {
    let n = f.products();
    let given = planes.as_slice::<f32>()?;
    let extents = planes.shape().get(2..)?;
    let plane: usize = extents.iter().product();
    let mut of_weights = vec![0; others.len() + conv.windows.len()];
    for (d, stride) in others.iter().zip(row_major(extents)) {
        *of_weights.get_mut(*d)? = stride;
    }
    let Places { first, channels, depth, .. } = Places::find(conv, &of_weights)?;
    let data: Vec<f64> = f.data.iter().map(|row| sum_of_absolutes(row)).collect();
    let largest = data.iter().fold(0f64, |most, row| most.max(*row));
    let mut most = largest * largest;
    let mut firsts = vec![first];
    for (step, extent) in channels {
        firsts = firsts
            .iter()
            .flat_map(|at| (0..extent).map(|k| at + k * step).collect::<Vec<_>>())
            .collect();
    }
    for first in firsts {
        let scales = data.iter().flat_map(|a| data.iter().map(move |b| a * b));
        let sums = scales.enumerate().map(|(p, data)| -> Option<f64> {
            let cells = depth.iter().map(|at| usize::try_from(first + at).ok());
            Some(
                data * cells
                    .map(|at| given.get(p * plane + at?).map(|w| f64::from(w.abs())))
                    .sum::<Option<f64>>()?,
            )
        });
        let sums: Vec<f64> = sums.collect::<Option<_>>()?;
        for a in f.result {
            let half: Vec<f64> =
                (0..n).map(|q| (0..n).map(|p| a[p].abs() * sums[p * n + q]).sum()).collect();
            let results = f.result.iter().map(|b| (0..n).map(|q| b[q].abs() * half[q]).sum());
            most = sums.iter().chain(&half).copied().chain(results).fold(most, f64::max);
        }
    }
    Some(f64::from(f32::MAX) / most * ROUNDING)
}

fn sum_of_absolutes(row: &[f64]) -> f64 {
    row.iter().map(|c| c.abs()).sum()
}

/// `M d M^T` in 32 bits, for a square `d` of `n` rows.
fn both_sides(by: &[&[f64]], n: usize, d: &[f32]) -> Vec<f32> {
    let half: Vec<Vec<f32>> =
        by.iter().map(|row| (0..n).map(|j| combined(row, &|i| d[i * n + j])).collect()).collect();
    half.iter().flat_map(|half| by.iter().map(move |row| combined(row, &|j| half[j]))).collect()
}

fn combined(row: &[f64], of: &dyn Fn(usize) -> f32) -> f32 {
    row.iter().enumerate().fold(0f32, |sum, (k, c)| (*c as f32).mul_add(of(k), sum))
}

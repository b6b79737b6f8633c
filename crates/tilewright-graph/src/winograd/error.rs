//! The error of a transform, measured.
//!
//! What is computed by transforms is compared with the exact sums of products, on random data and with
//! the weights of the convolution: all steps in `float32` as kernels make them, against 64 bits. Data are
//! uniform in [-1, 1) and, for another half of the samples, in [0, 1), as behind a clip at zero. How large
//! they are makes no difference, since all steps are linear.

use tilewright_ir::linear::Linear;
use tilewright_ir::{IterKind, Tensor, Var};

use super::build::{sandwich, strides};
use super::points::Matrices;
use super::recognise::{Convolution, TAPS};

/// How many tiles of one result channel are compared.
const SAMPLES: usize = 32;

/// The largest error among samples of the results, as a part of the largest of these; `None` where the
/// weights are not read at places that are even in the variables. `noise` gives numbers in [0, 1).
pub(super) fn measured(
    conv: &Convolution,
    f: &Matrices,
    weights: &Tensor,
    noise: &mut dyn FnMut() -> f64,
) -> Option<f64> {
    let (n, m, r) = (f.products(), f.results(), TAPS as usize);
    let given = weights.as_slice::<f32>()?;
    let strides = strides(weights.shape());
    // By how many cells the weights move along each variable.
    let index: Vec<Linear> = conv.weights.1.iter().map(Linear::of).collect::<Option<_>>()?;
    let step = |v: &Var| -> Option<i128> {
        index.iter().zip(&strides).map(|(i, s)| Some(i.coefficient(v)? * *s as i128)).sum()
    };
    let is_tap = |v: &Var| conv.windows.iter().any(|w| w.tap == *v);
    let first: i128 = index.iter().zip(&strides).map(|(i, s)| i.constant * *s as i128).sum();
    let (mut channels, mut depth) = (Vec::new(), vec![0i128]);
    for (v, extent, kind) in conv.stage().dims().filter(|d| !is_tap(d.0)) {
        let step = step(v)?;
        match (kind, step) {
            (IterKind::Reduce, _) => {
                let count = extent.known()? as i128;
                let along = |at: &i128| (0..count).map(|k| at + k * step).collect::<Vec<_>>();
                depth = depth.iter().flat_map(along).collect();
            }
            (_, 0) => {}
            _ => channels.push((step, extent.known()? as f64)),
        }
    }
    let taps = conv.windows.each_ref().map(|w| step(&w.tap));
    let [Some(rows), Some(columns)] = taps else { return None };
    let (mut worst, mut largest) = (0f64, 0f64);
    for sample in 0..SAMPLES {
        let least = if sample % 2 == 0 { -1.0 } else { 0.0 };
        let channel: i128 =
            channels.iter().map(|(step, n)| step * (noise() * n).floor() as i128).sum();
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

/// `M d M^T` in 32 bits, for a square `d` of `n` rows.
fn both_sides(by: &[&[f64]], n: usize, d: &[f32]) -> Vec<f32> {
    let combined = |row: &[f64], of: &dyn Fn(usize) -> f32| {
        row.iter().enumerate().fold(0f32, |sum, (k, c)| (*c as f32).mul_add(of(k), sum))
    };
    let half: Vec<Vec<f32>> =
        by.iter().map(|row| (0..n).map(|j| combined(row, &|i| d[i * n + j])).collect()).collect();
    half.iter().flat_map(|half| by.iter().map(move |row| combined(row, &|j| half[j]))).collect()
}

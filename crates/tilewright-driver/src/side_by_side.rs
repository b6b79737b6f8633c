//! Two modules compiled and run on the same random data, to see how far apart their results are.
//!
//! Compiled code adds up in an order of its own, so a small difference says nothing: it may be rounding. A large one
//! shows that the modules differ. Where numbers are rounded to integers on the way, one that is rounded the other way
//! may change a result by much; there the mean of all elements counts, and not the largest difference. A mean that is
//! small is more than rounding where it is, with most data, several times as large as what other roundings of all floats
//! make of the first module ([`rounding_noise`]).

use tilewright_ir::tensor::index_of;
use tilewright_ir::{CallTarget, Expr, ExprKind, Intrin, Module, Result, Tensor, Visit, visit};
use tilewright_runtime::Executable;

use crate::options::Options;
use crate::random::Random;
use crate::rounding_noise;
use crate::session::compile;

/// From which part of the largest element on a difference is more than rounding, whatever a model does to small
/// differences.
const MORE: f64 = 1e-2;

/// The part from which on it may be more, and how many times as much as small changes of the inputs move results.
const LEAST: f64 = 1e-4;
const TIMES: f64 = 256.0;

/// Where numbers are rounded to integers: from which part of the mean element on a mean difference may be more than
/// rounding, and how many times as much as other roundings make of results.
const LEAST_MEAN: f64 = 1e-5;
const TIMES_MEAN: f64 = 8.0;

/// Small changes of the inputs, as a part of each element: some roundings.
const CHANGE: f64 = 1e-6;

/// Seeds of the data, and by what its floats between -1 and 1 are multiplied: bounds of activations lie beyond these.
const DATA: [(u64, f32); 3] = [(1, 1.0), (2, 1.0), (3, 8.0)];

/// What a run of both showed.
pub(crate) enum Seen {
    /// The element that differs most, and its values; or what else differs.
    Apart { cell: String, values: [String; 2] },
    /// No more than rounding may do: the largest difference, as a part of the largest element of its result.
    Near(f64),
}

/// Runs two modules; `None` where that is not possible: sizes are open, the interfaces differ, the first one is
/// illegal for the data. Where numbers are rounded to integers, or compared, a shape that differs, or a run that
/// fails, has to show with all data.
pub(crate) fn run_both(a: &Module, b: &Module) -> Option<Seen> {
    let steps = has_steps(a) || has_steps(b);
    let first = a;
    let [a, b] = [a, b].map(|module| compile(module, &Options::default()).ok());
    let (a, b) = (a?, b?);
    let mut worst: f64 = 0.0;
    let mut unlike = None;
    let mut runs = Vec::new();
    for (seed, scale) in DATA {
        let inputs = inputs(&a, seed, scale)?;
        let is_wide = scale > 1.0;
        let x = match a.run(&inputs) {
            Ok(x) => x,
            Err(_) if is_wide => continue,
            Err(_) => return None,
        };
        match shapes_differ(&x, b.run(&inputs)) {
            Ok(y) => {
                match values_differ(&a, &inputs, [&x, &y], steps, seed) {
                    Some(Seen::Near(part)) if !is_wide => worst = worst.max(part),
                    // Far from zero numbers may overflow, which says nothing.
                    Some(Seen::Near(_)) => {}
                    None if is_wide => continue,
                    None => return None,
                    apart => return apart,
                }
                runs.push(Run { inputs, results: [x, y] });
            }
            Err(apart) if !steps => return Some(apart),
            Err(apart) => {
                unlike.get_or_insert(apart);
                continue;
            }
        }
        if unlike.is_some() {
            return None;
        }
    }
    let apart = unlike.or_else(|| if steps { means_differ(first, &runs) } else { None });
    Some(apart.unwrap_or(Seen::Near(worst)))
}

/// What both modules made of some inputs.
struct Run {
    inputs: Vec<Tensor>,
    results: [Vec<Tensor>; 2],
}

/// A result of which, with two of the data, the mean difference is more than other roundings of all floats of the first module
/// make of it.
fn means_differ(first: &Module, runs: &[Run]) -> Option<Seen> {
    let count = runs.first()?.results[0].len();
    // What shows with two of the data is no accident; with others the same may be beyond an end of a range.
    let twice = |k: usize| -> Option<f64> {
        let means = runs.iter().map(|run| Some(run.apart(k)?.mean));
        let mut means = means.collect::<Option<Vec<f64>>>()?;
        means.sort_by(|a, b| b.total_cmp(a));
        means.get(1).copied()
    };
    let means: Vec<f64> = (0..count).map(|k| twice(k).unwrap_or_default()).collect();
    if means.iter().all(|mean| *mean < LEAST_MEAN) {
        return None;
    }
    let mut noise = vec![0.0f64; count];
    for other in &rounding_noise::changed(first).ok()? {
        for run in runs {
            let results = other.run(&run.inputs).ok()?;
            for ((x, y), noise) in run.results[0].iter().zip(&results).zip(&mut noise) {
                *noise = noise.max(Apart::collect(x, y)?.mean);
            }
        }
    }
    let is_more = |k: &usize| means[*k] > (TIMES_MEAN * noise[*k]).max(LEAST_MEAN);
    let k = (0..count).find(is_more)?;
    let run = runs.iter().find(|run| run.apart(k).is_some_and(|apart| apart.mean >= means[k]))?;
    let [x, y] = &run.results;
    Some(seen_apart(k, x, [&x[k], &y[k]], run.apart(k)?.at))
}

impl Run {
    /// How far a result of one module is from that of the other one.
    fn apart(&self, k: usize) -> Option<Apart> {
        let [x, y] = &self.results;
        Apart::collect(x.get(k)?, y.get(k)?)
    }
}

/// An element of a result that differs.
fn seen_apart(k: usize, all: &[Tensor], pair: [&Tensor; 2], at: usize) -> Seen {
    let index = index_of(at, pair[0].shape());
    let cell = format!("{}{index:?}, on random data when both are run", name_of(k, all));
    // Digits that every processor computes.
    Seen::Apart { cell, values: pair.map(|t| format!("{:.3e}", t.get_f64(at))) }
}

/// Results of the second module of the same shapes as those of the first one.
fn shapes_differ(x: &[Tensor], y: Result<Vec<Tensor>>) -> std::result::Result<Vec<Tensor>, Seen> {
    let ends = "on random data when both are run";
    let y = y.map_err(|e| {
        let cell = format!("whether it ends without an error, {ends}");
        Seen::Apart { cell, values: ["results".to_owned(), format!("`{e}`")] }
    })?;
    let pairs = x.iter().zip(&y);
    match pairs.enumerate().find(|(_, (x, y))| x.shape() != y.shape()) {
        None => Ok(y),
        Some((k, (of_x, of_y))) => {
            let cell = format!("the shape of {}, {ends}", name_of(k, x));
            Err(Seen::Apart { cell, values: [of_x, of_y].map(|t| format!("{:?}", t.shape())) })
        }
    }
}

/// Where results of the same shapes differ most; `None` where there are numbers that are none.
fn values_differ(
    a: &Executable,
    inputs: &[Tensor],
    [x, y]: [&[Tensor]; 2],
    steps: bool,
    seed: u64,
) -> Option<Seen> {
    let mut worst: f64 = 0.0;
    let moved = moved(a, inputs, x, seed)?;
    for (k, (of_x, of_y)) in x.iter().zip(y).enumerate() {
        let apart = Apart::collect(of_x, of_y)?;
        let moved = moved.get(k).copied().unwrap_or(f64::INFINITY);
        let limit = (TIMES * moved).clamp(LEAST, MORE);
        if if steps { apart.mean > MORE } else { apart.largest > limit } {
            return Some(seen_apart(k, x, [of_x, of_y], apart.at));
        }
        worst = worst.max(apart.largest);
    }
    Some(Seen::Near(worst))
}

/// One of several results in messages.
fn name_of(k: usize, all: &[Tensor]) -> String {
    if all.len() == 1 { "the result".to_owned() } else { format!("result {k}") }
}

fn inputs(executable: &Executable, seed: u64, scale: f32) -> Option<Vec<Tensor>> {
    let mut random = Random::new(seed);
    let tensors = executable.inputs().iter().map(|port| {
        let shape: Result<Vec<usize>> = port.fixed();
        let tensor = random.tensor(port.dtype, &shape.ok()?).ok()?;
        changed(&tensor, |v| v * scale)
    });
    tensors.collect()
}

/// A tensor of other numbers, where these are `float32`.
fn changed(t: &Tensor, mut change: impl FnMut(f32) -> f32) -> Option<Tensor> {
    match t.as_slice::<f32>() {
        None => Some(t.clone()),
        Some(values) => {
            let values: Vec<f32> = values.iter().map(|v| change(*v)).collect();
            Tensor::from_slice(t.shape(), &values).ok()
        }
    }
}

/// How far each result moves when the inputs change a little, as a part of its largest element: what a model makes of
/// rounding.
fn moved(
    executable: &Executable,
    inputs: &[Tensor],
    results: &[Tensor],
    seed: u64,
) -> Option<Vec<f64>> {
    let mut random = Random::new(seed + DATA.len() as u64);
    let changed: Option<Vec<Tensor>> = inputs
        .iter()
        .map(|t| changed(t, |v| v * (1.0 + CHANGE.copysign(random.unit()) as f32)))
        .collect();
    let others = executable.run(&changed?).ok()?;
    let pairs = results.iter().zip(&others);
    pairs.map(|(x, y)| Some(Apart::collect(x, y)?.largest)).collect()
}

/// How far two tensors are apart.
struct Apart {
    /// The largest difference, as a part of the largest element.
    largest: f64,
    /// The mean difference, as a part of the mean element.
    mean: f64,
    /// Where it is largest.
    at: usize,
}

impl Apart {
    /// `None` where the shapes differ, or there are numbers that are none.
    fn collect(x: &Tensor, y: &Tensor) -> Option<Apart> {
        if x.shape() != y.shape() || x.dtype() != y.dtype() {
            return None;
        }
        let (mut largest, mut sum, mut at, mut most, mut total) = (0.0, 0.0, 0, 0.0f64, 0.0);
        for k in 0..x.len() {
            let (p, q) = (x.get_f64(k), y.get_f64(k));
            if p == q {
                (most, total) = (most.max(p.abs()), total + p.abs());
                continue;
            }
            let apart = (p - q).abs();
            if !apart.is_finite() {
                return None;
            }
            if apart > largest {
                (largest, at) = (apart, k);
            }
            sum += apart;
            (most, total) = (most.max(p.abs()), total + p.abs());
        }
        let part = |n: f64, of: f64| if n == 0.0 { 0.0 } else { n / of };
        Some(Apart { largest: part(largest, most), mean: part(sum, total), at })
    }
}

/// Whether a module rounds numbers to integers, or compares floats.
fn has_steps(module: &Module) -> bool {
    struct Steps(bool);
    impl Visit for Steps {
        fn expr(&mut self, e: &Expr) {
            self.0 |= match e.kind() {
                ExprKind::Cast(of) => of.dtype().is_float() && e.dtype().is_int(),
                ExprKind::Call(CallTarget::Intrin(op), _) => matches!(
                    op,
                    Intrin::Round
                        | Intrin::NearbyInt
                        | Intrin::Floor
                        | Intrin::Ceil
                        | Intrin::Trunc
                ),
                _ => false,
            };
            visit::walk_expr(self, e);
        }
    }
    let mut steps = Steps(false);
    module.tensors().for_each(|(_, f)| steps.stmt(&f.body));
    steps.0
}

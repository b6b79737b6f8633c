//! Two modules compiled and run on the same random data, to see how far apart their results are.
//!
//! Compiled code adds up in an order of its own, so a small difference says nothing: it may be rounding. A large one
//! shows that the modules differ. Where numbers are rounded to integers on the way, one that is rounded the other way
//! may change a result by much; there the mean of all elements counts, and not the largest difference. Small ones
//! count where over much data they are, together, several times as large as what other roundings of all floats make of
//! the first module ([`rounding_noise`]).

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

/// Where numbers are rounded to integers: from which part of the mean element on a mean difference counts, with how much of
/// more data that has to show, and how many times as much as other roundings make of results all together have to be.
const LEAST_MEAN: f64 = 1e-5;
const SHOWN: usize = 4;
const TIMES_MEAN: f64 = 8.0;

/// How much more data there is, and by what its floats are multiplied in turn.
const RUNS: u64 = 24;
const SCALES: [f32; 3] = [1.0, 4.0, 0.5];

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
    for (seed, scale) in DATA {
        let inputs = inputs(&a, seed, scale)?;
        let is_wide = scale > 1.0;
        let x = match a.run(&inputs) {
            Ok(x) => x,
            Err(_) if is_wide => continue,
            Err(_) => return None,
        };
        match shapes_differ(&x, b.run(&inputs)) {
            Ok(y) => match values_differ(&a, &inputs, [&x, &y], steps, seed) {
                Some(Seen::Near(part)) if !is_wide => worst = worst.max(part),
                // Far from zero numbers may overflow, which says nothing.
                Some(Seen::Near(_)) => {}
                None if is_wide => {}
                None => return None,
                apart => return apart,
            },
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
    let apart = unlike.or_else(|| if steps { beyond_rounding(first, [&a, &b]) } else { None });
    Some(apart.unwrap_or(Seen::Near(worst)))
}

/// What both modules made of some inputs.
struct Run {
    inputs: Vec<Tensor>,
    results: [Vec<Tensor>; 2],
}

/// An element of a result that, over much data, differs by more on the mean than other roundings of all floats of the
/// first module make of it.
fn beyond_rounding(first: &Module, [a, b]: [&Executable; 2]) -> Option<Seen> {
    let runs = (0..RUNS).filter_map(|k| {
        let inputs = inputs(a, DATA.len() as u64 + k, SCALES[k as usize % SCALES.len()])?;
        let results = [a.run(&inputs).ok()?, b.run(&inputs).ok()?];
        Some(Run { inputs, results })
    });
    let runs: Vec<Run> = runs.collect();
    let apart: Vec<Vec<Apart>> =
        runs.iter().map(|run| all_apart(&run.results)).collect::<Option<_>>()?;
    let count = apart.first()?.len();
    let shows = |k: usize| apart.iter().filter(|run| run[k].mean > LEAST_MEAN).count();
    let shown: Vec<usize> = (0..count).filter(|k| shows(*k) >= SHOWN).collect();
    if shown.is_empty() {
        return None;
    }
    let mut noise = vec![0.0f64; count];
    for other in &rounding_noise::changed(first).ok()? {
        let mut sums = vec![0.0; count];
        for run in &runs {
            let results = [run.results[0].clone(), other.run(&run.inputs).ok()?];
            all_apart(&results)?.iter().zip(&mut sums).for_each(|(apart, sum)| *sum += apart.mean);
        }
        noise.iter_mut().zip(&sums).for_each(|(most, sum)| *most = most.max(*sum));
    }
    let sum = |k: usize| apart.iter().map(|run| run[k].mean).sum::<f64>();
    let k = shown.into_iter().find(|k| sum(*k) > TIMES_MEAN * noise[*k])?;
    let most =
        |x: &&(&Run, &Vec<Apart>), y: &&(&Run, &Vec<Apart>)| x.1[k].mean.total_cmp(&y.1[k].mean);
    let pairs: Vec<(&Run, &Vec<Apart>)> = runs.iter().zip(&apart).collect();
    let (run, apart) = pairs.iter().max_by(most)?;
    let [x, y] = &run.results;
    Some(seen_apart(k, x, [&x[k], &y[k]], apart[k].at))
}

/// How far each result of one module is from that of the other one.
fn all_apart([x, y]: &[Vec<Tensor>; 2]) -> Option<Vec<Apart>> {
    let pairs = x.iter().zip(y);
    pairs.map(|(x, y)| Apart::collect(x, y)).collect()
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

//! Calibration: the constants of the cost model ([`Costs`]) are fitted to what kernels take on this
//! machine.
//!
//! The kernels of a few small models (`probes`) are timed, each many times among the
//! others. Then the constants are those for which the logarithms of predicted and of measured times
//! differ the least, by iterated least squares (Gauss and Newton), with two cautions. A residual that is
//! large counts by its size and not by its square (Huber), since what else runs disturbs some probes. And
//! each constant is drawn to its written value, as strongly as a probe that is `STIFF` times less exact
//! than others would: a constant of which the probes say nothing stays as it is written.
//!
//! Then every kernel is timed again, and on these times, which the fit has not seen, its constants are
//! compared with those that they would replace: those of an earlier calibration, or the written ones with
//! the cycle that fits them best. The better ones are kept in the file of measurements, for this machine
//! and target, and every later compilation for them takes them ([`Options::resolve_target`]). Nothing calibrates
//! without being told to: `tune` does before it measures for the first time.

use std::time::{Duration, Instant};

use tilewright_autoschedule::price::KernelLoops;
use tilewright_ir::{DType, Error, Module, Result, Tensor};
use tilewright_target::{Costs, State, Target};

use super::options::{LayoutPolicy, Options};
use super::probes::{Called, called, constants_of, models, stream};
use super::runs::Runs;
use super::session::compile;
use super::timings::{Timings, beside};

/// How long the kernels of one model are timed.
const TIME: Duration = Duration::from_millis(60);
/// Runs of a model: at least, and before, which are not counted.
const LEAST_RUNS: usize = 5;
const WARM_UP: usize = 2;
/// Steps of the fit.
const STEPS: usize = 12;
/// The change of a logarithm by which derivatives are taken.
const NUDGE: f64 = 0.02;
/// The largest change of a logarithm in one step.
const STRIDE: f64 = 0.4;
/// From which difference of logarithms on a residual counts by its size.
const OUTLIER: f64 = 0.15;
/// The constant that says what a cycle is, and stays as it is written: else all others could grow as the
/// cycle shrinks, but for those of which no probe says anything.
const UNIT: &str = "fma";
/// How many times less a written constant is worth than a probe.
const STIFF: f64 = 4.0;

/// What a calibration found.
#[derive(Clone, Debug)]
pub struct Calibrated {
    /// The constants that predict better, with their cycle.
    pub costs: Costs,
    /// Whether these are the fitted ones, and not those that were there before.
    pub is_fitted: bool,
    /// Each kernel that was timed.
    pub kernels: Vec<Kernel>,
    /// How long it took.
    pub time: Duration,
    /// The state of the machine before and behind.
    pub states: [State; 2],
}

/// A kernel that was timed.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// What it is, for people.
    pub what: String,
    /// The shortest of its times in the second round, in nanoseconds.
    pub measured: f64,
    /// What the constants that were there before predict, and the fitted ones, in nanoseconds.
    pub predicted: [f64; 2],
}

impl Calibrated {
    /// How many kernels the constants that were there before and the fitted ones predict within a fifth.
    pub fn near(&self) -> [usize; 2] {
        near(&self.kernels)
    }
}

fn near(kernels: &[Kernel]) -> [usize; 2] {
    [0, 1].map(|k| {
        kernels
            .iter()
            .filter(|kernel| (kernel.predicted[k] / kernel.measured - 1.0).abs() <= 0.2)
            .count()
    })
}

/// Whether the fitted constants predict better: more kernels within a fifth, or as many and the
/// logarithms of all nearer on the whole.
fn is_better(kernels: &[Kernel]) -> bool {
    let [before, after] = near(kernels);
    after > before || after == before && distance_of(1, kernels) < distance_of(0, kernels)
}

fn distance_of(k: usize, kernels: &[Kernel]) -> f64 {
    kernels.iter().map(|kernel| (kernel.predicted[k] / kernel.measured).ln().abs()).sum()
}

/// A kernel with its time, and the calls that it computes.
struct Probe {
    what: String,
    calls: Vec<KernelLoops>,
    /// Bytes of all constants of its model.
    constants: u64,
    nanoseconds: f64,
    /// Which step of which model it is.
    at: [usize; 2],
}

impl Probe {
    fn cycles(&self, target: &Target) -> f64 {
        let all: f64 = self.calls.iter().map(|call| call.cycles(self.constants, target)).sum();
        all.max(f64::MIN_POSITIVE)
    }
}

/// Calibrates this machine for the target of some options, with one thread, and keeps nothing. `before`
/// are the constants that an earlier calibration found, with their cycle.
///
/// # Errors
/// Those of compiling: [`Error::Unsupported`] for a target that this machine cannot run. [`Error::Io`]
/// where the times make no sense.
pub fn calibrate(options: &Options, before: Option<&Costs>) -> Result<Calibrated> {
    let (start, state) = (Instant::now(), State::now());
    let options = options.clone().threads(1).tuning(None).layout(LayoutPolicy::AsWritten);
    let mut target = options.resolve_target()?;
    target.costs = Costs::written(target.known_features());
    let (mut probes, mut all) = (Vec::new(), Vec::new());
    for model in models()? {
        let mut runs = Runs::on_random(compile(&model, &options)?, 23)?;
        let times = shortest(&mut runs)?;
        probes.extend(probes_of(&model, &target, &runs, &times, all.len()));
        all.push(runs);
    }
    let far = bandwidth(&target, &options)?;
    let mut replaced = target.clone();
    let by_written = cycle(&target, &probes);
    let fitted = fitted(&target, &probes, by_written, far).ok_or_else(|| {
        Error::io("the times of kernels on this machine fit no cost model")
            .help("calibrate again while nothing else runs")
    })?;
    replaced.costs = match before {
        Some(before) => before.clone(),
        None => target.costs.with(by_written, []).unwrap_or_else(|| target.costs.clone()),
    };
    let again: Vec<Vec<f64>> = all.iter_mut().map(shortest).collect::<Result<_>>()?;
    target.costs = fitted;
    let kernels = probes.into_iter().map(|p| Kernel {
        predicted: [
            predicted_time(&p, &replaced, by_written),
            predicted_time(&p, &target, by_written),
        ],
        measured: again[p.at[0]][p.at[1]],
        what: p.what,
    });
    let kernels: Vec<Kernel> = kernels.collect();
    let is_fitted = is_better(&kernels);
    let costs = if is_fitted { target.costs } else { replaced.costs };
    let states = [state, State::now()];
    Ok(Calibrated { costs, is_fitted, kernels, time: start.elapsed(), states })
}

fn predicted_time(p: &Probe, target: &Target, by_written: f64) -> f64 {
    p.cycles(target) * target.costs.cycle.unwrap_or(by_written)
}

/// The shortest time of each kernel of a model, in nanoseconds.
fn shortest(runs: &mut Runs) -> Result<Vec<f64>> {
    runs.profile(Duration::ZERO, WARM_UP..WARM_UP, |_| ())?;
    let mut best = vec![Duration::MAX; runs.executable.plan().steps.len()];
    runs.profile(TIME, LEAST_RUNS..usize::MAX, |times| {
        best.iter_mut().zip(times).for_each(|(best, time)| *best = (*best).min(*time));
    })?;
    Ok(best.into_iter().map(|time| (time.as_nanos() as f64).max(1.0)).collect())
}

/// The kernels of a model with their times; it is the one of this number.
fn probes_of(
    model: &Module,
    target: &Target,
    runs: &Runs,
    times: &[f64],
    number: usize,
) -> Vec<Probe> {
    // A kernel computes the call whose value it makes, and those before it whose values no kernel makes.
    let mut times = runs.executable.plan().steps.iter().zip(times).enumerate().peekable();
    let (mut probes, mut calls, constants) = (Vec::new(), Vec::new(), constants_of(model));
    for Called { name, func, free, around } in called(model, &Timings::estimated(target, 1)) {
        calls.push(func.map(|func| {
            KernelLoops::from_func(&func, &beside(&around.priced(&name, &func, &free)), target)
        }));
        let next = times.next_if(|(_, (step, _))| step.value == name);
        let Some((k, (step, nanoseconds))) = next else { continue };
        let (nanoseconds, at) = (*nanoseconds, [number, k]);
        let what = format!("{name} {}", step.func);
        // What conversions take depends on more than the constants say.
        let calls: Option<Vec<KernelLoops>> = std::mem::take(&mut calls).into_iter().collect();
        probes.extend(calls.map(|calls| Probe { what, calls, constants, nanoseconds, at }));
    }
    // Kernels in another order than the calls say nothing.
    if times.next().is_none() { probes } else { Vec::new() }
}

/// Nanoseconds for a byte that is read from memory.
fn bandwidth(target: &Target, options: &Options) -> Result<f64> {
    let (module, bytes) = stream(target.caches.l3)?;
    let executable = compile(&module, options)?;
    let port = executable.inputs().first().map(tilewright_runtime::plan::OpenPort::fixed);
    let shape = port.transpose()?.unwrap_or_default();
    // Pages that nothing was written to are all the same one.
    let mut x = Tensor::zeros(DType::F32, &shape)?;
    x.bytes_mut().fill(1);
    let best = Runs::on(executable, vec![x])?.shortest(Duration::ZERO, LEAST_RUNS..LEAST_RUNS)?;
    Ok(best / bytes as f64)
}

/// The cycle for which the middle one of the probes is predicted right, in nanoseconds.
fn cycle(target: &Target, probes: &[Probe]) -> f64 {
    let mut ratios: Vec<f64> = probes.iter().map(|p| p.nanoseconds / p.cycles(target)).collect();
    ratios.sort_by(f64::total_cmp);
    ratios.get(ratios.len() / 2).copied().unwrap_or(1.0)
}

/// The constants that fit the probes best, from the written ones on, whose best cycle is given; `far`
/// are the nanoseconds of a byte from memory. `None` where no machine has what comes of it: a clock jumped.
fn fitted(written: &Target, probes: &[Probe], cycle: f64, far: f64) -> Option<Costs> {
    let count = Costs::NAMES.len();
    let start = written.costs.values();
    let most: Vec<f64> =
        written.costs.bounds().iter().zip(&start).map(|((_, most), v)| (most / v).ln()).collect();
    // The logarithms of the constants over the written ones, and at last of the cycle.
    let mut at = vec![0.0; count + 1];
    at[count] = cycle.ln();
    for _ in 0..STEPS {
        let now = residuals_at(&at, written, &start, probes, count);
        let columns: Vec<Vec<f64>> = (0..=count)
            .map(|k| {
                let mut near = at.clone();
                near[k] += NUDGE;
                let there = residuals_at(&near, written, &start, probes, count);
                there.iter().zip(&now).map(|(a, b)| (a - b) / NUDGE).collect()
            })
            .collect();
        let weights: Vec<f64> = now.iter().map(|r| (OUTLIER / r.abs()).min(1.0)).collect();
        let mut rows: Vec<Vec<f64>> = (0..=count)
            .map(|i| {
                let mut row: Vec<f64> =
                    columns.iter().map(|c| weighted_product(&columns[i], c, &weights)).collect();
                row.push(-weighted_product(&columns[i], &now, &weights));
                row
            })
            .collect();
        for (k, row) in rows.iter_mut().enumerate() {
            // The cycle is free, and what defines it is fixed.
            let stiff = match Costs::NAMES.get(k) {
                None => 1e-9,
                Some(&UNIT) => 1e9,
                Some(_) => 1.0 / STIFF,
            };
            row[k] += stiff;
            row[count + 1] -= if k == count { 0.0 } else { stiff * at[k] };
        }
        for (k, step) in solved(rows).into_iter().enumerate() {
            at[k] += step.clamp(-STRIDE, STRIDE);
            if k < count {
                at[k] = at[k].clamp(-most[k], most[k]);
            }
        }
    }
    let mut costs = target_of(&at, written, &start).costs;
    let cycle = at[count].exp();
    let ratio = far / cycle / written.costs.weight_far;
    for (name, constant) in [("weight_far", &mut costs.weight_far), ("wait", &mut costs.wait)] {
        let k = Costs::NAMES.iter().position(|n| *n == name).unwrap_or(0);
        // What comes from memory is measured by itself.
        *constant = (start[k] * ratio).clamp(start[k] / most[k].exp(), start[k] * most[k].exp());
    }
    written.costs.with(cycle, Costs::NAMES.iter().copied().zip(costs.values()))
}

fn target_of(at: &[f64], written: &Target, start: &[f64]) -> Target {
    let mut target = written.clone();
    for ((name, value), log) in Costs::NAMES.iter().zip(start).zip(at) {
        if let Some(constant) = target.costs.get_mut(name) {
            *constant = value * log.exp();
        }
    }
    target
}

fn residuals_at(
    at: &[f64],
    written: &Target,
    start: &[f64],
    probes: &[Probe],
    count: usize,
) -> Vec<f64> {
    let target = target_of(at, written, start);
    probes.iter().map(|p| p.cycles(&target).ln() + at[count] - p.nanoseconds.ln()).collect()
}

fn weighted_product(a: &[f64], b: &[f64], weights: &[f64]) -> f64 {
    a.iter().zip(b).zip(weights).map(|((a, b), w)| a * b * w).sum()
}

/// The solution of linear equations, each with its right side last, by elimination.
fn solved(mut rows: Vec<Vec<f64>>) -> Vec<f64> {
    let n = rows.len();
    for k in 0..n {
        let pivot = (k..n).max_by(|a, b| rows[*a][k].abs().total_cmp(&rows[*b][k].abs()));
        rows.swap(k, pivot.unwrap_or(k));
        if rows[k][k].abs() < 1e-12 {
            continue;
        }
        for below in k + 1..n {
            let factor = rows[below][k] / rows[k][k];
            let (above, rest) = rows.split_at_mut(below);
            rest[0].iter_mut().zip(&above[k]).skip(k).for_each(|(a, b)| *a -= factor * b);
        }
    }
    let mut x = vec![0.0; n];
    for k in (0..n).rev() {
        let known: f64 = (k + 1..n).map(|j| rows[k][j] * x[j]).sum();
        if rows[k][k].abs() >= 1e-12 {
            x[k] = (rows[k][n] - known) / rows[k][k];
        }
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The probes with the times that constants predict.
    fn pretended(target: &Target, costs: &Costs) -> Vec<Probe> {
        let mut other = target.clone();
        other.costs = costs.clone();
        let mut all = Vec::new();
        for model in models().expect("models") {
            let constants = constants_of(&model);
            for Called { name, func, free, around } in
                called(&model, &Timings::estimated(target, 1))
            {
                let Some(func) = func else { continue };
                let calls = vec![KernelLoops::from_func(
                    &func,
                    &beside(&around.priced(&name, &func, &free)),
                    target,
                )];
                let what = name.to_string();
                let mut probe = Probe { what, calls, constants, nanoseconds: 1.0, at: [0, 0] };
                probe.nanoseconds = probe.cycles(&other) * costs.cycle.unwrap_or(1.0);
                all.push(probe);
            }
        }
        all
    }

    #[test]
    fn constants_of_another_machine_are_found_although_some_probes_are_disturbed() {
        for cpu in ["x86-64-v3", "x86-64-v4"] {
            let target = Target::new("x86_64-unknown-linux-gnu", cpu, "");
            let written = &target.costs;
            // A machine whose second cache is slower than the written one's, and whose lines are closer.
            let own = [("line", 0.4), ("issue", 0.2), ("extreme", 2.4), ("vector_near", 2.5)];
            let other = written.with(0.3, own).expect("costs of some machine");
            let mut probes = pretended(&target, &other);
            for probe in probes.iter_mut().step_by(9) {
                probe.nanoseconds *= 2.5;
            }
            let far = other.weight_far * 0.3;
            let costs = fitted(&target, &probes, cycle(&target, &probes), far).expect("a fit");
            let mut found = target.clone();
            found.costs = costs.clone();
            let rate = costs.cycle.expect("a cycle");
            let near = |target: &Target, rate: f64| {
                probes
                    .iter()
                    .filter(|p| (p.cycles(target) * rate / p.nanoseconds - 1.0).abs() < 0.2)
                    .count()
            };
            let (before, after) = (near(&target, cycle(&target, &probes)), near(&found, rate));
            assert!(before < after, "{cpu}: {before} and {after}");
            assert!(after * 10 >= probes.len() * 8, "{cpu}: {after} of {}", probes.len());
            assert!((costs.weight_far * rate / far - 1.0).abs() < 0.01, "{costs:?}");
            assert!(found.costs.line < written.line, "{costs:?}");
        }
    }

    #[test]
    fn a_fit_is_kept_only_where_it_predicts_better() {
        // One kernel more within a fifth, although another is further away.
        assert!(is_better(&[kernel_of(1.0, [1.3, 1.1]), kernel_of(1.0, [1.3, 4.0])]));
        assert!(!is_better(&[kernel_of(1.0, [1.1, 1.3]), kernel_of(1.0, [4.0, 1.3])]));
        // As many: the logarithms decide, in both directions.
        assert!(
            is_better(&[kernel_of(1.0, [1.1, 1.0])]) && is_better(&[kernel_of(1.0, [0.5, 1.9])])
        );
        assert!(
            !is_better(&[kernel_of(1.0, [1.0, 1.1])]) && !is_better(&[kernel_of(1.0, [1.9, 0.5])])
        );
        // Nothing is better than itself.
        assert!(!is_better(&[kernel_of(1.0, [1.4, 1.4])]) && !is_better(&[]));
    }

    fn kernel_of(measured: f64, predicted: [f64; 2]) -> Kernel {
        Kernel { what: "k".into(), measured, predicted }
    }

    #[test]
    fn equations_are_solved() {
        let rows = vec![vec![0.0, 2.0, 6.0], vec![4.0, 1.0, 7.0]];
        assert_eq!(solved(rows), [1.0, 3.0]);
    }
}

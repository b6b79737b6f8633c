//! Measuring by a process of its own, and calibrating first.

use std::ffi::OsString;
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use tilewright_driver::calibrate::{Calibrated, calibrate};
use tilewright_driver::calibrated::{keep, known};
use tilewright_driver::measuring::TUNING;
use tilewright_driver::tune::{Report, Request, Tuning, tune};
use tilewright_driver::{Error, Module, Options, Result};
use tilewright_ir::show::visible;
use tilewright_target::{State, cores, machine};
use tilewright_tune::{Measured, Store, Worker};

use super::answer::talk;
use super::progress::Bar;
use super::timing::Show;

/// The budget from which a machine is calibrated first.
const CALIBRATION: Duration = Duration::from_secs(5);

/// How this command was started.
struct Start {
    /// What starts it in another process: a program, and its first arguments.
    program: Vec<OsString>,
    /// The arguments that it has itself, with its name.
    arguments: Vec<OsString>,
}

static START: OnceLock<Start> = OnceLock::new();

/// Says what starts this command in another process, and which arguments it has. What was said first
/// counts.
pub fn start_workers_by(program: Vec<OsString>, arguments: Vec<OsString>) {
    let _ = START.set(Start { program, arguments });
}

/// The arguments of this command behind the name of the subcommand.
pub fn own_arguments() -> Vec<OsString> {
    START.get().into_iter().flat_map(|start| start.arguments.iter().skip(2).cloned()).collect()
}

/// Measures what a module can be made of for some time, before it is compiled.
pub fn measure_first(module: &Module, options: &Options, budget: Duration) -> Result<()> {
    let Some(path) = &options.tuning else {
        return Err(Error::input("--measure: there is no file to keep measurements in")
            .help(format!("{TUNING} names one")));
    };
    let store = Store::open(path)?;
    calibrated_first(options, &store, budget)?;
    let report = with_worker(Vec::new(), budget, |measure, progress| {
        tune(
            module,
            options,
            &mut Tuning { store: &store, budget, whole: false, measure, progress },
        )
    })?;
    let Report { candidates, measured, new, .. } = report;
    talk!(
        "note: {measured} of {candidates} functions to choose from are measured, {new} of them now"
    );
    Ok(())
}

/// Calibrates this machine for the target of some options, and keeps what predicts better: the constants
/// that it fits, or those that are there.
pub fn calibrated(options: &Options, store: &Store) -> Result<Calibrated> {
    let target = options.resolve_target()?;
    let known = known(store, &target)?.costs;
    let before = known.cycle.is_some().then_some(&known);
    let found = calibrate(options, before)?;
    keep(store, &target, &found.costs)?;
    let ([near_before, near_fitted], all) = (found.near(), found.kernels.len());
    let (time, cycle) = (Show(found.time), found.costs.cycle.unwrap_or_default());
    let old = if before.is_some() { "those of the last calibration" } else { "the written ones" };
    let kept = if found.is_fitted { "the fitted constants" } else { old };
    talk!(
        "note: calibrated in {time} on {}: of {all} kernels, {near_fitted} are predicted within 20 % by \
         the fitted constants and {near_before} by {old}; {kept} are kept, a cycle takes {cycle:.3} ns",
        describe(found.states),
    );
    Ok(found)
}

/// The state of the machine before and behind something, in words.
fn describe(states: [State; 2]) -> String {
    let (load, clock) = (state_range(|s| s.load, 1, &states), state_range(|s| s.clock, 0, &states));
    format!("{} (load {load} on {} cores, clock {clock} MHz)", machine(), cores())
}

fn state_range(of: fn(&State) -> Option<f64>, digits: usize, states: &[State; 2]) -> String {
    let [Some(a), Some(b)] = states.each_ref().map(of) else { return "unknown".to_owned() };
    let (least, most) = (format!("{:.digits$}", a.min(b)), format!("{:.digits$}", a.max(b)));
    if least == most { least } else { format!("{least} to {most}") }
}

/// The same where it was not done before, and there is time for it.
pub fn calibrated_first(options: &Options, store: &Store, budget: Duration) -> Result<()> {
    let is_known = known(store, &options.resolve_target()?)?.costs.cycle.is_some();
    if !is_known && budget >= CALIBRATION {
        calibrated(options, store)?;
    }
    Ok(())
}

/// Does something with a worker process and a bar.
pub fn with_worker<T>(
    arguments: Vec<OsString>,
    limit: Duration,
    work: impl FnOnce(
        &mut dyn FnMut(&Request) -> Result<Measured>,
        &mut dyn FnMut(&str, usize, usize),
    ) -> Result<T>,
) -> Result<T> {
    let Some((program, first)) = START.get().and_then(|start| start.program.split_first()) else {
        return Err(Error::io("cannot start this program again: its path is not known"));
    };
    let mut worker = Worker::new(
        move || {
            let mut command = Command::new(program);
            command.args(first).arg("measure").args(&arguments);
            command
        },
        limit,
    );
    let bar = Bar::new("plan");
    work(&mut |request| worker.ask(request), &mut |what, done, total| {
        let what: String = what.chars().take(40).collect();
        bar.say(&visible(&what), done, total);
    })
}

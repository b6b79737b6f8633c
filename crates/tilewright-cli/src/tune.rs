//! `tilewright tune`: measures what layouts of a model cost; and the process that measures.

use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::json;
use tilewright_driver::calibrate::Calibrated;
use tilewright_driver::measuring::{self, TUNING, file as tuning_file};
use tilewright_driver::tune::{Report, Request, Tuning, tune};
use tilewright_driver::{Error, Module, Options, Result};
use tilewright_ir::show::visible;
use tilewright_runtime::file;
use tilewright_target::Costs;
use tilewright_tune::{Answer as Reply, Store};

use super::answer::{Answer, Outcome, talk};
use super::given::Given;
use super::measure::{calibrated, calibrated_first, own_arguments, with_worker};
use super::native::target;
use super::timing::Show;

/// Measure the functions that a model can be made of, and the layouts of the whole model.
///
/// Each is run in a process of its own and kept at once in a file, which every later compilation for
/// this machine and number of threads reads. Stopped at any time, it goes on where it was.
#[derive(clap::Args)]
pub struct Arguments {
    /// An ONNX model, or TVMScript with a graph function, or `-` for TVMScript from standard input.
    model: Option<PathBuf>,
    /// For how long to measure: `60s`, `5m`, `500ms`.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = duration)]
    budget: Duration,
    /// How long one candidate may take, with its compilation, before it is given up.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = duration)]
    limit: Duration,
    /// Threads that share the work of a run; one a core unless said otherwise.
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    #[command(flatten)]
    given: Given,
    /// Fit the constants of the cost model to this machine now, which takes seconds, also where that was
    /// done before; they are kept where they predict better than those that are there. Without it, that
    /// is done before a model is measured for the first time.
    #[arg(long)]
    calibrate: bool,
    /// The CPU to calibrate for, as LLVM calls it, where no model is given.
    #[arg(long, value_name = "NAME", default_value = "native")]
    cpu: String,
    /// The file of measurements, instead of the one that compilations read.
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Write all measurements of the file there, as lines of JSON.
    #[arg(long, value_name = "FILE")]
    export: Option<PathBuf>,
    /// Merge measurements that were exported into the file; of two of one thing the shorter counts.
    #[arg(long, value_name = "FILE")]
    import: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Reads `60s`, `5m`, `500ms`, or a number of seconds.
fn duration(text: &str) -> std::result::Result<Duration, String> {
    let units = [("ms", 1e-3), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];
    let found = units.iter().find_map(|(unit, n)| Some((text.strip_suffix(unit)?, *n)));
    let (number, unit) = found.unwrap_or((text, 1.0));
    let seconds = number.trim().parse::<f64>().ok().map(|n| n * unit);
    match seconds.filter(|s| (0.0..=1e7).contains(s)) {
        Some(seconds) => Ok(Duration::from_secs_f64(seconds)),
        None => Err("expected a time such as 60s, 5m or 500ms".to_owned()),
    }
}

impl Arguments {
    /// The file of measurements.
    fn file(&self) -> Result<PathBuf> {
        self.file.clone().or_else(tuning_file).ok_or_else(|| {
            Error::input("there is no file to keep measurements in")
                .help(format!("--file FILE names one, and so does {TUNING}"))
        })
    }

    /// What measurements are made with, and kept in a file.
    fn options(&self, file: &Path) -> Result<Options> {
        if self.threads == Some(0) {
            return Err(Error::input("--threads 0: at least one thread is needed"));
        }
        let target = match self.cpu.as_str() {
            "native" => None,
            _ if self.model.is_some() || !self.calibrate => {
                let what = "--cpu: only --calibrate without a model takes another CPU";
                return Err(Error::input(what));
            }
            cpu => Some(target(cpu)?),
        };
        let options = Options::new().threads(self.threads).target(target);
        Ok(options.tuning(file.to_owned()).cache(false))
    }
}

pub fn execute(arguments: &Arguments, out: &mut impl Write) -> Outcome {
    let Arguments { model, export, import, calibrate, .. } = arguments;
    if model.is_none() && export.is_none() && import.is_none() && !calibrate {
        return Err(Error::input("tune needs a model, --calibrate, --import or --export").into());
    }
    let path = arguments.file()?;
    let options = arguments.options(&path)?;
    let store = Store::open(&path)?;
    if let Some(from) = &arguments.import {
        let text = file::read_text(from)?;
        let (kept, all) = store.import(&text).map_err(|e| e.context(from.display()))?;
        talk!("note: {kept} of {all} measurements were new or shorter");
    }
    let calibrated = if *calibrate { Some(calibrated(&options, &store)?) } else { None };
    if let (Some(calibrated), None) = (&calibrated, model) {
        if arguments.json {
            writeln!(out, "{:#}", constants(calibrated, &path))?
        } else {
            writeln!(out, "kept in {}", visible(&path.to_string_lossy()))?
        }
    }
    if let Some(model) = model {
        calibrated_first(&options, &store, arguments.budget)?;
        let module = arguments.given.load(model)?.0;
        // The worker gets the same.
        let (own, whole) = (own_arguments(), model != Path::new("-"));
        let report = with_worker(own, arguments.limit, |measure, progress| {
            let budget = arguments.budget;
            tune(&module, &options, &mut Tuning { store: &store, budget, whole, measure, progress })
        })?;
        if arguments.json {
            writeln!(out, "{:#}", object(&report, &path))?
        } else {
            show(&report, &path, out)?
        }
    }
    if let Some(to) = &arguments.export {
        file::write(to, store.export()?.as_bytes())?;
    }
    Ok(Answer::Yes)
}

/// A calibration for tools; times in nanoseconds, constants in cycles.
fn constants(found: &Calibrated, path: &Path) -> serde_json::Value {
    let kernels = found.kernels.iter().map(|k| {
        let [before, fitted] = k.predicted;
        json!({"what": k.what, "measured": k.measured, "before": before, "fitted": fitted})
    });
    let states = found.states.map(|state| json!({"load": state.load, "clock": state.clock}));
    let costs: serde_json::Map<_, _> = Costs::NAMES
        .iter()
        .zip(found.costs.values())
        .map(|(n, v)| ((*n).into(), v.into()))
        .collect();
    json!({
        "file": path.to_string_lossy(), "seconds": found.time.as_secs_f64(),
        "cycle": found.costs.cycle, "costs": costs, "kernels": kernels.collect::<Vec<_>>(),
        "fitted": found.is_fitted, "states": states,
    })
}

/// What tuning did, for people.
fn show(report: &Report, path: &Path, out: &mut impl Write) -> std::io::Result<()> {
    let Report { candidates, measured, new, failures, models } = report;
    writeln!(out, "{measured} of {candidates} functions are measured, {new} of them now")?;
    for (what, why) in failures {
        writeln!(out, "  failed: {}: {}", visible(what), visible(why))?;
    }
    let mut models: Vec<(&String, &f64)> = models.iter().collect();
    models.sort_by(|a, b| a.1.total_cmp(b.1));
    for (name, time) in models {
        writeln!(out, "  layout {name}: {} a run", Show(Duration::from_nanos(*time as u64)))?;
    }
    writeln!(out, "kept in {}", visible(&path.to_string_lossy()))
}

/// The same for tools; times in nanoseconds.
fn object(report: &Report, path: &Path) -> serde_json::Value {
    let Report { candidates, measured, new, failures, models } = report;
    let failures = failures.iter().map(|(what, why)| json!({"what": what, "why": why}));
    json!({
        "file": path.to_string_lossy(), "candidates": candidates, "measured": measured, "new": new,
        "failures": failures.collect::<Vec<_>>(), "models": models,
    })
}

/// The worker: answers requests, one a line, until there are no more.
pub fn work(arguments: &Arguments, out: &mut impl Write) -> Outcome {
    let mut module = None;
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        if cfg!(debug_assertions) {
            misbehave(&line);
        }
        let answer = answer(arguments, &line, &mut module);
        let reply = answer.map_or_else(|e| Reply::Error(e.to_string()), Reply::Nanoseconds);
        writeln!(out, "{}", json!(reply))?;
        out.flush()?;
    }
    Ok(Answer::Yes)
}

/// What tests set to see what candidates that crash or hang cost: `crash=TEXT` or `hang=TEXT`, one a
/// line, of the requests that hold the text.
const MISBEHAVE: &str = "TILEWRIGHT_TEST_MISBEHAVE";

/// Crashes, or does not return, where a test says so.
fn misbehave(request: &str) {
    let faults = std::env::var(MISBEHAVE).unwrap_or_default();
    if has_any("crash", &faults, request) {
        std::process::abort();
    }
    while has_any("hang", &faults, request) {
        std::thread::sleep(Duration::from_secs(1));
    }
}

fn has_any(what: &str, faults: &str, request: &str) -> bool {
    let texts = faults.lines().filter_map(|line| line.strip_prefix(what)?.strip_prefix('='));
    texts.into_iter().any(|text| request.contains(text))
}

/// The time that a request asks for.
fn answer(arguments: &Arguments, line: &str, model: &mut Option<Module>) -> Result<f64> {
    let request: Request =
        serde_json::from_str(line).map_err(|e| Error::input(format!("a request: {e}")))?;
    let tuning = arguments.file().ok();
    measuring::answer(
        &request,
        || {
            let kept: &mut Option<Module> = model;
            if kept.is_none() {
                let path = arguments.model.as_ref();
                let path = path.ok_or_else(|| Error::input("a request without a model"))?;
                *kept = Some(arguments.given.load(path)?.0);
            }
            kept.clone().ok_or_else(|| Error::internal("a model that is not there"))
        },
        tuning,
    )
}

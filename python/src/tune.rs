//! Tuning as requests: what is to be measured, and what was. Who measures is up to Python.

use std::path::PathBuf;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pyo3::prelude::*;
use tilewright_driver::Error;
use tilewright_driver::measuring;
use tilewright_driver::tune::{Measuring, Request, WholeModel};
use tilewright_tune::{Answer, Measured, Store, Worker};

use crate::error::Result;
use crate::module::Module;
use crate::options;
use crate::work::away;

/// What is to be measured of a module.
#[pyclass(frozen, module = "tilewright._native")]
pub struct Tuning {
    module: tilewright_driver::Module,
    state: Mutex<(Measuring<Store>, Vec<WholeModel>)>,
}

fn request_text(request: &Request) -> tilewright_driver::Result<String> {
    serde_json::to_string(request).map_err(|e| Error::internal(format!("a request as JSON: {e}")))
}

/// What an answer means; also failures to get one.
fn measured(nanoseconds: Option<f64>, failure: Option<String>) -> Measured {
    match nanoseconds {
        Some(n) if n.is_finite() && n > 0.0 => Measured::Nanoseconds(n),
        Some(n) => Measured::Failure(format!("a time of {n}")),
        None => Measured::Failure(failure.unwrap_or_else(|| "no answer".to_owned())),
    }
}

/// A request: its number, what it is for people, JSON.
type Open = (usize, String, String);

impl Tuning {
    fn lock(&self) -> MutexGuard<'_, (Measuring<Store>, Vec<WholeModel>)> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What was done: candidates, those measured, those measured now, failures, times of whole models in
/// nanoseconds.
type Done = (usize, usize, usize, Vec<(String, String)>, Vec<(String, f64)>);

#[pymethods]
impl Tuning {
    /// Asks what a plan of a module would ask the price of; `file` keeps the times.
    #[new]
    fn new(module: &Module, threads: &Bound<'_, PyAny>, file: PathBuf) -> Result<Tuning> {
        let py = threads.py();
        let module = away(py, || module.with_batch())?;
        let options = options::parse(None)?.threads(options::threads(threads)?);
        let measuring = away(py, || Measuring::new(&module, &options, Store::open(&file)?))?;
        Ok(Tuning { module, state: Mutex::new((measuring, Vec::new())) })
    }

    /// The functions that are not measured yet, the most important first. Asked again when they are,
    /// those that are worth it by what was found.
    fn candidates(&self, py: Python<'_>) -> Result<Vec<Open>> {
        Ok(away(py, || {
            let mut state = self.lock();
            let mut open = Vec::new();
            for c in state.0.left()? {
                let (what, request) = state.0.request(c);
                open.push((c, what.to_owned(), request_text(request)?));
            }
            Ok::<_, Error>(open)
        })?)
    }

    /// Whether a function has been measured since, by another tuner of the same file.
    fn is_kept(&self, candidate: usize) -> Result<bool> {
        Ok(self.lock().0.is_kept(candidate)?)
    }

    /// Keeps the time of a function, or why there is none.
    #[pyo3(signature = (candidate, nanoseconds, failure=None))]
    fn keep(
        &self,
        candidate: usize,
        nanoseconds: Option<f64>,
        failure: Option<String>,
    ) -> Result<()> {
        Ok(self.lock().0.keep(candidate, measured(nanoseconds, failure))?)
    }

    /// The layouts of the whole model that are not measured yet.
    fn models(&self, py: Python<'_>) -> Result<Vec<Open>> {
        Ok(away(py, || {
            let mut state = self.lock();
            let models = state.0.models(&self.module)?;
            let mut open = Vec::new();
            for (k, model) in models.iter().enumerate() {
                open.push((k, model.what.clone(), request_text(&model.request)?));
            }
            state.1 = models;
            Ok::<_, Error>(open)
        })?)
    }

    /// Keeps the time of the whole model in a layout, or why there is none.
    #[pyo3(signature = (model, nanoseconds, failure=None))]
    fn keep_model(
        &self,
        model: usize,
        nanoseconds: Option<f64>,
        failure: Option<String>,
    ) -> Result<()> {
        let mut state = self.lock();
        let (measuring, models) = &mut *state;
        let model = models.get(model);
        let model = model.ok_or_else(|| Error::input("there is no such request"))?;
        Ok(measuring.keep_model(model, measured(nanoseconds, failure))?)
    }

    /// What was done.
    fn report(&self) -> Done {
        let state = self.lock();
        let r = state.0.report();
        let models = r.models.iter().map(|(name, time)| (name.clone(), *time)).collect();
        (r.candidates, r.measured, r.new, r.failures.clone(), models)
    }
}

/// A process that measures. What crashes or does not end costs only itself.
#[pyclass(frozen, module = "tilewright._native")]
pub struct Measurer(Mutex<Worker>);

#[pymethods]
impl Measurer {
    /// A process that is started by a command, when it is needed. An answer that takes longer than
    /// `limit` seconds is given up.
    #[new]
    fn new(command: Vec<String>, limit: f64) -> Result<Measurer> {
        let Some((program, arguments)) = command.split_first() else {
            return Err(Error::input("a command without a program").into());
        };
        let limit = Duration::try_from_secs_f64(limit)
            .map_err(|_| Error::input(format!("a limit of {limit} seconds")))?;
        let (program, arguments) = (program.clone(), arguments.to_vec());
        let start = move || {
            let mut command = Command::new(&program);
            command.args(&arguments);
            command
        };
        Ok(Measurer(Mutex::new(Worker::new(start, limit))))
    }

    /// Asks for one measurement: nanoseconds, or why there are none.
    fn ask(&self, py: Python<'_>, request: &str) -> Result<(Option<f64>, Option<String>)> {
        let request: Request =
            serde_json::from_str(request).map_err(|e| Error::input(format!("a request: {e}")))?;
        let answer =
            py.detach(|| self.0.lock().unwrap_or_else(PoisonError::into_inner).ask(&request))?;
        Ok(match answer {
            Measured::Nanoseconds(n) => (Some(n), None),
            Measured::Failure(why) => (None, Some(why)),
        })
    }
}

/// Answers a line with a request by a line; `module` is the model that is tuned. This is the other end
/// of a [`Measurer`].
#[pyfunction]
#[pyo3(signature = (line, module=None, file=None))]
pub fn measure_line(
    py: Python<'_>,
    line: &str,
    module: Option<&Module>,
    file: Option<PathBuf>,
) -> Result<String> {
    let answer = away(py, || {
        let request: Request =
            serde_json::from_str(line).map_err(|e| Error::input(format!("a request: {e}")))?;
        let model = || match module {
            Some(module) => module.module().cloned(),
            None => Err(Error::input("a request without a model")),
        };
        measuring::answer(&request, model, file.or_else(measuring::file))
    });
    let answer = answer.map_or_else(|e| Answer::Error(e.to_string()), Answer::Nanoseconds);
    Ok(serde_json::to_string(&answer).map_err(|e| Error::internal(format!("an answer: {e}")))?)
}

/// The file of measurements that compilations read; `None` where there is none.
#[pyfunction]
pub fn tuning_file() -> Option<PathBuf> {
    measuring::file()
}

/// The text of all measurements of a file, as lines of JSON.
#[pyfunction]
pub fn export_measurements(file: PathBuf) -> Result<String> {
    Ok(Store::open(&file)?.export()?)
}

/// Merges measurements into a file: how many were new or shorter, of how many.
#[pyfunction]
pub fn import_measurements(file: PathBuf, text: &str) -> Result<(usize, usize)> {
    Ok(Store::open(&file)?.import(text)?)
}

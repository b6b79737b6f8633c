//! The options of a compilation, as calls give them.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use tilewright_driver::measuring;
use tilewright_driver::options::{Listener, Message, Progress, Watcher};
use tilewright_driver::{Error, LayoutPolicy, OptLevel, Options, Target};

use crate::error::Result;
use crate::work;

/// What the options of a call say. Unknown ones are refused.
pub fn parse(given: Option<&Bound<'_, PyDict>>) -> Result<Options> {
    let mut options = Options::new().tuning(measuring::file());
    for (key, value) in given.into_iter().flatten() {
        let key: String = key.extract()?;
        match key.as_str() {
            "layout" => {
                let name: Option<String> = value.extract()?;
                options.layout = LayoutPolicy::named(name.as_deref().unwrap_or("none"))?;
            }
            "io_layout" => options.io_layout = value.extract::<String>()?.parse()?,
            "threads" => options.threads = threads(&value)?,
            "target" => {
                if let Some(name) = value.extract::<Option<String>>()? {
                    options = options.on(&name)?;
                }
            }
            "cpu" => options.target = target(value.extract::<Option<String>>()?.as_deref())?,
            "opt_level" => options.level = level(value.extract()?)?,
            "specialize" => options.specialize = value.extract()?,
            "fuse" => options.fuse = value.extract()?,
            "schedule" => options.schedule = value.extract()?,
            "fast_math" => options.fast_math = allowed_error(value.extract()?)?,
            "check" => options.check = value.extract()?,
            "unchecked" => options.unchecked = value.extract()?,
            "cache" => options.cache = value.extract()?,
            "link" => options.link = value.extract()?,
            "tuning" => options.tuning = value.extract()?,
            "progress" => options.progress = watcher(&value)?,
            "warn" => options.listener = warner(&value)?,
            _ => return Err(Error::input(format!("there is no option `{key}`")).into()),
        }
    }
    Ok(options)
}

/// A number of threads; 0 is one a core.
pub fn threads(given: &Bound<'_, PyAny>) -> Result<Option<usize>> {
    let count: i64 = given.extract()?;
    match usize::try_from(count) {
        Ok(count) => Ok(Some(count).filter(|count| *count > 0)),
        Err(_) => {
            let what = format!("threads is how many share the work of a run, not {count}");
            Err(Error::input(what).help("0 is one a core").into())
        }
    }
}

/// The error that convolutions may have; `None` for none.
fn allowed_error(given: Option<f64>) -> tilewright_driver::Result<Option<f64>> {
    match given {
        Some(error) if !(0.0..1.0).contains(&error) => {
            Err(Error::input(format!("fast_math is an error from 0 to below 1, not {error}")))
        }
        given => Ok(given),
    }
}

/// A processor by its name; `None` and `native` are this machine's.
pub fn target(cpu: Option<&str>) -> tilewright_driver::Result<Option<Target>> {
    let Some(cpu) = cpu.filter(|c| *c != "native") else { return Ok(None) };
    let host = Options::new().resolve_target()?;
    Ok(Some(Target::new(host.triple, cpu, "")))
}

fn level(level: u8) -> Result<OptLevel> {
    match level {
        0 => Ok(OptLevel::None),
        1 => Ok(OptLevel::Less),
        3 => Ok(OptLevel::Full),
        _ => Err(Error::input(format!("opt_level is 0, 1 or 3, not {level}")).into()),
    }
}

/// What tells a function of Python about progress. What that raises ends the work, and is raised by the
/// call that began it.
fn watcher(value: &Bound<'_, PyAny>) -> Result<Option<Watcher>> {
    if value.is_none() {
        return Ok(None);
    }
    let function = value.clone().unbind();
    Ok(Some(Arc::new(move |p: Progress| {
        let told = Python::attach(|py| function.call1(py, (p.what, p.done, p.total)).map(drop));
        if let Err(raised) = told {
            work::abandon(raised);
        }
    })))
}

/// What tells a function of Python about warnings.
fn warner(value: &Bound<'_, PyAny>) -> Result<Option<Listener>> {
    if value.is_none() {
        return Ok(None);
    }
    let function = value.clone().unbind();
    Ok(Some(Arc::new(move |message: Message<'_>| {
        let Message::Warning(text) = message else { return };
        Python::attach(|py| {
            if let Err(e) = function.call1(py, (text,)) {
                e.write_unraisable(py, Some(function.bind(py)));
            }
        });
    })))
}

//! What answers the requests of [`tune`](super::tune): a function or a whole model, compiled and run
//! until its shortest time is known. Who asks runs this in a process of its own, since a candidate may
//! crash or not end.

use std::path::PathBuf;
use std::time::Duration;

use tilewright_codegen::cache::ObjectCache;
use tilewright_ir::{Error, Module, Remarks, Result};

use super::layout;
use super::options::{LayoutPolicy, Options};
use super::runs::Runs;
use super::session::compile;
use super::tune::{Request, measure};

/// The environment variable that names the file of measurements.
pub const TUNING: &str = "TILEWRIGHT_TUNING";

/// How long one function is run, and a whole model.
const FUNCTION: Duration = Duration::from_millis(30);
const MODEL: Duration = Duration::from_millis(400);

/// The file of measurements: the one that the environment names, else one beside the compiled code;
/// `None` where it is off, or others may write there.
pub fn file() -> Option<PathBuf> {
    match std::env::var_os(TUNING) {
        Some(path) if path == "off" => None,
        Some(path) if !path.is_empty() => Some(path.into()),
        _ => {
            let cache = ObjectCache::from_env();
            let directory = cache.directory().filter(|_| cache.refused().is_none());
            directory.map(|d| d.join("tuning.sqlite"))
        }
    }
}

/// The time that a request asks for, in nanoseconds. `model` gives the model that is tuned, `tuning`
/// the measurements by which its layouts are planned, and the calibration.
///
/// # Errors
/// Those of reading, compiling and running it, and of `model`.
pub fn answer(
    request: &Request,
    model: impl FnOnce() -> Result<Module>,
    tuning: Option<PathBuf>,
) -> Result<f64> {
    let options = Options::new().cache(false).tuning(tuning).layout(LayoutPolicy::AsWritten);
    match request {
        Request::Function { text, free, threads } => {
            measure(text, free, &options.threads(*threads), FUNCTION)
        }
        Request::Model { layout, ways, threads } => {
            // Most kernels of one layout are those of another one as well.
            let options = options.threads(*threads).cache(true);
            whole(&model()?, layout, ways.as_deref(), &options)
        }
    }
}

/// Nanoseconds of the shortest run of a model in a layout, or in the layouts of a plan.
fn whole(module: &Module, name: &str, ways: Option<&str>, options: &Options) -> Result<f64> {
    let executable = match ways {
        Some(ways) => {
            let (timings, io) = (options.timings()?, options.io_layout);
            let planned = layout::plan_as(module, &timings, io, ways, &mut Remarks::new())?;
            let (laid_out, ..) =
                planned.ok_or_else(|| Error::input("the model has no such plan"))?;
            compile(&laid_out, options)?
        }
        None => compile(module, &options.clone().layout(LayoutPolicy::named(name)?))?,
    };
    Runs::on_random(executable, 0)?.shortest(MODEL, 3..usize::MAX)
}

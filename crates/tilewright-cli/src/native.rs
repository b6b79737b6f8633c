//! Choices that all commands have which make native code.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tilewright_driver::measuring::file as tuning_file;
use tilewright_driver::options::{Measurer, Message, Notice};
use tilewright_driver::winograd;
use tilewright_driver::{Error, IoLayout, LayoutPolicy, OptLevel, Options, Result, Target};

use super::answer::talk;
use super::measure::measure_first;
use super::progress::Bar;

/// How native code is made.
#[derive(clap::Args, Clone, Default)]
pub struct Native {
    /// Threads that share the work; one a core unless said otherwise.
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// The CPU to generate code for, as LLVM calls it: `native`, `x86-64-v3`, `znver4`; `native` unless
    /// said, and for another machine the oldest one.
    #[arg(long, value_name = "NAME")]
    cpu: Option<String>,
    /// Features of the CPU that are there (`+v,+zvl256b`) or not (`-avx512f`), as LLVM calls them.
    #[arg(long, value_name = "LIST", allow_hyphen_values = true)]
    features: Option<String>,
    /// What the model is for: this machine's processor (`native`), a device that OpenCL lists, by its
    /// number or a part of its name (`doctor` shows them; behind it, `+threads`, `+textures` and `+no-float64`
    /// ask for what a GPU gets), a GPU of NVIDIA by its number, GPUs by their architecture, or, to compile, another machine as LLVM calls
    /// it, such as `aarch64-unknown-linux-gnu`, whose libraries its C compiler makes.
    #[arg(long, value_name = "native|opencl[:N|:NAME]|cuda[:N|:sm_N]|TRIPLE")]
    target: Option<String>,
    /// How much LLVM optimises.
    #[arg(long = "opt-level", value_name = "0|1|3", default_value = "3", value_parser = ["0", "1", "3"])]
    level: String,
    /// Keep functions apart instead of fusing elementwise work.
    #[arg(long)]
    no_fuse: bool,
    /// Keep the loops as they are written.
    #[arg(long)]
    no_schedule: bool,
    #[command(flatten)]
    rounding: Rounding,
    /// Check the module's rules after every stage.
    #[arg(long)]
    check: bool,
    /// Leave out the checks that end the run at an access out of range. Such an access then reads or
    /// writes other memory.
    #[arg(long)]
    unchecked: bool,
    /// Neither read nor write the cache of compiled code.
    #[arg(long)]
    no_cache: bool,
    /// An object file or shared library with C functions that the model calls.
    #[arg(long, value_name = "FILE")]
    link: Vec<PathBuf>,
    /// How the tensors of the model lie in memory: as planned for the whole model by measured or else
    /// estimated time, as in the model, or with all convolutions in one layout; `plan:1` is the plan
    /// that costs least, `plan:2` the next best. The default is `plan`.
    #[arg(long, value_name = "plan|plan:K|none|nhwc|nchw4c|nchw8c|nchw16c")]
    layout: Option<String>,
    /// Whether inputs and outputs may have other layouts than the model's own, too, so that they need
    /// no conversion. `plan` and the C header say which.
    #[arg(long = "io-layout", value_name = "logical|physical", default_value = "logical", value_parser = io_layout)]
    io_layout: IoLayout,
    /// Before layouts are planned, measure the functions to choose from that were not yet, for at most
    /// 20 seconds, and keep what comes of it for every later compilation (see `tune`).
    #[arg(long)]
    measure: bool,
}

/// What a model is for.
enum Destination<'a> {
    /// A processor of this machine.
    Here,
    /// A device, as `--target` names it.
    Device(&'a str),
    /// Another machine.
    Elsewhere(&'a str),
}

impl Native {
    /// Whether a layout was named.
    pub fn names_layout(&self) -> bool {
        self.layout.is_some()
    }

    /// Whether a layout was chosen.
    pub fn has_layout(&self) -> bool {
        self.layout.as_deref() != Some("none")
    }

    fn place(&self) -> Destination<'_> {
        match self.target.as_deref() {
            None | Some("native") => Destination::Here,
            Some(target) if target.contains('-') && !target.starts_with("opencl") => {
                Destination::Elsewhere(target)
            }
            Some(target) => Destination::Device(target),
        }
    }

    /// Whether the model is for a device.
    pub fn is_for_device(&self) -> bool {
        matches!(self.place(), Destination::Device(_))
    }

    /// Refuses another machine, whose code does not run here.
    pub fn check_here(&self) -> Result<()> {
        match self.place() {
            Destination::Elsewhere(triple) => {
                Err(Error::input(format!("--target {triple}: code for it does not run here"))
                    .help("`compile --target` makes libraries for other machines"))
            }
            _ => Ok(()),
        }
    }

    /// The machine to generate code for: this one, with a CPU, or one of another triple. `None` for this
    /// one as it is.
    fn target(&self) -> Result<Option<Target>> {
        let triple = match self.place() {
            Destination::Elsewhere(triple) => Some(triple),
            _ => None,
        };
        let cpu = self.cpu.as_deref();
        let features = self.features.as_deref().unwrap_or_default();
        let target = match (triple, cpu) {
            (None, None | Some("native")) if features.is_empty() => return Ok(None),
            (None, None | Some("native")) => {
                let host = Options::new().backend.host()?;
                let features = format!("{},{features}", host.features);
                Target::new(host.triple, host.cpu, features.trim_start_matches(',')).with_host()
            }
            (None, Some(cpu)) => Target::new(Options::new().backend.host()?.triple, cpu, features),
            (Some(triple), Some("native")) => {
                let error = Error::input(format!("--cpu native: this machine is no {triple}"));
                return Err(error.help("name the CPU of the other machine"));
            }
            (Some(triple), cpu) => Target::new(triple, cpu.unwrap_or_default(), features),
        };
        let option = match (triple, &self.features, cpu) {
            (_, Some(_), _) => "--features",
            (_, _, Some(_)) => "--cpu",
            _ => "--target",
        };
        Options::new().backend.check_target(&target).map_err(|e| e.context(option))?;
        Ok(Some(target))
    }

    /// The library's options.
    pub fn options(&self, bar: &Bar) -> Result<Options> {
        if self.threads == Some(0) {
            return Err(Error::input("--threads 0: at least one thread is needed"));
        }
        let level = match self.level.as_str() {
            "0" => OptLevel::None,
            "1" => OptLevel::Less,
            _ => OptLevel::Full,
        };
        let layout = self.layout.as_deref().map_or(Ok(LayoutPolicy::Plan), LayoutPolicy::named);
        let layout = layout.map_err(|e| e.context("--layout"))?;
        let measurer: Measurer =
            Arc::new(|module, options| measure_first(module, options, MEASURE));
        let options = match self.place() {
            Destination::Device(_) if self.cpu.is_some() || self.features.is_some() => {
                return Err(Error::input("--cpu and --features are for processors"));
            }
            Destination::Device(target) => {
                Options::new().on(target).map_err(|e| e.context("--target"))?
            }
            _ => Options::new().target(self.target()?),
        };
        Ok(options
            .threads(self.threads)
            .level(level)
            .layout(layout)
            .io_layout(self.io_layout)
            .fuse(!self.no_fuse)
            .schedule(!self.no_schedule)
            .fast_math(self.rounding.fast_math)
            .check(self.check || cfg!(debug_assertions))
            .unchecked(self.unchecked)
            .cache(!self.no_cache)
            .link(self.link.clone())
            .tuning(tuning_file())
            .progress(bar.watcher())
            .listener(Some(Arc::new(listen)))
            .measurer(self.measure.then_some(measurer)))
    }
}

/// What may round otherwise than the model says.
#[derive(clap::Args, Clone, Default)]
pub struct Rounding {
    /// Compute convolutions of 3 x 3 pixels by transforms, with fewer products and more rounding, where
    /// that is estimated to be faster and the error is at most this, as a part of the convolution's
    /// largest result. The error is measured for each with its weights, on random data.
    #[arg(
        long,
        value_name = "ERROR",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "1e-3",
        value_parser = error
    )]
    pub fast_math: Option<f64>,
}

/// Reads an error that is allowed.
fn error(text: &str) -> std::result::Result<f64, String> {
    winograd::parse_error(text).map_err(|e| e.diagnostic().message.clone())
}

/// How long `--measure` measures.
const MEASURE: Duration = Duration::from_secs(20);

/// Reads whether inputs and outputs keep their layout.
pub fn io_layout(text: &str) -> std::result::Result<IoLayout, String> {
    text.parse().map_err(|e: Error| e.diagnostic().message.clone())
}

/// Says a message; a warning once, since several parts use the cache.
pub fn listen(message: Message<'_>) {
    static TOLD: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    match message {
        Message::Note(note @ Notice::SizeTaken { name, .. }) => {
            talk!("note: {note}; --dim {name}=SIZE gives another");
        }
        Message::Note(note) => talk!("note: {note}"),
        Message::Warning(text) => {
            if TOLD.lock().unwrap_or_else(PoisonError::into_inner).insert(text.to_owned()) {
                talk!("warning: {text}");
            }
        }
    }
}

/// This machine with the CPU of this name; `native` is its own.
pub fn target(cpu: &str) -> Result<Target> {
    let backend = Options::new().backend;
    let host = backend.host()?;
    if cpu == "native" {
        return Ok(host);
    }
    let target = Target::new(host.triple, cpu, "");
    backend.check_target(&target).map_err(|e| e.context("--cpu"))?;
    Ok(target)
}

/// The machine to plan for, by the name of its CPU: this one with that CPU, or one of another family. No code is
/// made for it, so neither LLVM nor such a machine is needed.
pub fn planned_target(cpu: &str) -> Result<Target> {
    target(cpu).or_else(|error| Target::of_cpu(cpu).ok_or(error))
}

//! Choices that all commands have which make native code.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tilewright_codegen::LlvmBackend;
use tilewright_driver::compile::{self, Program, lower_program_with};
use tilewright_driver::layout;
use tilewright_driver::measuring::file as tuning_file;
use tilewright_driver::options::Progress;
use tilewright_driver::pipeline::Stage;
use tilewright_driver::winograd;
use tilewright_driver::{Error, IoLayout, LayoutPolicy, Module, OptLevel, Options, Result, Target};
use tilewright_layout::Left;
use tilewright_target::Backend;

use super::answer::talk;
use super::measure::measure_first;
use super::progress::Bar;

/// How native code is made.
#[derive(clap::Args, Clone, Default)]
pub struct Native {
    /// Threads that share the work; one a core unless said otherwise.
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// The CPU to generate code for, as LLVM calls it: `native`, `x86-64-v3`, `znver4`.
    #[arg(long, value_name = "NAME", default_value = "native")]
    cpu: String,
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
    #[arg(long, value_name = "plan|plan:K|none|nhwc|nchw8c|nchw16c")]
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

/// A program that was laid out.
pub struct LaidOut {
    pub program: Program,
    /// The conversions that are left in it.
    pub left: Vec<Left>,
    /// When it was laid out; the rest of the time was lowering.
    pub at: Instant,
}

impl Native {
    /// The module in its layout, and the conversions that are left in it.
    pub fn lay_out(&self, module: &Module) -> Result<(Module, Vec<Left>)> {
        let (layout, options) = (self.layout()?, self.options(&Bar::none())?);
        let is_measured = self.measure && layout == Some(LayoutPolicy::Plan);
        if is_measured && layout::has_choice(module) {
            measure_first(module, &options, MEASURE)?;
        }
        options.lay_out(layout, module)
    }

    /// The layout that was named; else, if loops are found that suit one, the plan.
    pub fn layout(&self) -> Result<Option<LayoutPolicy>> {
        match self.layout.as_deref() {
            None => Ok(Some(LayoutPolicy::Plan).filter(|_| !self.no_schedule)),
            Some(name) => LayoutPolicy::named(name).map_err(|e| e.context("--layout")),
        }
    }

    /// Whether a layout was named.
    pub fn names_layout(&self) -> bool {
        self.layout.is_some()
    }

    /// The program of a module in its layout.
    pub fn lower(&self, module: &Module, options: &Options) -> Result<LaidOut> {
        let (mut left, mut at) = (Vec::new(), Instant::now());
        let program = lower_program_with(module, options, |module, io| {
            let laying_out = Progress { what: "layout", done: 0, total: 1 };
            options.progress.iter().for_each(|watch| watch(laying_out));
            let (module, conversions) = self.with_ends(io).lay_out(&module)?;
            (left, at) = (conversions, Instant::now());
            Ok(module)
        })?;
        Ok(LaidOut { program, left, at })
    }

    /// A module in its layout after some of the stages.
    pub fn staged(&self, module: &Module, options: &Options, until: Stage) -> Result<Module> {
        let lay_out = |module: Module, io| Ok(self.with_ends(io).lay_out(&module)?.0);
        compile::staged(module, options, until, lay_out)
    }

    /// The same where it may be said how inputs and outputs lie.
    fn with_ends(&self, io: Option<IoLayout>) -> Native {
        Native { io_layout: io.unwrap_or(self.io_layout), ..self.clone() }
    }

    /// Whether what is made depends on nothing else than what was said: neither on measurements that
    /// are made on the way, nor on checks that are to be run.
    pub fn can_be_kept(&self) -> bool {
        !self.measure && !self.check && self.link.is_empty()
    }

    /// What was said of layouts, which the library's options do not hold.
    pub fn told(&self) -> String {
        format!("{:?} {:?}", self.layout, self.cpu)
    }

    /// The machine to make code for.
    pub fn target(&self) -> Result<Target> {
        target(&self.cpu)
    }

    /// Whether a layout was chosen.
    pub fn has_layout(&self) -> bool {
        self.layout.as_deref() != Some("none")
    }

    /// The library's options.
    pub fn options(&self, bar: &Bar) -> Result<Options> {
        if self.threads == Some(0) {
            return Err(Error::input("--threads 0: at least one thread is needed"));
        }
        let target = match self.cpu.as_str() {
            "native" => None,
            _ => Some(self.target()?),
        };
        Ok(Options {
            threads: self.threads.unwrap_or(0),
            target,
            level: match self.level.as_str() {
                "0" => OptLevel::None,
                "1" => OptLevel::Less,
                _ => OptLevel::Full,
            },
            fuse: !self.no_fuse,
            schedule: !self.no_schedule,
            fast_math: self.rounding.fast_math,
            check: self.check || cfg!(debug_assertions),
            unchecked: self.unchecked,
            cache: !self.no_cache,
            link: self.link.clone(),
            io_layout: self.io_layout,
            tuning: tuning_file(),
            progress: bar.watcher(),
            warn: Some(Arc::new(warn)),
            ..Options::default()
        })
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

/// Tells a warning, unless it was told before: several parts use the cache.
fn warn(text: &str) {
    static TOLD: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    if TOLD.lock().unwrap_or_else(PoisonError::into_inner).insert(text.to_owned()) {
        talk!("warning: {text}");
    }
}

/// This machine with the CPU of this name; `native` is its own.
pub fn target(cpu: &str) -> Result<Target> {
    let backend = LlvmBackend;
    let host = backend.host()?;
    if cpu == "native" {
        return Ok(host);
    }
    let target = Target::new(host.triple, cpu, "");
    backend.check_target(&target).map_err(|e| e.context("--cpu"))?;
    Ok(target)
}

//! Choices for a compilation, and the machine that they mean.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use tilewright_codegen::LlvmBackend;
use tilewright_ir::{Error, Module, Result};
use tilewright_layout::ConvLayout;
pub use tilewright_layout::IoLayout;
use tilewright_target::{Backend, CodeOptions, OptLevel, Target, cores};

use super::calibrated;
use super::timings::Timings;

/// In which layouts a module is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LayoutPolicy {
    /// Those that are measured or else estimated to be the fastest for the whole module.
    Plan,
    /// Those of the plan at a place in the order of costs, from 1: the best one by its costs, the second
    /// best, and so on.
    Ranked(usize),
    /// `NCHW16c` and `NCHW8c` for all convolutions: channels in blocks, the block innermost.
    Blocked(i64),
    /// `NHWC` for all convolutions: channels innermost.
    ChannelsLast,
}

/// How many of the best plans have a name of their own.
pub const PLANS: usize = 8;

impl LayoutPolicy {
    /// The layout of a name, as the command line and Python have it: `plan`, `plan:2` for the second best
    /// plan, or a policy (`nhwc`); `None` for `none`, which is the model's own.
    ///
    /// # Errors
    /// [`Error::Input`] for other names.
    pub fn named(name: &str) -> Result<Option<LayoutPolicy>> {
        Ok(match (name, name.strip_prefix("plan:")) {
            ("plan", _) => Some(LayoutPolicy::Plan),
            ("none", _) => None,
            (_, Some(place)) => match place.parse() {
                Ok(place) if (1..=PLANS).contains(&place) => Some(LayoutPolicy::Ranked(place)),
                _ => {
                    let what = format!("the layout {name}: plan:1 to plan:{PLANS} are possible");
                    return Err(Error::input(what));
                }
            },
            (name, None) => Some(match name.parse::<ConvLayout>()? {
                ConvLayout::Blocked(block) => LayoutPolicy::Blocked(block),
                _ => LayoutPolicy::ChannelsLast,
            }),
        })
    }
}

/// Progress of a compilation: `done` of `total` parts of what `what` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// What is going on: the name of a stage, or `compile`.
    pub what: &'static str,
    /// How many parts are done.
    pub done: usize,
    /// How many there are.
    pub total: usize,
}

/// What is told about progress, possibly from several threads.
pub type Watcher = Arc<dyn Fn(Progress) + Send + Sync>;

/// What is told about things that are wrong on this machine and do not stop a compilation, as
/// sentences for the user.
pub type Warner = Arc<dyn Fn(&str) + Send + Sync>;

/// Choices for a compilation.
#[derive(Clone)]
pub struct Options {
    /// Threads that a run uses; 0 for one a core.
    pub threads: usize,
    /// What makes the code.
    pub backend: Arc<dyn Backend>,
    /// The machine to make code for; `None` for this one.
    pub target: Option<Target>,
    /// How the tensors of the model lie in memory; `None` for as it is written.
    pub layout: Option<LayoutPolicy>,
    /// Whether inputs and outputs may have other layouts than the model's own, too. Then
    /// [`Executable::inputs`](tilewright_runtime::Executable::inputs) and `outputs` say how each is
    /// stored, and the caller brings and takes them so.
    pub io_layout: IoLayout,
    /// The file of measurements ([`tune`](super::tune)) that plans of layouts use, and of calibrations
    /// ([`calibrate`](super::calibrate)); `None` for estimates alone.
    pub tuning: Option<PathBuf>,
    /// How much the backend optimises.
    pub level: OptLevel,
    /// Sizes, by name or as `INPUT.AXIS`, for each of which a version of its own is compiled beside the
    /// one for all sizes; each run takes what fits its inputs.
    pub specialize: Vec<BTreeMap<String, usize>>,
    /// Fuse elementwise work.
    pub fuse: bool,
    /// Find schedules; without, loops stay as they are written.
    pub schedule: bool,
    /// The error that a convolution may have, as a part of its largest result: then convolutions are
    /// computed by transforms ([`winograd`](super::winograd)) where that is faster. `None` for sums
    /// of products as they are written.
    pub fast_math: Option<f64>,
    /// Check the module's rules after every stage, not only at first.
    pub check: bool,
    /// Leave out the assertions that keep accesses in range where that is not proved: such an access
    /// then reads or writes other memory. Only for modules that are trusted.
    pub unchecked: bool,
    /// Keep compiled code on disk.
    pub cache: bool,
    /// Objects and shared libraries with the C functions that `T.call_extern` calls.
    pub link: Vec<PathBuf>,
    /// Is told about progress.
    pub progress: Option<Watcher>,
    /// Is told what is wrong and does not stop the compilation: a cache that is not to be trusted.
    pub warn: Option<Warner>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            threads: 0,
            backend: Arc::new(LlvmBackend),
            target: None,
            layout: None,
            io_layout: IoLayout::Logical,
            tuning: None,
            level: OptLevel::Full,
            specialize: Vec::new(),
            fuse: true,
            schedule: true,
            fast_math: None,
            check: cfg!(debug_assertions),
            unchecked: false,
            cache: true,
            link: Vec::new(),
            progress: None,
            warn: None,
        }
    }
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Options {
            threads,
            backend,
            target,
            layout,
            io_layout,
            tuning,
            level,
            specialize,
            fuse,
            schedule,
            fast_math,
            check,
            unchecked,
            cache,
            link,
            progress,
            warn,
        } = self;
        f.debug_struct("Options")
            .field("threads", threads)
            .field("backend", &backend.name())
            .field("target", target)
            .field("layout", layout)
            .field("io_layout", io_layout)
            .field("tuning", tuning)
            .field("level", level)
            .field("specialize", specialize)
            .field("fuse", fuse)
            .field("schedule", schedule)
            .field("fast_math", fast_math)
            .field("check", check)
            .field("unchecked", unchecked)
            .field("cache", cache)
            .field("link", link)
            .field("progress", &progress.is_some())
            .field("warn", &warn.is_some())
            .finish()
    }
}

impl Options {
    /// Options with a number of threads.
    pub fn with_threads(threads: usize) -> Self {
        Options { threads, ..Self::default() }
    }

    /// The machine to make code for, with the costs that this one was calibrated to where it was.
    ///
    /// # Errors
    /// Those of [`Backend::host`] and [`Backend::check_target`].
    pub fn target(&self) -> Result<Target> {
        let target = match &self.target {
            Some(target) => {
                self.backend.check_target(target)?;
                target.clone()
            }
            None => self.backend.host()?,
        };
        Ok(match &self.tuning {
            Some(file) => calibrated::of_file(file, target),
            None => target,
        })
    }

    /// What calls and conversions cost on the target. A file of measurements that cannot be read is
    /// told about, and estimates count.
    ///
    /// # Errors
    /// Those of [`Options::target`].
    pub fn timings(&self) -> Result<Timings> {
        let (target, threads) = (self.target()?, self.threads());
        let read = self.tuning.as_deref().map(|file| Timings::read(&target, threads, file));
        Ok(match read {
            Some(Ok(timings)) => timings,
            Some(Err(error)) => {
                self.warn.iter().for_each(|warn| warn(&format!("no measurements: {error}")));
                Timings::estimated(&target, threads)
            }
            None => Timings::estimated(&target, threads),
        })
    }

    /// What calls and conversions of a module cost on the target, by transforms where that takes less
    /// and the options allow an error.
    ///
    /// # Errors
    /// Those of [`Options::timings`] and of [`Timings::with_transforms`].
    pub fn timings_of(&self, module: &Module) -> Result<Timings> {
        let timings = self.timings()?;
        match self.fast_math.filter(|_| self.schedule) {
            Some(error) => timings.with_transforms(module, error),
            None => Ok(timings),
        }
    }

    /// Threads that a run uses.
    pub fn threads(&self) -> usize {
        if self.threads == 0 { cores() } else { self.threads }
    }

    /// What of them a backend takes.
    pub fn with_code_options<T>(&self, make: impl FnOnce(&CodeOptions<'_>) -> T) -> T {
        let watch = |done, total| self.tell("compile", done, total);
        let warn = |text: &str| self.warn.iter().for_each(|warn| warn(text));
        make(&CodeOptions {
            level: self.level,
            cache: self.cache,
            link: &self.link,
            watch: Some(&watch),
            warn: Some(&warn),
        })
    }

    /// Tells who watches that `done` of `total` parts of `what` are done.
    pub(super) fn tell(&self, what: &'static str, done: usize, total: usize) {
        if let Some(watcher) = &self.progress {
            watcher(Progress { what, done, total });
        }
    }
}

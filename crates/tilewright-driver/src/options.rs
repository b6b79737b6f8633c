//! Choices for a compilation, and the machine that they mean.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tilewright_codegen::registry;
use tilewright_ir::{Error, Module, Result};
use tilewright_layout::ConvLayout;
pub use tilewright_layout::IoLayout;
use tilewright_target::{Backend, CodeOptions, OptLevel, Target, cores};

use super::calibrated;
use super::timings::Timings;

/// In which layouts a module is computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LayoutPolicy {
    /// Those that are measured or else estimated to be the fastest for the whole module, where loops are
    /// found that suit them ([`Options::schedule`]).
    #[default]
    Plan,
    /// Those of the plan at a place in the order of costs, from 1: the best one by its costs, the second
    /// best, and so on.
    Ranked(usize),
    /// `NCHW16c` and `NCHW8c` for all convolutions: channels in blocks, the block innermost.
    Blocked(i64),
    /// `NHWC` for all convolutions: channels innermost.
    ChannelsLast,
    /// The module's own.
    AsWritten,
}

/// How many of the best plans have a name of their own.
pub const PLANS: usize = 8;

impl LayoutPolicy {
    /// The layout of a name, as the command line and Python have it: `plan`, `plan:2` for the second best
    /// plan, a policy (`nhwc`), or `none` for the module's own.
    ///
    /// # Errors
    /// [`Error::Input`] for other names.
    pub fn named(name: &str) -> Result<LayoutPolicy> {
        if let Some(place) = name.strip_prefix("plan:") {
            return match place.parse() {
                Ok(place) if (1..=PLANS).contains(&place) => Ok(LayoutPolicy::Ranked(place)),
                _ => {
                    let what = format!("the layout {name}: plan:1 to plan:{PLANS} are possible");
                    Err(Error::input(what))
                }
            };
        }
        Ok(match name {
            "plan" => LayoutPolicy::Plan,
            "none" => LayoutPolicy::AsWritten,
            name => match name.parse::<ConvLayout>()? {
                ConvLayout::Blocked(block) => LayoutPolicy::Blocked(block),
                _ => LayoutPolicy::ChannelsLast,
            },
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

/// Something that a user is told while a compilation goes on, as a sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// What was decided.
    Note(&'a Notice),
    /// What is wrong on this machine and does not stop the compilation.
    Warning(&'a str),
}

/// What was decided for a user who did not say it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Notice {
    /// A size that the model leaves open, and what was taken for it. How to say another one depends on who is
    /// asked: an option of a command, an argument of a function.
    SizeTaken {
        /// The name of the dimension, or `INPUT.AXIS`.
        name: String,
        /// Elements along it.
        size: usize,
    },
    /// Anything else, as a sentence.
    Text(String),
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Notice::SizeTaken { name, size } => {
                write!(f, "the size `{name}` is open, and {size} is taken")
            }
            Notice::Text(text) => f.write_str(text),
        }
    }
}

/// What takes messages.
pub type Listener = Arc<dyn Fn(Message<'_>) + Send + Sync>;

/// What is called with a module whose layouts are about to be planned, and may measure what the plan
/// depends on.
pub type Measurer = Arc<dyn Fn(&Module, &Options) -> Result<()> + Send + Sync>;

/// Choices for a compilation: [`Options::default`] for this machine, all its cores, and the layouts that
/// are estimated to be the fastest for the whole model. Each choice has a method of its name:
///
/// ```
/// use tilewright_driver::{LayoutPolicy, Options};
/// let options = Options::new().threads(2).layout(LayoutPolicy::ChannelsLast).cache(false);
/// assert_eq!(options.thread_count()?, 2);
/// # Ok::<(), tilewright_driver::Error>(())
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct Options {
    /// Threads that a run uses; `None` for one a core.
    pub threads: Option<usize>,
    /// What makes the code.
    pub backend: Arc<dyn Backend>,
    /// The machine to make code for; `None` for this one.
    pub target: Option<Target>,
    /// How the tensors of the model lie in memory.
    pub layout: LayoutPolicy,
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
    /// Is told what was decided, and what is wrong and does not stop the compilation.
    pub listener: Option<Listener>,
    /// Measures before layouts are planned.
    pub measurer: Option<Measurer>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            threads: None,
            backend: registry::native(),
            target: None,
            layout: LayoutPolicy::default(),
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
            listener: None,
            measurer: None,
        }
    }
}

/// Methods that set the choice of their name.
macro_rules! setters {
    ($($name:ident: $of:ty),* $(,)?) => {
        impl Options {$(
            #[doc = concat!("Sets [`", stringify!($name), "`](field@Options::", stringify!($name), ").")]
            #[must_use]
            pub fn $name(mut self, $name: $of) -> Options {
                self.$name = $name.into();
                self
            }
        )*}
    };
}

setters! {
    threads: impl Into<Option<usize>>,
    backend: Arc<dyn Backend>,
    target: impl Into<Option<Target>>,
    layout: LayoutPolicy,
    io_layout: IoLayout,
    tuning: impl Into<Option<PathBuf>>,
    level: OptLevel,
    specialize: impl Into<Vec<BTreeMap<String, usize>>>,
    fuse: bool,
    schedule: bool,
    fast_math: impl Into<Option<f64>>,
    check: bool,
    unchecked: bool,
    cache: bool,
    link: impl Into<Vec<PathBuf>>,
    progress: Option<Watcher>,
    listener: Option<Listener>,
    measurer: Option<Measurer>,
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options")
            .field("threads", &self.threads)
            .field("backend", &self.backend.name())
            .field("target", &self.target)
            .field("layout", &self.layout)
            .field("io_layout", &self.io_layout)
            .field("tuning", &self.tuning)
            .field("level", &self.level)
            .field("specialize", &self.specialize)
            .field("fuse", &self.fuse)
            .field("schedule", &self.schedule)
            .field("fast_math", &self.fast_math)
            .field("check", &self.check)
            .field("unchecked", &self.unchecked)
            .field("cache", &self.cache)
            .field("link", &self.link)
            .finish_non_exhaustive()
    }
}

impl Options {
    /// The same as [`Options::default`].
    pub fn new() -> Options {
        Options::default()
    }

    /// The same choices for another backend, by the name of its target: `native` for this machine's
    /// processor, `opencl`, `opencl:NUMBER` or `opencl:NAME` for a device ([`registry::named`]).
    ///
    /// # Errors
    /// [`Error::Input`] for other names and devices that are not there, [`Error::Toolchain`] where there is no
    /// driver.
    pub fn on(self, target: &str) -> Result<Options> {
        Ok(self.backend(registry::named(target)?).target(None))
    }

    /// The choices for a target, by the backend that makes code for it.
    ///
    /// # Errors
    /// As [`Options::on`], for a device.
    pub fn of_target(target: &Target) -> Result<Options> {
        Ok(Options::new().backend(registry::of_target(target)?).target(target.clone()))
    }

    /// The machine to make code for, with the costs that this one was calibrated to where it was.
    ///
    /// # Errors
    /// Those of [`Backend::host`] and [`Backend::check_target`].
    pub fn resolve_target(&self) -> Result<Target> {
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
    /// Those of [`Options::resolve_target`].
    pub fn timings(&self) -> Result<Timings> {
        let (target, threads) = (self.resolve_target()?, self.thread_count()?);
        let read = self.tuning.as_deref().map(|file| Timings::read(&target, threads, file));
        Ok(match read {
            Some(Ok(timings)) => timings,
            Some(Err(error)) => {
                self.say(Message::Warning(&format!("no measurements: {error}")));
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
    ///
    /// # Errors
    /// [`Error::Input`] for none.
    pub fn thread_count(&self) -> Result<usize> {
        match self.threads {
            None => Ok(cores()),
            Some(0) => Err(Error::input("threads: at least one is needed")),
            Some(count) => Ok(count),
        }
    }

    /// What of them a backend takes.
    pub fn with_code_options<T>(&self, make: impl FnOnce(&CodeOptions<'_>) -> T) -> T {
        make(&CodeOptions {
            level: self.level,
            cache: self.cache,
            link: &self.link,
            watch: Some(&|done, total| self.tell("compile", done, total)),
            warn: Some(&|text| self.say(Message::Warning(text))),
        })
    }

    /// Tells who listens.
    pub(super) fn say(&self, message: Message<'_>) {
        if let Some(listener) = &self.listener {
            listener(message);
        }
    }

    /// Tells who watches that `done` of `total` parts of `what` are done.
    pub(super) fn tell(&self, what: &'static str, done: usize, total: usize) {
        if let Some(watcher) = &self.progress {
            watcher(Progress { what, done, total });
        }
    }
}

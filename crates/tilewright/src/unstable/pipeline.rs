//! The way from a module to native code, with its stages in sight.
//!
//! | stage | what it does |
//! |---|---|
//! | [`Stage::Assume`] | what functions assume is used, and the assumptions go |
//! | [`Stage::Fuse`] | elementwise work joins the functions that make its operands |
//! | [`Stage::Legalize`] | the graph takes the form that memory planning needs |
//! | [`Stage::Schedule`] | every function gets loops that suit the processor |
//! | [`Stage::Lower`] | blocks and multi-dimensional buffers become loops over flat memory |
//!
//! Each takes a module and gives a module, which can be printed and read back. After the last one it
//! is [`Lowered`](tilewright_ir::Lowered): the graph function becomes a plan
//! ([`tilewright_graph::plan_memory`]), and a [`Backend`] makes code of the tensor functions that the
//! plan calls.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use tilewright_analysis::at_once;
use tilewright_auto::auto_schedule;
use tilewright_auto::integer::expand;
use tilewright_codegen::LlvmBackend;
use tilewright_graph as graph;
use tilewright_graph::layout::fold::fold_conversions;
use tilewright_graph::layout::free::{mark_free, unmark};
use tilewright_graph::layout::precompute::precompute;
use tilewright_graph::layout::{Leave, lift_layout};
use tilewright_ir::{Error, Function, Module, Remarks, Result, well_formed};
use tilewright_schedule::auto::auto;
use tilewright_target::{Backend, CodeOptions, OptLevel, Target, cores};
use tilewright_transform::lower;
use tilewright_transform::pass::{Config, Pass, Run};

use super::layout::{IoLayout, Layout, evaluate};
use super::timings::Timings;
use super::{assume, derivations};

/// A stage from module to module, in the order in which they run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Stage {
    /// What functions assume is used, and the assumptions go.
    Assume,
    /// Elementwise work joins the functions that make its operands.
    Fuse,
    /// The graph takes the form that memory planning needs.
    Legalize,
    /// Functions get loops that suit the processor.
    Schedule,
    /// Blocks and multi-dimensional buffers become loops over flat memory.
    Lower,
}

impl Stage {
    /// Every stage, in order.
    pub const ALL: [Stage; 5] =
        [Stage::Assume, Stage::Fuse, Stage::Legalize, Stage::Schedule, Stage::Lower];

    /// The pass that it is; `None` for [`Stage::Schedule`], which is several.
    fn pass(self) -> Option<&'static Pass> {
        match self {
            Stage::Assume => Some(&assume::PASS),
            Stage::Fuse => Some(&graph::fuse::PASS),
            Stage::Legalize => Some(&graph::legalize::PASS),
            Stage::Schedule => None,
            Stage::Lower => Some(&lower::PASS),
        }
    }

    /// Its name, for people.
    pub fn name(self) -> &'static str {
        self.pass().map_or("schedule", |pass| pass.name)
    }

    /// Runs it.
    ///
    /// # Errors
    /// Those of the stage, and of [`Options::target`].
    pub fn run(self, module: &Module, options: &Options) -> Result<Module> {
        let Some(pass) = self.pass() else { return schedule(module, &options.target()?) };
        let config = match self {
            Stage::Lower => {
                let unchecked = u8::from(options.unchecked).to_string();
                Config::new().with(pass.key(lower::UNCHECKED.name), unchecked)
            }
            _ => Config::new(),
        };
        match pass.run {
            Run::Tensor(_) => derivations::of_pass(pass, module, &config),
            Run::Module(_) | Run::Traced(_) => pass.apply(module, &config, &mut Remarks::new()),
        }
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
    pub layout: Option<Layout>,
    /// Whether inputs and outputs may have other layouts than the model's own, too. Then
    /// [`Executable::inputs`](tilewright_runtime::Executable::inputs) and `outputs` say how each is
    /// stored, and the caller brings and takes them so.
    pub io_layout: IoLayout,
    /// The file of measurements ([`tune`](super::tune)) that plans of layouts use; `None` for
    /// estimates alone.
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

    /// The machine to make code for.
    ///
    /// # Errors
    /// Those of [`Backend::host`] and [`Backend::check_target`].
    pub fn target(&self) -> Result<Target> {
        let Some(target) = &self.target else { return self.backend.host() };
        self.backend.check_target(target)?;
        Ok(target.clone())
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

    /// A module in a layout.
    ///
    /// # Errors
    /// Those of [`Layout::apply`] and of [`Options::timings`].
    pub fn lay_out(&self, layout: Layout, module: &Module) -> Result<Module> {
        layout.apply(module, &self.timings()?, self.io_layout, &mut Remarks::new())
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

    fn wants(&self, stage: Stage) -> bool {
        match stage {
            Stage::Fuse => self.fuse,
            Stage::Schedule => self.schedule,
            Stage::Assume | Stage::Legalize | Stage::Lower => true,
        }
    }

    fn tell(&self, what: &'static str, done: usize, total: usize) {
        if let Some(watcher) = &self.progress {
            watcher(Progress { what, done, total });
        }
    }
}

/// Gives every function loops for a target: contractions by [`auto_schedule`], all else by [`auto`].
/// Products of 8-bit integers take a form first that instructions multiply ([`expand`]).
/// What is made and packed of constants for contractions is made now. The target says more than the options of the
/// passes can.
fn schedule(module: &Module, target: &Target) -> Result<Module> {
    // What a pass leaves as it was is for `opt --explain` to say.
    let mut why = Remarks::new();
    let what = format!("expand_products {target:?}");
    let expanded = derivations::each(&what, &mark_free(module), |_, f| {
        Ok(expand(f, target).map_or_else(|| f.clone(), Arc::new))
    })?;
    let expanded = precompute(&expanded, &mut evaluate)?;
    let what = format!("auto_schedule {target:?}");
    let tiled = derivations::each(&what, &mark_free(&expanded), |name, f| {
        let mut alone = Module { source: module.source.clone(), ..Module::new() };
        alone.functions.insert(name.clone(), Function::Tensor(f.clone()));
        auto_schedule(&alone, target, &mut Remarks::new())?.0.tensor(name).cloned()
    })?;
    let lifted = lift_layout(&tiled, Leave::Undef, &mut why)?;
    let is_lifted = |name: &str| !tiled.functions.contains_key(name);
    let packed = fold_conversions(&lifted, &is_lifted, &mut evaluate, &mut why)?;
    let what = format!("schedule_stages {target:?}");
    derivations::each(&what, &unmark(&packed), |_, f| Ok(Arc::new(auto(f, target))))
}

/// Checks that iterations of loops that run at once do not depend on one another, as far as that can
/// be seen.
///
/// # Errors
/// [`Error::Malformed`] with the loop and two iterations.
fn check_promises(module: &Module) -> Result<()> {
    module.tensors().try_for_each(|(name, f)| {
        at_once::check_promises(f).map_err(|e| {
            let e = e.context(format_args!("function `{name}`"));
            module.source.iter().fold(e, |e, source| e.in_source(source))
        })
    })
}

/// Checks the rules of the IR, where a failure is a bug of what gave the module. Functions may have
/// free integers: nothing can run such a function, but it can be transformed and printed.
pub(crate) fn check_after(what: &str, module: &Module) -> Result<()> {
    well_formed::check_open_module(module)
        .map_err(|e| Error::internal(format!("`{what}` broke a rule: {}", e.diagnostic().message)))
}

/// Runs the stages up to and including `until`. `after` sees the module after each.
///
/// # Errors
/// [`Error::Malformed`] if the module breaks a rule, those of the stages, and [`Error::Internal`] if a stage breaks a rule
/// ([`Options::check`]).
pub fn run_stages(
    module: &Module,
    options: &Options,
    until: Stage,
    mut after: impl FnMut(Stage, &Module) -> Result<()>,
) -> Result<Module> {
    well_formed::check_module(module)?;
    check_promises(module)?;
    let mut module = graph::call_sizes::unify_sizes(&graph::normal::name_outputs(module))?;
    let stages = Stage::ALL.into_iter().filter(|stage| *stage <= until);
    for stage in stages.filter(|stage| options.wants(*stage)) {
        options.tell(stage.name(), 0, 1);
        module = stage.run(&module, options)?;
        if stage == Stage::Legalize && graph::control::is_cut(&module) {
            // Functions have their last form but for loops.
            module = graph::control::mark_empty(&module);
        }
        if options.check {
            check_after(stage.name(), &module)?;
        }
        after(stage, &module)?;
    }
    Ok(module)
}

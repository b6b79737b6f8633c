//! The way from a module to native code, with its stages in sight.
//!
//! | stage | what it does |
//! |---|---|
//! | [`Stage::Assume`] | what functions assume is used, and the assumptions go |
//! | [`Stage::Fuse`] | elementwise work joins the functions that make its operands |
//! | [`Stage::Prepare`] | the graph takes the form that memory planning needs |
//! | [`Stage::Schedule`] | every function gets loops that suit the processor |
//! | [`Stage::Lower`] | blocks and multi-dimensional buffers become loops over flat memory |
//!
//! Each takes a module and gives a module, which can be printed and read back. Then the graph
//! function becomes a [`Plan`], the tensor functions that it calls become LLVM IR, and LLVM makes
//! them objects, several at a time.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tilewright_analysis::at_once;
use tilewright_codegen::cache::ObjectCache;
use tilewright_codegen::emit;
use tilewright_codegen::llvm::{Llvm, OptLevel, Target};
use tilewright_graph as graph;
use tilewright_ir::{Error, Module, Plan, Remarks, Result, TensorFunc, well_formed};
use tilewright_runtime::Symbol;
use tilewright_runtime::pool::cores;
use tilewright_schedule::auto;
use tilewright_transform::lower;
use tilewright_transform::lower::scratch::scratch_count;
use tilewright_transform::pass::{Config, Pass, each_tensor};

use crate::sizes;
use crate::{assume, layout};

/// A stage from module to module, in the order in which they run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// What functions assume is used, and the assumptions go.
    Assume,
    /// Elementwise work joins the functions that make its operands.
    Fuse,
    /// The graph takes the form that memory planning needs.
    Prepare,
    /// Functions get loops that suit the processor.
    Schedule,
    /// Blocks and multi-dimensional buffers become loops over flat memory.
    Lower,
}

impl Stage {
    /// Every stage, in order.
    pub const ALL: [Stage; 5] =
        [Stage::Assume, Stage::Fuse, Stage::Prepare, Stage::Schedule, Stage::Lower];

    /// The pass that it is.
    pub fn pass(self) -> &'static Pass {
        match self {
            Stage::Assume => &assume::PASS,
            Stage::Fuse => &graph::fuse::PASS,
            Stage::Prepare => &graph::prepare::PASS,
            Stage::Schedule => &tilewright_auto::PASS,
            Stage::Lower => &lower::PASS,
        }
    }

    /// Its name, for people.
    pub fn name(self) -> &'static str {
        match self {
            Stage::Schedule => "schedule",
            _ => self.pass().name,
        }
    }

    /// Runs it.
    ///
    /// # Errors
    /// Those of the stage, and of [`Options::target`].
    pub fn run(self, module: &Module, options: &Options) -> Result<Module> {
        if self == Stage::Schedule {
            return schedule(module, options);
        }
        let given = |option: &str, value: &str| Config::new().with(self.pass().key(option), value);
        let config = match self {
            Stage::Lower => given(lower::UNCHECKED.name, &u8::from(options.unchecked).to_string()),
            _ => Config::new(),
        };
        self.pass().apply(module, &config, &mut Remarks::new())
    }
}

/// Schedules for every function: contractions get register tiles, for which their constant operands
/// are packed now, and all other stages get their loops one by one.
fn schedule(module: &Module, options: &Options) -> Result<Module> {
    let machine = options.target()?.known_features().machine();
    let mut why = Remarks::new();
    let marked = graph::layout::mark_free(module);
    let (scheduled, trace) = tilewright_auto::auto_schedule(&marked, &machine, &mut why)?;
    let mut module = module.clone();
    if !trace.instructions.is_empty() {
        let lifted = graph::layout::lift_layout(&scheduled, graph::layout::Leave::Value, &mut why)?;
        module = layout::fold(&lifted, &mut why)?;
    }
    each_tensor(&module, |f| Ok(auto::auto(f, &machine)))
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
    /// The machine to generate code for; `None` for this one.
    pub target: Option<Target>,
    /// How much LLVM optimises.
    pub level: OptLevel,
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
            target: None,
            level: OptLevel::Full,
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
            target,
            level,
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
            .field("target", target)
            .field("level", level)
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

    /// The machine to generate code for.
    ///
    /// # Errors
    /// [`Error::Toolchain`] if it is this one and there is no LLVM to ask about it.
    /// [`Error::Input`] for a CPU or feature that LLVM does not know.
    pub fn target(&self) -> Result<Target> {
        let llvm = Llvm::get()?;
        let Some(target) = &self.target else { return Ok(llvm.host()) };
        llvm.check_target(target)?;
        Ok(target.clone())
    }

    /// Threads that a run uses.
    pub fn threads(&self) -> usize {
        if self.threads == 0 { cores() } else { self.threads }
    }

    /// The cache of compiled code.
    pub fn object_cache(&self) -> ObjectCache {
        if self.cache { ObjectCache::from_env() } else { ObjectCache::off() }
    }

    /// Hands on what a cache warned of.
    pub fn tell_warnings(&self, cache: &ObjectCache) {
        for warning in cache.take_warnings() {
            if let Some(warn) = &self.warn {
                warn(&warning);
            }
        }
    }

    fn wants(&self, stage: Stage) -> bool {
        match stage {
            Stage::Fuse => self.fuse,
            Stage::Schedule => self.schedule,
            Stage::Assume | Stage::Prepare | Stage::Lower => true,
        }
    }

    fn tell(&self, what: &'static str, done: usize, total: usize) {
        if let Some(watcher) = &self.progress {
            watcher(Progress { what, done, total });
        }
    }
}

/// Checks the rules of the IR. In a lowered module, whose functions may take more memory than their
/// callers know of, only the tensor functions are checked.
///
/// # Errors
/// [`Error::Malformed`] with the place.
pub fn check(module: &Module) -> Result<()> {
    if module.tensors().all(|(_, f)| scratch_count(f) == 0) {
        return well_formed::check_module(module);
    }
    let mut tensors = module.tensors();
    tensors.try_for_each(|(name, f)| {
        let checked = well_formed::check_tensor(name, f);
        checked.map_err(|e| module.source.iter().fold(e, |e, source| e.in_source(source)))
    })
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

/// [`check`] for passes, which may also work on functions with free integers: nothing can run
/// such a function, but it can be transformed and printed.
pub fn check_open(module: &Module) -> Result<()> {
    match module.tensors().all(|(_, f)| scratch_count(f) == 0) {
        true => well_formed::check_open_module(module),
        false => check(module),
    }
}

/// [`check`] where a failure is a bug of what gave the module.
pub(crate) fn check_after(what: &str, module: &Module) -> Result<()> {
    check_open(module)
        .map_err(|e| Error::internal(format!("`{what}` broke a rule: {}", e.diagnostic().message)))
}

/// Runs the stages up to and including `until`. `after` sees the module after each.
///
/// # Errors
/// [`Error::Malformed`] if the module breaks a rule, [`Error::Input`] if it leaves sizes open,
/// those of the stages, and [`Error::Internal`] if a stage breaks a rule
/// ([`Options::check`]).
pub fn run_stages(
    module: &Module,
    options: &Options,
    until: Stage,
    mut after: impl FnMut(Stage, &Module) -> Result<()>,
) -> Result<Module> {
    check(module)?;
    check_promises(module)?;
    let open = sizes::open(module);
    if !open.is_empty() {
        let (mut said, mut flags) = (Vec::new(), String::new());
        for name in &open {
            said.push(format!("`{name}`"));
            flags += &format!(" --dim {name}=SIZE");
        }
        return Err(Error::input(format!(
            "the module leaves these sizes open: {}",
            said.join(", ")
        ))
        .help(format!("give each a size:{flags}; or give the inputs")));
    }
    let mut module = graph::normal::name_outputs(module);
    let stages = Stage::ALL.into_iter().filter(|stage| *stage <= until);
    for stage in stages.filter(|stage| options.wants(*stage)) {
        options.tell(stage.name(), 0, 1);
        module = stage.run(&module, options)?;
        if options.check {
            check_after(stage.name(), &module)?;
        }
        after(stage, &module)?;
    }
    Ok(module)
}

/// The tensor functions that a plan calls, each once, and what its kernel is called.
#[derive(Clone, Debug)]
pub struct Kernels {
    /// Name, function, symbol.
    pub list: Vec<(Arc<str>, Arc<TensorFunc>, Symbol)>,
}

impl Kernels {
    /// Those of a plan over a lowered module, with symbols under a prefix.
    ///
    /// # Errors
    /// [`Error::Internal`] if the plan calls a function that the module does not have.
    pub fn of_plan(plan: &Plan, lowered: &Module, prefix: &str) -> Result<Kernels> {
        let mut seen = HashSet::new();
        let mut list = Vec::new();
        for step in &plan.steps {
            if !seen.insert(step.func.clone()) {
                continue;
            }
            let f = lowered.tensor(&step.func).map_err(|e| Error::internal(e.to_string()))?;
            let symbol = Symbol {
                name: emit::symbol(prefix, &step.func),
                assertions: emit::assertions(f),
                source: lowered.source.clone(),
            };
            list.push((step.func.clone(), f.clone(), symbol));
        }
        Ok(Kernels { list })
    }

    /// One module of LLVM IR for each kernel: so that they compile at the same time, and one that
    /// several models have is compiled once.
    ///
    /// # Errors
    /// Those of [`emit::module`].
    pub fn llvm_ir(&self, prefix: &str, target: &Target) -> Result<Vec<String>> {
        let one = |(name, f, _): &(Arc<str>, Arc<TensorFunc>, Symbol)| {
            emit::module_with_prefix(prefix, &[(name.clone(), &**f)], target)
        };
        self.list.iter().map(one).collect()
    }
}

/// Compiles modules of LLVM IR to object files, as many at a time as there are cores.
///
/// # Errors
/// Those of [`Llvm::compile`]; the first one in the order of the modules.
pub fn compile_objects(modules: &[String], options: &Options) -> Result<Vec<Vec<u8>>> {
    let llvm = Llvm::get()?;
    let target = options.target()?;
    let cache = options.object_cache();
    // The longest first, so that no thread is left alone with one at the end.
    let mut order: Vec<usize> = (0..modules.len()).collect();
    order.sort_by_key(|i| std::cmp::Reverse(modules[*i].len()));
    let objects: Vec<Mutex<Option<Result<Vec<u8>>>>> =
        modules.iter().map(|_| Mutex::new(None)).collect();
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    options.tell("compile", 0, modules.len());
    let work = || {
        while let Some(&i) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
            let object = cache.compile(llvm, &modules[i], &target, options.level);
            let failed = object.is_err();
            let object = object.map(|object| object.bytes);
            *objects[i].lock().unwrap_or_else(PoisonError::into_inner) = Some(object);
            if failed {
                next.store(order.len(), Ordering::Relaxed);
            }
            let done = done.fetch_add(1, Ordering::Relaxed) + 1;
            options.tell("compile", done, modules.len());
        }
    };
    std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for _ in 0..cores().min(modules.len()) {
            threads.extend(std::thread::Builder::new().spawn_scoped(scope, work));
        }
        if threads.is_empty() {
            work();
        }
    });
    options.tell_warnings(&cache);
    let mut results = Vec::with_capacity(objects.len());
    let mut missing = false;
    for object in objects {
        match object.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some(object) => results.push(object?),
            // Not compiled, because another one failed.
            None => missing = true,
        }
    }
    match missing {
        false => Ok(results),
        true => Err(Error::internal("a module was not compiled, and none failed")),
    }
}

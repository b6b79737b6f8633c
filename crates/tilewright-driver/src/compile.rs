//! From a module to something that runs.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use tilewright_graph::control::{self, Cut};
use tilewright_graph::sizes::{self, Sizes};
use tilewright_ir::{Lowered, Module, Result, TensorFunc, well_formed};
use tilewright_layout::begin;
use tilewright_layout::plan_memory;
use tilewright_runtime::MemoryPlan;
use tilewright_runtime::plan::program;
use tilewright_runtime::{Executable, Pool};
use tilewright_target::Code;

use super::options::IoLayout;
use super::options::Options;
use super::pipeline::{Stage, run_stages};

/// A module on its last step before code: a plan, and the functions that it calls.
#[derive(Clone, Debug)]
pub struct Program {
    /// The lowered module.
    pub module: Lowered,
    /// Which functions run in which order, and on what memory. Where there is control flow it has
    /// inputs and outputs alone.
    pub plan: MemoryPlan,
    /// What runs instead of the plan, where there is control flow.
    pub control: Option<Control>,
}

/// A program over pieces.
#[derive(Clone, Debug)]
pub struct Control {
    /// Which pieces run in which order.
    pub program: program::Program,
    /// Their plans.
    pub pieces: Vec<MemoryPlan>,
}

impl Program {
    /// What runs a lowered module.
    ///
    /// # Errors
    /// Those of memory planning, and of [`program`](tilewright_layout::memory::program).
    pub fn of(module: Lowered) -> Result<Program> {
        let entry = module.entry()?;
        if !module.has_control(entry) {
            let plan = plan_memory(&module, entry)?;
            return Ok(Program { module, plan, control: None });
        }
        let program = tilewright_layout::memory::program(&module, entry)?;
        let pieces = program.pieces.iter().map(|name| plan_memory(&module, name));
        let pieces = pieces.collect::<Result<_>>()?;
        let plan = program.signature.clone();
        Ok(Program { module, plan, control: Some(Control { program, pieces }) })
    }

    /// The plans that it runs.
    pub fn plans(&self) -> &[MemoryPlan] {
        match &self.control {
            Some(control) => &control.pieces,
            None => std::slice::from_ref(&self.plan),
        }
    }

    /// The names of the functions that the plans call, each once.
    pub fn called(&self) -> Vec<Arc<str>> {
        let mut seen = HashSet::new();
        let all = self.plans().iter().flat_map(MemoryPlan::functions);
        all.filter(|name| seen.insert(name.clone())).collect()
    }

    /// The functions that the plans call, each once, by name.
    ///
    /// # Errors
    /// [`Error::Internal`](tilewright_ir::Error::Internal) if a plan calls a function that is not there.
    pub fn functions(&self) -> Result<Vec<(Arc<str>, &TensorFunc)>> {
        let one = |name: Arc<str>| {
            let f = self.module.tensor(&name)?;
            Ok((name, &**f))
        };
        self.called().into_iter().map(one).collect()
    }

    /// An executable of the program.
    ///
    /// # Errors
    /// As [`Executable::new`].
    ///
    /// # Safety
    /// The code was made from the functions of the module.
    pub unsafe fn executable(&self, code: Arc<dyn Code>, pool: Arc<Pool>) -> Result<Executable> {
        // SAFETY: by contract the code is that of the functions that the plans were made for.
        unsafe {
            match &self.control {
                None => Executable::new(self.plan.clone(), code, pool),
                Some(Control { program, pieces }) => {
                    Executable::with_program(program.clone(), pieces.clone(), code, pool)
                }
            }
        }
    }
}

/// Lays out a module, takes it through all stages, and plans its memory. A graph function with control
/// flow is cut into pieces first; these are what is laid out.
///
/// # Errors
/// Those of [`run_stages`], of layouts, of [`control::cut`] and of memory planning.
pub fn lower_program(module: &Module, options: &Options) -> Result<Program> {
    lower_program_with(module, options, |module, io| {
        let options = Options { io_layout: io.unwrap_or(options.io_layout), ..options.clone() };
        Ok(options.lay_out(options.layout, &module)?.0)
    })
}

/// [`lower_program`] with layouts by `lay_out`; it is told how inputs and outputs lie where it may not
/// choose.
///
/// # Errors
/// As [`lower_program`], and those of `lay_out`.
pub fn lower_program_with(
    module: &Module,
    options: &Options,
    lay_out: impl FnOnce(Module, Option<IoLayout>) -> Result<Module>,
) -> Result<Program> {
    Program::of(Lowered::new(staged(module, options, Stage::Lower, lay_out)?)?)
}

/// A module after some of the stages, laid out before by `lay_out`. Control flow is cut: the entry calls
/// pieces, which are what is laid out and goes through the stages.
///
/// # Errors
/// As [`lower_program_with`].
pub fn staged(
    module: &Module,
    options: &Options,
    until: Stage,
    lay_out: impl FnOnce(Module, Option<IoLayout>) -> Result<Module>,
) -> Result<Module> {
    let entry = module.entry()?;
    let stages = |module: &Module| run_stages(module, options, until, |_, _| Ok(()));
    if !module.has_control(entry) {
        return stages(&lay_out(module.clone(), None)?);
    }
    well_formed::check_module(module)?;
    let Cut { module, name, entry } = control::cut(&begin(module), entry)?;
    // The ends of pieces are the model's own, so they stay logical.
    let pieces = stages(&lay_out(module, Some(IoLayout::Logical))?)?;
    Ok(Cut::join(pieces, name, entry))
}

/// The pieces into which control flow of a module is cut, each of which is planned by itself; `None` for
/// a module without.
///
/// # Errors
/// Those of [`control::cut`], and [`Error::Malformed`](tilewright_ir::Error::Malformed) if the module
/// breaks a rule.
pub fn pieces(module: &Module) -> Result<Option<Module>> {
    match module.entry() {
        Ok(entry) if module.has_control(entry) => {
            well_formed::check_module(module)?;
            Ok(Some(control::cut(&begin(module), entry)?.module))
        }
        _ => Ok(None),
    }
}

/// Compiles a module and loads it into this process.
///
/// # Errors
/// [`Error::Malformed`](tilewright_ir::Error::Malformed) if the module breaks a rule,
/// [`Error::Input`](tilewright_ir::Error::Input) if no input says a size that is needed,
/// [`Error::Unsupported`](tilewright_ir::Error::Unsupported) if it uses what the target does not have,
/// or is to be for a machine whose features this one lacks,
/// [`Error::Toolchain`](tilewright_ir::Error::Toolchain) if the backend lacks what it needs.
///
/// ```
/// use tilewright_driver::{Options, Sizes, Tensor, compile, parse};
/// let module = parse(r#"
/// @T.prim_func
/// def double(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
///     for i in range(4):
///         with T.block("B"):
///             vi = T.axis.spatial(4, i)
///             B[vi] = A[vi] * T.float32(2)
/// "#, &Sizes::new())?;
/// let executable = compile(&module, &Options::default())?;
/// let x = Tensor::from_slice(&[4], &[1.0f32, 2.0, 3.0, 4.0])?;
/// let outputs = executable.run(&[x])?;
/// assert_eq!(outputs[0].as_slice::<f32>(), Some(&[2.0, 4.0, 6.0, 8.0][..]));
/// # Ok::<(), tilewright_driver::Error>(())
/// ```
pub fn compile(module: &Module, options: &Options) -> Result<Executable> {
    options.backend.check_host(&options.target()?)?;
    if !options.specialize.is_empty() {
        return compile_versions(module, options);
    }
    load_program(&lower_program(module, options)?, options)
}

/// Makes code of a program and loads it into this process.
///
/// # Errors
/// As [`compile`].
pub fn load_program(program: &Program, options: &Options) -> Result<Executable> {
    let (backend, target) = (&options.backend, options.target()?);
    backend.check_host(&target)?;
    let functions = program.called();
    let code =
        options.with_code_options(|o| backend.compile(&program.module, &functions, &target, o))?;
    let pool = Pool::shared(options.threads())?;
    // SAFETY: the code was made from the functions of the module.
    unsafe { program.executable(code, pool) }
}

/// A module for some of the sizes that it leaves open, by name or as `INPUT.AXIS`.
///
/// # Errors
/// [`Error::Input`](tilewright_ir::Error::Input) for sizes that it does not leave open, and those that do not fit one another.
pub fn specialized(module: &Module, dims: &BTreeMap<String, usize>) -> Result<Module> {
    sizes::fill(module, &Sizes { dims: dims.clone(), ..Sizes::new() })
}

/// Compiles a module, and once more for each of the sizes that it is to be specialized for.
fn compile_versions(module: &Module, options: &Options) -> Result<Executable> {
    let plain = Options { specialize: Vec::new(), ..options.clone() };
    let version = |dims| compile(&specialized(module, dims)?, &plain);
    let versions = options.specialize.iter().map(version).collect::<Result<_>>()?;
    compile(module, &plain)?.with_versions(versions)
}

//! From a module to something that runs.

use std::collections::BTreeMap;
use std::sync::Arc;

use tilewright_graph::control::{self, Cut};
use tilewright_graph::normal::name_outputs;
use tilewright_graph::plan_memory;
use tilewright_graph::sizes::{self, Sizes};
use tilewright_ir::{Error, Lowered, Module, OpenPlan, Result, TensorFunc, well_formed};
use tilewright_runtime::{Executable, Pool};

use super::layout::IoLayout;
use super::pipeline::{Options, Stage, run_stages};

/// A module on its last step before code: a plan, and the functions that it calls.
#[derive(Clone, Debug)]
pub struct Program {
    /// The lowered module.
    pub module: Lowered,
    /// Which functions run in which order, and on what memory.
    pub plan: OpenPlan,
}

impl Program {
    /// The functions that the plan calls, each once, by name.
    ///
    /// # Errors
    /// [`Error::Internal`] if the plan calls a function that is not there.
    pub fn functions(&self) -> Result<Vec<(Arc<str>, &TensorFunc)>> {
        let one = |name: Arc<str>| {
            let f = self.module.tensor(&name)?;
            Ok((name, &**f))
        };
        self.plan.functions().into_iter().map(one).collect()
    }
}

/// Takes a module through all stages and plans its memory.
///
/// # Errors
/// Those of [`run_stages`] and of memory planning, and [`Error::Unsupported`] where there is control
/// flow, which takes more than one plan.
pub fn lower_program(module: &Module, options: &Options) -> Result<Program> {
    let entry = module.entry()?;
    if control::has_control(module, entry) {
        return Err(Error::unsupported(format!(
            "`{entry}` has control flow, or sizes that data decide: it is several plans"
        ))
        .help("run it in this process instead: `tilewright run`, or `compile` of the library"));
    }
    let module = Lowered::new(run_stages(module, options, Stage::Lower, |_, _| Ok(()))?)?;
    let plan = plan_memory(&module, module.entry()?)?;
    Ok(Program { module, plan })
}

/// Compiles a module and loads it into this process.
///
/// # Errors
/// [`Error::Malformed`] if the module breaks a rule,
/// [`Error::Input`] if no input says a size that is needed,
/// [`Error::Unsupported`] if it uses what the target does not have,
/// or is to be for a machine whose features this one lacks,
/// [`Error::Toolchain`] if the backend lacks what it needs.
///
/// ```
/// use tilewright::{Options, Sizes, Tensor, compile, parse};
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
/// # Ok::<(), tilewright::Error>(())
/// ```
pub fn compile(module: &Module, options: &Options) -> Result<Executable> {
    options.backend.check_host(&options.target()?)?;
    if !options.specialize.is_empty() {
        return compile_versions(module, options);
    }
    if has_control(module)? {
        return compile_control(module, &module.entry()?.clone(), options);
    }
    let laid_out = options.layout.map(|layout| options.lay_out(layout, module)).transpose()?;
    load_program(&lower_program(laid_out.as_ref().unwrap_or(module), options)?, options)
}

/// Whether running a module takes more than one plan: its entry has branches, loops, or sizes that
/// data decide.
///
/// # Errors
/// [`Error::Input`] where the module has no entry.
pub fn has_control(module: &Module) -> Result<bool> {
    Ok(control::has_control(module, module.entry()?))
}

/// Makes code of a program and loads it into this process.
///
/// # Errors
/// As [`compile`].
pub fn load_program(program: &Program, options: &Options) -> Result<Executable> {
    let (backend, target) = (&options.backend, options.target()?);
    backend.check_host(&target)?;
    let functions = program.plan.functions();
    let code =
        options.with_code_options(|o| backend.compile(&program.module, &functions, &target, o))?;
    let pool = Pool::shared(options.threads())?;
    // SAFETY: the code was made from the functions that the plan was made for.
    unsafe { Executable::new(program.plan.clone(), code, pool) }
}

/// A module for some of the sizes that it leaves open, by name or as `INPUT.AXIS`.
///
/// # Errors
/// [`Error::Input`] for sizes that it does not leave open, and those that do not fit one another.
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

/// Compiles a graph function with control flow: each of its pieces becomes a plan, and all kernels one
/// code.
fn compile_control(module: &Module, entry: &str, options: &Options) -> Result<Executable> {
    well_formed::check_module(module)?;
    let Cut { module, program } = control::cut(&name_outputs(module), entry)?;
    let target = options.target()?;
    // The ends of pieces are the model's own, so they stay logical.
    let logical = Options { io_layout: IoLayout::Logical, ..options.clone() };
    let laid_out = match options.layout {
        Some(layout) => logical.lay_out(layout, &module)?,
        None => module,
    };
    let module = Lowered::new(run_stages(&laid_out, options, Stage::Lower, |_, _| Ok(()))?)?;
    let plans: Vec<OpenPlan> =
        program.pieces.iter().map(|name| plan_memory(&module, name)).collect::<Result<_>>()?;
    let mut functions: Vec<Arc<str>> = plans.iter().flat_map(OpenPlan::functions).collect();
    functions.sort();
    functions.dedup();
    let code =
        options.with_code_options(|o| options.backend.compile(&module, &functions, &target, o))?;
    let pool = Pool::shared(options.threads())?;
    // SAFETY: the code was made from the functions that the plans were made for.
    unsafe { Executable::with_program(program, plans, code, pool) }
}

//! From a module to something that runs.

use std::collections::HashMap;
use std::sync::Arc;

use tilewright_codegen::emit;
use tilewright_codegen::llvm::{Jit, Llvm};
use tilewright_ir::{Module, Plan, Result};
use tilewright_runtime::{Executable, Pool, Symbol};

use crate::pipeline::{Kernels, Options, Stage, compile_objects, run_stages};

/// A module on its last step before machine code: a plan, and the functions that it calls.
#[derive(Clone, Debug)]
pub struct Program {
    /// The lowered module.
    pub module: Module,
    /// Which kernels run in which order, and on what memory.
    pub plan: Plan,
    /// The functions that the plan calls.
    pub kernels: Kernels,
}

/// Takes a module through all stages and plans its memory. Kernels have symbols under `prefix`.
///
/// # Errors
/// Those of [`run_stages`] and of memory planning.
pub fn lower_program(module: &Module, options: &Options, prefix: &str) -> Result<Program> {
    let module = run_stages(module, options, Stage::Lower, |_, _| Ok(()))?;
    let entry = module.entry()?.clone();
    let plan = tilewright_graph::plan_memory(&module, &entry)?;
    let kernels = Kernels::of_plan(&plan, &module, prefix)?;
    Ok(Program { module, plan, kernels })
}

/// Compiles a module and loads it into this process.
///
/// # Errors
/// [`Error::Malformed`](crate::Error::Malformed) if the module breaks a rule,
/// [`Error::Input`](crate::Error::Input) if it leaves sizes open,
/// [`Error::Unsupported`](crate::Error::Unsupported) if it uses what native code cannot do,
/// or is to be for a machine whose features this one lacks,
/// [`Error::Toolchain`](crate::Error::Toolchain) if there is no LLVM.
///
/// ```
/// use tilewright::{Module, ModuleExt, Options, Tensor, compile};
/// let module = Module::from_script(r#"
/// @T.prim_func
/// def double(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
///     for i in range(4):
///         with T.block("B"):
///             vi = T.axis.spatial(4, i)
///             B[vi] = A[vi] * T.float32(2)
/// "#)?;
/// let executable = compile(&module, &Options::default())?;
/// let x = Tensor::from_slice(&[4], &[1.0f32, 2.0, 3.0, 4.0])?;
/// let outputs = executable.run(&[x])?;
/// assert_eq!(outputs[0].as_slice::<f32>(), Some(&[2.0, 4.0, 6.0, 8.0][..]));
/// # Ok::<(), tilewright::Error>(())
/// ```
pub fn compile(module: &Module, options: &Options) -> Result<Executable> {
    let target = options.target()?;
    Llvm::get()?.check_host(&target)?;
    let Program { plan, kernels, .. } = lower_program(module, options, emit::PREFIX)?;
    let objects = compile_objects(&kernels.llvm_ir(emit::PREFIX, &target)?, options)?;
    let jit = Jit::new(Llvm::get()?)?;
    objects.iter().try_for_each(|object| jit.add_object(object))?;
    options.link.iter().try_for_each(|file| jit.add_file(file))?;
    let symbols: HashMap<Arc<str>, Symbol> =
        kernels.list.into_iter().map(|(name, _, symbol)| (name, symbol)).collect();
    let pool = Pool::shared(options.threads())?;
    // SAFETY: the objects were made from the functions of this plan, or are the cached ones for the
    // very same text.
    unsafe { Executable::new(plan, Arc::new(jit), &symbols, pool) }
}

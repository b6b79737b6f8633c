//! Programs: lowered modules with the memory plans that run them.

use std::sync::Arc;
use tilewright_ir::hash::HashSet;

use tilewright_ir::{Lowered, Result, TensorFunc};
use tilewright_layout::plan_memory;
use tilewright_runtime::plan::program;
use tilewright_runtime::{Executable, MemoryPlan, Pool};
use tilewright_target::Code;

use super::options::Options;

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
    pub fn plan(module: Lowered) -> Result<Program> {
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
        let mut seen = HashSet::default();
        let all = self.plans().iter().flat_map(MemoryPlan::functions);
        all.filter(|name| seen.insert(name.clone())).collect()
    }

    /// The functions that the plans call, each once, by name.
    ///
    /// # Errors
    /// [`Error::Internal`](tilewright_ir::Error::Internal) if a plan calls a function that is not there.
    pub fn functions(&self) -> Result<Vec<(Arc<str>, &TensorFunc)>> {
        self.called()
            .into_iter()
            .map(|name| {
                let f = self.module.tensor(&name)?;
                Ok((name, &**f))
            })
            .collect()
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

    /// Makes code of the program and loads it into this process.
    ///
    /// # Errors
    /// As [`Session::compile`](super::session::Session::compile).
    pub fn load(&self, options: &Options) -> Result<Executable> {
        let (backend, target) = (&options.backend, options.resolve_target()?);
        backend.check_host(&target)?;
        let functions = self.called();
        let code =
            options.with_code_options(|o| backend.compile(&self.module, &functions, &target, o))?;
        let pool = Pool::shared(options.thread_count()?)?;
        // SAFETY: the code was made from the functions of the module.
        unsafe { self.executable(code, pool) }
    }
}

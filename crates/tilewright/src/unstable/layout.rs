//! Layouts for whole models, from the choice of a policy to what is left to convert at run time.

use tilewright_graph::layout::fold::{DEFAULT_GROWTH, interpret};
use tilewright_graph::layout::policy::{self, Policy};
use tilewright_graph::layout::{Left, cancel_layout, fold_constant};
use tilewright_graph::normal::name_outputs;
use tilewright_ir::{Module, Remarks, Result, Tensor, TensorFunc, well_formed};

use super::compile::compile;
use super::pipeline::{Options, check_after};

/// Constants of fewer bytes are made by the interpreter, before LLVM would be done compiling.
const SMALL: usize = 1 << 18;

/// The module with its convolutions in the layout of a policy, everything else as it follows, and
/// constants converted; and the conversions that are left, each with its reason. What could not
/// follow is added to `why`.
///
/// # Errors
/// [`Error::Malformed`](crate::Error::Malformed) if the module breaks a rule, and those of the
/// passes.
pub fn apply(module: &Module, policy: Policy, why: &mut Remarks) -> Result<(Module, Vec<Left>)> {
    well_formed::check_module(module)?;
    let (module, left) = policy::apply(&name_outputs(module), policy, why)?;
    check_after("flow_layout", &module)?;
    let module = cancel_layout(&module, why)?;
    check_after("cancel_layout", &module)?;
    let module = fold_constant(&module, DEFAULT_GROWTH as usize, &mut evaluate, why)?;
    check_after("fold_constant", &module)?;
    Ok((module, left))
}

/// Runs a function on constants: natively where that pays.
fn evaluate(func: &TensorFunc, args: &[Tensor]) -> Result<Vec<Tensor>> {
    if args.iter().map(|t| t.bytes().len()).sum::<usize>() < SMALL {
        return interpret(func, args);
    }
    let mut module = Module::new();
    module.insert("main", func.clone());
    compile(&module, &Options::default())?.run(args)
}

//! Layouts for whole models, from the choice of a policy to what is left to convert at run time.

use std::collections::HashMap;

use tilewright_graph::layout::fold::{DEFAULT_GROWTH, interpret};
use tilewright_graph::layout::free::constant_arguments;
use tilewright_graph::layout::policy::{self, Policy};
use tilewright_graph::layout::{Left, cancel_layout, fold_constant};
use tilewright_graph::normal::name_outputs;
use tilewright_ir::{Error, Module, Remarks, Result, Tensor, TensorFunc, well_formed};
use tilewright_target::Target;

use super::compile::compile;
use super::pipeline::{Options, check_after};

/// Constants of fewer bytes are made by the interpreter, before LLVM would be done compiling.
const SMALL: usize = 1 << 18;

/// The module with its convolutions in the layout of a policy, everything else as it follows, and
/// constants converted; and the conversions that are left, each with its reason. What could not
/// follow is added to `why`.
///
/// # Errors
/// [`Error::Malformed`] if the module breaks a rule, and those of the
/// passes.
pub fn apply(module: &Module, policy: Policy, why: &mut Remarks) -> Result<(Module, Vec<Left>)> {
    well_formed::check_module(module)?;
    let (module, left) = policy::apply(&name_outputs(module), policy, why)?;
    check_after("flow_layout", &module)?;
    let module = cancel_layout(&module, why)?;
    check_after("cancel_layout", &module)?;
    Ok((folded(&module, why)?, left))
}

/// A module whose constants are converted.
fn folded(module: &Module, why: &mut Remarks) -> Result<Module> {
    let module = fold_constant(module, DEFAULT_GROWTH as usize, &mut evaluate, why)?;
    check_after("fold_constant", &module)?;
    Ok(module)
}

/// A module in the layout that is estimated to be the fastest: its own, or channels last, where that
/// saves 5 % or more. Second, the conversions that are left. A module without convolutions
/// stays as it is, and so does every module where libisl is missing.
///
/// # Errors
/// As [`apply`].
pub fn choose(module: &Module, target: &Target, why: &mut Remarks) -> Result<(Module, Vec<Left>)> {
    well_formed::check_module(module)?;
    let policy = Policy::ChannelsLast;
    let own = || Ok((module.clone(), Vec::new()));
    if module.graphs().next().is_none()
        || !module.tensors().any(|(_, f)| policy.layouts(f).is_some())
    {
        return own();
    }
    let named = name_outputs(module);
    let (laid_out, left) = match policy::apply(&named, policy, why) {
        Err(Error::Toolchain(_)) => return own(),
        result => result?,
    };
    let laid_out = cancel_layout(&laid_out, why)?;
    match price(&laid_out, target) < price(&named, target) * (1.0 - WORTH) {
        true => Ok((folded(&laid_out, why)?, left)),
        false => own(),
    }
}

/// The part of the estimated time that a layout must save: estimates are no better than that.
const WORTH: f64 = 0.05;

/// Estimated cycles of a run of all graph functions of a module.
fn price(module: &Module, target: &Target) -> f64 {
    let mut known: HashMap<(&str, Vec<bool>), f64> = HashMap::new();
    let mut all = 0.0;
    for (name, given) in module.graphs().flat_map(|(_, graph)| constant_arguments(graph, true)) {
        // What depends on constants only is computed when compiling.
        if given.iter().all(|is| *is) {
            continue;
        }
        let Ok(f) = module.tensor(name) else { continue };
        let cost = known.entry((name, given)).or_insert_with_key(|(_, given)| {
            let free = (0..given.len()).filter(|k| given[*k]).collect();
            tilewright_auto::price::price(f, &free, target)
        });
        all += *cost;
    }
    all
}

/// Runs a function on constants: natively where that pays.
pub(super) fn evaluate(func: &TensorFunc, args: &[Tensor]) -> Result<Vec<Tensor>> {
    if args.iter().map(|t| t.bytes().len()).sum::<usize>() < SMALL {
        return interpret(func, args);
    }
    let mut module = Module::new();
    module.insert("main", func.clone());
    compile(&module, &Options::default())?.run(args)
}

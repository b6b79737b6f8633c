//! `fold_constant`: calls whose arguments are constants are run when compiling, conversions among
//! them directly.
//!
//! Weights are packed so: a conversion of a constant is a constant in another layout. Running it is
//! moving its elements (`apply`), whatever code the function has.

use tilewright_graph::fold::{self, DEFAULT_GROWTH, Evaluate, interpret};
use tilewright_ir::{Module, Remarks, Result, Tensor, TensorFunc};
use tilewright_transform::pass::{Number, Pass, Run};

use super::apply::apply;
use super::recognise::conversion;

/// How much larger folded constants may be.
const GROWTH: Number = Number {
    name: "growth",
    summary: "bytes by which a result may exceed its arguments",
    default: DEFAULT_GROWTH,
    most: u32::MAX,
};

/// `fold_constant` by name.
pub const PASS: Pass = Pass {
    name: "fold_constant",
    summary: "run calls of constants now",
    options: &[&GROWTH],
    run: Run::Module(|module, given, why| {
        fold_constant(module, given.get(&GROWTH)? as usize, &mut interpret, why)
    }),
};

/// Runs calls of constants in every graph function of a module. Those in which something changes
/// come back in normal form.
///
/// # Errors
/// Those of [`normalize`](tilewright_graph::normal::normalize).
pub fn fold_constant(
    module: &Module,
    growth: usize,
    evaluate: &mut Evaluate<'_>,
    why: &mut Remarks,
) -> Result<Module> {
    fold::fold_constant(module, growth, &mut moving_directly(evaluate), why)
}

/// The same for calls of conversions among some functions only, whatever their results take. All
/// else stays as it is, so that a module whose results have memory of their own keeps that form.
///
/// # Errors
/// As [`fold_constant`].
pub fn fold_conversions(
    module: &Module,
    of: &dyn Fn(&str) -> bool,
    evaluate: &mut Evaluate<'_>,
    why: &mut Remarks,
) -> Result<Module> {
    fold::fold_calls(
        module,
        &mut |name, f| of(name) && conversion(f).is_some(),
        &mut |f, args| run(f, args, evaluate),
        why,
    )
}

/// Runs conversions by moving elements, and all other functions by `evaluate`.
pub fn moving_directly<'a>(
    evaluate: &'a mut Evaluate<'_>,
) -> impl FnMut(&TensorFunc, &[Tensor]) -> Result<Vec<Tensor>> + 'a {
    |f, args| run(f, args, evaluate)
}

/// Runs a conversion by moving elements, and any other function by `evaluate`.
fn run(f: &TensorFunc, args: &[Tensor], evaluate: &mut Evaluate<'_>) -> Result<Vec<Tensor>> {
    if let [arg] = args
        && let Some(moved) = conversion(f).and_then(|c| apply(&c, arg))
    {
        return Ok(vec![moved]);
    }
    evaluate(f, args)
}

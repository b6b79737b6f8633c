//! Layouts for whole models, from the choice of a policy to what is left to convert at run time.

use tilewright_graph::layout::fold::{DEFAULT_GROWTH, interpret};
use tilewright_graph::layout::policy::{self, Policy};
use tilewright_graph::layout::{Left, cancel_layout, fold_constant};
use tilewright_ir::{Module, Remarks, Result};

use crate::pipeline::{check, check_after};

/// The module with its convolutions in the layout of a policy, everything else as it follows, and
/// constants converted; and the conversions that are left, each with its reason. What could not
/// follow is added to `why`.
///
/// # Errors
/// [`Error::Malformed`](crate::Error::Malformed) if the module breaks a rule, and those of the
/// passes.
pub fn apply(module: &Module, policy: Policy, why: &mut Remarks) -> Result<(Module, Vec<Left>)> {
    check(module)?;
    let (module, left) = policy::apply(module, policy, why)?;
    check_after("flow_layout", &module)?;
    let module = cancel_layout(&module, why)?;
    check_after("cancel_layout", &module)?;
    let module = fold_constant(&module, DEFAULT_GROWTH, &mut interpret, why)?;
    check_after("fold_constant", &module)?;
    Ok((module, left))
}

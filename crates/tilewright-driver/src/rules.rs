//! The rules of the IR, checked behind passes and stages.

use tilewright_ir::{Error, Module, Result, well_formed};

/// Checks the rules of the IR, where a failure is a bug of what gave the module. Functions may have
/// free integers: nothing can run such a function, but it can be transformed and printed.
pub(crate) fn check_after(what: &str, module: &Module) -> Result<()> {
    well_formed::check_open_module(module)
        .map_err(|e| Error::internal(format!("`{what}` broke a rule: {}", e.diagnostic().message)))
}

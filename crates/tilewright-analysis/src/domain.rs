//! The domain of a function before its loops: what is known of its sizes.

use tilewright_ir::{Result, TensorFunc};
use tilewright_sets::{Domain, Engine};

/// A function's domain without loops: its sizes are not negative.
///
/// # Errors
/// `Toolchain` where libisl is missing.
pub fn sizes(func: &TensorFunc) -> Result<Domain> {
    let mut base = Engine::new()?.domain();
    for dim in func.buffers().flat_map(|b| &b.shape) {
        if dim.as_int().is_none() && dim.effects().constant() {
            base = base.with_guard(&dim.clone().greater_equal(0));
        }
    }
    Ok(base)
}

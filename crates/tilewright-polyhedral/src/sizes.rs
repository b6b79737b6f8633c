//! The domain of a function before its loops: what is known of its sizes, and which of its
//! variables hold data.

use crate::{Domain, Engine};
use tilewright_ir::dim::SizeRange;
use tilewright_ir::{Result, TensorFunc, data};

/// An engine that knows which variables of a function hold data, so that arithmetic on them wraps.
///
/// # Errors
/// `Toolchain` where libisl is missing.
pub fn engine(func: &TensorFunc) -> Result<Engine> {
    Ok(Engine::new()?.with_data(data::variables(func)))
}

/// A function's domain without loops: its sizes are not negative, and in their ranges.
///
/// # Errors
/// `Toolchain` where libisl is missing.
pub fn sizes(func: &TensorFunc) -> Result<Domain> {
    let mut base = engine(func)?.domain();
    for dim in func.buffers().flat_map(|b| &b.shape) {
        if dim.as_int().is_none() && dim.effects().constant() {
            base = base.with_guard(&dim.clone().greater_equal(0));
        }
    }
    for v in func.sizes().into_iter().filter(|v| v.range() != SizeRange::ALL) {
        let (least, most) = (v.range().least() as i64, v.range().most() as i64);
        base = base.with_guard(&v.expr().greater_equal(least).and(v.expr().less_equal(most)));
    }
    Ok(base)
}

//! The use of what functions assume, before compilation begins.
//!
//! Fusion and automatic schedules take functions in canonical form, and `T.assume` is no part of it.
//! What an assumption allows is done first: simpler expressions, and guards that go. Then it goes
//! itself, as it would when lowering.

use tilewright_ir::{Error, Remarks, Result, TensorFunc};
use tilewright_transform::pass::{Pass, Run};
use tilewright_transform::{overcompute, placeholder, simplify};

/// `use_assume` by name.
pub const PASS: Pass = Pass {
    name: "use_assume",
    summary: "do what assumptions allow, as simplify and overcompute do it, and drop them",
    options: &[],
    run: Run::Tensor(|f, _, why| use_assume(f, why)),
};

/// Does what the assumptions of a function allow, and drops them. Without any, the function stays
/// as it is; without libisl, they are just dropped.
///
/// # Errors
/// `Refused` for an assumption that is provably false.
pub fn use_assume(func: &TensorFunc, why: &mut Remarks) -> Result<TensorFunc> {
    if !func.body.effects().assumes {
        return Ok(func.clone());
    }
    let used = simplify::simplify(func, simplify::SimplifyOptions::default(), why).and_then(|f| {
        overcompute::remove_branching(&f, &overcompute::OvercomputeOptions::default(), why)
    });
    match used {
        Ok(f) => Ok(placeholder::remove_assume(&f)),
        Err(Error::Toolchain(_)) => Ok(placeholder::remove_assume(func)),
        Err(e) => Err(e),
    }
}

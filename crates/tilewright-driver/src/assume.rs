//! The use of what functions assume, before compilation begins.
//!
//! Fusion and automatic schedules take functions in canonical form, and `T.assume` is no part of it.
//! What an assumption allows is done first: simpler expressions, and guards that go. Then it goes
//! itself, as it would when lowering.

use tilewright_ir::{Remarks, Result, TensorFunc};
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
/// as it is.
///
/// # Errors
/// `Refused` for an assumption that is provably false.
pub fn use_assume(func: &TensorFunc, why: &mut Remarks) -> Result<TensorFunc> {
    if !func.body.effects().assumes {
        return Ok(func.clone());
    }
    let func = simplify::simplify(func, simplify::SimplifyOptions::default(), why)?;
    let options = overcompute::OvercomputeOptions::default();
    let func = overcompute::remove_branching(&func, &options, why)?;
    Ok(placeholder::remove_assume(&func))
}

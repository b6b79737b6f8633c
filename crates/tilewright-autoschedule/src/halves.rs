//! Products of 16-bit floats whose factors are widened once.
//!
//! A product of halves is a sum of `float32`. Where a factor is used for many places of the result, converting it
//! where it is multiplied takes as long as multiplying. So what is not the same in every run is widened before, by a
//! stage of its own; weights stay as they are, half as many bytes, and are widened in registers, where one
//! conversion serves all rows of a tile.
//!
//! ```text
//! for i, j, k: c[i, j] += f32(a[i, k]) * f32(w[k, j])      for i, k: a_wide[i, k] = f32(a[i, k])
//!                                                          for i, j, k: c[i, j] += a_wide[i, k] * f32(w[k, j])
//! ```

use tilewright_analysis::{Stage, open_stages};
use tilewright_ir::{Buffer, DType, Expr, ExprKind, IterKind, Stmt, TensorFunc};
use tilewright_target::Target;

use crate::canonical::mapped;

/// Places of the result for each of which a factor is used from which on it is widened before.
const OFTEN: usize = 8;

/// Whether it is a float of 16 bits.
pub(crate) fn is_half(dtype: DType) -> bool {
    matches!(dtype, DType::F16 | DType::BF16)
}

/// The function with factors of products of halves widened before; `None` where that is of no use, or the machine
/// multiplies them as they are. `is_free` says which buffers are the same in every run.
pub(crate) fn widen(
    func: &TensorFunc,
    target: &Target,
    is_free: &dyn Fn(&Buffer) -> bool,
) -> Option<TensorFunc> {
    let stages = open_stages(func)?;
    let (mut allocs, mut stmts) = (func.root_parts().0.to_vec(), Vec::new());
    let mut changed = false;
    for stage in &stages {
        let mut stage = stage.clone();
        for from in often_used(&stage, target, is_free) {
            let (wide, made) = mapped(&from, "wide", DType::F32, |x, _| x)?;
            let value = stage.value.replace(|e| match e.kind() {
                ExprKind::Cast(x) => match x.kind() {
                    ExprKind::Load(b, at) if *b == from => Some(wide.load(at.clone())),
                    _ => None,
                },
                _ => None,
            });
            stage = stage.with_value(value);
            stmts.push(made.stmt);
            allocs.push(wide);
            changed = true;
        }
        stmts.push(stage.stmt);
    }
    changed.then(|| func.with_root(allocs, Stmt::seq(stmts)))
}

/// The halves that a stage multiplies and uses often, which are not the same in every run.
fn often_used(stage: &Stage, target: &Target, is_free: &dyn Fn(&Buffer) -> bool) -> Vec<Buffer> {
    let factors = stage.factors().filter(|_| stage.buffer.dtype() == DType::F32);
    let halves = factors.and_then(|[a, b]| Some([half(&a)?, half(&b)?]));
    let Some(halves) = halves.filter(|[a, b]| a.0 != b.0 && !multiplies(target, a.0.dtype()))
    else {
        return Vec::new();
    };
    let often = |at: &[Expr]| {
        let mut others = stage.dims().filter(|(v, _, kind)| {
            *kind == IterKind::Spatial && !at.iter().any(|index| index.mentions(v))
        });
        let count =
            others.try_fold(1, |all: usize, (_, n, _)| Some(all.saturating_mul(n.known()?)));
        count.is_none_or(|count| count >= OFTEN)
    };
    halves.into_iter().filter(|(b, at)| !is_free(b) && often(at)).map(|(b, _)| b).collect()
}

/// The load of a half that a factor widens.
fn half(factor: &Expr) -> Option<(Buffer, Vec<Expr>)> {
    let ExprKind::Cast(x) = factor.kind() else { return None };
    match x.kind() {
        ExprKind::Load(b, at) if is_half(b.dtype()) => Some((b.clone(), at.clone())),
        _ => None,
    }
}

/// Whether a machine multiplies halves of a type as they are.
fn multiplies(target: &Target, dtype: DType) -> bool {
    target.tensor_instructions().any(|i| {
        let fits = i.is_dot() && i.c.dtype == DType::F32;
        fits && (i.a.dtype, i.b.dtype) == (dtype, dtype) && i.implementation().is_some()
    })
}

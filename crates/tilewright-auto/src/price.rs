//! What a function costs, as an estimate to compare layouts by.
//!
//! A contraction in tiles costs what its tile does ([`crate::tile`]). Everything else is counted by
//! its iterations: one vector at a time where a loop walks along all that it touches, and one
//! element at a time where none does.

use std::collections::HashSet;

use tilewright_analysis::{Stage, stages};
use tilewright_ir::{Attr, IterKind, TensorFunc};
use tilewright_schedule::FREE_LAYOUT;
use tilewright_target::Target;

use crate::contraction::{Axis, steps};
use crate::{contraction, tile};

/// Cycles of an access of a vector, or of one element where there are no vectors.
const ACCESS: f64 = 1.0;
/// Cycles that a call costs beside its work.
const CALL: f64 = 500.0;

/// Estimated cycles of a call of a function. `free` are the positions of the parameters that are the
/// same in every run.
pub fn price(func: &TensorFunc, free: &HashSet<usize>, target: &Target) -> f64 {
    let mut func = func.clone();
    let numbers: Vec<Attr> = (0i64..)
        .zip(0..func.params.len())
        .filter(|(_, k)| free.contains(k))
        .map(|(n, _)| Attr::Int(n))
        .collect();
    func.attrs.insert(FREE_LAYOUT.into(), Attr::List(numbers));
    let Some(stages) = stages(&func) else {
        let cells = |shape: Vec<i64>| shape.iter().product::<i64>() as f64;
        let all = func.buffers().filter_map(|b| b.const_shape()).map(cells).sum::<f64>();
        return CALL + all * ACCESS;
    };
    let one = |k: usize| {
        let tiled = contraction(&func, &stages, k).and_then(|(c, _)| tile::choose(c, target));
        tiled.map_or_else(|| untiled(&stages[k], target), |(_, tile)| tile.price)
    };
    CALL + (0..stages.len()).map(one).sum::<f64>()
}

/// Cycles of a stage without tiles, which LLVM vectorises where all accesses move by at most one cell.
fn untiled(stage: &Stage, target: &Target) -> f64 {
    let iters = stage.iters().enumerate();
    let axes: Vec<Axis> =
        iters.map(|(k, (var, extent, kind))| Axis::new(k, var, extent, kind)).collect();
    let lanes = target.vectors.lanes(stage.buffer.dtype().bytes());
    let mut touched = stage.loads();
    touched.push((stage.buffer.clone(), stage.indices.clone()));
    let moves: Vec<Option<Vec<i64>>> = touched.iter().map(|(b, at)| steps(b, at, &axes)).collect();
    let is_near = |k: usize| {
        axes[k].kind == IterKind::Spatial
            && axes[k].extent >= lanes
            && moves.iter().all(|m| m.as_ref().is_some_and(|m| (0..=1).contains(&m[k])))
    };
    let vectors = (0..axes.len()).any(is_near);
    let iterations: f64 = axes.iter().map(|a| a.extent as f64).product();
    let each = if vectors { lanes as f64 } else { 1.0 };
    iterations / each * touched.len() as f64 * ACCESS
}

//! What a function costs, as an estimate to compare layouts by.
//!
//! A contraction in tiles costs what its tile does ([`crate::tile`]). Everything else is counted by
//! its iterations: one vector at a time where a loop walks along all that it touches, and one
//! element at a time where none does.

use tilewright_analysis::{Stage, stages};
use tilewright_ir::{Buffer, TensorFunc};
use tilewright_schedule::auto::affine::Affine;
use tilewright_target::Target;

use crate::{contraction, groups, tile};

/// Cycles of an access of a vector, or of one element where there are no vectors.
const ACCESS: f64 = 1.0;
/// Cycles of a step of a reduction, whose result stays in a register (measured: grouped convolutions).
const REDUCE: f64 = 0.7;
/// Cycles that a call costs beside its work.
const CALL: f64 = 500.0;
/// Cycles for a byte that a conversion reads or writes (measured: 1.3 to 3.8 cycles for a float that
/// is moved, which are 8 bytes).
const CONVERT: f64 = 0.3;

/// What a function costs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Price {
    /// Estimated cycles of a call.
    pub cycles: f64,
    /// Whether it holds a contraction that is computed in tiles.
    pub tiled: bool,
}

/// Estimated cycles of a conversion that reads and writes some bytes.
pub fn conversion(bytes: u64) -> f64 {
    CALL + bytes as f64 * CONVERT
}

/// What a call of a function costs. `free` says for each argument whether it is the same in every run.
pub fn price(func: &TensorFunc, free: &[bool], target: &Target) -> Price {
    let is_free = |b: &Buffer| {
        let at = func.params.iter().position(|p| p.buffer() == Some(b));
        at.and_then(|at| free.get(at)).copied().unwrap_or(false)
    };
    grouped(func, &is_free, target).unwrap_or_else(|| plain(func, is_free, target))
}

/// The cycles of a function whose contractions in groups get tiles; `None` where they do not.
fn grouped(func: &TensorFunc, is_free: impl Fn(&Buffer) -> bool, target: &Target) -> Option<Price> {
    let name = "f".into();
    let apart = groups::apart(&name, func)?;
    let func = apart.schedule.func(&name).ok()?;
    let copy = |b: &Buffer| apart.copies.iter().find(|copy| copy.to == b.name);
    let free = |b: &Buffer| is_free(copy(b).map_or(b, |copy| &copy.from));
    let mut price = Price { cycles: CALL, tiled: true };
    let stages = stages(func)?;
    for k in 0..stages.len() {
        let tile = contraction(func, &stages, k, free).and_then(|(c, _)| tile::choose(c, target));
        price.cycles += match tile {
            Some((_, tile)) => tile.price,
            None if apart.blocks.contains(stages[k].name()) => return None,
            // What is copied apart is read where it lies.
            None if copy(&stages[k].buffer).is_some() => 0.0,
            None => untiled(&stages[k], target),
        };
    }
    Some(price)
}

fn plain(func: &TensorFunc, is_free: impl Fn(&Buffer) -> bool, target: &Target) -> Price {
    let Some(stages) = stages(func) else {
        let cells = |shape: Vec<i64>| shape.iter().product::<i64>() as f64;
        let all = func.buffers().filter_map(|b| b.const_shape()).map(cells).sum::<f64>();
        return Price { cycles: CALL + all * ACCESS, tiled: false };
    };
    let mut price = Price { cycles: CALL, tiled: false };
    for k in 0..stages.len() {
        let tile =
            contraction(func, &stages, k, &is_free).and_then(|(c, _)| tile::choose(c, target));
        price.tiled |= tile.is_some();
        price.cycles += tile.map_or_else(|| untiled(&stages[k], target), |(_, tile)| tile.price);
    }
    price
}

/// Cycles of a stage without tiles, which is computed by vectors where all accesses move by at most
/// one cell along an axis.
fn untiled(stage: &Stage, target: &Target) -> f64 {
    let lanes = target.vectors.lanes(stage.buffer.dtype().bytes());
    let mut touched = stage.loads();
    touched.push((stage.buffer.clone(), stage.indices.clone()));
    let mut near = stage.iters().filter(|(_, extent, _)| *extent >= lanes);
    let vectors = near.any(|(var, ..)| {
        let step = |buffer, at| Affine::of_access(buffer, at)?.coefficient(var);
        touched.iter().all(|(buffer, at)| matches!(step(buffer, at), Some(0 | 1)))
    });
    let iterations: f64 = stage.iters().map(|(_, extent, _)| extent as f64).product();
    let each = if vectors { lanes as f64 } else { 1.0 };
    let work = match stage.reduction() {
        Some(_) => REDUCE,
        None => touched.len() as f64 * ACCESS,
    };
    iterations / each * work
}

//! Partial results in the lanes of vectors: their loops, and how they are combined to one.

use tilewright_ir::Result;
use tilewright_schedule::{BlockRef, Schedule};

use crate::parts::{innermost, loop_at, split};

/// Lanes of the vectors that partial results are combined to before they are combined one by one.
const QUARTER: i64 = 4;

/// Combines partial results, over which the last loop around a block runs, one for each of so many lanes.
pub(crate) fn combined(
    sch: &mut Schedule,
    block: &BlockRef,
    around: usize,
    lanes: i64,
) -> Result<()> {
    if lanes > QUARTER && lanes % QUARTER == 0 {
        fewer(sch, block, around, QUARTER)?;
    }
    let lane = innermost(sch, block)?;
    sch.decompose_reduction(block, &lane)?;
    let update = sch.latest(block.clone());
    sch.get_loops(&update)?.drain(around..).try_for_each(|l| sch.unroll(&l))
}

/// Combines partial results, over which the last loop around a block runs, to so many.
pub(crate) fn fewer(sch: &mut Schedule, block: &BlockRef, around: usize, lanes: i64) -> Result<()> {
    let lane = innermost(sch, block)?;
    let [_, lane] = split(sch, &lane, None, lanes)?;
    let fewer = sch.rfactor(&lane, -1)?;
    // The loop over what is combined goes outside of those over several results.
    let mut loops = sch.get_loops(&fewer)?.split_off(around);
    if let Some(at) = loops.len().checked_sub(2) {
        let part = loops.remove(at);
        loops.insert(0, part);
    }
    sch.reorder(&loops)?;
    let [init, update] = begun(sch, &fewer, around)?;
    in_registers(sch, &init, around)?;
    in_registers(sch, &update, around)
}

/// Begins the results of a block before the loop at a depth. Returns the block that does, and the one that
/// adds to them.
pub(crate) fn begun(sch: &mut Schedule, block: &BlockRef, depth: usize) -> Result<[BlockRef; 2]> {
    let first = loop_at(sch, block, depth)?;
    let init = sch.decompose_reduction(block, &first)?;
    Ok([init, sch.latest(block.clone())])
}

/// Gives what is inside of some loops constant places, and the innermost one lanes.
pub(crate) fn in_registers(sch: &mut Schedule, block: &BlockRef, around: usize) -> Result<()> {
    let inside = sch.get_loops(block)?.split_off(around);
    let Some((lane, others)) = inside.split_last() else { return Ok(()) };
    others.iter().try_for_each(|l| sch.unroll(l))?;
    sch.vectorize(lane)
}

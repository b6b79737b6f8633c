//! Which loops around a statement are shared by threads: as many, from outside, as it takes to have
//! enough iterations.

use tilewright_ir::{Dim, Result};
use tilewright_schedule::{LoopRef, Schedule};

/// Loops with fewer iterations of work than this run on one thread: waking others costs more.
pub const PARALLEL_WORK: i64 = 16 * 1024;

/// Enough parallel iterations that chunks of them balance over a few threads.
pub const PARALLEL_ITERATIONS: i64 = 32;

/// How many loops, from outside, of those with such extents make up one parallel loop: as many of the
/// first `fusible` ones as it takes to have enough iterations to share, and none where `work`
/// (innermost iterations in all) is not worth it.
pub(crate) fn shared(extents: &[Dim], fusible: usize, work: i64) -> usize {
    let mut fused = 0;
    let mut total = Dim::from(1);
    if work < PARALLEL_WORK {
        return 0;
    }
    while fused < extents.len().min(fusible) && total.estimate() < PARALLEL_ITERATIONS {
        let more = total * extents[fused];
        // Quotients by open sizes are not linear: only the outermost may be open.
        let linear = total == 1 || extents[fused].known().is_some();
        if !more.fits_int32() || !linear {
            break;
        }
        total = more;
        fused += 1;
    }
    if total == 1 { 0 } else { fused }
}

/// Shares the first ones of some loops, of those with such extents, as [`shared`] says.
pub(crate) fn share_outer(
    sch: &mut Schedule,
    loops: &[LoopRef],
    extents: &[Dim],
    fusible: usize,
    work: Dim,
) -> Result<()> {
    share(sch, &loops[..shared(extents, fusible, work.estimate())])
}

/// Loops that are directly inside one another as one.
pub(crate) fn fused(sch: &mut Schedule, loops: &[LoopRef]) -> Result<LoopRef> {
    match loops {
        [one] => Ok(one.clone()),
        several => sch.fuse(several),
    }
}

/// Runs the outermost loops of a nest in parallel, as one.
pub(crate) fn share(sch: &mut Schedule, loops: &[LoopRef]) -> Result<()> {
    if loops.is_empty() {
        return Ok(());
    }
    let l = fused(sch, loops)?;
    sch.parallel(&l)
}

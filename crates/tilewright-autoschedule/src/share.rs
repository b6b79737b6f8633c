//! Which loops around a statement are shared by threads: as many, from outside, as it takes to have
//! enough iterations. An open extent, a batch most often, may be one, and counts as that; a loop over it stays
//! around the shared ones where those inside may be more.

use std::ops::Range;

use tilewright_ir::{Dim, Result};
use tilewright_schedule::{LoopRef, Schedule};
use tilewright_target::PARALLEL_WORK;

/// Enough parallel iterations that chunks of them balance over a few threads.
pub const PARALLEL_ITERATIONS: i64 = 32;

/// Enough parallel iterations that loops around them need not be looked at.
pub const SOME_ITERATIONS: i64 = 8;

/// Which loops of those with such extents make up one parallel loop: the first ones as [`shared`] says, or, where
/// an open extent ends these too early, those from it on, if each of their runs is worth it. A batch may be one, and
/// sides of images and lengths are many as a rule.
pub(crate) fn shared_inside(extents: &[Dim], fusible: usize, work: i64) -> Range<usize> {
    let limit = extents.len().min(fusible);
    let (mut from, mut work) = (0, work);
    loop {
        let here = &extents[from..];
        let count = shared(here, limit - from, work);
        let next = from + count;
        let around = here[..count].iter().fold(Dim::from(1), |n, e| n * *e).estimate().max(1);
        let inside = work / around;
        let is_open = next < limit && extents[next].known().is_none();
        if count == 0 || !is_open || around >= SOME_ITERATIONS || inside < PARALLEL_WORK {
            return from..next;
        }
        (from, work) = (next, inside);
    }
}

/// The least that a number of iterations is where there are any.
pub(crate) fn least(extent: Dim) -> i64 {
    i64::try_from(extent.range().least().max(1)).unwrap_or(i64::MAX)
}

/// How many loops, from outside, of those with such extents make up one parallel loop: as many of the
/// first `fusible` ones as it takes to have enough iterations to share, and none where `work`
/// (innermost iterations in all) is not worth it.
pub(crate) fn shared(extents: &[Dim], fusible: usize, work: i64) -> usize {
    let mut fused = 0;
    let mut total = Dim::from(1);
    if work < PARALLEL_WORK {
        return 0;
    }
    while fused < extents.len().min(fusible) && least(total) < PARALLEL_ITERATIONS {
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

/// Shares some of the first loops, of those with such extents, as [`shared_inside`] says.
pub(crate) fn share_outer(
    sch: &mut Schedule,
    loops: &[LoopRef],
    extents: &[Dim],
    fusible: usize,
    work: Dim,
) -> Result<()> {
    share(sch, &loops[shared_inside(extents, fusible, work.estimate())])
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

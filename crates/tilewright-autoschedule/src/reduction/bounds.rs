//! Windows over the image itself: the steps that are inside of it, by primitives.
//!
//! ```text
//! the image is read where padding was                                   compute_inline
//! for rows before, inside and behind, columns likewise:                 loop_partition
//!     sums = identity                                                   (tiles)
//!     for steps of the window:
//!         if inside: sums = op(sums, x)                                 remove_overcompute_through_branching
//! ```
//!
//! Windows that lie inside have no condition left, and those at an edge conditions that do not depend on the
//! lane.

use std::sync::Arc;

use tilewright_ir::Result;
use tilewright_schedule::{BlockRef, Schedule};

use super::choice::Level;
use super::window::{Guard, Windows};
use super::{Places, Reduction};
use crate::parts::{TileBlocks, number, partition};

/// Of how many axes each part before, inside and behind an image has loops of its own.
const APART: usize = 2;

impl Windows<'_> {
    /// The reduction of the image itself: windows that are inside as a whole apart from others.
    pub(super) fn bounds(
        &self,
        r: &Reduction<'_>,
        v: usize,
        guards: &[Guard],
        sch: &mut Schedule,
        func: &Arc<str>,
    ) -> Result<()> {
        let pad = sch.get_block(self.pad.name(), func)?;
        sch.compute_inline(&pad)?;
        let places = Places::prepare(r, sch, func)?;
        let tiling = r.tiling(v);
        let mut made = r.tiled(sch, &places, &tiling)?;
        let mut parts = vec![made.blocks.concat()];
        let mut taken = 0;
        for (k, level) in tiling.order.iter().enumerate() {
            let depth = made.units + k;
            let Level::Axis(axis) = level else { break };
            if made.parted.is_some_and(|parted| parted < depth) {
                break;
            }
            let var = r.axes[*axis].parts.last().map(|p| &p.0);
            let guard = guards.iter().find(|g| g.place().is_some_and(|(v, ..)| Some(&v) == var));
            let Some((guard, count)) = guard.zip(r.axes[*axis].extent.number()) else { continue };
            let steps = self.reader.reduce().find(|(v, _)| **v == guard.var).map_or(1, |s| s.1);
            let Some((start, end)) = guard.whole(steps, count) else { continue };
            if (start, end) == (0, count) {
                continue;
            }
            // Of more axes, windows that are not inside along one of the others stay together.
            let (now, later) = parts.split_at(if taken < APART { parts.len() } else { 1 });
            let mut all = Vec::new();
            for blocks in now {
                all.extend(three(sch, blocks, depth, [start, end, count])?);
            }
            all.extend_from_slice(later);
            parts = all;
            taken += 1;
            made.parted = Some(made.parted.map_or(depth, |p| p.min(depth)));
        }
        r.parallel(sch, &places, &tiling, &made)
    }
}

/// Takes the loop around blocks at a depth apart: before `start`, from there to `end`, and what is left of
/// `count` iterations. Returns the blocks of each part, those of the middle one first.
fn three(
    sch: &mut Schedule,
    blocks: &[BlockRef],
    depth: usize,
    [start, end, count]: [i64; 3],
) -> Result<Vec<Vec<BlockRef>>> {
    let whole = TileBlocks::whole(blocks.to_vec());
    let mut parts = vec![whole];
    if start > 0 {
        partition(sch, &mut parts, depth, &[number(start), number(count - start)])?;
    }
    let mut rest = parts.split_off(parts.len() - 1);
    if end < count {
        partition(sch, &mut rest, depth, &[number(end - start), number(count - end)])?;
    }
    Ok(rest.into_iter().chain(parts).map(|p| p.blocks).collect())
}

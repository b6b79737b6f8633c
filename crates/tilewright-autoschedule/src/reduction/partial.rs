//! Vectors along the reduction: partial results in lanes, which are combined at the end.
//!
//! ```text
//! for other axes:
//!     partial[vectors, lanes] = identity                          split, rfactor, decompose_reduction
//!     for the reduction, in vectors:
//!         for vectors, lanes: partial = op(partial, value)        unroll, vectorize
//!     quarter[4] = op of partial ones                             rfactor
//!     sum = op of a quarter
//!     for steps that are no vector: sum = op(sum, value)          loop_partition
//! ```
//!
//! Where the machine leaves out lanes, what whole tiles leave over is added to the partial results as well, in a tile
//! of which lanes are left out. Elsewhere an open number of steps, which may be fewer than lanes, is added in vectors
//! and one by one.

use tilewright_analysis::stage::Extent;
use tilewright_ir::{DType, Dim, Error, Expr, Result};
use tilewright_schedule::{BlockRef, Schedule};

use super::Reduction;
use crate::partial::{begun, combined, fewer, in_registers};
use crate::parts::{copies, cut, innermost, loop_at, no_unroll, number, split};

impl Reduction<'_> {
    /// Partial results in vectors along the axis `v` of the reduction, the last of its loops, of which the
    /// first stands at a depth.
    pub(super) fn partial(
        &self,
        sch: &mut Schedule,
        block: &BlockRef,
        v: usize,
        depth: usize,
    ) -> Result<()> {
        let lanes = self.lanes();
        let extent = self.axes[v].extent;
        // Several vectors, so that one operation need not wait for the one before.
        let few = match extent.estimate() / lanes {
            0..2 => 1,
            2..4 => 2,
            _ => 4,
        };
        // Vectors of which lanes are left out can be as many as there are.
        let vectors = match extent.number() {
            Some(n) if self.masks() && n % (few * lanes) != 0 => ((n + lanes - 1) / lanes).min(4),
            _ => few,
        };
        let width = vectors * lanes;
        let (full, rest) = (extent.floordiv(width.dim()), extent.modulo(width.dim()));
        if rest != 0 && (extent.known().is_none() || self.masks()) {
            self.ragged_partial(sch, block, (extent, width), depth)?;
            if vectors > 1 {
                fewer(sch, block, depth, lanes)?;
            }
            return combined(sch, block, depth, lanes);
        }
        let loops = sch.get_loops(block)?.split_off(depth);
        let Some((along, others)) = loops.split_last() else {
            return Err(Error::internal("a reduction without loops"));
        };
        let mut parts = vec![block.clone()];
        if rest != 0 {
            if !others.is_empty() {
                sch.reorder(&[std::slice::from_ref(along), others].concat())?;
            }
            let whole: Expr = (full * width.dim()).typed(DType::I32);
            parts = cut(sch, block, depth, &[Some(whole), None])?;
            for part in parts.iter().filter(|_| !others.is_empty()) {
                let mut loops = sch.get_loops(part)?.split_off(depth);
                loops.rotate_left(1);
                sch.reorder(&loops)?;
            }
        }
        for left in parts.iter().skip(1) {
            for l in &sch.get_loops(left)?[depth..depth + others.len()] {
                no_unroll(sch, l)?;
            }
        }
        let along = innermost(sch, block)?;
        let [_, lane] = split(sch, &along, Some(full.typed(DType::I32)), width)?;
        let partial = sch.rfactor(&lane, -1)?;
        let steps = others.len() + 1;
        let [init, update] = begun(sch, &partial, depth)?;
        for (block, around) in [(&init, depth), (&update, depth + steps)] {
            let lane = sch.get_loops(block)?.split_off(around).pop();
            if let Some(lane) = lane.filter(|_| vectors > 1) {
                sch.split(&lane, &[number(vectors), number(lanes)])?;
            }
            in_registers(sch, block, around)?;
        }
        let loops = sch.get_loops(&update)?.split_off(depth);
        loops[..others.len()].iter().try_for_each(|l| no_unroll(sch, l))?;
        if vectors > 1 {
            fewer(sch, block, depth, lanes)?;
        }
        combined(sch, block, depth, lanes)
    }

    /// Partial results in so many lanes along the last loop of a reduction, whose extent is open or leaves lanes out.
    fn ragged_partial(
        &self,
        sch: &mut Schedule,
        block: &BlockRef,
        (extent, width): (Dim, i64),
        depth: usize,
    ) -> Result<()> {
        let lanes = self.lanes();
        let others = sch.get_loops(block)?.len() - depth - 1;
        let along = innermost(sch, block)?;
        let [_, lane] = split(sch, &along, None, width)?;
        let update = sch.rfactor(&lane, -1)?;
        // Where lanes may have no step, a block of their own begins them.
        let init = sch.get_block(&format!("{}_init", update.name), &block.func);
        let [init, update] = match init {
            Ok(init) => [init, update],
            Err(_) => begun(sch, &update, depth)?,
        };
        let tiles = extent.floordiv(width.dim());
        let parts = match tiles.number() {
            Some(0) => vec![update.clone(), update.clone()],
            _ => cut(sch, &update, depth + others, &[Some(tiles.typed(DType::I32)), None])?,
        };
        let around = depth + others + 1;
        let whole = (&update, around);
        for (block, around) in [(&init, depth)].into_iter().chain((tiles != 0).then_some(whole)) {
            let lane = sch.get_loops(block)?.split_off(around).pop();
            if let Some(lane) = lane.filter(|_| width > lanes) {
                sch.split(&lane, &[number(width / lanes), number(lanes)])?;
            }
            in_registers(sch, block, around)?;
        }
        let loops = sch.get_loops(&update)?.split_off(depth);
        let long = others + usize::from(tiles != 0);
        loops[..long].iter().try_for_each(|l| no_unroll(sch, l))?;
        let Some(last) = parts.get(1) else { return Ok(()) };
        if self.masks() {
            let steps = loop_at(sch, last, around)?;
            if width > lanes {
                sch.split(&steps, &[number(width / lanes), number(lanes)])?;
            }
            return in_registers(sch, last, around);
        }
        // Whole vectors, single steps, and lanes that have none, which are no code.
        let left = extent.modulo(width.dim());
        let vectors = left.floordiv(lanes.dim()) * lanes.dim();
        let vectors = (width > lanes).then_some(vectors);
        let sizes = vectors.into_iter().chain([left.modulo(lanes.dim())]);
        let sizes: Vec<Option<Expr>> =
            sizes.map(|d| Some(d.typed(DType::I32))).chain([None]).collect();
        let steps = loop_at(sch, last, around)?;
        let behind = copies(sch, &block.func, &steps, &sizes)?;
        let single = match vectors {
            Some(_) => {
                let [_, lane] = split(sch, &steps, None, lanes)?;
                sch.vectorize(&lane)?;
                behind.into_iter().next()
            }
            None => Some(last.clone()),
        };
        let step = single.map(|block| innermost(sch, &block)).transpose()?;
        step.map_or(Ok(()), |step| no_unroll(sch, &step))
    }
}

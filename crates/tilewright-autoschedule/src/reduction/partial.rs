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

use tilewright_analysis::stage::Extent;
use tilewright_ir::{DType, Error, Expr, Result};
use tilewright_schedule::{BlockRef, Schedule};

use super::Reduction;
use crate::partial::{begun, combined, fewer, in_registers};
use crate::parts::{cut, innermost, no_unroll, number, split};

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
        let vectors = match extent.estimate() / lanes {
            0..2 => 1,
            2..4 => 2,
            _ => 4,
        };
        let width = vectors * lanes;
        let (full, rest) = (extent.floordiv(width.dim()), extent.modulo(width.dim()));
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
}

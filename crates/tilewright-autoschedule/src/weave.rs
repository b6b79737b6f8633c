//! Stages that weave rows: what lies side by side in the result comes from a few places in turn, at each of which
//! it lies side by side as well.
//!
//! Both axes run as one, in vectors of the result; code generation reads each row in vectors and shuffles them.
//! What vectors of all rows leave over runs in shorter ones, and the last few elements one by one.
//!
//! ```text
//! for tiles: for lane in vectorized(rows * T):
//!     B[.., tile + lane] = f(A[.., (tile + lane) % rows, .., (tile + lane) // rows])
//! ```

use crate::axes::{Access, FusedAxis, Move, widest};
use crate::share::share_outer;
use tilewright_analysis::Stage;
use tilewright_analysis::stage::Extent;
use tilewright_ir::{Dim, Expr, Result};
use tilewright_schedule::{BlockRef, Schedule};
use tilewright_target::Target;

use crate::parts::{amount, pieces, sizes, split, split_nest};

/// How many rows are woven.
const ROWS: std::ops::RangeInclusive<i64> = 2..=4;

/// The vectors of a stage whose last two axes are woven.
pub struct Weave {
    /// Values along both axes.
    extent: Dim,
    /// Lanes of a vector of the result: those of one vector for each row.
    width: i64,
}

impl Weave {
    /// The vectors of a stage over axes, where it weaves; `accesses` are its loads and, last, its store.
    pub fn recognise(
        stage: &Stage,
        value: &Expr,
        axes: &[FusedAxis],
        accesses: &[Access],
        target: &Target,
    ) -> Option<Weave> {
        let (store, loads) = accesses.split_last()?;
        let [.., beside, rows] = axes else { return None };
        let r = rows.extent.number().filter(|r| ROWS.contains(r))?;
        let woven = (Move::By(r), Move::By(1));
        if moves_of(store, beside, rows)? != woven {
            return None;
        }
        let mut weaves = false;
        for load in loads {
            match moves_of(load, beside, rows)? {
                (Move::By(1), across) => weaves |= across != Move::By(0),
                (Move::By(0), _) => {}
                step if step == woven => {}
                _ => return None,
            }
        }
        let width = target.vectors.lanes(widest(stage, value, accesses)?) * r;
        let extent = beside.extent * rows.extent;
        (weaves && extent.estimate() >= width / 2).then_some(Weave { extent, width })
    }

    /// The loops of a block, one for each axis.
    pub(crate) fn loops(
        &self,
        sch: &mut Schedule,
        block: &BlockRef,
        axes: &[FusedAxis],
    ) -> Result<()> {
        let loops = sch.get_loops(block)?;
        let around = axes.len() - 2;
        sch.fuse(&loops[around..])?;
        let pieces = pieces(self.extent, self.width);
        let blocks = split_nest(sch, block, (0, around), &sizes(&pieces))?;
        for (piece, block) in pieces.iter().zip(blocks) {
            let mut loops = sch.get_loops(&block)?;
            let mut extents: Vec<Dim> = axes[..around].iter().map(|a| a.extent).collect();
            extents.push(piece.count);
            if piece.width > 1
                && let Some(last) = loops.pop()
            {
                let [tile, lane] = split(sch, &last, amount(piece.count), piece.width)?;
                loops.push(tile);
                sch.vectorize(&lane)?;
            }
            let cells = extents.iter().fold(piece.width.dim(), |n, e| n * *e);
            share_outer(sch, &loops, &extents, around.max(1), cells)?;
        }
        Ok(())
    }
}

fn moves_of(a: &Access, beside: &FusedAxis, rows: &FusedAxis) -> Option<(Move, Move)> {
    Some((beside.moves(a)?, rows.moves(a)?))
}

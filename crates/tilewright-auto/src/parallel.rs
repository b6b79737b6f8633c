//! Which loops around the tiles of a contraction run in parallel: as many of them, from outside, as it
//! takes to have enough iterations to share.
//!
//! Where the last tile of columns is apart ([`crate::generate`]) and nothing is around the columns, the
//! whole tiles and the last one are shared one after the other, the rows among them: there are few
//! whole ones, and only one last one.

use std::ops::Range;

use tilewright_ir::Result;
use tilewright_schedule::auto::emit::{PARALLEL_ITERATIONS, PARALLEL_WORK};
use tilewright_schedule::{BlockRef, LoopRef, Schedule};

use crate::contraction::Contraction;
use crate::generate::{Order, Outer};
use crate::tile::Tile;

/// How many times [`PARALLEL_WORK`] it takes to share what is left over beside what is shared already.
const AGAIN: i64 = 16;

/// The tiles whose loops are shared.
pub(crate) struct Parallel<'a> {
    pub(crate) c: &'a Contraction,
    pub(crate) tile: &'a Tile,
    pub(crate) order: &'a Order,
}

impl Parallel<'_> {
    /// The multiplications of so many columns.
    fn work(&self, columns: i64) -> i64 {
        let v = self.tile.vector_axis;
        let others: Vec<usize> = (0..self.c.axes.len()).filter(|k| *k != v).collect();
        let columns = self.c.axes[v].extent.min(columns);
        self.c.count(&others).saturating_mul(columns)
    }

    /// Whether all tiles are too little work to share.
    pub(crate) fn is_small(&self) -> bool {
        self.work(i64::MAX) < PARALLEL_WORK
    }

    /// Whether what is left over of the columns is enough work to share by itself.
    pub(crate) fn pays_again(&self) -> bool {
        let (_, rest) = self.tile.columns(self.c);
        self.work(rest) >= AGAIN * PARALLEL_WORK
    }

    /// Runs some of the outer loops in parallel, which have so many tiles of columns. Says whether there
    /// were any.
    pub(crate) fn run(
        &self,
        sch: &mut Schedule,
        outer: &[LoopRef],
        which: Range<usize>,
        columns: i64,
    ) -> Result<bool> {
        let (c, rows) = (self.c, self.tile.row_axis);
        let count = |o: &Outer| match o {
            Outer::Axis(k) => c.axes[*k].extent,
            Outer::Columns => columns,
            Outer::Rows => {
                rows.map_or(1, |r| (c.axes[r].extent as u64).div_ceil(self.tile.rows as u64) as i64)
            }
        };
        let open = |o: &Outer| match o {
            Outer::Axis(k) => c.axes[*k].is_open(),
            Outer::Columns => c.axes[self.tile.vector_axis].is_open(),
            Outer::Rows => rows.is_some_and(|r| c.axes[r].is_open()),
        };
        let mut total = 1;
        let mut fused = Vec::new();
        for (o, l) in self.order.outer[which.clone()].iter().zip(&outer[which]) {
            // Quotients by open sizes are not linear: only the outermost may be open.
            if total >= PARALLEL_ITERATIONS || (open(o) && !fused.is_empty()) {
                break;
            }
            total *= count(o);
            fused.push(l.clone());
        }
        if total > 1 {
            let l = match &fused[..] {
                [one] => one.clone(),
                _ => sch.fuse(&fused)?,
            };
            sch.parallel(&l)?;
        }
        Ok(total > 1)
    }

    /// Shares so many tiles of columns, whose first block is given, from a depth on.
    pub(crate) fn strips(
        &self,
        sch: &mut Schedule,
        head: &BlockRef,
        from: usize,
        columns: i64,
    ) -> Result<()> {
        let mut loops = sch.get_loops(head)?;
        let all = self.order.outer.len();
        // The loop over one tile of columns stays apart: what is guarded by it has a constant place.
        let first = from + usize::from(columns == 1);
        let fixed = self.tile.row_axis.filter(|r| !self.c.axes[*r].is_open());
        let Some(rows) = fixed.filter(|_| from + 2 == all) else {
            let last = all - usize::from(all > 1);
            return self.run(sch, &loops, first..last.max(first), columns).map(drop);
        };
        // Tiles of rows that are left over are few.
        let left = self.c.axes[rows].extent % self.tile.rows;
        if left != 0 {
            let Ok((_, others)) = sch.fission(&loops[from], 1) else {
                return self.run(sch, &loops, first..from + 1, columns).map(drop);
            };
            let width = columns.saturating_mul(self.tile.width);
            let work = self.work(width) / self.c.axes[rows].extent * left;
            if columns > 1 && work >= AGAIN * PARALLEL_WORK {
                sch.parallel(&others)?;
            }
            loops = sch.get_loops(head)?;
        }
        self.run(sch, &loops, first..all, columns).map(drop)
    }
}

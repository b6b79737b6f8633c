//! Which loops around the tiles of a contraction run in parallel: as many of them, from outside, as it
//! takes to have enough iterations to share. An open number of iterations counts as the least one
//! ([`crate::share`]).
//!
//! Loops that were taken apart on the way, where the last tile of columns or of rows is smaller
//! ([`crate::generate`]), become one loop again (`join_loops`), with a branch for each tile: so all
//! tiles of a kernel are shared at once, and none of them waits for others.

use std::ops::Range;

use tilewright_ir::visit::accessed;
use tilewright_ir::{Result, StmtKind};
use tilewright_schedule::{BlockRef, LoopRef, Schedule};
use tilewright_target::{PARALLEL_WORK, UPDATES};
use tilewright_transform::cursor::{as_loop, find};

use crate::contraction::Contraction;
use crate::order::{Order, Outer};
use crate::parts::loop_at;
use crate::share::{PARALLEL_ITERATIONS, SOME_ITERATIONS, fused, least};
use crate::tile::Tile;

/// Iterations of loops around open rows that are too few to be shared, where the rows are pixels.
const FEW_ITERATIONS: i64 = 4;

/// The tiles whose loops are shared.
pub(crate) struct Parallel<'a> {
    pub(crate) c: &'a Contraction,
    pub(crate) tile: &'a Tile,
    pub(crate) order: &'a Order,
    /// The first block in each part of the columns.
    pub(crate) heads: &'a [BlockRef],
    /// The name of the buffer that the tiles write.
    pub(crate) result: &'a str,
    /// The loop over tiles of columns, where it is in two parts.
    pub(crate) cut: Option<usize>,
    /// Whether the loop over tiles of rows, the innermost one, is in two parts.
    pub(crate) ragged: bool,
    /// How many loops, from outside, have nothing between them but one another.
    pub(crate) nested: usize,
}

impl Parallel<'_> {
    /// Runs the tiles in parallel, where they are enough work.
    pub(crate) fn run(&self, sch: &mut Schedule) -> Result<()> {
        let all: Vec<usize> = (0..self.c.axes.len()).collect();
        if self.c.count(&all) < UPDATES * PARALLEL_WORK {
            return Ok(());
        }
        // What is left over of an open number of rows has no branch that code is made of.
        let open = self.ragged && self.tile.row_axis.is_some_and(|r| self.c.axes[r].is_open());
        let nested = self.nested.min(self.order.outer.len() - usize::from(open));
        if open && self.shares_pixels(nested) {
            return self.heads.iter().try_for_each(|head| {
                let rows = loop_at(sch, head, self.order.outer.len() - 1)?;
                sch.parallel(&rows)
            });
        }
        let (wanted, whole) = (self.wanted(nested), self.first_part().min(nested));
        let mut trial = sch.clone();
        match self.share(&mut trial, &wanted) {
            Ok(()) => *sch = trial,
            // What cannot be joined stays inside.
            Err(_) if wanted.start < whole => {
                self.share(sch, &(wanted.start..wanted.end.min(whole)))?;
            }
            Err(_) => self.share(sch, &(0..whole))?,
        }
        Ok(())
    }

    /// Whether the whole tiles along an open number of pixels are shared, each of their loops by itself: the first so
    /// many loops have few iterations, and pixels are many.
    fn shares_pixels(&self, nested: usize) -> bool {
        let outer = self.order.outer[..nested].iter().map(|o| self.count(o));
        let around = outer.fold(1i64, |n, (_, estimate, _)| n.saturating_mul(estimate));
        around < FEW_ITERATIONS && !self.tile.may_be_few(self.c)
    }

    /// The outermost loop that is in two parts.
    fn first_part(&self) -> usize {
        let rows = self.order.outer.len() - usize::from(self.ragged);
        self.cut.unwrap_or(rows).min(rows)
    }

    /// How many tiles a loop has at least, as an estimate, and whether that is open.
    fn count(&self, o: &Outer) -> (i64, i64, bool) {
        match o {
            Outer::Axis(k) => self.tiles_along(*k, 1),
            Outer::Columns => self.tiles_along(self.tile.vector_axis, self.tile.width),
            Outer::Rows => {
                self.tile.row_axis.map_or((1, 1, false), |r| self.tiles_along(r, self.tile.rows))
            }
        }
    }

    fn tiles_along(&self, axis: usize, size: i64) -> (i64, i64, bool) {
        let a = &self.c.axes[axis];
        let [few, many] = [least(a.dim), a.extent].map(|n| (n as u64).div_ceil(size as u64) as i64);
        (few, many, a.is_open())
    }

    /// Which loops it takes, of the first so many.
    fn wanted(&self, most: usize) -> Range<usize> {
        let all: Vec<usize> = (0..self.c.axes.len()).collect();
        let (mut work, mut from, mut end, mut inside) = (self.c.count(&all), 0, 0, 1i64);
        let mut total = 1i64;
        for (k, o) in self.order.outer[..most].iter().enumerate() {
            let (tiles, estimate, open) = self.count(o);
            if total >= PARALLEL_ITERATIONS {
                break;
            }
            // Quotients by open sizes are not linear: only the outermost may be open.
            if open && end > from {
                work /= inside.max(1);
                // Sides of an image are many as a rule, a batch is not.
                if total.max(inside) >= SOME_ITERATIONS || work < PARALLEL_WORK {
                    break;
                }
                (from, total, inside) = (k, 1, 1);
            }
            if tiles > 1 || open {
                end = k + 1;
            }
            total = total.saturating_mul(tiles);
            inside = inside.saturating_mul(estimate);
        }
        from..end
    }

    /// Shares the iterations of some loops.
    fn share(&self, sch: &mut Schedule, wanted: &Range<usize>) -> Result<()> {
        let Some((first, depth)) = self.heads.first().zip(wanted.end.checked_sub(1)) else {
            return Ok(());
        };
        if wanted.is_empty() {
            return Ok(());
        }
        let mut end = wanted.end;
        if self.ragged && end == self.order.outer.len() {
            self.heads.iter().try_for_each(|head| self.join(sch, head, depth).map(drop))?;
        }
        let around = self.cut.is_some_and(|cut| cut < wanted.start);
        if let Some(cut) = self.cut.filter(|cut| wanted.contains(cut)) {
            for head in self.heads {
                self.one(sch, head, cut, wanted.end)?;
            }
            self.join(sch, first, cut)?;
            end = cut + 1;
        }
        for head in &self.heads[..if around { self.heads.len() } else { 1 }] {
            let l = self.one(sch, head, wanted.start, end)?;
            sch.parallel(&l)?;
        }
        Ok(())
    }

    /// Fuses the loops around a block between two depths.
    fn one(&self, sch: &mut Schedule, block: &BlockRef, from: usize, to: usize) -> Result<LoopRef> {
        let loops = sch.get_loops(block)?;
        fused(sch, &loops[from..to])
    }

    /// Joins the loop around a block at a depth with the loops behind it that write the result, too.
    fn join(&self, sch: &mut Schedule, block: &BlockRef, depth: usize) -> Result<LoopRef> {
        let parts = behind(sch, block, depth, self.result)?;
        match &parts[..] {
            [] => loop_at(sch, block, depth),
            [one] => Ok(one.clone()),
            _ => sch.join_loops(&parts),
        }
    }
}

/// The loop around a block at a depth, and the loops right behind it that write a buffer of a name, too.
pub(crate) fn behind(
    sch: &mut Schedule,
    block: &BlockRef,
    depth: usize,
    result: &str,
) -> Result<Vec<LoopRef>> {
    let loops = sch.get_loops(block)?;
    let first = &loops[depth];
    let func = sch.func(&block.func)?;
    let at = find(&func.body, |s| as_loop(s).is_some_and(|(v, ..)| *v == first.var));
    let parent = at.first().and_then(|c| c.around.last().map(|p| (p.kind(), &c.stmt)));
    let Some((StmtKind::Seq(list), this)) = parent else { return Ok(vec![first.clone()]) };
    let from = list.iter().skip_while(|s| !s.ptr_eq(this));
    let parts =
        from.take_while(|s| accessed(s).1.iter().any(|b| *b.name == *result)).map_while(as_loop);
    Ok(parts.map(|(var, ..)| LoopRef::new(&block.func, var)).collect())
}

//! The few columns that whole vectors leave over, computed in vectors along the reduction.
//!
//! 65 columns are four vectors of 16 and one column more. A vector of its own would multiply 15 lanes
//! for nothing; the column takes one sixteenth of that where the operand that other tiles broadcast is
//! read in vectors along an axis of the reduction, as its cells lie:
//!
//! ```text
//! pack the column in the order of the reduction                cache_read, transform_layout
//! for tiles of rows:                                           split
//!     partial[rows, lanes] = 0                                 rfactor, decompose_reduction
//!     for the reduction, in vectors:
//!         for rows, columns: partial += a * b                  vectorize, unroll
//!     quarter = sums of the partial sums                       rfactor
//!     sums = those of a quarter
//!     sums += a * b of the steps that are no vector            loop_partition
//!     for rows, columns: out = what follows of sums
//! ```
//!
//! Sums are added up in another order than in other columns.

use tilewright_ir::{Dim, Error, Result};
use tilewright_schedule::value::Lambda;
use tilewright_schedule::{BlockRef, BufferArg, LoopRef, Schedule};
use tilewright_target::Target;

use crate::contraction::Contraction;
use crate::partial::{begun, combined, in_registers};
use crate::parts::{
    TileBlocks, blocks, cut, in_groups, loop_at, no_unroll, number, packed, partition, split,
};
use crate::tile::{Tile, rows_at_once};

/// The columns that are left over, apart from whole vectors.
pub(crate) struct Columns<'a> {
    pub(crate) c: &'a Contraction,
    pub(crate) tile: &'a Tile,
    pub(crate) target: &'a Target,
    /// The axis of the reduction along which vectors lie.
    pub(crate) along: usize,
    /// How many loops are around a tile.
    pub(crate) outer: usize,
}

/// The last tile of columns of some rows: the blocks of sums and of what follows of them.
pub(crate) struct Last {
    rows: i64,
    /// Those of the whole vectors in it, where there are some.
    pub(crate) vectors: Option<[BlockRef; 2]>,
    /// Those of the columns that are left over.
    columns: [BlockRef; 2],
}

impl Columns<'_> {
    /// Takes the last tile of columns apart at a depth, in the block of sums and the one that makes the
    /// result of them, and in it the whole vectors from the columns that are left over.
    pub(crate) fn split_last_tile(
        &self,
        sch: &mut Schedule,
        block: &BlockRef,
        finish: &BlockRef,
        depth: usize,
    ) -> Result<Vec<Last>> {
        let blocks = vec![block.clone(), finish.clone()];
        let mut parts = vec![TileBlocks::whole(blocks)];
        let (count, rest) = self.tile.columns(self.c);
        partition(sch, &mut parts, depth, &[number(count), number(1)])?;
        let mut parts = parts.split_off(1);
        parts.iter_mut().for_each(|p| p.ragged = false);
        let extent = self.tile.row_axis.map_or(1, |r| self.c.axes[r].extent);
        let left = extent % self.tile.rows;
        if left != 0 {
            let full = [number(extent / self.tile.rows), number(1)];
            partition(sch, &mut parts, self.outer - 1, &full)?;
        }
        let few = self.tile.narrow(self.c, self.lanes());
        let mut all = Vec::new();
        for part in &parts {
            let [block, finish] = &part.blocks[..] else {
                return Err(Error::internal("columns that are left over have other blocks"));
            };
            let rows = if part.ragged { left } else { self.tile.rows };
            self.keep(sch, block, [rows, rest])?;
            self.cut(sch, finish)?;
            let (both, [columns, result]) = ([block.clone(), finish.clone()], [block, finish]);
            all.push(match rest - few {
                0 => Last { rows, vectors: None, columns: both },
                whole => {
                    let sizes = [number(whole), number(few)];
                    let loops = sch.get_loops(columns)?.split_off(self.outer);
                    let Some((lane, others)) = loops.split_last() else {
                        return Err(Error::internal("a tile has no loops"));
                    };
                    sch.reorder(&[std::slice::from_ref(lane), others].concat())?;
                    let columns = second(cut(sch, columns, self.outer, &sizes)?)?;
                    for b in [block, &columns] {
                        let mut loops = sch.get_loops(b)?.split_off(self.outer);
                        loops.rotate_left(1);
                        sch.reorder(&loops)?;
                    }
                    let lane = sch.get_loops(result)?.len() - 1;
                    let result = second(cut(sch, result, lane, &sizes)?)?;
                    Last { rows, vectors: Some(both), columns: [columns, result] }
                }
            });
        }
        Ok(all)
    }

    fn lanes(&self) -> i64 {
        self.target.vectors.lanes(self.c.bytes)
    }

    /// Packs the vector operand: for whole vectors in a layout that is given, and for the columns that
    /// are left over with the steps of the reduction innermost.
    pub(crate) fn pack(
        &self,
        sch: &mut Schedule,
        block: &BlockRef,
        last: &[Last],
        whole: Lambda,
    ) -> Result<()> {
        let vectors = last.iter().flat_map(|l| l.vectors.iter().map(|[sums, _]| sums.clone()));
        let vectors: Vec<BlockRef> = [block.clone()].into_iter().chain(vectors).collect();
        let columns: Vec<BlockRef> = last.iter().map(|l| l.columns[0].clone()).collect();
        for (readers, map) in [(vectors, whole), (columns, self.in_order()?)] {
            let operand = &self.c.operands[self.tile.vector];
            let buffer = BufferArg::Name(operand.buffer.name.clone());
            let Some(first) = readers.first() else { continue };
            let copy = sch.cache_read(first, buffer, "global", &readers)?;
            packed(sch, &copy, &map, operand.free)?;
        }
        Ok(())
    }

    /// The layout of the vector operand for these columns: the steps of the reduction are innermost.
    fn in_order(&self) -> Result<Lambda> {
        let (c, vector) = (self.c, self.tile.vector);
        let Some((last, axis)) = c.whole(vector, self.along).zip(self.tile.packed()) else {
            return Err(Error::internal("an operand that cannot be packed along the reduction"));
        };
        let batch = self.tile.batch(c);
        let rank = c.operands[vector].indices.len();
        let rest = (0..rank).filter(|d| *d != axis && *d != last && !batch.contains(d));
        let order: Vec<usize> =
            batch.iter().copied().chain([axis]).chain(rest).chain([last]).collect();
        Ok(in_groups(rank, order.into_iter().map(|d| vec![(d, Dim::from(1))]).collect()))
    }

    /// Makes the loops of the columns that are left over. Returns the first block of them.
    pub(crate) fn tiled(&self, sch: &mut Schedule, last: &[Last]) -> Result<BlockRef> {
        let mut first = None;
        for Last { rows, columns: [block, finish], .. } in last {
            let head = self.part(sch, block, *rows)?;
            first.get_or_insert(head);
            for l in sch.get_loops(finish)?.drain(self.outer..) {
                sch.unroll(&l)?;
            }
        }
        first.ok_or_else(|| Error::internal("columns that are left over have no rows"))
    }

    /// Lets the loops over rows and columns run over so many alone, which are all that there are.
    fn keep(&self, sch: &mut Schedule, block: &BlockRef, counts: [i64; 2]) -> Result<()> {
        for (k, count) in counts.into_iter().rev().enumerate() {
            let loops = sch.get_loops(block)?;
            let Some(l) = loops.len().checked_sub(k + 1).map(|at| &loops[at]) else {
                return Err(Error::internal("a tile has fewer loops inside"));
            };
            let all = [self.tile.width, self.tile.rows][k];
            if count < all {
                sch.loop_partition(l, Some(&[number(count), number(all - count)]))?;
            }
        }
        Ok(())
    }

    /// Lets the loops inside a tile run over those values alone that there are.
    fn cut(&self, sch: &mut Schedule, block: &BlockRef) -> Result<()> {
        for k in self.outer..sch.get_loops(block)?.len() {
            let l = loop_at(sch, block, k)?;
            // A loop that has nothing to cut stays.
            let _ = sch.loop_partition(&l, None);
        }
        Ok(())
    }

    /// The sums of a tile of so many rows, in tiles of as many as registers hold.
    fn part(&self, sch: &mut Schedule, block: &BlockRef, rows: i64) -> Result<BlockRef> {
        let columns = self.tile.narrow(self.c, self.lanes());
        let registers = self.target.vectors.registers as i64;
        let Some(few) = rows_at_once(rows, columns, registers) else {
            return Err(Error::internal("columns that registers do not hold"));
        };
        if few == rows {
            return self.sums(sch, block, self.outer);
        }
        let loops = sch.get_loops(block)?;
        let (row, lane) = (&loops[loops.len() - 2], &loops[loops.len() - 1]);
        let [tiles, row] = split(sch, row, None, few)?;
        let between = &loops[self.outer..loops.len() - 2];
        sch.reorder(&[&[tiles], between, &[row, lane.clone()]].concat())?;
        let sizes = [number(rows / few), number(1)];
        let sizes = if rows % few != 0 { &sizes[..] } else { &[] };
        let mut first = None;
        for (k, b) in cut(sch, block, self.outer, sizes)?.iter().enumerate() {
            if k > 0 {
                let row = &sch.get_loops(b)?;
                let row = &row[row.len() - 2];
                let left = rows % few;
                sch.loop_partition(row, Some(&[number(left), number(few - left)]))?;
            }
            let head = self.sums(sch, b, self.outer + 1)?;
            first.get_or_insert(head);
        }
        first.ok_or_else(|| Error::internal("a tile has no rows"))
    }

    /// The sums of rows under so many loops: in vectors, and what is left over of the reduction.
    fn sums(&self, sch: &mut Schedule, block: &BlockRef, around: usize) -> Result<BlockRef> {
        let (c, lanes) = (self.c, self.lanes());
        let order = c.reduction(self.tile.vector);
        let steps = c.axes[self.along].extent;
        let loops = sch.get_loops(block)?;
        let at = order.iter().position(|k| *k == self.along).map(|at| at + around);
        let inside = loops.len().checked_sub(2).filter(|n| *n == around + order.len());
        let Some((at, inside)) = at.zip(inside) else {
            return Err(Error::internal("a tile of left over columns has other loops"));
        };
        let along = &loops[at];
        let others: Vec<LoopRef> =
            loops[around..inside].iter().filter(|l| *l != along).cloned().collect();
        let tile = &loops[inside..];
        let before = blocks(sch, &block.func)?;
        if steps % lanes != 0 {
            sch.reorder(&[std::slice::from_ref(along), &others, tile].concat())?;
            sch.loop_partition(
                along,
                Some(&[number(steps - steps % lanes), number(steps % lanes)]),
            )?;
        }
        let [vectors, lane] = split(sch, along, None, lanes)?;
        sch.reorder(&[&others[..], &[vectors], tile, std::slice::from_ref(&lane)].concat())?;
        let left = blocks(sch, &block.func)?;
        let left = left.iter().find(|b| before.iter().all(|x| x.name != b.name));
        if let Some(left) = left {
            let left = sch.get_block(&left.name, &block.func)?;
            for l in sch.get_loops(&left)?.drain(around + order.len()..) {
                sch.unroll(&l)?;
            }
        }
        let partial = sch.rfactor(&lane, -1)?;
        let [init, update] = begun(sch, &partial, around)?;
        in_registers(sch, &init, around)?;
        in_registers(sch, &update, around + order.len())?;
        let step = loop_at(sch, &update, around + order.len() - 1)?;
        no_unroll(sch, &step)?;
        combined(sch, block, around, lanes)?;
        Ok(init)
    }
}

/// The block in the second of two parts of a loop.
fn second(mut parts: Vec<BlockRef>) -> Result<BlockRef> {
    parts.pop().ok_or_else(|| Error::internal("a loop that was taken apart has one part"))
}

//! Register tiles of a reduction, by primitives.
//!
//! ```text
//! sums in the order of the loops                                  set_scope or cache_write, transform_layout
//! for other axes, tiles of v, tiles of u:                         transform_block_layout, loop_partition, split
//!     sums = identity                                             decompose_reduction
//!     for the reduction:
//!         for rows, vectors, lanes: sums = op(sums, value)        reorder, unroll, vectorize
//!     for rows, vectors, lanes: out = what follows of sums        reverse_compute_at
//! ```
//!
//! An extent that tiles do not divide leaves a smaller tile, as loops of its own, never a condition inside of
//! a tile. An open one leaves vectors, and one of which lanes are left out where the machine does that; elsewhere
//! tiles of half as many lanes, a quarter, and so on.

use tilewright_analysis::stage::Extent;
use tilewright_ir::{DType, Dim, Error, Expr, Result};
use tilewright_schedule::value::{Lambda, LambdaItem};
use tilewright_schedule::{BlockRef, LoopRef, Schedule};

use super::choice::{Level, Overlap, Tiling};
use super::{Places, Reduction};
use crate::parts::{self, cut, halves, no_unroll, number, split, split_nest, vectors};
use crate::share::shared;

/// The most updates of vectors that a tile unrolls: windows of pools, and of a channel each.
const UNROLLED: i64 = 36;

/// The same where rows of windows share what they read, for a row that is left over: there are few.
const UNROLLED_ROW: i64 = 64;

/// The most vectors of a tile that has a version for each number of them.
const FEW_VECTORS: i64 = 4;

/// Some tiles along an axis: how many, and the size of each.
pub(super) struct Piece {
    pub(super) count: Dim,
    pub(super) size: i64,
    /// Whether the tile is not full, and lanes of it are left out.
    masked: bool,
}

impl Piece {
    /// How many cells the tiles have; `None` for all that are left.
    fn cells(&self) -> Option<Expr> {
        (!self.masked).then(|| (self.count * self.size.dim()).typed(DType::I32))
    }
}

/// Tiles of a width along an open axis of vectors, then one that is not full, of which the vectors that there are have
/// versions ([`Reduction::few_vectors`]). Where vectors may be `alone`, as rows have several sums to add to already, or
/// the next tiles begin while one runs, single ones follow. Where the width is one vector and rows are `inside` of the
/// loop over vectors, any of them may be the one that is not full: its mask is made once for all rows. Elsewhere only
/// the last is, whose mask is the same in all rows.
fn vectors_and_rest(extent: Dim, width: i64, lanes: i64, [alone, inside]: [bool; 2]) -> Vec<Piece> {
    if width == lanes && inside {
        return vec![Piece { count: extent.ceildiv(lanes.dim()), size: lanes, masked: true }];
    }
    let size = if alone { lanes } else { width.min(FEW_VECTORS * lanes) };
    let mut all = vec![whole_piece(extent, width)];
    let mut rest = extent.modulo(width.dim());
    if width > 2 * lanes && size < width {
        all.push(whole_piece(rest, size));
        rest = extent.modulo(size.dim());
    }
    all.push(Piece { count: rest.ceildiv(size.dim()), size, masked: true });
    all.retain(|p| p.count != 0);
    all
}

/// So many values in whole vectors, and behind them.
fn in_vectors(width: i64, lanes: i64) -> [i64; 2] {
    [width / lanes * lanes, width % lanes]
}

fn whole_piece(of: Dim, size: i64) -> Piece {
    Piece { count: of.floordiv(size.dim()), size, masked: false }
}

/// Tiles of one size along an axis, and smaller ones where it does not divide: those of an open rest have
/// sizes of which each divides the one before, down to 1.
pub(super) fn pieces(extent: Dim, size: i64, smaller: &[i64]) -> Vec<Piece> {
    let (count, mut rest) = (extent.floordiv(size as usize), extent.modulo(size as usize));
    let mut all = vec![Piece { count, size, masked: false }];
    match rest.number() {
        Some(rest) => all.push(Piece { count: Dim::from(1), size: rest, masked: false }),
        None => {
            for &size in smaller.iter().filter(|n| **n < size) {
                let (count, left) = (rest.floordiv(size as usize), rest.modulo(size as usize));
                all.push(Piece { count, size, masked: false });
                rest = left;
            }
        }
    }
    all.retain(|p| p.count != 0 && p.size != 0);
    all
}

/// The smaller sizes of tiles for what those of a size leave over: each divides the one before, the last is 1.
fn divisors(size: i64) -> Vec<i64> {
    std::iter::successors(Some(size), |n| (1..*n).rev().find(|d| n % d == 0)).skip(1).collect()
}

/// The blocks of tiles of one size: what adds up sums and what makes the result.
struct Sized {
    block: BlockRef,
    finish: BlockRef,
    /// Rows and values along the vector axis of a tile.
    rows: i64,
    width: i64,
    /// How many tiles there are along both axes, where an open number is exact.
    counts: [Option<Dim>; 2],
    /// The lanes that a tile has where it is not full.
    left: Option<Dim>,
}

/// The loops that are around both blocks before tiles are made.
pub(super) struct Around {
    /// Loops of one iteration, and those that stand around all others already.
    pub(super) units: usize,
    /// The same in the block that makes the result.
    pub(super) finish: usize,
    /// The rows that are there, where these are a part of the axis.
    pub(super) rows: Option<(usize, i64)>,
}

/// Tiles that were made.
pub(super) struct MadeTiles {
    /// For each size of tile the blocks that begin sums, add to them, and make the result.
    pub(super) blocks: Vec<Vec<BlockRef>>,
    /// How many loops are around those of the levels.
    pub(super) units: usize,
    /// The depth of the first loop that is in several parts.
    pub(super) parted: Option<usize>,
}

impl Reduction<'_> {
    /// Makes the tiles of all of a reduction.
    pub(super) fn tiled(
        &self,
        sch: &mut Schedule,
        places: &Places,
        tiling: &Tiling,
    ) -> Result<MadeTiles> {
        let (levels, sums) = (tiling.axes(), tiling.of_sums());
        let reduce: Vec<usize> = self.reduce().collect();
        let around = places.lay_out(sch, self, (&levels, &sums), &reduce)?;
        let units = around - levels.len();
        let finish = sch.get_loops(&places.finish)?.len() - sums.len();
        let ends = (places.block.clone(), places.finish.clone());
        self.tiles(sch, places, ends, tiling, &Around { units, finish, rows: None })
    }

    /// Whether a result takes so few steps that others begin while it is computed, and these read the same lines of
    /// memory: a window that moves along an axis. Of other steps each comes to a place of its own, for which a wide tile
    /// is better.
    pub(super) fn is_short_window(&self, v: usize) -> bool {
        let moves =
            |index: &Expr, k: usize| self.axes[k].parts.iter().any(|(x, _)| index.mentions(x));
        let mut indices = self.loads.iter().flat_map(|load| &load.indices);
        self.known_steps().is_some_and(|n| n <= UNROLLED)
            && indices.any(|i| moves(i, v) && self.reduce().any(|k| moves(i, k)))
    }

    /// Makes tiles inside of some loops.
    pub(super) fn tiles(
        &self,
        sch: &mut Schedule,
        places: &Places,
        (block, finish): (BlockRef, BlockRef),
        tiling: &Tiling,
        around: &Around,
    ) -> Result<MadeTiles> {
        // A band has these axes alone.
        let sums: Vec<usize> =
            tiling.of_sums().into_iter().filter(|k| tiling.axes().contains(k)).collect();
        let mut all = vec![Sized {
            block,
            finish,
            rows: 1,
            width: tiling.width,
            counts: [None; 2],
            left: None,
        }];
        let mut parted = None;
        let first = around.units + tiling.outer();
        for (depth, level) in tiling.order.iter().enumerate() {
            let k = tiling.axis(level);
            let (size, smaller) = match level {
                Level::Axis(_) => continue,
                Level::Vectors => (tiling.width, halves(tiling.width).collect()),
                Level::Rows => (tiling.rows, divisors(tiling.rows)),
            };
            let given = around.rows.filter(|(axis, _)| *axis == k);
            let extent = given.map_or(self.axes[k].extent, |(_, n)| n.dim());
            let size = extent.number().map_or(size, |n| size.min(n));
            let pieces = match level {
                Level::Vectors if extent.known().is_none() && self.masks() => {
                    let inside = tiling.overlap.is_some();
                    let alone = inside || tiling.rows > 1 || self.is_short_window(tiling.v);
                    vectors_and_rest(extent, size, tiling.lanes, [alone, inside])
                }
                _ => pieces(extent, size, &smaller),
            };
            let beside = sums.iter().position(|o| *o == k).unwrap_or(0);
            let sizes: Vec<Option<Expr>> = pieces.iter().map(Piece::cells).collect();
            if pieces.len() > 1 {
                parted = Some(first);
            }
            let mut next = Vec::new();
            for one in all {
                let blocks = split_nest(sch, &one.block, (first, around.units + depth), &sizes)?;
                let results = split_nest(sch, &one.finish, (0, around.finish + beside), &sizes)?;
                for ((block, finish), piece) in blocks.into_iter().zip(results).zip(&pieces) {
                    let (mut rows, mut width, mut counts) = (one.rows, one.width, one.counts);
                    let count = Some(piece.count).filter(|n| n.known().is_none() && !piece.masked);
                    match level {
                        Level::Rows => (rows, counts[0]) = (piece.size, count),
                        _ => (width, counts[1]) = (piece.size, count),
                    }
                    let left = piece.masked.then(|| extent.modulo(piece.size.dim())).or(one.left);
                    next.push(Sized { block, finish, rows, width, counts, left });
                }
            }
            all = next;
        }
        let mut blocks = Vec::new();
        for one in &all {
            blocks.push(self.tile(sch, places, one, tiling, around.units)?);
        }
        Ok(MadeTiles { blocks, units: around.units, parted })
    }

    /// Makes the tiles of one size. Returns the blocks that begin sums, add to them, and make the result.
    fn tile(
        &self,
        sch: &mut Schedule,
        places: &Places,
        one: &Sized,
        tiling: &Tiling,
        units: usize,
    ) -> Result<Vec<BlockRef>> {
        let loops = sch.get_loops(&one.block)?;
        let count = units + tiling.order.len();
        let (outer, reduce) = loops.split_at(count);
        let (mut outer, mut rows, mut lane) = (outer.to_vec(), None, None);
        let mut along = None;
        for (depth, level) in tiling.order.iter().enumerate() {
            let (size, count) = match level {
                Level::Axis(_) => continue,
                Level::Vectors => (one.width, one.counts[1]),
                Level::Rows => (one.rows, one.counts[0]),
            };
            if size == 1 {
                continue;
            }
            let at = units + depth;
            let count = count.map(|n| n.typed(DType::I32));
            let [tiles, one] = split(sch, &outer[at], count, size)?;
            outer[at] = tiles;
            match level {
                Level::Rows => rows = Some(one),
                _ => (along, lane) = (Some(outer[at].clone()), Some(one)),
            }
        }
        let inner: Vec<LoopRef> = rows.iter().chain(&lane).cloned().collect();
        if !inner.is_empty() {
            sch.reorder(&[&outer[units + tiling.outer()..], reduce, &inner].concat())?;
        }
        places.meet(sch, &one.block, &one.finish, count)?;
        let first = reduce.first().ok_or_else(|| Error::internal("a reduction without loops"))?;
        let init = sch.decompose_reduction(&one.block, first)?;
        let update = sch.latest(one.block.clone());
        if self.is_bounded {
            sch.remove_overcompute_through_branching(&update)?;
        }
        let wide = inner.len() - usize::from(rows.is_some());
        let known = self.known_steps().is_some();
        let vectors = (one.width as u64).div_ceil(tiling.lanes as u64) as i64;
        let updates = self.count(self.reduce()).saturating_mul(one.rows * vectors);
        let most = if tiling.overlap.is_some() { UNROLLED_ROW } else { UNROLLED };
        let mut shared = false;
        match tiling.overlap.as_ref().filter(|_| rows.is_some() && known) {
            Some(overlap) => {
                self.by_place(sch, overlap, reduce, &inner)?;
                shared = wide > 0;
            }
            None if known && updates <= most => reduce.iter().try_for_each(|l| sch.unroll(l))?,
            None => reduce.iter().try_for_each(|l| no_unroll(sch, l))?,
        }
        let blocks = vec![init, update, one.finish.clone()];
        if let (Some(left), Some(tiles), 2..) = (one.left, &along, vectors) {
            self.few_vectors(sch, tiles, &blocks, left, one.width)?;
            return Ok(blocks);
        }
        let width = (wide > 0).then(|| in_vectors(one.width, self.lanes()));
        for (k, block) in blocks.iter().enumerate() {
            if shared && k == 1 {
                self.rows_of_vectors(sch, block, one.width)?
            } else {
                self.in_registers(sch, block, width, rows.is_some())?
            }
        }
        Ok(blocks)
    }

    /// Gives a tile of several vectors, of which so many lanes are left, a version for each number of vectors. All but
    /// the last one are whole.
    fn few_vectors(
        &self,
        sch: &mut Schedule,
        tiles: &LoopRef,
        made: &[BlockRef],
        left: Dim,
        width: i64,
    ) -> Result<()> {
        let lanes = self.lanes();
        for block in made {
            let lane = parts::innermost(sch, block)?;
            split(sch, &lane, None, lanes)?;
        }
        let versions = parts::few_vectors(sch, tiles, made, left, (width / lanes, lanes))?;
        for (whole, version) in versions.iter().enumerate() {
            for block in version {
                for part in parts::whole_vectors(sch, block, whole)? {
                    let [.., several, lane] = &sch.get_loops(&part)?[..] else {
                        return Err(Error::internal("vectors without lanes"));
                    };
                    sch.vectorize(lane)?;
                    sch.unroll(several)?;
                }
            }
        }
        Ok(())
    }

    /// Lets a tile of rows go through what it reads in the order of memory: each place is used by all rows before
    /// the next one is read.
    fn by_place(
        &self,
        sch: &mut Schedule,
        overlap: &Overlap,
        steps: &[LoopRef],
        inner: &[LoopRef],
    ) -> Result<()> {
        let units = steps.len() - self.reduce().count();
        let at = self.reduce().position(|k| k == overlap.window);
        let Some((at, (row, lane))) = at.map(|at| at + units).zip(inner.split_first()) else {
            return Err(Error::internal("rows without a window"));
        };
        let window = steps[at].clone();
        let others: Vec<LoopRef> =
            steps.iter().enumerate().filter(|(k, _)| *k != at).map(|(_, l)| l.clone()).collect();
        sch.reorder(&[&[window.clone(), row.clone()], &others[..], lane].concat())?;
        let [by, far] = overlap.moves;
        let map = Lambda::from_fn(["step", "row"], move |i| {
            vec![LambdaItem::from(i[1].clone() * by + i[0].clone() * far), LambdaItem::from(&i[1])]
        });
        let made = sch.transform_loops(&[window, row.clone()], &map)?;
        let [place, row] = &made[..] else {
            return Err(Error::internal("two loops became another number"));
        };
        let place = std::slice::from_ref(place);
        let all = if overlap.rolled { [&others, place] } else { [place, &others] }.concat();
        sch.reorder(&[&all[..], lane, std::slice::from_ref(row)].concat())?;
        if overlap.rolled {
            others.iter().try_for_each(|l| no_unroll(sch, l))?;
            return sch.unroll(&place[0]);
        }
        all.iter().try_for_each(|l| sch.unroll(l))
    }

    /// Makes vectors of a block with a loop over so many lanes and one over rows inside: each vector that is read
    /// serves all rows before the next one is read.
    fn rows_of_vectors(&self, sch: &mut Schedule, block: &BlockRef, width: i64) -> Result<()> {
        let lanes = self.lanes();
        let [whole, rest] = in_vectors(width, lanes);
        let sizes = [whole, rest].into_iter().filter(|n| *n > 0).map(number);
        let depth = sch.get_loops(block)?.len() - 2;
        let parts = cut(sch, block, depth, &sizes.collect::<Vec<_>>())?;
        for (k, part) in parts.iter().enumerate() {
            let mut loops = sch.get_loops(part)?.split_off(depth);
            if k == 0 && whole > lanes {
                loops.splice(0..1, split(sch, &loops[0], None, lanes)?);
            }
            let last = loops.len() - 1;
            loops.swap(last - 1, last);
            sch.reorder(&loops)?;
            if let Some((lane, others)) = loops.split_last() {
                sch.vectorize(lane)?;
                others.iter().try_for_each(|l| sch.unroll(l))?;
            }
        }
        Ok(())
    }

    /// Gives what is inside of a tile constant places: the loop over lanes, where there is one of so many in whole
    /// vectors and behind them, becomes vectors, and the loops over these and over rows statements.
    fn in_registers(
        &self,
        sch: &mut Schedule,
        block: &BlockRef,
        width: Option<[i64; 2]>,
        rows: bool,
    ) -> Result<()> {
        let mut loops = sch.get_loops(block)?;
        let lanes = self.lanes();
        let Some([whole, rest]) = width else {
            return match loops.pop().filter(|_| rows) {
                Some(row) => sch.unroll(&row),
                None => Ok(()),
            };
        };
        let lane = loops.pop().ok_or_else(|| Error::internal("a tile without lanes"))?;
        if let Some(row) = loops.pop().filter(|_| rows) {
            sch.unroll(&row)?;
        }
        let mut parts = vec![lane];
        if whole > 0 && rest > 0 {
            parts = sch.loop_partition(&parts[0], Some(&[number(whole), None]))?;
        }
        for (k, part) in parts.iter().enumerate() {
            let size = if k == 0 && whole > 0 { whole } else { rest };
            let (lane, several) = vectors(sch, part, size, lanes)?;
            sch.vectorize(&lane)?;
            several.iter().try_for_each(|l| sch.unroll(l))?;
        }
        Ok(())
    }

    /// Shares the loops around tiles where they are work enough.
    pub(super) fn parallel(
        &self,
        sch: &mut Schedule,
        places: &Places,
        tiling: &Tiling,
        made: &MadeTiles,
    ) -> Result<()> {
        let extents: Vec<Dim> = tiling
            .order
            .iter()
            .map(|l| {
                let axis = self.axes[tiling.axis(l)].extent;
                match l {
                    Level::Axis(_) => axis,
                    Level::Vectors => axis.ceildiv(tiling.width.dim()),
                    Level::Rows => axis.ceildiv(tiling.rows.dim()),
                }
            })
            .collect();
        let count = shared(&extents, extents.len(), self.work());
        self.share(sch, places, made.units, count, made.parted)
    }
}

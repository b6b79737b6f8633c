//! Tiles of a stage that copies across: what lies side by side in the result lies rows apart in what it
//! reads.
//!
//! Both axes run in square tiles. In each, vectors along the one are read, and vectors along the other
//! are written; code generation transposes the tile in registers. What tiles of the widest vectors leave
//! over runs in narrower ones, and the last few rows and columns one by one. Rows may have an open length. Where few
//! columns are all there are, as of a batch of one that became the last axis, the loop over them is not the innermost.
//! Where their number is known, and the rows are around them, LLVM interleaves vectors along the rows: there are no tiles.
//!
//! ```text
//! for tiles of u: for tiles of v:
//!     for j in unrolled(T): for lane in vectorized(T):
//!         B[.., u + j, .., v + lane] = f(A[.., v + lane, .., u + j])
//! ```

use crate::axes::{Access, FusedAxis, Move, widest};
use crate::share::share_outer;
use tilewright_analysis::Stage;
use tilewright_analysis::stage::Extent;
use tilewright_ir::{Dim, Expr, Result};
use tilewright_schedule::{BlockRef, Schedule};
use tilewright_target::Target;

use crate::parts::{FEWEST, INTERLEAVED, Piece, amount, pieces, sizes, split, split_nest};

/// The most rows that are transposed.
const MOST: i64 = 16;
/// The fewest bytes of a row for which it pays.
const ROW: i64 = 8;
/// The fewest cells for which it pays.
const CELLS: i64 = 64;

/// A square tile of two axes, by their positions.
pub struct Tile {
    /// Along which the result is written in vectors.
    along: usize,
    /// Along which it is read in vectors.
    across: usize,
    size: i64,
}

impl Tile {
    /// The tile of a stage over axes, where it copies across; `accesses` are its loads and, last, its store.
    pub fn recognise(
        stage: &Stage,
        value: &Expr,
        axes: &[FusedAxis],
        accesses: &[Access],
        target: &Target,
    ) -> Option<Tile> {
        let (store, loads) = accesses.split_last()?;
        let along = (0..axes.len()).find(|k| moves_by(store, *k, 1, axes))?;
        let mut across = None;
        for load in
            loads.iter().filter(|a| !moves_by(a, along, 0, axes) && !moves_by(a, along, 1, axes))
        {
            axes[along].moves(load)?;
            let beside = (0..axes.len()).find(|k| *k != along && moves_by(load, *k, 1, axes))?;
            if across.is_some_and(|a| a != beside) {
                return None;
            }
            across = Some(beside);
        }
        let across = across?;
        let bytes = widest(stage, value, accesses)?;
        // An open one may be long, also where it is usually short, as a batch is.
        let long = |k: usize| match axes[k].extent.known() {
            None => axes[k].extent.estimate().max(MOST),
            Some(_) => axes[k].extent.estimate(),
        };
        let (u, v) = (long(across), long(along));
        let size = target.vectors.lanes(bytes).min(MOST);
        let interleaved = across + 1 == along
            && target.vectors.by_compiler
            && axes[along].extent.known().is_some_and(|n| n < INTERLEAVED);
        let fewest = FEWEST.max(ROW / bytes as i64);
        let pays = u.min(v) >= fewest && u.checked_mul(v)? >= CELLS && size >= FEWEST;
        (pays && !interleaved).then_some(Tile { along, across, size })
    }

    /// How many values the result has along the axis of its vectors.
    pub fn columns(&self, axes: &[FusedAxis]) -> Dim {
        axes[self.along].extent
    }

    /// The loops of a block, one for each axis: tiles in pieces of one width.
    pub(crate) fn loops(
        &self,
        sch: &mut Schedule,
        block: &BlockRef,
        axes: &[FusedAxis],
    ) -> Result<()> {
        // Neither axis runs in wider tiles than the other one has.
        let widest = |k: usize, size| pieces(axes[k].extent, size).first().map_or(1, |p| p.width);
        let size = widest(self.across, widest(self.along, self.size));
        let along = pieces(axes[self.along].extent, size);
        let columns = split_nest(sch, block, (0, self.along), &sizes(&along))?;
        for (v, block) in along.iter().zip(columns) {
            let across = pieces(axes[self.across].extent, v.width);
            let rows = split_nest(sch, &block, (0, self.across), &sizes(&across))?;
            for (u, block) in across.iter().zip(rows) {
                self.piece(sch, &block, axes, (u, v))?;
            }
        }
        Ok(())
    }

    /// The tiles of one size.
    fn piece(
        &self,
        sch: &mut Schedule,
        block: &BlockRef,
        axes: &[FusedAxis],
        (u, v): (&Piece, &Piece),
    ) -> Result<()> {
        let size = u.width.min(v.width);
        let mut loops = sch.get_loops(block)?;
        let mut extents: Vec<Dim> = axes.iter().map(|a| a.extent).collect();
        let mut inner = Vec::new();
        for (k, p) in [(self.across, u), (self.along, v)] {
            let tiles = p.tiles(size);
            extents[k] = tiles;
            if size > 1 {
                let [tile, one] = split(sch, &loops[k], amount(tiles), size)?;
                loops[k] = tile;
                inner.push(one);
            }
        }
        if let [row, lane] = &inner[..] {
            sch.reorder(&[&loops[..], &inner].concat())?;
            sch.unroll(row)?;
            sch.vectorize(lane)?;
        } else if v.width == 1 && axes[self.along].extent.known().is_none() {
            // A few columns, or the one of a batch of one: what runs innermost is long.
            let last = axes.len() - 1 - usize::from(self.along + 1 == axes.len());
            let order = |k: usize| (k == last, k == self.along);
            let mut by_place: Vec<usize> = (0..axes.len()).collect();
            by_place.sort_by_key(|k| order(*k));
            loops = by_place.iter().map(|k| loops[*k].clone()).collect();
            extents = by_place.iter().map(|k| extents[*k]).collect();
            sch.reorder(&loops)?;
        }
        let cells = extents.iter().fold((size * size).dim(), |n, e| n * *e);
        let fusible = extents.len().saturating_sub(1).max(1);
        share_outer(sch, &loops, &extents, fusible, cells)
    }
}

fn moves_by(a: &Access, k: usize, n: i64, axes: &[FusedAxis]) -> bool {
    axes[k].moves(a) == Some(Move::By(n))
}

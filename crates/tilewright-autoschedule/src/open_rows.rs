//! Tiles of an open number of rows.
//!
//! What whole tiles leave over runs in tiles of fewer rows, the last of which has rows too many (lowering computes
//! the last row in their place, `repeat_rows`), or in a version for each number of rows:
//!
//! ```text
//! for tiles of 9 rows: ...                                     loop_partition, split
//! for tiles of 4 rows:
//!     for the reduction: for 4 rows: sums += a * b             fission, reorder
//!     for 4 rows: out = what follows of sums
//! ```
//!
//! ```text
//! for tiles of 6 rows: ...                                     loop_partition, split
//! if there is one row: ...                                     loop_versions
//! if there are two: ...
//! ```

use tilewright_analysis::stage::Extent;
use tilewright_ir::{DType, Dim, Error, Expr, Result};
use tilewright_schedule::{BlockRef, Schedule};
use tilewright_target::Target;

use crate::contraction::Contraction;
use crate::parts::{TileBlocks, copies, loop_at, split};
use crate::tile::{LeftOver, Tile};

/// Tiles of so many rows, and how many there are; as many as it takes for what is left over.
struct Kind {
    rows: i64,
    count: Option<Dim>,
}

/// The tiles along an axis of open extent.
pub(crate) struct OpenRows {
    /// The kinds of tiles, the most rows first.
    kinds: Vec<Kind>,
    /// The rows of the last tiles, and what they leave over, where that has a version for each number of rows.
    counted: Option<(i64, Dim)>,
    /// How many loops are around a tile, that over tiles included, and how many the reduction has.
    outer: usize,
    reduce: usize,
}

impl OpenRows {
    /// Those of a tile, where it has rows along an open axis.
    pub(crate) fn new(
        c: &Contraction,
        tile: &Tile,
        target: &Target,
        outer: usize,
        reduce: usize,
    ) -> Option<OpenRows> {
        let axis = tile.open_rows(c)?;
        let whole = axis.dim.floordiv(tile.rows.dim());
        let left = axis.dim - whole * tile.rows.dim();
        let mut kinds = vec![Kind { rows: tile.rows, count: Some(whole) }];
        let mut counted = None;
        if left != 0 {
            let rows = match tile.left_over(c, target) {
                LeftOver::Versions => {
                    counted = Some((tile.rows, left));
                    tile.rows
                }
                LeftOver::Tiles(few) => few,
            };
            kinds.push(Kind { rows, count: None });
        }
        Some(OpenRows { kinds, counted, outer, reduce })
    }

    /// Makes the tiles of the blocks of parts, in which the loop over rows is one yet: sums, and what follows of
    /// them. Of each part there is then one for each kind of tiles; those of the first kind come first.
    pub(crate) fn tiles(&self, sch: &mut Schedule, parts: &mut Vec<TileBlocks>) -> Result<()> {
        let mut made: Vec<(usize, TileBlocks)> = Vec::new();
        for part in parts.drain(..) {
            let Some(first) = part.blocks.first() else { continue };
            let rows = loop_at(sch, first, self.outer - 1)?;
            let others = self.kinds.len().saturating_sub(1);
            let sizes = self
                .kinds
                .iter()
                .take(others)
                .map(|kind| kind.count.map(|n| (n * kind.rows.dim()).typed(DType::I32)));
            let sizes: Vec<Option<Expr>> = sizes.chain([None]).collect();
            let mut blocks = part.blocks.clone();
            if sizes.len() > 1 {
                blocks.extend(copies(sch, &first.func, &rows, &sizes)?);
            }
            if blocks.len() != part.blocks.len() * sizes.len() {
                return Err(Error::internal("rows in parts have other blocks"));
            }
            let of_kinds = self.kinds.iter().zip(blocks.chunks(part.blocks.len()));
            for (k, (kind, blocks)) in of_kinds.enumerate() {
                let (ragged, single) = (kind.count.is_none(), kind.rows == 1);
                if !single {
                    self.sink(sch, blocks, kind)?;
                }
                made.push((k, TileBlocks { blocks: blocks.to_vec(), ragged, single, ..part }));
            }
        }
        made.sort_by_key(|(k, _)| *k);
        *parts = made.into_iter().map(|(_, part)| part).collect();
        Ok(())
    }

    /// Puts the loop over the rows of a tile inside of the reduction, and around each of the other blocks.
    fn sink(&self, sch: &mut Schedule, blocks: &[BlockRef], kind: &Kind) -> Result<()> {
        let Some((sums, follows)) = blocks.split_first() else { return Ok(()) };
        let all = loop_at(sch, sums, self.outer - 1)?;
        let [_, row] = split(sch, &all, kind.count.map(|n| n.typed(DType::I32)), kind.rows)?;
        follows.iter().try_for_each(|_| sch.fission(&row, 1).map(drop))?;
        let mut inside = sch.get_loops(sums)?.split_off(self.outer);
        if inside.len() <= self.reduce {
            return Err(Error::internal("a tile has no loop over its rows"));
        }
        inside[..=self.reduce].rotate_left(1);
        sch.reorder(&inside)
    }

    /// Gives what is left over a version for each number of rows, where it is to have these.
    pub(crate) fn versions(&self, sch: &mut Schedule, parts: &[TileBlocks]) -> Result<()> {
        let Some((rows, left)) = self.counted else { return Ok(()) };
        let left = left.typed(DType::I32);
        let cases: Vec<i64> = (1..rows).collect();
        for part in parts.iter().filter(|p| p.ragged) {
            let Some(first) = part.blocks.first() else { continue };
            let tiles = loop_at(sch, first, self.outer - 1)?;
            sch.loop_versions(&tiles, &left, &cases)?;
        }
        Ok(())
    }
}

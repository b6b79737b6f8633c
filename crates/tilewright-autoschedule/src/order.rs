//! The order of the loops around a register tile.

use tilewright_ir::IterKind;
use tilewright_target::Target;

use crate::contraction::Contraction;
use crate::tile::Tile;

/// A loop around the reduction.
pub(crate) enum Outer {
    /// Over an axis that the tile does not have.
    Axis(usize),
    /// Over tiles along the vector axis.
    Columns,
    /// Over tiles of rows.
    Rows,
}

/// The order of loops, from outside.
pub(crate) struct Order {
    /// Those around the reduction.
    pub(crate) outer: Vec<Outer>,
    /// The axes of the reduction.
    pub(crate) reduce: Vec<usize>,
    /// How many of the outer ones, from outside, have nothing in common of what windows slide over.
    pub(crate) shared: usize,
}

impl Order {
    /// Axes that move both operands, then those along which the vector operand stays, inside of its
    /// tiles where it does not fit the cache as a whole.
    pub(crate) fn choose(c: &Contraction, tile: &Tile, target: &Target) -> Order {
        let vector = &c.operands[tile.vector];
        let broadcast = &c.operands[1 - tile.vector];
        let mut batch = Vec::new();
        let (mut columns, mut rows, mut neither) = (Vec::new(), Vec::new(), Vec::new());
        for k in
            c.axes_where(IterKind::Spatial, |k| k != tile.vector_axis && Some(k) != tile.row_axis)
        {
            let kind = match (vector.steps[k] != 0, broadcast.steps[k] != 0) {
                (true, true) => &mut batch,
                (true, false) => &mut columns,
                (false, true) => &mut rows,
                (false, false) => &mut neither,
            };
            kind.push(Outer::Axis(k));
        }
        let columns_len = columns.len();
        let columns = columns.into_iter().chain([Outer::Columns]);
        // What both operands have of a few channels stays in the first cache, as long as the others come
        // from the second.
        let few = tile.both(c) && c.size(1 - tile.vector) <= target.caches.l2 as i64;
        let fits = c.size(tile.vector) <= target.caches.l2 as i64 / 2 && !few;
        let alone = batch.len();
        let shared = if few { alone + neither.len() + columns_len + 1 } else { alone };
        let mut outer: Vec<Outer> = batch.into_iter().chain(neither).collect();
        if fits {
            outer.extend(rows.into_iter().chain(columns))
        } else {
            outer.extend(columns.chain(rows))
        }
        if tile.row_axis.is_some() {
            outer.push(Outer::Rows);
        }
        Order { outer, reduce: c.reduction(tile.vector), shared }
    }
}

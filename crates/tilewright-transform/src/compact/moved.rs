//! Accesses of a buffer that keeps, of each axis, the part that is used: the start is subtracted from the indices.

use tilewright_ir::index::{self, Ranges};
use tilewright_ir::{Buffer, Expr, Fold};

/// The part of an axis that is used.
pub(super) struct Side {
    pub(super) min: Expr,
    pub(super) extent: i64,
}

/// Accesses of a smaller buffer in the place of those of a larger one.
pub(super) struct Moved<'a> {
    pub(super) old: &'a Buffer,
    pub(super) new: &'a Buffer,
    pub(super) sides: &'a [Option<Side>],
    pub(super) ranges: &'a Ranges,
}

impl Moved<'_> {
    fn indices(&mut self, indices: &[Expr]) -> Vec<Expr> {
        let mut moved = Vec::new();
        for (i, side) in indices.iter().zip(self.sides) {
            let i = self.expr(i);
            moved.push(match side {
                // All indices are the start.
                Some(Side { extent: 1, .. }) => Expr::constant(0.0, i.dtype()),
                Some(side) if side.min.as_int() != Some(0) => {
                    let from = i.clone() - side.min.clone().cast(i.dtype());
                    index::simplify(&from, self.ranges)
                }
                _ => i,
            });
        }
        moved
    }
}

impl Fold for Moved<'_> {
    fn access(&mut self, b: &Buffer, indices: &[Expr]) -> Option<(Buffer, Vec<Expr>)> {
        (b == self.old).then(|| (self.new.clone(), self.indices(indices)))
    }
}

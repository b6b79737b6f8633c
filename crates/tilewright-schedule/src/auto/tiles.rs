//! Tiles along an axis: how many, how large, and what is left over.

use tilewright_analysis::stage::Extent;
use tilewright_ir::{DType, Dim, Expr, ForKind, Stmt};

use crate::auto::emit::for_each;

/// Tiles of one size along an axis, and a smaller one at the end where the size does not divide.
pub struct Tiles {
    size: i64,
    full: Dim,
    rest: Dim,
    /// What an open rest is made of: sizes of which each divides the one before, the last one 1.
    parts: Vec<i64>,
}

impl Tiles {
    /// Tiles of a size, of which an open rest is made of such parts.
    pub fn new(extent: Dim, size: i64, parts: Vec<i64>) -> Self {
        let size = extent.number().map_or(size, |n| size.min(n)).max(1);
        let (full, rest) = (extent.floordiv(size.dim()), extent.modulo(size.dim()));
        Tiles { size, full, rest, parts }
    }

    /// Where the length of the last one is open, there is one more, which may be empty.
    pub fn count(&self) -> Dim {
        if self.rest == 0 { self.full } else { self.full + 1 }
    }

    /// The code of a rest of open length, which begins at `start`.
    fn open_rest(&self, start: &Expr, body: &mut impl FnMut(Expr, i64) -> Stmt) -> Stmt {
        let mut around = None;
        Stmt::seq(self.parts.iter().filter(|part| **part < self.size).map(|&part| {
            // What is left of the part before.
            let (skip, left) = match around.replace(part) {
                None => (Dim::from(0), self.rest),
                Some(n) => (self.rest.floordiv(n.dim()) * n.dim(), self.rest.modulo(n.dim())),
            };
            let start = start.clone() + skip.typed(DType::I32);
            for_each(ForKind::Serial, "rest", left.floordiv(part.dim()), |k| {
                body(start + k * part, part)
            })
        }))
    }

    /// The code of tile number `at`, given its start and length.
    pub fn each(&self, at: &Expr, mut body: impl FnMut(Expr, i64) -> Stmt) -> Stmt {
        let start = at.clone() * self.size;
        match (self.full.number(), self.rest.number()) {
            (_, Some(0)) => body(start, self.size),
            (Some(0), Some(rest)) => body(start, rest),
            (_, rest) => {
                let then = body(start.clone(), self.size);
                let otherwise = match rest {
                    Some(rest) => body(start, rest),
                    // Tiles have constant sizes.
                    None => self.open_rest(&start, &mut body),
                };
                Stmt::if_else(at.clone().less(self.full.typed(DType::I32)), then, otherwise)
            }
        }
    }
}

/// A number of lanes and its halves down to four, and one.
pub fn halves(lanes: i64) -> Vec<i64> {
    let halves = std::iter::successors(Some(lanes), |n| Some(n / 2));
    halves.take_while(|n| *n >= 4).chain([1]).collect()
}

/// The largest number up to `max` for the parts that `total` is cut into evenly.
pub fn balanced(total: i64, max: i64) -> i64 {
    let parts = (total as u64).div_ceil(max.max(1) as u64).max(1);
    (total as u64).div_ceil(parts) as i64
}

/// Rows of a tile: an exact divisor near the limit, else a balanced number.
pub fn balanced_rows(total: i64, max: i64) -> i64 {
    let divisor = (1..=max.min(total)).rev().find(|r| total % r == 0).unwrap_or(1);
    if divisor * 3 >= max * 2 { divisor } else { balanced(total, max) }
}

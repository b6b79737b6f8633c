//! Rows of windows that overlap: what several rows of results read is loaded once for all of them.
//!
//! Rows of a pool or of a convolution of one channel each share most of what they read. A tile of rows goes
//! through the image in the order of memory, and updates all rows that use a place while it is in a register:
//!
//! ```text
//! for place in range(rows + 2), kw in range(3):
//!     v = x[place, kw : kw + lanes]
//!     for row, kh where row + kh == place:
//!         acc[row] += v * w[kh, kw]
//! ```

use std::collections::BTreeMap;

use tilewright_ir::Expr;

/// Rows of windows that overlap.
pub struct Slide {
    /// The axis of rows.
    pub rows: usize,
    /// The axis of the window that moves along them.
    pub window: usize,
    /// By how many steps of the window a row moves.
    pub by: i64,
}

/// Which rows use what is read at one place, each at which step of the window, and the values of the other
/// reduction axes there.
pub type Place = (Vec<(i64, i64)>, Vec<(usize, Expr)>);

impl Slide {
    /// The places that a tile of so many rows reads, in the order of memory, for a window of so many steps and
    /// the extents of the other reduction axes.
    pub fn order(&self, rows: i64, steps: i64, axes: &[(usize, i64)]) -> Vec<Place> {
        let mut uses: BTreeMap<i64, Vec<(i64, i64)>> = BTreeMap::new();
        for row in 0..rows {
            for step in 0..steps {
                uses.entry(row * self.by + step).or_default().push((row, step));
            }
        }
        let mut others: Vec<Vec<(usize, Expr)>> = vec![Vec::new()];
        for &(k, extent) in axes {
            let extended = others.iter().flat_map(|at| {
                (0..extent).map(|n| at.iter().cloned().chain([(k, Expr::i32(n as i32))]).collect())
            });
            others = extended.collect();
        }
        let place = |used: Vec<(i64, i64)>| {
            others.iter().map(move |at| (used.clone(), at.clone())).collect::<Vec<Place>>()
        };
        uses.into_values().flat_map(place).collect()
    }
}

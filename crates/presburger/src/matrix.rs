//! Rows of coefficients, one after the other in one allocation.

use crate::num::{Int, Res, add_mul, gcd, mul, neg};

/// Rows of equal length.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Matrix {
    cols: usize,
    data: Vec<Int>,
}

impl Matrix {
    pub fn new(cols: usize) -> Matrix {
        Matrix { cols, data: Vec::new() }
    }

    pub fn cols(&self) -> usize {
        self.cols
    }

    pub fn len(&self) -> usize {
        self.data.len().checked_div(self.cols).unwrap_or(0)
    }

    pub fn is_empty(&self) -> bool {
        self.data.is_empty()
    }

    pub fn clear(&mut self) {
        self.data.clear();
    }

    pub fn row(&self, at: usize) -> &[Int] {
        &self.data[at * self.cols..(at + 1) * self.cols]
    }

    pub fn row_mut(&mut self, at: usize) -> &mut [Int] {
        &mut self.data[at * self.cols..(at + 1) * self.cols]
    }

    pub fn rows(&self) -> std::slice::ChunksExact<'_, Int> {
        self.data.chunks_exact(self.cols)
    }

    pub fn rows_mut(&mut self) -> std::slice::ChunksExactMut<'_, Int> {
        self.data.chunks_exact_mut(self.cols)
    }

    pub fn push(&mut self, row: &[Int]) {
        debug_assert_eq!(row.len(), self.cols);
        self.data.extend_from_slice(row);
    }

    pub fn push_zero(&mut self) -> &mut [Int] {
        let at = self.data.len();
        self.data.resize(at + self.cols, 0);
        &mut self.data[at..]
    }

    /// Exchanges two rows.
    pub fn swap(&mut self, a: usize, b: usize) {
        for k in 0..self.cols {
            self.data.swap(a * self.cols + k, b * self.cols + k);
        }
    }

    /// Removes a row; the last one takes its place.
    pub fn swap_remove(&mut self, at: usize) {
        let last = self.len() - 1;
        if at != last {
            let (head, tail) = self.data.split_at_mut(last * self.cols);
            head[at * self.cols..(at + 1) * self.cols].copy_from_slice(tail);
        }
        self.data.truncate(last * self.cols);
    }

    /// Removes a row; those behind it move up.
    pub fn remove(&mut self, at: usize) {
        self.data.drain(at * self.cols..(at + 1) * self.cols);
    }

    /// Keeps the rows for which `keep` says so.
    pub fn retain(&mut self, mut keep: impl FnMut(&[Int]) -> bool) {
        let mut to = 0;
        for at in 0..self.len() {
            if keep(self.row(at)) {
                if to != at {
                    let from = at * self.cols..(at + 1) * self.cols;
                    self.data.copy_within(from, to * self.cols);
                }
                to += 1;
            }
        }
        self.data.truncate(to * self.cols);
    }

    /// With columns of zeros before column `at`.
    pub fn insert_cols(&mut self, at: usize, n: usize) {
        if n == 0 {
            return;
        }
        let mut data = Vec::with_capacity(self.len() * (self.cols + n));
        for row in self.rows() {
            data.extend_from_slice(&row[..at]);
            data.resize(data.len() + n, 0);
            data.extend_from_slice(&row[at..]);
        }
        *self = Matrix { cols: self.cols + n, data };
    }

    /// Without some columns.
    pub fn remove_cols(&mut self, at: usize, n: usize) {
        if n == 0 {
            return;
        }
        let mut data = Vec::with_capacity(self.data.len());
        for row in self.rows() {
            data.extend_from_slice(&row[..at]);
            data.extend_from_slice(&row[at + n..]);
        }
        *self = Matrix { cols: self.cols - n, data };
    }

    /// With column `c` at place `to[c]` of rows of length `cols`.
    pub fn remapped(&self, cols: usize, to: &[usize]) -> Matrix {
        let mut out = Matrix { cols, data: vec![0; cols * self.len()] };
        for (old, new) in self.rows().zip(out.rows_mut()) {
            old.iter().zip(to).for_each(|(v, at)| new[*at] = *v);
        }
        out
    }
}

/// Puts `expr` in the place of column `k`. The expression may contain that column.
pub(crate) fn substitute(row: &mut [Int], k: usize, expr: &[Int]) -> Res<()> {
    let c = std::mem::take(&mut row[k]);
    if c == 0 {
        return Ok(());
    }
    for (v, e) in row.iter_mut().zip(expr) {
        if *e != 0 {
            *v = add_mul(*v, c, *e)?;
        }
    }
    Ok(())
}

/// `row = a * row + b * other`.
pub(crate) fn combine(row: &mut [Int], a: Int, other: &[Int], b: Int) -> Res<()> {
    for (v, o) in row.iter_mut().zip(other) {
        *v = add_mul(mul(*v, a)?, b, *o)?;
    }
    Ok(())
}

/// The greatest common divisor of some numbers.
pub(crate) fn content(row: &[Int]) -> Int {
    let mut g = 0;
    for v in row {
        if *v != 0 {
            g = gcd(g, *v);
            if g == 1 {
                return 1;
            }
        }
    }
    g
}

pub(crate) fn negate(row: &mut [Int]) -> Res<()> {
    row.iter_mut().try_for_each(|v| {
        *v = neg(*v)?;
        Ok(())
    })
}

/// The value of a row whose first entry is its constant.
pub(crate) fn value(row: &[Int], point: &[Int]) -> Res<Int> {
    row[1..].iter().zip(point).try_fold(row[0], |sum, (c, x)| add_mul(sum, *c, *x))
}

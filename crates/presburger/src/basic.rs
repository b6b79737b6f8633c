//! Conjunctions: equalities and inequalities over dimensions and divisions.
//!
//! A division is a column behind the dimensions. An *explicit* one is `floor(f / d)` of earlier
//! columns; its two inequalities are understood and not stored. Any other is an integer that
//! *exists*. Every value of the dimensions gives an explicit division one value, so that a
//! conjunction of only such ones can be negated constraint by constraint.
//!
//! Columns: the constant, the dimensions, the divisions. A row of `divs` has the denominator in
//! front (zero: none is known), and then the same columns.

use crate::branch::tighten;
use crate::matrix::{Matrix, content, negate, substitute, value};
use crate::num::{Budget, Int, Res, add, floor_div, floor_mod, gcd, mul, neg};
use crate::system::System;

/// A conjunction of constraints.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Basic {
    pub dims: usize,
    pub divs: Matrix,
    pub eqs: Matrix,
    pub ineqs: Matrix,
    /// A contradiction was met: there is no point.
    pub void: bool,
}

impl Basic {
    /// All points.
    pub fn universe(dims: usize) -> Basic {
        Basic {
            dims,
            divs: Matrix::new(2 + dims),
            eqs: Matrix::new(1 + dims),
            ineqs: Matrix::new(1 + dims),
            void: false,
        }
    }

    /// The number of columns.
    pub fn width(&self) -> usize {
        1 + self.dims + self.divs.len()
    }

    /// The column of division `at`.
    pub fn div_col(&self, at: usize) -> usize {
        1 + self.dims + at
    }

    /// Whether nothing is demanded.
    pub fn is_universe(&self) -> bool {
        !self.void && self.eqs.is_empty() && self.ineqs.is_empty()
    }

    pub fn is_explicit(&self, div: usize) -> bool {
        self.divs.row(div)[0] != 0
    }

    /// Whether no division merely exists.
    pub fn all_explicit(&self) -> bool {
        self.divs.rows().all(|d| d[0] != 0)
    }

    /// New columns of dimensions, about which nothing is said.
    pub fn insert_dims(&mut self, at: usize, n: usize) {
        self.divs.insert_cols(2 + at, n);
        self.eqs.insert_cols(1 + at, n);
        self.ineqs.insert_cols(1 + at, n);
        self.dims += n;
    }

    /// Drops the column of a dimension that nothing mentions.
    pub fn remove_dim(&mut self, dim: usize) {
        self.divs.remove_cols(2 + dim, 1);
        self.eqs.remove_cols(1 + dim, 1);
        self.ineqs.remove_cols(1 + dim, 1);
        self.dims -= 1;
    }

    /// A new division that exists; its column.
    pub fn add_div(&mut self) -> usize {
        let at = self.width();
        self.divs.insert_cols(1 + at, 1);
        self.divs.push_zero();
        self.eqs.insert_cols(at, 1);
        self.ineqs.insert_cols(at, 1);
        at
    }

    /// Columns in another order: column `c` (without the constant) goes to `to[c]`.
    pub fn permuted(&self, to: &[usize]) -> Basic {
        let mut rows = vec![0];
        rows.extend(to.iter().map(|t| t + 1));
        rows.extend(1 + self.dims..self.width());
        let mut divs = vec![0];
        divs.extend(rows.iter().map(|c| c + 1));
        Basic {
            dims: self.dims,
            divs: self.divs.remapped(1 + self.width(), &divs),
            eqs: self.eqs.remapped(self.width(), &rows),
            ineqs: self.ineqs.remapped(self.width(), &rows),
            void: self.void,
        }
    }

    /// The two inequalities that an explicit division stands for.
    pub fn div_rows(&self, div: usize) -> Res<[Vec<Int>; 2]> {
        div_rows(&self.divs, div, self.div_col(div))
    }

    /// Takes over the divisions of another list; where each is afterwards.
    pub fn take_divs(&mut self, divs: &Matrix) -> Vec<usize> {
        let mut place = Vec::with_capacity(divs.len());
        for row in divs.rows() {
            let at = self.div_like(row, &place);
            place.push(at);
        }
        place
    }

    /// The column of a division that is given in other columns, where earlier divisions of those
    /// are known by `place`.
    fn div_like(&mut self, row: &[Int], place: &[usize]) -> usize {
        let mut new = vec![0; 1 + self.width()];
        new[..2 + self.dims].copy_from_slice(&row[..2 + self.dims]);
        for (v, at) in row[2 + self.dims..].iter().zip(place) {
            new[1 + at] += *v;
        }
        if row[0] != 0
            && let Some(at) = self.divs.rows().position(|d| d == new.as_slice())
        {
            return self.div_col(at);
        }
        let at = self.add_div();
        new.push(0);
        let last = self.divs.len() - 1;
        self.divs.row_mut(last).copy_from_slice(&new);
        at
    }

    /// A row of other columns in those of this conjunction.
    pub fn adopt(&self, row: &[Int], place: &[usize]) -> Vec<Int> {
        let mut new = vec![0; self.width()];
        new[..1 + self.dims].copy_from_slice(&row[..1 + self.dims]);
        for (v, at) in row[1 + self.dims..].iter().zip(place) {
            new[*at] += *v;
        }
        new
    }

    /// The conjunction of both, as it is.
    pub fn conjoin(&mut self, other: &Basic) {
        self.void |= other.void;
        if self.void {
            return;
        }
        if other.divs.is_empty() && self.divs.is_empty() {
            other.eqs.rows().for_each(|r| self.eqs.push(r));
            other.ineqs.rows().for_each(|r| self.ineqs.push(r));
            return;
        }
        let place = self.take_divs(&other.divs);
        for row in other.eqs.rows() {
            let row = self.adopt(row, &place);
            self.eqs.push(&row);
        }
        for row in other.ineqs.rows() {
            let row = self.adopt(row, &place);
            self.ineqs.push(&row);
        }
    }

    /// Points of both.
    pub fn intersect(&self, other: &Basic) -> Res<Basic> {
        let mut out = self.clone();
        out.conjoin(other);
        out.normalize()?;
        Ok(out)
    }

    /// All constraints over all columns as integers alike.
    pub fn system(&self) -> Res<System> {
        let mut ineqs = self.ineqs.clone();
        for at in 0..self.divs.len() {
            if self.is_explicit(at) {
                for row in self.div_rows(at)? {
                    ineqs.push(&row);
                }
            }
        }
        Ok(System::new(self.eqs.clone(), ineqs))
    }

    /// An integer point, with the values of divisions behind those of dimensions.
    pub fn point(&self, budget: &Budget) -> Res<Option<Vec<Int>>> {
        if self.void {
            return Ok(None);
        }
        // Each division is two rows of the system.
        let rows = self.eqs.len() + self.ineqs.len() + 2 * self.divs.len();
        budget.charge(1 + rows * self.width() / 16)?;
        self.system()?.point(budget)
    }

    /// Values of dimensions with those of the divisions, all explicit.
    pub fn completed(&self, dims: &[Int]) -> Res<Vec<Int>> {
        let mut point = dims.to_vec();
        for def in self.divs.rows() {
            // What comes later is no part of a definition.
            let value = value(&def[1..2 + point.len()], &point)?;
            point.push(floor_div(value, def[0]));
        }
        Ok(point)
    }

    pub fn is_empty(&self, budget: &Budget) -> Res<bool> {
        if self.void {
            return Ok(true);
        }
        if self.is_universe() || self.has_corner() {
            return Ok(false);
        }
        Ok(self.point(budget)?.is_none())
    }

    /// Whether a conjunction with one more constraint has no point.
    pub fn is_empty_with(&self, row: &[Int], equal: bool, budget: &Budget) -> Res<bool> {
        let mut part = self.clone();
        if equal {
            part.eqs.push(row)
        } else {
            part.ineqs.push(row)
        }
        part.is_empty(budget)
    }

    /// Whether an inequality holds at every point.
    pub fn implies(&self, row: &[Int], budget: &Budget) -> Res<bool> {
        self.is_empty_with(&complement(row)?, false, budget)
    }

    /// Drops the column of a division that nothing mentions.
    pub fn remove_div(&mut self, div: usize) {
        let col = self.div_col(div);
        self.divs.remove(div);
        self.divs.remove_cols(1 + col, 1);
        self.eqs.remove_cols(col, 1);
        self.ineqs.remove_cols(col, 1);
    }

    /// Turns an explicit division into one that exists, with its two inequalities.
    pub fn forget_div(&mut self, div: usize) -> Res<()> {
        if self.is_explicit(div) {
            for row in self.div_rows(div)? {
                self.ineqs.push(&row);
            }
            self.divs.row_mut(div).fill(0);
        }
        Ok(())
    }

    /// Brings rows into their shortest form: what is seen without a tableau.
    ///
    /// Equalities with a coefficient 1 are solved for divisions, and then for the last dimension,
    /// rows are divided by what they have in common, duplicates go, opposite inequalities become an
    /// equality, and divisions that nothing mentions, that are defined by others, or that are only bounded
    /// go.
    pub fn normalize(&mut self) -> Res<()> {
        loop {
            if self.void || !self.shorten() {
                self.clear();
                return Ok(());
            }
            if self.solve()?
                || self.simplify_divs()?
                || self.pair()?
                || self.define()?
                || self.unfold()
            {
                continue;
            }
            break;
        }
        if self.void {
            self.clear();
        }
        Ok(())
    }

    fn clear(&mut self) {
        *self = Basic { void: true, ..Basic::universe(self.dims) };
    }

    /// Divides rows; no for a contradiction.
    fn shorten(&mut self) -> bool {
        let mut fine = true;
        for row in self.eqs.rows_mut() {
            let g = content(&row[1..]);
            if g == 0 {
                fine &= row[0] == 0;
            } else if row[0] % g != 0 {
                fine = false;
            } else if g > 1 {
                row.iter_mut().for_each(|v| *v /= g);
            }
        }
        self.ineqs.rows_mut().for_each(|row| fine &= tighten(row));
        if fine {
            self.eqs.retain(|row| row[1..].iter().any(|v| *v != 0));
            self.ineqs.retain(|row| row[1..].iter().any(|v| *v != 0));
        }
        fine
    }

    /// Substitutes what an equality gives; whether a division has gone or an equality has changed, so that
    /// all has to be looked at again.
    fn solve(&mut self) -> Res<bool> {
        // Divisions that merely exist, and those that are nothing but another name.
        for at in 0..self.eqs.len() {
            let row = self.eqs.row(at);
            let unit = |k: &usize| row[*k].abs() == 1;
            let divs = 1 + self.dims..self.width();
            let found = divs
                .clone()
                .rev()
                .find(|k| unit(k) && !self.is_explicit(*k - 1 - self.dims))
                .or_else(|| divs.rev().find(unit));
            let Some(k) = found else { continue };
            self.drop_by(at, k)?;
            return Ok(true);
        }
        // Dimensions, from the last: each shows in one equality alone.
        let mut used = vec![false; self.eqs.len()];
        let mut changed = false;
        for k in (1..1 + self.dims).rev() {
            let pivot = (0..self.eqs.len()).find(|at| {
                !used[*at]
                    && self.eqs.row(*at)[k].abs() == 1
                    && self.eqs.row(*at)[k + 1..].iter().all(|v| *v == 0)
            });
            let pivot = pivot.or_else(|| {
                (0..self.eqs.len()).find(|at| !used[*at] && self.eqs.row(*at)[k].abs() == 1)
            });
            let Some(at) = pivot else { continue };
            used[at] = true;
            let expr = self.expression(at, k)?;
            for (i, row) in self.eqs.rows_mut().enumerate() {
                if i != at && row[k] != 0 {
                    substitute(row, k, &expr)?;
                    changed = true;
                }
            }
            for row in self.ineqs.rows_mut() {
                if row[k] != 0 {
                    substitute(row, k, &expr)?;
                    changed = true;
                }
            }
            let last = expr.iter().rposition(|v| *v != 0).unwrap_or(0);
            let dims = self.dims;
            for (m, def) in self.divs.rows_mut().enumerate() {
                // Definitions look back only.
                if def[0] != 0 && def[1 + k] != 0 && last < 1 + dims + m {
                    substitute(&mut def[1..], k, &expr)?;
                    changed = true;
                }
            }
        }
        if changed && !self.shorten() {
            self.void = true;
            return Ok(true);
        }
        self.echelon(&used)?;
        Ok(changed && self.divs.rows().any(|d| d[0] != 0))
    }

    /// Equalities that are solved for no dimension are at least independent.
    fn echelon(&mut self, solved: &[bool]) -> Res<()> {
        let mut rest = Matrix::new(self.width());
        let mut at = 0;
        if (0..self.eqs.len()).filter(|at| solved.get(*at) == Some(&false)).count() < 2 {
            return Ok(());
        }
        self.eqs.retain(|row| {
            at += 1;
            let moves = solved.get(at - 1) == Some(&false);
            if moves {
                rest.push(row);
            }
            !moves
        });
        let mut rank = 0;
        for k in (1..self.width()).rev() {
            let Some(p) = (rank..rest.len()).find(|at| rest.row(*at)[k] != 0) else { continue };
            rest.swap(p, rank);
            let pivot = rest.row(rank).to_vec();
            for at in rank + 1..rest.len() {
                let row = rest.row_mut(at);
                if row[k] != 0 {
                    let g = gcd(row[k], pivot[k]);
                    let (a, b) = (pivot[k] / g, neg(row[k] / g)?);
                    crate::matrix::combine(row, a, &pivot, b)?;
                    let g = content(row);
                    if g > 1 {
                        row.iter_mut().for_each(|v| *v /= g);
                    }
                }
            }
            rank += 1;
        }
        self.void |= (rank..rest.len()).any(|at| rest.row(at)[0] != 0);
        (0..rank).for_each(|at| self.eqs.push(rest.row(at)));
        Ok(())
    }

    /// What an equality with coefficient 1 or -1 says of a column.
    fn expression(&self, eq: usize, k: usize) -> Res<Vec<Int>> {
        let mut expr = self.eqs.row(eq).to_vec();
        if expr[k] > 0 {
            negate(&mut expr)?;
        }
        expr[k] = 0;
        Ok(expr)
    }

    /// Removes a division by an equality.
    pub fn drop_by(&mut self, eq: usize, k: usize) -> Res<()> {
        let expr = self.expression(eq, k)?;
        self.eqs.remove(eq);
        self.replace_div(k - 1 - self.dims, &expr)
    }

    /// Puts an expression in the place of a division, which goes.
    pub fn replace_div(&mut self, div: usize, expr: &[Int]) -> Res<()> {
        self.forget_div(div)?;
        let k = self.div_col(div);
        let last = expr.iter().rposition(|v| *v != 0).unwrap_or(0);
        for m in 0..self.divs.len() {
            if self.is_explicit(m) && self.divs.row(m)[1 + k] != 0 && last >= self.div_col(m) {
                self.forget_div(m)?;
            }
        }
        for row in self.eqs.rows_mut().chain(self.ineqs.rows_mut()) {
            substitute(row, k, expr)?;
        }
        for def in self.divs.rows_mut() {
            substitute(&mut def[1..], k, expr)?;
        }
        self.remove_div(div);
        Ok(())
    }

    /// Shortens definitions; whether a division went or changed.
    fn simplify_divs(&mut self) -> Res<bool> {
        for div in (0..self.divs.len()).rev() {
            let col = self.div_col(div);
            let used = self.eqs.rows().chain(self.ineqs.rows()).any(|r| r[col] != 0)
                || self.divs.rows().any(|d| d[1 + col] != 0);
            if !used {
                self.remove_div(div);
            }
        }
        for div in 0..self.divs.len() {
            let def = self.divs.row(div);
            if def[0] == 0 {
                continue;
            }
            if let Some(plain) = Quotient::from_definition(def)? {
                self.set_quotient(div, plain)?;
                return Ok(true);
            }
            if (0..div).any(|other| self.divs.row(other) == self.divs.row(div)) {
                let row = self.divs.row(div);
                let same = (0..div).find(|other| self.divs.row(*other) == row).unwrap_or(div);
                let mut expr = vec![0; self.width()];
                expr[self.div_col(same)] = 1;
                // Both are the same function: no inequality is needed.
                self.divs.row_mut(div).fill(0);
                self.replace_div(div, &expr)?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Gives a division a shorter definition: it is `whole + floor(rest / den)`.
    fn set_quotient(&mut self, div: usize, q: Quotient) -> Res<()> {
        let col = self.div_col(div);
        if q.den == 1 {
            self.divs.row_mut(div).fill(0);
            return self.replace_div(div, &q.whole);
        }
        let mut expr = q.whole;
        expr[col] = 1;
        let def = self.divs.row_mut(div);
        def[0] = q.den;
        def[1..].copy_from_slice(&q.rest);
        // The column now means the quotient of the rest.
        for row in self.eqs.rows_mut().chain(self.ineqs.rows_mut()) {
            substitute(row, col, &expr)?;
        }
        for def in self.divs.rows_mut() {
            substitute(&mut def[1..], col, &expr)?;
        }
        Ok(())
    }

    /// Removes duplicates, and makes opposite inequalities an equality; whether one was made.
    fn pair(&mut self) -> Res<bool> {
        // What explicit divisions imply of themselves.
        if !self.ineqs.is_empty() {
            for div in 0..self.divs.len() {
                if self.is_explicit(div) {
                    let [a, b] = self.div_rows(div)?;
                    self.ineqs.retain(|r| {
                        !(r[1..] == a[1..] && r[0] >= a[0] || r[1..] == b[1..] && r[0] >= b[0])
                    });
                }
            }
        }
        let mut made = false;
        let mut at = 0;
        while at < self.ineqs.len() {
            let mut other = at + 1;
            let mut gone = false;
            while other < self.ineqs.len() {
                let (a, b) = (self.ineqs.row(at), self.ineqs.row(other));
                let first = a[1..].iter().position(|v| *v != 0).map_or(0, |p| p + 1);
                if a[first] == b[first] {
                    if a[1..] == b[1..] {
                        let least = a[0].min(b[0]);
                        self.ineqs.row_mut(at)[0] = least;
                        self.ineqs.remove(other);
                        continue;
                    }
                } else if a[first] == -b[first]
                    && a[1..].iter().zip(&b[1..]).all(|(x, y)| *x == -*y)
                {
                    let sum = add(a[0], b[0])?;
                    if sum < 0 {
                        self.void = true;
                        return Ok(true);
                    }
                    if sum == 0 {
                        let row = a.to_vec();
                        self.eqs.push(&row);
                        self.ineqs.remove(other);
                        self.ineqs.remove(at);
                        made = true;
                        gone = true;
                        break;
                    }
                }
                other += 1;
            }
            if !gone {
                at += 1;
            }
        }
        Ok(made)
    }

    /// Finds definitions of divisions that merely exist; whether there was one.
    fn define(&mut self) -> Res<bool> {
        for div in 0..self.divs.len() {
            if self.is_explicit(div) {
                continue;
            }
            let col = self.div_col(div);
            // Only what comes before may define it.
            // d e + f = 0 makes e = floor(-f / d), and stays.
            let by_eq = self.eqs.rows().find(|r| is_early(r, col)).map(|r| r.to_vec());
            if let Some(mut row) = by_eq {
                if row[col] > 0 {
                    negate(&mut row)?;
                }
                let den = neg(row[col])?;
                row[col] = 0;
                self.set_def(div, den, &row);
                return Ok(true);
            }
            // 0 <= f - d e <= d - 1
            for a in 0..self.ineqs.len() {
                let row = self.ineqs.row(a);
                if !is_early(row, col) || row[col] >= 0 {
                    continue;
                }
                let den = neg(row[col])?;
                let opposite = (0..self.ineqs.len()).find(|b| {
                    let other = self.ineqs.row(*b);
                    other[1..].iter().zip(&row[1..]).all(|(x, y)| *x == -*y)
                        && other[0].checked_add(row[0]).is_some_and(|s| s < den)
                });
                if opposite.is_some() {
                    let mut def = row.to_vec();
                    def[col] = 0;
                    self.set_def(div, den, &def);
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Puts the numerators of divisions in the place of these where they are only bounded: `floor(e/4) <= f`
    /// is `e <= 4f + 3`, and `floor(e/4) >= f` is `e >= 4f`. Whether a division went.
    fn unfold(&mut self) -> bool {
        for div in (0..self.divs.len()).rev() {
            let col = self.div_col(div);
            let is_bounded = self.is_explicit(div)
                && self.eqs.rows().all(|row| row[col] == 0)
                && self.divs.rows().all(|def| def[1 + col] == 0)
                && self.ineqs.rows().all(|row| row[col].abs() <= 1);
            if !is_bounded {
                continue;
            }
            // A bound that would be too large leaves the division.
            let Ok(rows) = self.unfolded(div) else { continue };
            for (at, row) in rows {
                self.ineqs.row_mut(at).copy_from_slice(&row);
            }
            self.remove_div(div);
            return true;
        }
        false
    }

    /// The bounds of a division as inequalities of its numerator, by their places.
    fn unfolded(&self, div: usize) -> Res<Vec<(usize, Vec<Int>)>> {
        let (col, def) = (self.div_col(div), self.divs.row(div));
        let mut out = Vec::new();
        for (at, row) in self.ineqs.rows().enumerate().filter(|(_, row)| row[col] != 0) {
            let sign = row[col];
            let mut new = Vec::with_capacity(row.len());
            for (k, (bound, numerator)) in row.iter().zip(&def[1..]).enumerate() {
                let bound = if k == col { 0 } else { mul(*bound, def[0])? };
                new.push(add(bound, mul(sign, *numerator)?)?);
            }
            if sign < 0 {
                new[0] = add(new[0], def[0] - 1)?;
            }
            out.push((at, new));
        }
        Ok(out)
    }

    /// Gives a division its definition.
    pub fn set_def(&mut self, div: usize, den: Int, num: &[Int]) {
        let def = self.divs.row_mut(div);
        def[0] = den;
        def[1..].copy_from_slice(num);
    }

    /// Divisions in another order, in which each definition looks back.
    pub fn reorder_divs(&mut self, order: &[usize]) {
        if order.iter().enumerate().all(|(i, d)| i == *d) {
            return;
        }
        let mut to: Vec<usize> = (0..self.width()).collect();
        for (new, old) in order.iter().enumerate() {
            to[self.div_col(*old)] = self.div_col(new);
        }
        let mut div_to = vec![0];
        div_to.extend(to.iter().map(|c| c + 1));
        let divs = self.divs.remapped(1 + self.width(), &div_to);
        let mut sorted = Matrix::new(divs.cols());
        order.iter().for_each(|d| sorted.push(divs.row(*d)));
        self.divs = sorted;
        self.eqs = self.eqs.remapped(self.width(), &to);
        self.ineqs = self.ineqs.remapped(self.width(), &to);
    }

    /// Makes dimensions divisions that exist.
    pub fn hide_dims(&mut self, at: usize, n: usize) -> Res<()> {
        if n == 0 {
            return Ok(());
        }
        // The columns move in front of the divisions.
        let kept = self.dims - n;
        let mut to: Vec<usize> = vec![0];
        for c in 0..self.dims {
            to.push(
                1 + if c < at {
                    c
                } else if c < at + n {
                    kept + c - at
                } else {
                    c - n
                },
            );
        }
        to.extend(1 + self.dims..self.width());
        let mut div_to = vec![0];
        div_to.extend(to.iter().map(|c| c + 1));
        let width = self.width();
        let mut divs = Matrix::new(1 + width);
        for _ in 0..n {
            divs.push_zero();
        }
        self.divs.remapped(1 + width, &div_to).rows().for_each(|r| divs.push(r));
        self.divs = divs;
        self.eqs = self.eqs.remapped(width, &to);
        self.ineqs = self.ineqs.remapped(width, &to);
        self.dims = kept;
        Ok(())
    }
}

fn is_early(row: &[Int], col: usize) -> bool {
    row[col] != 0 && row[col + 1..].iter().all(|v| *v == 0)
}

/// `-row - 1 >= 0`: where `row >= 0` does not hold.
pub(crate) fn complement(row: &[Int]) -> Res<Vec<Int>> {
    let mut out = row.to_vec();
    negate(&mut out)?;
    out[0] = add(out[0], -1)?;
    Ok(out)
}

/// The inequalities of an explicit division, whose column is `col`.
pub(crate) fn div_rows(divs: &Matrix, div: usize, col: usize) -> Res<[Vec<Int>; 2]> {
    let def = divs.row(div);
    let den = def[0];
    let mut low = def[1..].to_vec();
    low[col] = add(low[col], neg(den)?)?;
    let mut high = low.clone();
    negate(&mut high)?;
    high[0] = add(high[0], den - 1)?;
    Ok([low, high])
}

/// `whole + floor(rest / den)`, in the shortest form of a quotient.
pub(crate) struct Quotient {
    pub whole: Vec<Int>,
    pub rest: Vec<Int>,
    pub den: Int,
}

impl Quotient {
    /// The shortest form of `floor(num / den)`, given with the denominator in front; `None` where it
    /// is in that form already.
    pub fn from_definition(def: &[Int]) -> Res<Option<Quotient>> {
        let (mut den, num) = (def[0], &def[1..]);
        let mut whole = vec![0; num.len()];
        let mut rest = num.to_vec();
        let mut changed = false;
        let g = gcd(content(&rest[1..]), den);
        if g > 1 {
            den /= g;
            rest[0] = floor_div(rest[0], g);
            rest[1..].iter_mut().for_each(|v| *v /= g);
            changed = true;
        }
        // Coefficients of at most half the denominator, the constant from zero.
        for (k, (w, r)) in whole.iter_mut().zip(rest.iter_mut()).enumerate() {
            let keep = if k == 0 {
                floor_mod(*r, den)
            } else {
                let m = floor_mod(*r, den);
                if mul(m, 2)? > den { m - den } else { m }
            };
            if keep != *r {
                *w = (*r - keep) / den;
                *r = keep;
                changed = true;
            }
        }
        if den > 1 && rest[1..].iter().all(|v| *v == 0) {
            // floor(constant / den), the constant below the denominator.
            (den, changed) = (1, true);
            rest[0] = 0;
        }
        if den == 1 {
            for (w, r) in whole.iter_mut().zip(rest.iter_mut()) {
                *w = add(*w, std::mem::take(r))?;
            }
            changed = true;
        }
        Ok(changed.then_some(Quotient { whole, rest, den }))
    }
}

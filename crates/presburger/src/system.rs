//! Integer points of a system of equalities and inequalities.
//!
//! All unknowns are alike here. A question goes through these steps, and most end at the third:
//!
//! 1. equalities are solved: an unknown with coefficient 1 is substituted away, and where there is
//!    none a change of unknowns makes the coefficients smaller as Euclid's algorithm does, so that
//!    what is left are inequalities over free integers;
//! 2. bounds of single unknowns are propagated;
//! 3. unknowns are fixed at their ends one after the other, with propagation in between;
//! 4. a few ranges are halved, the shortest first, with propagation in between;
//! 5. the simplex finds a rational point or none; a few branches look for an integer one;
//! 6. what has a direction without end loses the constraints that grow along it; the others bound a
//!    lattice (`lattice`), in a reduced basis of which branching ends soon.

use crate::branch::{Search, branches, tighten};
use crate::ends::{Ends, Narrowing};
use crate::lattice;
use crate::matrix::{Matrix, content, substitute, value};
use crate::num::{Budget, Int, Res, Stop, add, floor_div, mul, neg, round_div};
use crate::tableau::{Num, Tableau, exact};

/// Branches of the simplex that are looked at before directions without end are dealt with.
const FEW_BRANCHES: usize = 24;
/// Halves of ranges that are looked at before the simplex.
const MANY_HALVES: usize = 48;

/// Equalities and inequalities over integers.
#[derive(Clone)]
pub(crate) struct System {
    vars: usize,
    eqs: Matrix,
    ineqs: Matrix,
    /// What was put in the place of which unknown, in order.
    solved: Vec<(usize, Vec<Int>)>,
    gone: Vec<bool>,
}

impl System {
    /// A system; the first column of both is the constant.
    pub fn new(eqs: Matrix, ineqs: Matrix) -> System {
        let vars = eqs.cols() - 1;
        System { vars, eqs, ineqs, solved: Vec::new(), gone: vec![false; vars] }
    }

    /// An integer point.
    pub fn point(&self, budget: &Budget) -> Res<Option<Vec<Int>>> {
        let mut work = self.clone();
        if !work.solve(budget, None)? {
            return Ok(None);
        }
        work.search(budget)
    }

    /// A point with the least value of a function, and the value. [`Stop::Empty`] without a point,
    /// [`Stop::Unbounded`] where there is no least one.
    pub fn minimum(&self, function: &[Int], budget: &Budget) -> Res<(Int, Vec<Int>)> {
        let mut work = self.clone();
        let mut function = function.to_vec();
        if !work.solve(budget, Some(&mut function))? {
            return Err(Stop::Empty);
        }
        work.descend(function, budget)
    }

    /// Solves the equalities; no for a contradiction.
    fn solve(&mut self, budget: &Budget, mut function: Option<&mut Vec<Int>>) -> Res<bool> {
        while !self.eqs.is_empty() {
            budget.charge(1 + (self.eqs.len() + self.ineqs.len()) / 8)?;
            // The equality with the smallest coefficient.
            let mut best: Option<(Int, usize, usize)> = None;
            let mut at = 0;
            while at < self.eqs.len() {
                let row = self.eqs.row_mut(at);
                let g = content(&row[1..]);
                if g == 0 {
                    if row[0] != 0 {
                        return Ok(false);
                    }
                    self.eqs.swap_remove(at);
                    continue;
                }
                if row[0] % g != 0 {
                    return Ok(false);
                }
                if g > 1 {
                    row.iter_mut().for_each(|v| *v /= g);
                }
                for (k, v) in row.iter().enumerate().skip(1) {
                    let size = v.abs();
                    if size != 0 && best.is_none_or(|(s, ..)| size < s) {
                        best = Some((size, at, k));
                    }
                }
                if best.is_some_and(|(s, ..)| s == 1) {
                    break;
                }
                at += 1;
            }
            let Some((size, at, k)) = best else { break };
            let row = self.eqs.row(at);
            let mut expr = vec![0; row.len()];
            let positive = row[k] > 0;
            if size == 1 {
                for (e, v) in expr.iter_mut().zip(row) {
                    *e = if positive { neg(*v)? } else { *v };
                }
                expr[k] = 0;
            } else {
                // x_k = t - sum q_j x_j leaves remainders as coefficients of the others.
                for (j, (e, v)) in expr.iter_mut().zip(row).enumerate() {
                    let q = round_div(*v, size);
                    *e = if j == k {
                        1
                    } else if positive {
                        neg(q)?
                    } else {
                        q
                    };
                }
            }
            for row in self.eqs.rows_mut().chain(self.ineqs.rows_mut()) {
                substitute(row, k, &expr)?;
            }
            if let Some(f) = function.as_mut() {
                substitute(f, k, &expr)?;
            }
            if size == 1 {
                self.gone[k - 1] = true;
            }
            self.solved.push((k, expr));
        }
        self.tighten()
    }

    /// Divides inequalities by what their coefficients have in common; no for a contradiction.
    fn tighten(&mut self) -> Res<bool> {
        let mut fine = true;
        self.ineqs.rows_mut().for_each(|row| fine &= tighten(row));
        self.ineqs.retain(|row| row[1..].iter().any(|v| *v != 0));
        Ok(fine)
    }

    /// A point of the original unknowns from one of those that are left.
    fn restore(&self, mut point: Vec<Int>) -> Res<Vec<Int>> {
        for (k, expr) in self.solved.iter().rev() {
            point[k - 1] = value(expr, &point)?;
        }
        Ok(point)
    }

    fn search(&self, budget: &Budget) -> Res<Option<Vec<Int>>> {
        let found = self.search_reduced(budget)?;
        found.map(|p| self.restore(p)).transpose()
    }

    /// A point of the inequalities.
    fn search_reduced(&self, budget: &Budget) -> Res<Option<Vec<Int>>> {
        budget.charge(1 + self.ineqs.len() / 4)?;
        let narrowing = Narrowing::new(&self.ineqs, self.vars);
        let mut ends = narrowing.free();
        if !narrowing.narrow(&mut ends) {
            return Ok(None);
        }
        for up in [false, true] {
            if let Some(point) = self.dive(&narrowing, &ends, up, budget)? {
                return Ok(Some(point));
            }
        }
        self.branch(&narrowing, ends, budget)
    }

    /// Tries to fix one unknown after the other at an end of what it can be.
    fn dive(
        &self,
        narrowing: &Narrowing,
        ends: &Ends,
        up: bool,
        budget: &Budget,
    ) -> Res<Option<Vec<Int>>> {
        let mut ends = ends.clone();
        let joined = narrowing.joins();
        for v in 0..self.vars {
            let (low, high) = (ends.low[v], ends.high[v]);
            if low.is_some() && low == high {
                continue;
            }
            let value = if up { high.or(low) } else { low.or(high) }.unwrap_or(0);
            narrowing.set(&mut ends, v, value, value);
            if joined {
                budget.charge(1 + self.ineqs.len() / 4)?;
                if !narrowing.narrow(&mut ends) {
                    return Ok(None);
                }
            }
        }
        let point: Vec<Int> = ends.low.into_iter().map(|v| v.unwrap_or(0)).collect();
        Ok(holds(&self.ineqs, &point).then_some(point))
    }

    /// Few halves, few branches of the simplex, and then all that it takes.
    fn branch(&self, narrowing: &Narrowing, ends: Ends, budget: &Budget) -> Res<Option<Vec<Int>>> {
        match self.halve(narrowing, ends, budget)? {
            Search::Point(point) => return Ok(Some(point)),
            Search::Empty => return Ok(None),
            Search::Open => {}
        }
        match exact!(|N| branches::<N>(&self.ineqs, Some(FEW_BRANCHES), budget))? {
            Search::Point(point) => Ok(Some(point)),
            Search::Empty => Ok(None),
            Search::Open => lattice::point(&self.ineqs, budget),
        }
    }

    /// Halves the range of one unknown after the other, the shortest first, with propagation in
    /// between: what a few short ranges decide ends soon.
    fn halve(&self, narrowing: &Narrowing, ends: Ends, budget: &Budget) -> Res<Search> {
        let mut open = vec![ends];
        for _ in 0..MANY_HALVES {
            let Some(ends) = open.pop() else { return Ok(Search::Empty) };
            let loose = (0..self.vars).filter(|v| !self.gone[*v] && ends.range(*v) != Some(0));
            let Some(v) = loose.min_by_key(|v| ends.range(*v).unwrap_or(Int::MAX)) else {
                let point: Vec<Int> = ends.low.into_iter().map(|v| v.unwrap_or(0)).collect();
                if holds(&self.ineqs, &point) {
                    return Ok(Search::Point(point));
                }
                continue;
            };
            let (Some(low), Some(high)) = (ends.low[v], ends.high[v]) else {
                return Ok(Search::Open);
            };
            let middle = low + (high - low) / 2;
            for (low, high) in [(middle + 1, high), (low, middle)] {
                budget.charge(1 + self.ineqs.len() / 4)?;
                let mut part = ends.clone();
                narrowing.set(&mut part, v, low, high);
                if narrowing.narrow(&mut part) {
                    open.push(part);
                }
            }
        }
        Ok(if open.is_empty() { Search::Empty } else { Search::Open })
    }

    /// The least value of a function of the reduced unknowns, and a point with it.
    fn descend(&self, function: Vec<Int>, budget: &Budget) -> Res<(Int, Vec<Int>)> {
        let n = self.vars;
        // A function of one unknown whose bounds stand alone needs no simplex.
        let Some(first) = self.search_reduced(budget)? else { return Err(Stop::Empty) };
        if function[1..].iter().all(|v| *v == 0) {
            return Ok((function[0], self.restore(first)?));
        }
        let least = exact!(|N| {
            (|| {
                let mut t = Tableau::<N>::new(n, budget);
                for row in self.ineqs.rows() {
                    t.add(row)?;
                }
                let Some((a, d)) = t.minimum(&function)? else { return Ok(None) };
                // The least integer that is not below.
                let up = a.negated().ok_or(Stop::TooLarge)?.floored(&d);
                let up = up.to_int().ok_or(Stop::TooLarge)?;
                Ok(Some(neg(up)?))
            })()
        })?;
        let Some(mut low) = least else { return Err(Stop::Unbounded) };
        let mut best = first;
        let mut high = value(&function, &best)?;
        let mut step = 0;
        while low < high {
            // What the simplex says is nearly always reached; then halves.
            let limit = add(low, mul(step, floor_div(add(high, neg(low)?)?, 2))?)?;
            step = 1;
            let mut part = self.clone();
            let row = part.ineqs.push_zero();
            for (r, f) in row.iter_mut().zip(&function) {
                *r = neg(*f)?;
            }
            row[0] = add(row[0], limit)?;
            if !part.tighten()? {
                low = add(limit, 1)?;
                continue;
            }
            match part.search_reduced(budget)? {
                Some(point) => {
                    high = value(&function, &point)?;
                    best = point;
                }
                None => low = add(limit, 1)?,
            }
        }
        Ok((high, self.restore(best)?))
    }
}

fn holds(rows: &Matrix, point: &[Int]) -> bool {
    rows.rows().all(|row| value(row, point).is_ok_and(|v| v >= 0))
}

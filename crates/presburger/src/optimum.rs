//! The least and greatest values of a dimension, as functions of the parameters.
//!
//! What else there is, is eliminated. In a conjunction whose other divisions do not depend on the
//! dimension, the greatest value is one of its upper bounds, rounded down: a piece for each bound, where
//! the point that it gives is in the set. Where divisions do depend on it, equalities (`x = 3 e + 1`)
//! are solved first; and what remains hard is described by what it is, a point without a better one,
//! and read back as a function.

use crate::aff::{Aff, PwAff};
use crate::basic::{Basic, complement};
use crate::eliminate::{explicit, fix_at, relax, remove_redundant};
use crate::matrix::{negate, substitute};
use crate::num::{Budget, Int, Res, Stop, add, gcd, mul, neg};
use crate::relation::{Dim, Relation, Set, Space};

type Piece = (Set, Aff);

impl Relation {
    /// The least or greatest value of dimension `at` of a set for each value of the parameters, where
    /// there is a point.
    ///
    /// # Errors
    /// [`Stop::Unbounded`] where there is no such value, [`Stop::NoForm`] where it is not found as a
    /// function.
    pub fn extreme(&self, at: usize, greatest: bool, budget: &Budget) -> Res<PwAff> {
        let outs = self.space.dim(Dim::Out);
        let alone = self.project_out(Dim::Out, at + 1, outs - at - 1, budget)?.project_out(
            Dim::Out,
            0,
            at,
            budget,
        )?;
        let params = self.space.dim(Dim::Param);
        let space = self.space.with(0, 0);
        let mut all: Vec<Piece> = Vec::new();
        for part in alone.parts.iter() {
            for mut p in explicit(part, budget)? {
                if p.is_empty(budget)? {
                    continue;
                }
                if !greatest {
                    mirror(&mut p, 1 + params)?;
                }
                for pieces in groups(&p, params, &space, budget)? {
                    for piece in apart(pieces, budget)? {
                        merge(&mut all, piece, &space, budget)?;
                    }
                }
            }
        }
        if !greatest {
            for (_, a) in &mut all {
                *a = a.scale(-1)?;
            }
        }
        PwAff::of_pieces(space, all).coalesce(budget)
    }

    /// Output `at` of a relation as a function of the inputs.
    ///
    /// # Errors
    /// [`Stop::NoForm`] where it is not found to be one.
    pub fn function(&self, at: usize, budget: &Budget) -> Res<PwAff> {
        let outs = self.space.dim(Dim::Out);
        let (params, ins) = (self.space.dim(Dim::Param), self.space.dim(Dim::In));
        let graph = self.project_out(Dim::Out, at + 1, outs - at - 1, budget)?.project_out(
            Dim::Out,
            0,
            at,
            budget,
        )?;
        let space = self.space.with(0, ins);
        let mut all: Vec<Piece> = Vec::new();
        for part in graph.parts.iter() {
            for p in explicit(part, budget)? {
                if p.is_empty(budget)? {
                    continue;
                }
                all.push(read(&p, params + ins, &space, budget)?);
            }
        }
        PwAff::of_pieces(space, apart(all, budget)?).coalesce(budget)
    }
}

/// The conjunction with the negative of a column.
fn mirror(p: &mut Basic, col: usize) -> Res<()> {
    for row in p.eqs.rows_mut().chain(p.ineqs.rows_mut()) {
        row[col] = neg(row[col])?;
    }
    for def in p.divs.rows_mut() {
        def[1 + col] = neg(def[1 + col])?;
    }
    Ok(())
}

/// Pieces without a common point.
fn apart(pieces: Vec<Piece>, budget: &Budget) -> Res<Vec<Piece>> {
    if pieces.len() < 2 {
        return Ok(pieces);
    }
    let mut out: Vec<Piece> = Vec::new();
    for (set, aff) in pieces {
        let mut set = set;
        for (earlier, _) in &out {
            set = set.subtract(earlier, budget)?;
        }
        if !set.is_empty(budget)? {
            out.push((set.coalesce(budget)?, aff));
        }
    }
    Ok(out)
}

/// Takes a piece into others: where both are, the greater value counts.
fn merge(all: &mut Vec<Piece>, (mut set, aff): Piece, space: &Space, budget: &Budget) -> Res<()> {
    let mut out = Vec::new();
    for (s, a) in all.drain(..) {
        let both = s.intersect(&set, budget)?;
        if both.is_empty(budget)? {
            out.push((s, a));
            continue;
        }
        let old = both.intersect(&a.add_scaled(&aff, -1)?.nonneg(space)?, budget)?;
        let kept = s.subtract(&set, budget)?.union(&old).coalesce(budget)?;
        if !kept.is_nothing() {
            out.push((kept, a));
        }
        set = set.subtract(&old, budget)?;
    }
    if !set.is_empty(budget)? {
        out.push((set.coalesce(budget)?, aff));
    }
    *all = out;
    Ok(())
}

/// Whether a division depends on a column.
fn depends(p: &Basic, col: usize) -> Vec<bool> {
    let mut out = vec![false; p.divs.len()];
    for div in 0..out.len() {
        let def = p.divs.row(div);
        out[div] = def[1 + col] != 0 || (0..div).any(|o| out[o] && def[1 + p.div_col(o)] != 0);
    }
    out
}

/// The greatest value of column `1 + params`, the only one behind the parameters, in a conjunction
/// with explicit divisions.
fn best_of(p: &Basic, params: usize, space: &Space, budget: &Budget) -> Res<Vec<Piece>> {
    let mut p = p.clone();
    remove_redundant(&mut p, budget)?;
    // x becomes one of what exists; `x` is its value in the columns that are left.
    for div in 0..p.divs.len() {
        if depends(&p, 1 + params)[div] {
            p.forget_div(div)?;
        }
    }
    p.hide_dims(params, 1)?;
    relax(&mut p)?;
    let first = (0..p.divs.len()).find(|d| !p.is_explicit(*d));
    let Some(first) = first else { return Err(Stop::NoForm) };
    // The hidden dimension was the first of what exists.
    let mut x = vec![0; p.width()];
    x[p.div_col(first)] = 1;
    solve(&mut p, &mut x)?;
    let exists: Vec<usize> =
        (0..p.divs.len()).filter(|d| !p.is_explicit(*d)).map(|d| p.div_col(d)).collect();
    if p.void {
        return Ok(Vec::new());
    }
    match exists[..] {
        [] => return Ok(vec![piece(&p, x, space)?]),
        [col] if p.eqs.rows().all(|r| r[col] == 0) => {
            let sign = x[col].signum();
            if sign == 0 {
                return Ok(vec![piece(&p, x, space)?]);
            }
            let ends: Vec<usize> =
                (0..p.ineqs.len()).filter(|r| p.ineqs.row(*r)[col].signum() == -sign).collect();
            if ends.is_empty() {
                return Err(Stop::Unbounded);
            }
            let mut out = Vec::new();
            for at in ends {
                let mut q = p.clone();
                fix_at(&mut q, col, at, col)?;
                let set = domain(&q, space)?;
                if !set.is_empty(budget)? {
                    out.push((set, Aff::of_parts(frame(&q), x.clone(), 1)));
                }
            }
            return Ok(out);
        }
        _ => {}
    }
    Err(Stop::NoForm)
}

/// The pieces of the greatest value, in groups: the greatest of all groups counts.
fn groups(p: &Basic, params: usize, space: &Space, budget: &Budget) -> Res<Vec<Vec<Piece>>> {
    match best_of(p, params, space, budget) {
        Err(Stop::NoForm) => {}
        pieces => return Ok(vec![pieces?]),
    }
    match by_description(p, params, space, budget) {
        Err(Stop::NoForm) => by_residues(p, params, space, budget),
        pieces => Ok(vec![pieces?]),
    }
}

/// Most residues that are told apart.
const MAX_RESIDUES: Int = 128;

/// The same for each residue of the dimension by itself, for which its divisions are affine in it:
/// `floor((f + c x) / d)` with `x = m t + r`, where `d` divides `c m`, is
/// `c m / d * t + floor((f + c r) / d)`.
fn by_residues(p: &Basic, params: usize, space: &Space, budget: &Budget) -> Res<Vec<Vec<Piece>>> {
    let col = 1 + params;
    let mut out = Vec::new();
    // The dimension is `scale * x + offset`.
    let mut open: Vec<(Basic, Int, Int)> = vec![(p.clone(), 1, 0)];
    while let Some((p, scale, offset)) = open.pop() {
        budget.charge(4)?;
        if p.is_empty(budget)? {
            continue;
        }
        let Some(div) = depends(&p, col).iter().position(|d| *d) else {
            let mut pieces = best_of(&p, params, space, budget)?;
            for (_, a) in &mut pieces {
                let mut row = vec![0; 1 + params];
                row[0] = 1;
                *a = a.scale(scale)?.add_scaled(&Aff::new(row), offset)?;
            }
            out.push(pieces);
            continue;
        };
        let def = p.divs.row(div);
        let period = def[0] / gcd(def[0], def[1 + col]);
        if mul(scale, period)? > MAX_RESIDUES {
            return Err(Stop::NoForm);
        }
        for r in 0..period {
            let mut q = p.clone();
            let mut expr = vec![0; q.width()];
            (expr[0], expr[col]) = (r, period);
            for row in q.eqs.rows_mut().chain(q.ineqs.rows_mut()) {
                substitute(row, col, &expr)?;
            }
            for def in q.divs.rows_mut() {
                substitute(&mut def[1..], col, &expr)?;
            }
            q.normalize()?;
            open.push((q, mul(scale, period)?, add(offset, mul(scale, r)?)?));
        }
    }
    Ok(out)
}

/// The same by what it is: a point without a greater one.
fn by_description(p: &Basic, params: usize, space: &Space, budget: &Budget) -> Res<Vec<Piece>> {
    let set = Relation::new(space.with(0, 1), vec![p.clone()]);
    if !set.is_bounded_above(budget)? {
        return Err(Stop::Unbounded);
    }
    let best = set.only_extreme(params, true, budget)?.coalesce(budget)?;
    let mut out = Vec::new();
    for part in best.parts.iter() {
        for part in explicit(part, budget)? {
            out.push(read(&part, params, space, budget)?);
        }
    }
    Ok(out)
}

/// Solves equalities for what exists, and tells what becomes of `x`.
fn solve(p: &mut Basic, x: &mut Vec<Int>) -> Res<()> {
    loop {
        let exists: Vec<usize> =
            (0..p.divs.len()).filter(|d| !p.is_explicit(*d)).map(|d| p.div_col(d)).collect();
        let has = |r: &[Int]| exists.iter().any(|k| r[*k] != 0);
        let Some(at) = (0..p.eqs.len()).find(|at| has(p.eqs.row(*at))) else { return Ok(()) };
        let row = p.eqs.row(at).to_vec();
        let live = || exists.iter().copied().filter(|k| row[*k] != 0);
        let Some(k) = live().min_by_key(|k| row[*k].abs()) else { return Ok(()) };
        let size = row[k].abs();
        if size == 1 {
            let mut expr = row.clone();
            if expr[k] > 0 {
                negate(&mut expr)?;
            }
            expr[k] = 0;
            substitute(x, k, &expr)?;
            p.drop_by(at, k)?;
            x.remove(k);
            continue;
        }
        if live().count() == 1 {
            // Divisible: an explicit division, and the equality stays.
            let mut num = row.clone();
            num[k] = 0;
            if row[k] > 0 {
                negate(&mut num)?;
            }
            p.set_def(k - 1 - p.dims, size, &num);
            let order: Vec<usize> = {
                let div = k - 1 - p.dims;
                let front = exists[0] - 1 - p.dims;
                let mut order: Vec<usize> = (0..p.divs.len()).filter(|d| *d != div).collect();
                order.insert(front, div);
                order
            };
            let old = x.clone();
            order.iter().enumerate().for_each(|(new, o)| x[p.div_col(new)] = old[p.div_col(*o)]);
            p.reorder_divs(&order);
            continue;
        }
        let mut expr = vec![0; row.len()];
        expr[k] = 1;
        for j in live().filter(|j| *j != k) {
            expr[j] = neg(crate::num::round_div(row[j], size))? * row[k].signum();
        }
        for r in p.eqs.rows_mut().chain(p.ineqs.rows_mut()) {
            substitute(r, k, &expr)?;
        }
        substitute(x, k, &expr)?;
    }
}

/// The columns of a conjunction without its constraints.
fn frame(p: &Basic) -> Basic {
    let mut out = p.clone();
    out.eqs.clear();
    out.ineqs.clear();
    out
}

fn domain(p: &Basic, space: &Space) -> Res<Set> {
    let mut p = p.clone();
    p.normalize()?;
    Ok(Relation::new(space.clone(), vec![p]))
}

fn piece(p: &Basic, x: Vec<Int>, space: &Space) -> Res<Piece> {
    Ok((domain(p, space)?, Aff::of_parts(frame(p), x, 1)))
}

/// The last dimension of a conjunction as a function of the others.
fn read(p: &Basic, dims: usize, space: &Space, budget: &Budget) -> Res<Piece> {
    let col = 1 + dims;
    let varies = depends(p, col);
    let free = |row: &[Int]| (0..varies.len()).all(|d| !varies[d] || row[p.div_col(d)] == 0);
    let rows = p.eqs.rows().map(|r| (r, true)).chain(p.ineqs.rows().map(|r| (r, false)));
    for (row, equal) in rows {
        if row[col] == 0 || !free(row) {
            continue;
        }
        // c x + f = 0, or a bound: x is floor(f / -c), or the least integer from f / -c.
        let mut num = row.to_vec();
        let c = std::mem::take(&mut num[col]);
        if c > 0 {
            negate(&mut num)?;
            if !equal {
                num[0] = add(num[0], c - 1)?;
            }
        }
        let candidate = Aff::of_parts(frame(p), num, c.abs()).floor()?;
        // x is nothing else in the conjunction.
        let mut q = p.clone();
        let (f, values, _) = candidate.parts();
        let place = q.take_divs(&f.divs);
        let mut gap = q.adopt(values, &place);
        gap[col] = add(gap[col], -1)?;
        let mut above = gap.clone();
        above[0] = add(above[0], -1)?;
        let certain = equal
            || q.is_empty_with(&above, false, budget)?
                && q.is_empty_with(&complement(&gap)?, false, budget)?;
        if !certain {
            continue;
        }
        // The candidate in the columns without x.
        let set = crate::relation::hidden(p.clone(), dims, 1, budget)?;
        let set = Relation::new(space.clone(), vec![set]);
        let aff = candidate.without_dim(dims)?;
        return Ok((set, aff));
    }
    Err(Stop::NoForm)
}

//! The least and greatest values of a dimension, as functions of the parameters, and relations that
//! are functions, as such.
//!
//! Equalities (`x = 3 e + 1`) are solved first; what remains is a parametric integer program
//! (`parametric`) in the dimension and in all that merely exists.

use crate::aff::{Aff, PwAff};
use crate::basic::{Basic, complement};
use crate::eliminate::{relax, strip};
use crate::matrix::{negate, substitute};
use crate::num::{Budget, Int, Res, Stop, add, neg};
use crate::parametric;
use crate::relation::{Dim, Relation, Set, Space, hidden};

type Piece = (Set, Aff);

/// Pieces, before any are joined, up to which a relation is written as a function.
const MOST_PIECES: usize = 24;

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
            for piece in ends(part, params, &space, greatest, budget)? {
                merge(&mut all, piece, &space, greatest, budget)?;
            }
        }
        PwAff::of_pieces(space, all).coalesce(budget)
    }

    /// Output `at` of a relation as a function of the inputs: right for each input that has an output.
    /// For others it may have some value or none.
    ///
    /// # Errors
    /// [`Stop::NoForm`] where it is not found to be one.
    pub fn function(&self, at: usize, budget: &Budget) -> Res<PwAff> {
        let outs = self.space.dim(Dim::Out);
        let (params, ins) = (self.space.dim(Dim::Param), self.space.dim(Dim::In));
        let (space, first) = (self.space.with(0, ins), params + ins);
        if !self.reverse().is_injective(budget)? {
            return Err(Stop::NoForm);
        }
        let mut all: Vec<Piece> = Vec::new();
        for whole in self.parts.iter() {
            let pieces = match at_once(whole, first, at, &space)? {
                Some(piece) => vec![piece],
                None => {
                    // The output alone.
                    let part = hidden(whole.clone(), first + at + 1, outs - at - 1, budget)?;
                    let part = hidden(part, first, at, budget)?;
                    match read(&part, first, &space, budget) {
                        Err(Stop::NoForm) => value(&part, whole, first, &space, budget)?,
                        piece => vec![piece?],
                    }
                }
            };
            if self.count() == 1 {
                all.extend(pieces);
                continue;
            }
            let image = hidden(whole.clone(), first, outs, budget)?;
            let image = Relation::new(space.clone(), vec![image]);
            for (set, aff) in pieces {
                all.push((set.intersect(&image, budget)?, aff));
            }
        }
        PwAff::of_pieces(space, make_disjoint(all, budget)?).coalesce(budget)
    }
}

/// Pieces without a common point.
fn make_disjoint(pieces: Vec<Piece>, budget: &Budget) -> Res<Vec<Piece>> {
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

/// Takes a piece into others: where both are, the less (or greater) value counts.
fn merge(
    all: &mut Vec<Piece>,
    (mut set, aff): Piece,
    space: &Space,
    greatest: bool,
    budget: &Budget,
) -> Res<()> {
    let mut out = Vec::new();
    for (s, a) in all.drain(..) {
        let both = s.intersect(&set, budget)?;
        if both.is_empty(budget)? {
            out.push((s, a));
            continue;
        }
        let gain = if greatest { a.add_scaled(&aff, -1)? } else { aff.add_scaled(&a, -1)? };
        let old = both.intersect(&gain.nonneg(space)?, budget)?;
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

/// The least or greatest values of the last dimension of a conjunction, which is behind `dims` others.
fn ends(
    part: &Basic,
    dims: usize,
    space: &Space,
    greatest: bool,
    budget: &Budget,
) -> Res<Vec<Piece>> {
    let Some((p, x, first)) = unknown(part, dims, 0, greatest)? else { return Ok(Vec::new()) };
    let mut out = Vec::new();
    for piece in parametric::least(&p, first, Some(&x), budget)? {
        let value = piece.value.ok_or(Stop::Unbounded)?;
        let aff = Aff::of_parts(frame(&piece.domain), value.row, value.den);
        let aff = if greatest { aff.scale(-1)? } else { aff };
        out.push((domain(&piece.domain, space)?, aff));
    }
    Ok(out)
}

/// The only value of the last dimension of a part, behind `dims` others; the pieces may have more points
/// than there are values for. It is a dimension of the `whole` too.
fn value(
    part: &Basic,
    whole: &Basic,
    dims: usize,
    space: &Space,
    budget: &Budget,
) -> Res<Vec<Piece>> {
    let Some((p, x, first)) = unknown(part, dims, 0, false)? else { return Ok(Vec::new()) };
    let mut given = whole.clone();
    given.hide_dims(dims, whole.dims - dims)?;
    let mut out = Vec::new();
    for piece in parametric::only(&p, first, &x, &given, MOST_PIECES, budget)? {
        let value = piece.value.ok_or(Stop::NoForm)?;
        let aff = Aff::of_parts(frame(&piece.domain), value.row, value.den);
        out.push((domain(&piece.domain, space)?, aff));
    }
    Ok(out)
}

/// The value of dimension `at` of those behind `dims` others, where equalities and strips between all
/// of them say it. The piece may have more points than there are values for.
fn at_once(whole: &Basic, dims: usize, at: usize, space: &Space) -> Res<Option<Piece>> {
    let Some((mut p, x, first)) = unknown(whole, dims, at, false)? else { return Ok(None) };
    if x[first..].iter().any(|v| *v != 0) {
        return Ok(None);
    }
    p.eqs.retain(|row| row[first..].iter().all(|v| *v == 0));
    p.ineqs.retain(|row| row[first..].iter().all(|v| *v == 0));
    while p.width() > first {
        p.remove_div(p.divs.len() - 1);
    }
    Ok(Some((domain(&p, space)?, Aff::of_parts(frame(&p), x[..first].to_vec(), 1))))
}

/// The dimensions behind `dims` others as what merely exists, with one of them, or its negative, as a
/// row, and the first column of what still merely exists: what equalities and strips say is used.
/// `None` where there is no point.
fn unknown(
    part: &Basic,
    dims: usize,
    at: usize,
    negative: bool,
) -> Res<Option<(Basic, Vec<Int>, usize)>> {
    let mut p = part.clone();
    p.hide_dims(dims, part.dims - dims)?;
    relax(&mut p)?;
    // The dimensions are the first of what merely exists.
    let Some(first) = (0..p.divs.len()).find(|d| !p.is_explicit(*d)) else {
        return Err(Stop::NoForm);
    };
    let mut x = vec![0; p.width()];
    x[p.div_col(first + at)] = if negative { -1 } else { 1 };
    loop {
        solve(&mut p, &mut x)?;
        if p.void {
            return Ok(None);
        }
        match strip(&mut p)? {
            Some(column) => x.insert(column, 0),
            None => break,
        }
    }
    let first = (0..p.divs.len()).find(|d| !p.is_explicit(*d));
    let first = first.map_or(p.width(), |d| p.div_col(d));
    Ok(Some((p, x, first)))
}

/// Solves equalities for what exists, and tells what becomes of `x`.
fn solve(p: &mut Basic, x: &mut Vec<Int>) -> Res<()> {
    loop {
        let exists: Vec<usize> =
            (0..p.divs.len()).filter(|d| !p.is_explicit(*d)).map(|d| p.div_col(d)).collect();
        let Some(at) = (0..p.eqs.len()).find(|at| exists.iter().any(|k| p.eqs.row(*at)[*k] != 0))
        else {
            return Ok(());
        };
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

/// The last dimension of a conjunction as a function of the others.
fn read(p: &Basic, dims: usize, space: &Space, budget: &Budget) -> Res<Piece> {
    if !p.all_explicit() {
        return Err(Stop::NoForm);
    }
    let col = 1 + dims;
    let varies = depends(p, col);
    let rows = p.eqs.rows().map(|r| (r, true)).chain(p.ineqs.rows().map(|r| (r, false)));
    for (row, equal) in rows {
        if row[col] == 0 || !(0..varies.len()).all(|d| !varies[d] || row[p.div_col(d)] == 0) {
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
        let set = hidden(p.clone(), dims, 1, budget)?;
        let set = Relation::new(space.clone(), vec![set]);
        let aff = candidate.without_dim(dims)?;
        return Ok((set, aff));
    }
    Err(Stop::NoForm)
}

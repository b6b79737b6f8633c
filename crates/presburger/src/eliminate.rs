//! Elimination of divisions that merely exist.
//!
//! * An equality gives it: with coefficient 1 it is substituted; with a larger one, after Euclid's
//!   steps between the unknowns of the equality, it is an explicit division and the equality says
//!   that something is divisible.
//! * Where all its lower (or all its upper) bounds have coefficient 1, combining each lower with each
//!   upper bound is exact (Fourier and Motzkin).
//! * What exists by itself, without a constraint that leads to a dimension, exists or does not: there
//!   is a point, or there is none.
//! * Else the least values of all that is left are functions of the rest, piece by piece: a parametric
//!   integer program (`parametric`).
//!
//! [`lazily`] does what is cheap and keeps the rest as it is: emptiness and intersections need no
//! more. [`explicit`] goes to the end, as negation and printing need.

use crate::basic::Basic;
use crate::matrix::{Matrix, combine, substitute};
use crate::num::{Budget, Int, Res, neg, round_div};
use crate::parametric;
use crate::tableau::{Tableau, exact};

/// Most rows that a cheap elimination may add.
const FEW_ROWS: isize = 2;

/// The conjunction after cheap eliminations.
pub(crate) fn lazily(mut basic: Basic, budget: &Budget) -> Res<Basic> {
    loop {
        basic.normalize()?;
        if basic.void || basic.all_explicit() {
            return Ok(basic);
        }
        let mut next = basic.clone();
        relax(&mut next)?;
        if !by_equality(&mut next, budget)?
            && !by_strip(&mut next, budget)?
            && !by_shadow(&mut next, budget)?
        {
            drop_apart(&mut basic, budget)?;
            return Ok(basic);
        }
        basic = next;
    }
}

/// A union of conjunctions with explicit divisions only.
pub(crate) fn explicit(basic: &Basic, budget: &Budget) -> Res<Vec<Basic>> {
    let mut done = Vec::new();
    let mut open = vec![basic.clone()];
    while let Some(mut basic) = open.pop() {
        budget.charge(1)?;
        basic.normalize()?;
        if basic.void {
            continue;
        }
        if basic.all_explicit() {
            done.push(basic);
            continue;
        }
        relax(&mut basic)?;
        if drop_apart(&mut basic, budget)?
            || by_equality(&mut basic, budget)?
            || by_strip(&mut basic, budget)?
            || by_shadow(&mut basic, budget)?
        {
            open.push(basic);
            continue;
        }
        remove_redundant(&mut basic, budget)?;
        if basic.void {
            continue;
        }
        let first = unknowns(&basic).start;
        for piece in parametric::least(&basic, first, None, budget)? {
            let mut piece = piece.domain;
            piece.normalize()?;
            done.push(piece);
        }
    }
    Ok(done)
}

/// Drops the divisions that no chain of constraints ties to a dimension, with their constraints; whether
/// there were some. Where these have no point, there is none at all.
fn drop_apart(basic: &mut Basic, budget: &Budget) -> Res<bool> {
    let mut rows: Vec<Vec<Int>> = Vec::new();
    rows.extend(basic.eqs.rows().chain(basic.ineqs.rows()).map(<[Int]>::to_vec));
    for div in (0..basic.divs.len()).filter(|d| basic.is_explicit(*d)) {
        rows.extend(basic.div_rows(div)?);
    }
    let mut tied = vec![false; basic.width()];
    tied[1..=basic.dims].fill(true);
    let mut grows = true;
    while grows {
        grows = false;
        rows.retain(|row| {
            let used = || (1..row.len()).filter(|c| row[*c] != 0);
            let is_tied = used().any(|c| tied[c]);
            if is_tied {
                used().for_each(|c| tied[c] = true);
                grows = true;
            }
            !is_tied
        });
    }
    let apart: Vec<usize> = (0..basic.divs.len()).filter(|d| !tied[basic.div_col(*d)]).collect();
    if apart.is_empty() {
        return Ok(false);
    }
    let tied_row = |row: &[Int]| (1..row.len()).any(|c| row[c] != 0 && tied[c]);
    let mut alone = basic.clone();
    alone.eqs.retain(|row| !tied_row(row));
    alone.ineqs.retain(|row| !tied_row(row));
    if alone.is_empty(budget)? {
        *basic = Basic { void: true, ..Basic::universe(basic.dims) };
        return Ok(true);
    }
    basic.eqs.retain(tied_row);
    basic.ineqs.retain(tied_row);
    for div in apart.into_iter().rev() {
        basic.remove_div(div);
    }
    Ok(true)
}

/// Explicit divisions of what merely exists exist too, and come last.
pub(crate) fn relax(basic: &mut Basic) -> Res<()> {
    for div in 0..basic.divs.len() {
        let def = basic.divs.row(div);
        if def[0] != 0 && (0..div).any(|o| def[1 + basic.div_col(o)] != 0 && !basic.is_explicit(o))
        {
            basic.forget_div(div)?;
        }
    }
    let (mut order, exists): (Vec<usize>, Vec<usize>) =
        (0..basic.divs.len()).partition(|d| basic.is_explicit(*d));
    order.extend(exists);
    basic.reorder_divs(&order);
    Ok(())
}

/// The columns of what merely exists, which come last.
fn unknowns(basic: &Basic) -> std::ops::Range<usize> {
    let first = (0..basic.divs.len()).find(|d| !basic.is_explicit(*d));
    first.map_or(basic.width(), |d| basic.div_col(d))..basic.width()
}

/// Uses an equality that has an unknown; whether there was one.
fn by_equality(basic: &mut Basic, budget: &Budget) -> Res<bool> {
    let unknowns = unknowns(basic);
    let Some(at) = (0..basic.eqs.len())
        .find(|at| basic.eqs.row(*at)[unknowns.clone()].iter().any(|v| *v != 0))
    else {
        return Ok(false);
    };
    loop {
        budget.charge(1)?;
        let row = basic.eqs.row(at);
        let live = || unknowns.clone().filter(|k| row[*k] != 0);
        let Some(k) = live().min_by_key(|k| row[*k].abs()) else { return Ok(true) };
        let size = row[k].abs();
        if size == 1 {
            basic.drop_by(at, k)?;
            return Ok(true);
        }
        if live().count() == 1 {
            let mut num = row.to_vec();
            num[k] = 0;
            if row[k] > 0 {
                crate::matrix::negate(&mut num)?;
            }
            let div = k - 1 - basic.dims;
            basic.set_def(div, size, &num);
            let mut order: Vec<usize> = (0..basic.divs.len()).filter(|d| *d != div).collect();
            order.insert(unknowns.start - 1 - basic.dims, div);
            basic.reorder_divs(&order);
            return Ok(true);
        }
        let mut expr = vec![0; row.len()];
        expr[k] = 1;
        for j in live().filter(|j| *j != k) {
            expr[j] = neg(round_div(row[j], size))? * row[k].signum();
        }
        for row in basic.eqs.rows_mut().chain(basic.ineqs.rows_mut()) {
            substitute(row, k, &expr)?;
        }
    }
}

/// Uses an equality that a strip says; whether there was one. No equality has unknowns.
fn by_strip(basic: &mut Basic, budget: &Budget) -> Res<bool> {
    Ok(strip(basic)?.is_some() && by_equality(basic, budget)?)
}

/// Finds `0 <= f - g * u <= r` with `r < g`, where `u` is a sum of unknowns and `f` has none: then
/// `u = floor(f / g)`, an equality, which is added. The column of the quotient, which is new.
pub(crate) fn strip(basic: &mut Basic) -> Res<Option<usize>> {
    let unknowns = unknowns(basic);
    for at in 0..basic.ineqs.len() {
        let row = basic.ineqs.row(at);
        let g = crate::matrix::content(&row[unknowns.clone()]);
        if g < 2 {
            continue;
        }
        let opposite = basic.ineqs.rows().any(|other| {
            other[1..].iter().zip(&row[1..]).all(|(x, y)| *x == -*y)
                && other[0].checked_add(row[0]).is_some_and(|r| r < g)
        });
        if !opposite {
            continue;
        }
        let mut num = row.to_vec();
        let mut eq = vec![0; row.len()];
        for k in unknowns.clone() {
            eq[k] = std::mem::take(&mut num[k]) / g;
        }
        // The row says that f - g u is not negative, which is implied from now on.
        basic.ineqs.remove(at);
        basic.add_div();
        let div = basic.divs.len() - 1;
        num.push(0);
        eq.push(1);
        basic.set_def(div, g, &num);
        basic.eqs.push(&eq);
        let mut order: Vec<usize> = (0..div).collect();
        order.insert(unknowns.start - 1 - basic.dims, div);
        basic.reorder_divs(&order);
        return Ok(Some(unknowns.start));
    }
    Ok(None)
}

/// The rows in which a column is bounded from below, and from above.
fn bounds(rows: &Matrix, col: usize) -> (Vec<usize>, Vec<usize>) {
    let with = |sign: Int| (0..rows.len()).filter(move |r| rows.row(*r)[col].signum() == sign);
    (with(1).collect(), with(-1).collect())
}

/// Eliminates an unknown exactly by combining its lower and upper bounds, if that adds few rows;
/// whether it did.
fn by_shadow(basic: &mut Basic, budget: &Budget) -> Res<bool> {
    let mut best: Option<(isize, usize)> = None;
    for col in unknowns(basic) {
        if basic.eqs.rows().any(|r| r[col] != 0) {
            continue;
        }
        let (low, high) = bounds(&basic.ineqs, col);
        if !low.is_empty()
            && !high.is_empty()
            && !low.iter().all(|r| basic.ineqs.row(*r)[col].abs() == 1)
            && !high.iter().all(|r| basic.ineqs.row(*r)[col].abs() == 1)
        {
            continue;
        }
        let (l, h) = (low.len() as isize, high.len() as isize);
        let growth = l * h - l - h;
        if growth <= FEW_ROWS && best.is_none_or(|(g, _)| growth < g) {
            best = Some((growth, col));
        }
    }
    let Some((_, col)) = best else { return Ok(false) };
    let (low, high) = bounds(&basic.ineqs, col);
    budget.charge(1 + low.len() * high.len() / 4)?;
    let mut rows = Matrix::new(basic.width());
    basic.ineqs.rows().filter(|r| r[col] == 0).for_each(|r| rows.push(r));
    for l in &low {
        for h in &high {
            let (l, h) = (basic.ineqs.row(*l), basic.ineqs.row(*h));
            let (a, b) = (l[col], neg(h[col])?);
            let mut row = l.to_vec();
            combine(&mut row, b, h, a)?;
            rows.push(&row);
        }
    }
    basic.ineqs = rows;
    basic.remove_div(col - 1 - basic.dims);
    Ok(true)
}

/// Drops inequalities that follow from the others over the rationals; whether one did.
pub(crate) fn remove_redundant(basic: &mut Basic, budget: &Budget) -> Res<bool> {
    if basic.ineqs.len() < 2 {
        return Ok(false);
    }
    let kept = exact!(|N| needed::<N>(basic, budget))?;
    let Some(kept) = kept else {
        *basic = Basic { void: true, ..Basic::universe(basic.dims) };
        return Ok(true);
    };
    let before = basic.ineqs.len();
    let mut at = 0;
    basic.ineqs.retain(|_| {
        at += 1;
        kept[at - 1]
    });
    Ok(basic.ineqs.len() < before)
}

/// Which inequalities are needed; `None` without a rational point.
fn needed<N: crate::tableau::Num>(basic: &Basic, budget: &Budget) -> Res<Option<Vec<bool>>> {
    let mut t = Tableau::<N>::new(basic.width() - 1, budget);
    for row in basic.eqs.rows() {
        let mut row = row.to_vec();
        t.add(&row)?;
        crate::matrix::negate(&mut row)?;
        t.add(&row)?;
    }
    for div in 0..basic.divs.len() {
        if basic.is_explicit(div) {
            for row in basic.div_rows(div)? {
                t.add(&row)?;
            }
        }
    }
    let mut ids = Vec::with_capacity(basic.ineqs.len());
    for row in basic.ineqs.rows() {
        ids.push(t.add(row)?);
    }
    if t.is_empty() {
        return Ok(None);
    }
    // The busiest are the first to go.
    let mut kept = vec![true; ids.len()];
    let mut order: Vec<usize> = (0..ids.len()).collect();
    order.sort_by_key(|at| std::cmp::Reverse(weight(at, basic)));
    for at in order {
        kept[at] = !t.drop_redundant(ids[at])?;
    }
    Ok(Some(kept))
}

fn weight(at: &usize, basic: &Basic) -> usize {
    basic.ineqs.row(*at)[1..].iter().filter(|v| **v != 0).count()
}

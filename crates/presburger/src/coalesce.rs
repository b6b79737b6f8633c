//! Unions in fewer conjunctions.
//!
//! Two conjunctions become one where that has the same points. The candidate are the constraints of
//! each that hold on the other; it is right if no point of it violates a constraint of both. That is
//! decided exactly, and covers what is contained, adjacent, or overlaps along one direction
//! (Verdoolaege 2015, "Integer set coalescing", calls them cases 1 to 4).

use crate::basic::{Basic, complement};
use crate::matrix::negate;
use crate::num::{Budget, Int, Res};
use crate::relation::Relation;

/// Most pairs of violated constraints that are looked at.
const MAX_PAIRS: usize = 36;

impl Relation {
    /// The same points in fewer conjunctions, where that is seen.
    pub fn coalesce(&self, budget: &Budget) -> Res<Relation> {
        Ok(Relation::new(self.space.clone(), coalesce(&self.parts, budget)?))
    }
}

pub(crate) fn coalesce(parts: &[Basic], budget: &Budget) -> Res<Vec<Basic>> {
    let mut all: Vec<Basic> = Vec::with_capacity(parts.len());
    for p in parts {
        if !p.is_empty(budget)? {
            all.push(p.clone());
        }
    }
    let mut at = 0;
    'parts: while at < all.len() {
        for other in 0..all.len() {
            if other == at {
                continue;
            }
            if let Some(both) = fused(&all[at], &all[other], budget)? {
                all[at.min(other)] = both;
                all.remove(at.max(other));
                at = 0;
                continue 'parts;
            }
        }
        at += 1;
    }
    Ok(all)
}

/// The conjunction with the points of both, if there is one that is found.
fn fused(a: &Basic, b: &Basic, budget: &Budget) -> Res<Option<Basic>> {
    if a == b {
        return Ok(Some(a.clone()));
    }
    if !(a.all_explicit() && b.all_explicit()) {
        return Ok(None);
    }
    // Both over the same divisions.
    let mut frame = Basic::universe(a.dims);
    let ours = frame.take_divs(&a.divs);
    let theirs = frame.take_divs(&b.divs);
    let (mut first, mut second) = (frame.clone(), frame.clone());
    let a_rows = rows(a, &frame, &ours)?;
    let b_rows = rows(b, &frame, &theirs)?;
    a_rows.iter().for_each(|r| first.ineqs.push(r));
    b_rows.iter().for_each(|r| second.ineqs.push(r));
    let (mut common, mut cut) = (frame.clone(), Vec::new());
    for r in &a_rows {
        if b_rows.contains(r) || second.implies(r, budget)? {
            common.ineqs.push(r);
        } else {
            cut.push(r);
        }
    }
    if cut.is_empty() {
        return Ok(Some(a.clone()));
    }
    let mut cut_too = Vec::new();
    for r in &b_rows {
        if a_rows.contains(r) {
            continue;
        }
        if first.implies(r, budget)? {
            common.ineqs.push(r);
        } else {
            cut_too.push(r);
        }
    }
    if cut_too.is_empty() {
        return Ok(Some(b.clone()));
    }
    if cut.len() * cut_too.len() > MAX_PAIRS {
        return Ok(None);
    }
    for r in &cut {
        let mut out = common.clone();
        out.ineqs.push(&complement(r)?);
        for s in &cut_too {
            budget.charge(1)?;
            if !out.is_empty_with(&complement(s)?, false, budget)? {
                return Ok(None);
            }
        }
    }
    common.normalize()?;
    Ok(Some(common))
}

/// All constraints as inequalities in the columns of a frame.
fn rows(basic: &Basic, frame: &Basic, place: &[usize]) -> Res<Vec<Vec<Int>>> {
    let mut out = Vec::new();
    for eq in basic.eqs.rows() {
        let mut row = frame.adopt(eq, place);
        out.push(row.clone());
        negate(&mut row)?;
        out.push(row);
    }
    out.extend(basic.ineqs.rows().map(|r| frame.adopt(r, place)));
    Ok(out)
}

//! Unions in fewer conjunctions.
//!
//! Two conjunctions become one where that has the same points. The candidate are the constraints of
//! each that hold on the other; it is right if no point of it violates a constraint of both. That is
//! decided exactly, and covers what is contained, adjacent, or overlaps along one direction
//! (Verdoolaege 2015, "Integer set coalescing", calls them cases 1 to 4).

use crate::basic::{Basic, complement};
use crate::matrix::{negate, value};
use crate::num::{Budget, Int, Res};
use crate::relation::Relation;

/// Most pairs of violated constraints that are looked at.
const MAX_PAIRS: usize = 36;

impl Relation {
    /// The same points in fewer conjunctions, where that is seen.
    pub fn coalesce(&self, budget: &Budget) -> Res<Relation> {
        if self.parts.len() <= 1 {
            return Ok(self.clone());
        }
        Ok(Relation::new(self.space.clone(), coalesce(&self.parts, budget)?))
    }
}

/// A conjunction, and values of its dimensions at some points of it, which show at once what does not
/// hold everywhere.
struct Part {
    basic: Basic,
    points: Vec<Vec<Int>>,
}

pub(crate) fn coalesce(parts: &[Basic], budget: &Budget) -> Res<Vec<Basic>> {
    let mut all: Vec<Part> = Vec::with_capacity(parts.len());
    for p in parts {
        if let Some(mut point) = p.point(budget)? {
            point.truncate(p.dims);
            all.push(Part { basic: p.clone(), points: vec![point] });
        }
    }
    let mut at = 0;
    'parts: while at < all.len() {
        for other in 0..all.len() {
            if other == at {
                continue;
            }
            let (first, second) = (at.min(other), at.max(other));
            let (head, tail) = all.split_at_mut(second);
            let (one, two) = (&mut head[first], &mut tail[0]);
            let (one, two) = if at < other { (one, two) } else { (two, one) };
            if let Some(both) = fused(one, two, budget)? {
                let gone = all.remove(second);
                all[first].basic = both;
                all[first].points.extend(gone.points);
                at = 0;
                continue 'parts;
            }
        }
        at += 1;
    }
    Ok(all.into_iter().map(|p| p.basic).collect())
}

/// The conjunction with the points of both, if there is one that is found.
fn fused(one: &mut Part, two: &mut Part, budget: &Budget) -> Res<Option<Basic>> {
    let (a, b) = (&one.basic, &two.basic);
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
    let mut common = frame.clone();
    let cut = cuts(&a_rows, &b_rows, &second, &mut two.points, &mut common, budget)?;
    if cut.is_empty() {
        return Ok(Some(one.basic.clone()));
    }
    let cut_too = cuts(&b_rows, &a_rows, &first, &mut one.points, &mut common, budget)?;
    if cut_too.is_empty() {
        return Ok(Some(two.basic.clone()));
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

/// The rows of one conjunction that do not hold everywhere on another one. Those that do are common.
fn cuts<'r>(
    rows: &'r [Vec<Int>],
    others: &[Vec<Int>],
    other: &Basic,
    points: &mut Vec<Vec<Int>>,
    common: &mut Basic,
    budget: &Budget,
) -> Res<Vec<&'r Vec<Int>>> {
    let mut full = points.iter().map(|p| other.completed(p)).collect::<Res<Vec<_>>>()?;
    let mut cut = Vec::new();
    for r in rows {
        if others.contains(r) {
            if !common.ineqs.rows().any(|c| c == r.as_slice()) {
                common.ineqs.push(r);
            }
            continue;
        }
        let mut violated = false;
        for p in &full {
            violated = violated || value(r, p)? < 0;
        }
        if !violated {
            let mut off = other.clone();
            off.ineqs.push(&complement(r)?);
            let Some(point) = off.point(budget)? else {
                common.ineqs.push(r);
                continue;
            };
            points.push(point[..other.dims].to_vec());
            full.push(point);
        }
        cut.push(r);
    }
    Ok(cut)
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

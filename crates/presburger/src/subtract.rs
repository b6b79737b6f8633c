//! Differences of unions, and what they decide.
//!
//! `a \ b` is a union over the constraints of `b`: the points of `a` at which the earlier ones hold
//! and this one does not. The divisions of `b` have to be explicit for that; those of `a` need not.

use crate::basic::{Basic, complement};
use crate::eliminate::explicit;
use crate::num::{Budget, Int, Res};

/// The points of the first union that are not of the second one.
pub(crate) fn subtract(from: &[Basic], what: &[Basic], budget: &Budget) -> Res<Vec<Basic>> {
    let mut rest: Vec<Basic> = from.iter().filter(|r| !what.contains(r)).cloned().collect();
    for b in what {
        if rest.is_empty() {
            break;
        }
        let mut parts: Option<Vec<Basic>> = None;
        let mut next = Vec::with_capacity(rest.len());
        for r in rest {
            let both = r.intersect(b)?;
            if both.is_empty(budget)? {
                next.push(r);
                continue;
            }
            let parts = match &parts {
                Some(parts) => parts,
                None => &*parts.insert(explicit(b, budget)?),
            };
            let mut pieces = vec![r];
            for part in parts {
                let mut left = Vec::new();
                for piece in pieces {
                    minus(&piece, part, budget, &mut |p| {
                        left.push(p);
                        true
                    })?;
                }
                pieces = left;
            }
            next.extend(pieces);
        }
        rest = next;
    }
    Ok(rest)
}

/// Hands each piece of `a \ b` that has a point to `each`, until that says no.
pub(crate) fn minus(
    a: &Basic,
    b: &Basic,
    budget: &Budget,
    each: &mut dyn FnMut(Basic) -> bool,
) -> Res<bool> {
    let mut inside = a.clone();
    let place = inside.take_divs(&b.divs);
    let mut rows: Vec<(Vec<Int>, bool)> = Vec::new();
    rows.extend(b.eqs.rows().map(|r| (inside.adopt(r, &place), true)));
    rows.extend(b.ineqs.rows().map(|r| (inside.adopt(r, &place), false)));
    for (row, equal) in rows {
        if (if equal { &inside.eqs } else { &inside.ineqs }).rows().any(|r| r == row.as_slice()) {
            continue;
        }
        budget.charge(2)?;
        let mut sides = vec![complement(&row)?];
        if equal {
            let mut above = row.clone();
            above[0] -= 1;
            sides.push(above);
        }
        for side in sides {
            let mut out = inside.clone();
            out.ineqs.push(&side);
            out.normalize()?;
            if !out.is_empty(budget)? && !each(out) {
                return Ok(false);
            }
        }
        if equal { inside.eqs.push(&row) } else { inside.ineqs.push(&row) }
    }
    Ok(true)
}

/// Whether every point of the first union is one of the second.
pub(crate) fn is_subset(some: &[Basic], all: &[Basic], budget: &Budget) -> Res<bool> {
    let mut known: Vec<Option<Vec<Basic>>> = vec![None; all.len()];
    for a in some {
        if all.contains(a) || all.iter().any(Basic::is_universe) {
            continue;
        }
        if !covered(a, all, &mut known, 0, budget)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether a conjunction lies in the union of parts from `at` on.
fn covered(
    a: &Basic,
    all: &[Basic],
    known: &mut [Option<Vec<Basic>>],
    at: usize,
    budget: &Budget,
) -> Res<bool> {
    let Some(b) = all.get(at) else { return a.is_empty(budget) };
    if a.intersect(b)?.is_empty(budget)? {
        return covered(a, all, known, at + 1, budget);
    }
    let parts = match &known[at] {
        Some(parts) => parts.clone(),
        None => known[at].insert(explicit(b, budget)?).clone(),
    };
    let mut pieces = vec![a.clone()];
    let last = at + 1 == all.len();
    for (i, part) in parts.iter().enumerate() {
        let mut left = Vec::new();
        // Of the last part nothing may be left.
        let ends = last && i + 1 == parts.len();
        for piece in pieces {
            let done = minus(&piece, part, budget, &mut |p| {
                left.push(p);
                !ends
            })?;
            if !done {
                return Ok(false);
            }
        }
        pieces = left;
    }
    for piece in pieces {
        if !covered(&piece, all, known, at + 1, budget)? {
            return Ok(false);
        }
    }
    Ok(true)
}

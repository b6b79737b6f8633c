//! What a set adds to a context: constraints that follow from the context and from the others are
//! dropped, so that inside of the context the points stay the same.

use crate::basic::Basic;
use crate::eliminate::explicit;
use crate::hull::equations;
use crate::matrix::substitute;
use crate::num::{Budget, Int, Res, neg};
use crate::relation::Relation;

/// A constraint: the row, and whether it is an equality.
type Constraint = (Vec<Int>, bool);

impl Relation {
    /// A set that is the same as this one inside of a context, with as few constraints as possible.
    pub fn gist(&self, context: &Relation, budget: &Budget) -> Res<Relation> {
        let mut live = Vec::new();
        for c in context.parts.iter() {
            if !c.is_empty(budget)? {
                live.push(c.clone());
            }
        }
        if live.is_empty() {
            return Ok(Relation::universe(&self.space));
        }
        let common = match &live[..] {
            [one] if one.is_universe() => Vec::new(),
            _ => equations(&live, self.space.total(), budget)?.unwrap_or_default(),
        };
        let mut parts = Vec::new();
        for p in self.parts.iter() {
            for p in explicit(p, budget)? {
                if let Some(rest) = gist(&p, &live, &common, budget)? {
                    parts.push(rest);
                }
            }
        }
        Ok(Relation::new(self.space.clone(), parts))
    }
}

/// What one conjunction adds; `None` where it has no point in the context.
fn gist(
    basic: &Basic,
    context: &[Basic],
    common: &[Vec<Int>],
    budget: &Budget,
) -> Res<Option<Basic>> {
    let mut basic = basic.clone();
    let mut rows: Vec<Constraint> = Vec::new();
    rows.extend(basic.eqs.rows().map(|r| (r.to_vec(), true)));
    rows.extend(basic.ineqs.rows().map(|r| (r.to_vec(), false)));
    // Equalities of the context make rows shorter.
    for eq in common {
        let Some(k) = eq.iter().rposition(|v| *v != 0).filter(|k| *k > 0 && eq[*k].abs() == 1)
        else {
            continue;
        };
        let mut expr = vec![0; basic.width()];
        for (e, v) in expr.iter_mut().zip(eq) {
            *e = if eq[k] > 0 { neg(*v)? } else { *v };
        }
        expr[k] = 0;
        for (row, _) in &mut rows {
            substitute(row, k, &expr)?;
        }
    }
    rows.retain(|(row, _)| row.iter().any(|v| *v != 0));
    // The context, each conjunction with the divisions of this one.
    let mut frames = Vec::new();
    let mut meets = false;
    for c in context {
        let mut frame = c.clone();
        let place = frame.take_divs(&basic.divs);
        let mut both = frame.clone();
        add_rows(&mut both, &rows, &place);
        meets = meets || !both.is_empty(budget)?;
        frames.push((frame, place));
    }
    if !meets {
        return Ok(None);
    }
    // What follows from the context alone goes first.
    let mut kept = Vec::new();
    for row in rows {
        if !follows(&frames, &[], &row, budget)? {
            kept.push(row);
        }
    }
    // Then what the others make needless, the busiest first.
    let mut order: Vec<usize> = (0..kept.len()).collect();
    order.sort_by_key(|at| std::cmp::Reverse((kept[*at].1, weight(at, &kept))));
    let mut gone = vec![false; kept.len()];
    if kept.len() > 1 {
        for at in order {
            gone[at] = true;
            let others = (0..kept.len()).filter(|i| !gone[*i]).map(|i| kept[i].clone());
            let others: Vec<Constraint> = others.collect();
            gone[at] = follows(&frames, &others, &kept[at], budget)?;
        }
    }
    basic.eqs.clear();
    basic.ineqs.clear();
    for ((row, equal), gone) in kept.iter().zip(&gone) {
        if !gone {
            if *equal { basic.eqs.push(row) } else { basic.ineqs.push(row) }
        }
    }
    basic.normalize()?;
    Ok(Some(basic))
}

fn weight(at: &usize, kept: &[(Vec<i128>, bool)]) -> usize {
    kept[*at].0[1..].iter().filter(|v| **v != 0).count()
}

fn add_rows(frame: &mut Basic, rows: &[Constraint], place: &[usize]) {
    for (row, equal) in rows {
        let row = frame.adopt(row, place);
        if *equal { frame.eqs.push(&row) } else { frame.ineqs.push(&row) }
    }
}

/// Whether a constraint holds wherever a context and some others do.
fn follows(
    frames: &[(Basic, Vec<usize>)],
    others: &[Constraint],
    (row, equal): &Constraint,
    budget: &Budget,
) -> Res<bool> {
    for (frame, place) in frames {
        let mut frame = frame.clone();
        add_rows(&mut frame, others, place);
        let row = frame.adopt(row, place);
        if !frame.implies(&row, budget)? {
            return Ok(false);
        }
        if *equal {
            let down = row.iter().map(|v| neg(*v)).collect::<Res<Vec<_>>>()?;
            if !frame.implies(&down, budget)? {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

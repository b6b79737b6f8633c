//! What linear indices reach, as far as intervals and the extents of loops say ([`Linear::span`]).

use tilewright_ir::index;
use tilewright_ir::index::{Interval, Linear, Ranges};
use tilewright_ir::{BinOp, Expr, ExprKind, Range, Var};

/// The least and the greatest value of an index over loops, outermost first, as forms of what is
/// known outside of these. They hold where every loop runs.
pub fn ends(index: &Linear, loops: &[(Var, Range)], ranges: &Ranges) -> Option<(Linear, Linear)> {
    let (mut least, mut greatest) = (index.clone(), index.clone());
    for (var, range) in loops.iter().rev() {
        let first = index::linear(&range.min, ranges)?;
        let last = first.clone().plus(&index::linear(&range.extent, ranges)?, 1)?;
        let last = last.plus(&Linear::constant(1, index.dtype), -1)?;
        least = at_end(least, var, (&first, &last), ranges)?;
        greatest = at_end(greatest.times(-1)?, var, (&first, &last), ranges)?.times(-1)?;
    }
    Some((least, greatest))
}

/// The values of an index over loops, where they are known.
pub fn between(index: &Linear, loops: &[(Var, Range)], ranges: &Ranges) -> Option<Interval> {
    match (between_ends(index, loops, ranges).filter(|i| !i.is_empty()), index.span(ranges)) {
        (Some(one), Some(other)) => Some(one.meet(other)),
        (one, other) => one.or(other),
    }
}

fn between_ends(index: &Linear, loops: &[(Var, Range)], ranges: &Ranges) -> Option<Interval> {
    let (least, greatest) = ends(index, loops, ranges)?;
    Some(Interval::new(least.span(ranges)?.lo, greatest.span(ranges)?.hi))
}

/// What an index is at most where `a < b` holds: `b - 1` in the place of `a`, which is a part of it.
pub fn under_guard(index: &Linear, guard: &Expr, ranges: &Ranges) -> Option<Linear> {
    let ExprKind::Binary(op @ (BinOp::Lt | BinOp::Le), a, b) = guard.kind() else {
        return None;
    };
    if a.dtype() != index.dtype {
        return None;
    }
    let (a, b) = (index::linear(a, ranges)?, index::linear(b, ranges)?);
    let last = Linear::constant(i128::from(*op == BinOp::Lt), index.dtype);
    let rest = index.clone().plus(&a, -1)?;
    let is_part = rest.terms.len() + a.terms.len() == index.terms.len();
    is_part.then(|| rest.plus(&b, 1)?.plus(&last, -1)).flatten()
}

/// Loops, outermost first, with the ranges that conditions leave of them where these hold: those that say what a
/// variable is less than, or at least, by what is known outside of its loop. `None` where there are none. Of
/// several conditions on one end the last one counts: an inner one, which says more.
pub fn bounded<'a>(
    loops: &[(Var, Range)],
    conditions: impl IntoIterator<Item = &'a Expr>,
) -> Option<Vec<(Var, Range)>> {
    let mut ends: Vec<(Option<Expr>, Option<Expr>)> = vec![(None, None); loops.len()];
    for cond in conditions.into_iter().flat_map(Expr::conjuncts) {
        let (cond, holds) = match cond.kind() {
            ExprKind::Not(inner) => (inner.clone(), false),
            _ => (cond, true),
        };
        let ExprKind::Binary(op, a, b) = cond.kind() else { continue };
        let Some(at) = loops.iter().position(|(v, _)| a.as_var() == Some(v)) else { continue };
        if !index::is_index(b) || b.mentions_any(loops[at..].iter().map(|(v, _)| v)) {
            continue;
        }
        match (op, holds) {
            (BinOp::Lt, true) | (BinOp::Ge, false) => ends[at].1 = Some(b.clone()),
            (BinOp::Ge, true) | (BinOp::Lt, false) => ends[at].0 = Some(b.clone()),
            _ => {}
        }
    }
    if ends.iter().all(|(from, to)| from.is_none() && to.is_none()) {
        return None;
    }
    let narrower = loops.iter().zip(ends).map(|((v, range), (from, to))| {
        let min = from.unwrap_or_else(|| range.min.clone());
        let end = to.unwrap_or_else(|| range.min.clone() + range.extent.clone());
        (v.clone(), Range { extent: end - min.clone(), min })
    });
    Some(narrower.collect())
}

/// The values of a variable where a condition holds that bounds it by a number.
pub fn bound(cond: &Expr, ranges: &Ranges) -> Option<(Var, Interval)> {
    let ExprKind::Binary(op, a, b) = cond.kind() else { return None };
    let (var, n) = (a.as_var()?.clone(), i128::from(b.as_int()?));
    let all = ranges.exact(a)?;
    let values = match op {
        BinOp::Lt => Interval::new(all.lo, n - 1),
        BinOp::Le => Interval::new(all.lo, n),
        BinOp::Gt => Interval::new(n + 1, all.hi),
        BinOp::Ge => Interval::new(n, all.hi),
        BinOp::Eq => Interval::point(n),
        _ => return None,
    };
    Some((var, values))
}

/// The least values of a form for a variable between two values.
fn at_end(
    form: Linear,
    var: &Var,
    (first, last): (&Linear, &Linear),
    ranges: &Ranges,
) -> Option<Linear> {
    let (inside, outside): (Vec<_>, Vec<_>) =
        form.terms.into_iter().partition(|(atom, _)| atom.mentions(var));
    let mut least = Linear { terms: outside, ..form };
    for (atom, by) in inside {
        least = match atom.as_var() {
            Some(_) => least.plus(if by > 0 { first } else { last }, by)?,
            None => {
                let low = Linear::atom(atom).span(ranges)?.times(by)?.lo;
                least.plus(&Linear::constant(low, first.dtype), 1)?
            }
        };
    }
    Some(least)
}

/// Whether an index is at least zero over loops, and less than an extent there or by a guard.
pub fn is_within(
    index: &Linear,
    guards: &[Expr],
    loops: &[(Var, Range)],
    extent: &Linear,
    ranges: &Ranges,
) -> Option<bool> {
    let (first, last) = ends(index, loops, ranges)?;
    if first.span(ranges)?.lo < 0 {
        return Some(false);
    }
    let is_less = |most: &Linear| {
        let behind = extent.clone().plus(most, -1)?;
        Some(behind.span(ranges)?.lo > 0)
    };
    if is_less(&last).unwrap_or(false) {
        return Some(true);
    }
    Some(guards.iter().flat_map(Expr::conjuncts).any(|guard| {
        let most = under_guard(index, &guard, ranges);
        let most = most.and_then(|most| Some(ends(&most, loops, ranges)?.1));
        most.is_some_and(|most| is_less(&most).unwrap_or(false))
    }))
}

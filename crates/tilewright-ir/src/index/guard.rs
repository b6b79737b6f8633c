//! What conditions around a place say of sums there: a form that is not negative, for each comparison that holds.
//!
//! A form `f` is at least `k * g + low`, where `g` is not negative by a guard, `k > 0`, and `f - k * g` is at
//! least `low`. So a guard decides itself, its negation, and what follows from it and the bounds of variables.

use crate::condition::parts;
use crate::equal::same_expr;
use crate::expr::{BinOp, Expr, ExprKind};
use crate::index::{Interval, Linear, Ranges, is_index, is_index_type, linear};

/// Most guards that are taken together.
const TOGETHER: usize = 2;

impl Ranges {
    /// Works where a condition has the value `holds`.
    pub fn under<R>(&self, cond: &Expr, holds: bool, work: impl FnOnce() -> R) -> R {
        let outside = self.enter_guard(cond, holds);
        let result = work();
        self.leave_guard(outside);
        result
    }

    /// Says that a condition has the value `holds` from here on, until [`Ranges::leave_guard`] is given what this
    /// returns.
    pub fn enter_guard(&self, cond: &Expr, holds: bool) -> usize {
        let outside = self.guards().len();
        for (part, holds) in parts(cond, holds) {
            for form in not_negative(&part, holds, self).unwrap_or_default() {
                self.push_guard(form);
            }
        }
        outside
    }

    /// Ends what [`Ranges::enter_guard`] said.
    pub fn leave_guard(&self, outside: usize) {
        self.truncate_guards(outside);
    }
}

/// The forms that are not negative where a comparison has the value `holds`.
fn not_negative(cond: &Expr, holds: bool, ranges: &Ranges) -> Option<Vec<Linear>> {
    let ExprKind::Binary(op, a, b) = cond.kind() else { return None };
    if !op.is_compare() || !is_index(cond) || !is_index_type(a.dtype()) {
        return None;
    }
    let (a, b) = (linear(a, ranges)?, linear(b, ranges)?);
    a.fits(ranges).and(b.fits(ranges))?;
    let one = Linear::constant(1, a.dtype);
    let up = b.clone().plus(&a, -1)?;
    let down = a.plus(&b, -1)?;
    Some(match (op, holds) {
        (BinOp::Lt, true) | (BinOp::Ge, false) => vec![up.plus(&one, -1)?],
        (BinOp::Le, true) | (BinOp::Gt, false) => vec![up],
        (BinOp::Gt, true) | (BinOp::Le, false) => vec![down.plus(&one, -1)?],
        (BinOp::Ge, true) | (BinOp::Lt, false) => vec![down],
        (BinOp::Eq, true) | (BinOp::Ne, false) => vec![up, down],
        _ => return None,
    })
}

impl Linear {
    /// The values of a form between bounds that hold wherever it stands, by the guards around.
    pub(super) fn under_guards(&self, all: Interval, ranges: &Ranges) -> Interval {
        let guards = ranges.guards().clone();
        if guards.is_empty() || self.terms.is_empty() {
            return all;
        }
        let guards: Vec<&Linear> = guards.iter().collect();
        let lo = self.least(&guards, TOGETHER, ranges);
        let hi = self.times(-1).and_then(|negated| negated.least(&guards, TOGETHER, ranges));
        let found = Interval::new(lo.unwrap_or(all.lo), hi.map_or(all.hi, |hi| -hi));
        // Nothing is said of a place that is not reached.
        Some(found.meet(all)).filter(|i| !i.is_empty()).unwrap_or(all)
    }

    /// The least value by so many of some guards.
    fn least(&self, guards: &[&Linear], together: usize, ranges: &Ranges) -> Option<i128> {
        let mut least = self.unguarded(ranges).map(|i| i.lo);
        if together == 0 {
            return least;
        }
        for (at, guard) in guards.iter().enumerate() {
            let Some(rest) = self.without(guard) else { continue };
            least = least.max(rest.least(&guards[at + 1..], together - 1, ranges));
        }
        least
    }

    /// The form less as often a guard as takes an atom of both away.
    fn without(&self, guard: &Linear) -> Option<Linear> {
        let times = self.terms.iter().find_map(|(atom, by)| {
            let own = guard.terms.iter().find(|(a, _)| same_expr(a, atom))?.1;
            (by % own == 0 && by / own > 0).then_some(by / own)
        })?;
        self.clone().plus(guard, -times)
    }
}

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

#[cfg(test)]
mod tests {
    use crate::hash::HashMap;

    use proptest::prelude::*;

    use super::*;
    use crate::expr::Var;
    use crate::index::simplify;
    use crate::stmt::Range;

    fn open() -> (Expr, Expr, Expr, Ranges) {
        let [i, j, n] = ["i", "j", "n"].map(Var::index);
        let mut ranges = Ranges::default();
        ranges.bind(&n, Interval::new(0, 1 << 24));
        ranges.bind_loop(&i, &Range::upto((n.expr() + 15).floordiv(16)));
        ranges.bind_loop(&j, &Range::upto(Expr::i32(16)));
        (i.expr(), j.expr(), n.expr(), ranges)
    }

    #[test]
    fn a_guard_decides_itself_and_what_follows() {
        let (i, j, n, ranges) = open();
        let at = i.clone() * 16 + j.clone();
        let guard = at.clone().less(n.clone());
        let text =
            |e: Expr, holds| ranges.under(&guard, holds, || simplify(&e, &ranges)).to_string();
        assert_eq!(text((at.clone() + 1).less(n.clone() + 1), true), "T.bool(True)");
        assert_eq!(text(at.clone().greater_equal(n.clone()), true), "T.bool(False)");
        assert_eq!(text((i.clone() * 16).less(n.clone()), true), "T.bool(True)");
        assert_eq!(text((at.clone() * 2).less(n.clone() * 2), true), "T.bool(True)");
        assert_eq!(text((at.clone() + 2).less(n.clone() + 1), true), "i * 16 + j + 1 < n");
        assert_eq!(text(at.clone().less(n.clone()), false), "T.bool(False)");
        assert_eq!(text((at.clone() + 3).greater_equal(n.clone()), false), "T.bool(True)");
        // Nothing is left of it.
        assert_eq!(simplify(&guard, &ranges).to_string(), "i * 16 + j < n");
    }

    #[test]
    fn the_second_part_of_a_condition_is_asked_where_the_first_one_holds() {
        let (i, _, n, ranges) = open();
        let both = i.clone().less(n.clone()).and((i.clone() + 2).less(n.clone() + 3));
        assert_eq!(simplify(&both, &ranges).to_string(), "i < n");
        let either = i.clone().less(n.clone()).or(i.clone().greater_equal(n.clone()));
        assert_eq!(simplify(&either, &ranges).to_string(), "T.bool(True)");
        let choice = Expr::if_then_else(
            i.clone().less(n.clone()),
            Expr::if_then_else(i.clone().greater_equal(n.clone()), Expr::i32(1), Expr::i32(2)),
            Expr::if_then_else(i.clone().less(n + 5), i.clone(), Expr::i32(3)),
        );
        assert_eq!(
            simplify(&choice, &ranges).to_string(),
            "T.if_then_else(i < n, 2, T.if_then_else(i < n + 5, i, 3))"
        );
    }

    fn value(e: &Expr, env: &HashMap<Var, i64>) -> i64 {
        match e.kind() {
            ExprKind::Int(v) => *v,
            ExprKind::Var(v) => env[v],
            ExprKind::Not(a) => i64::from(value(a, env) == 0),
            ExprKind::Binary(op, a, b) => {
                crate::expr::eval_int(*op, value(a, env), value(b, env), a.dtype()).expect("by one")
            }
            _ => panic!("{e}"),
        }
    }

    const COMPARES: [BinOp; 6] = [BinOp::Eq, BinOp::Ne, BinOp::Lt, BinOp::Le, BinOp::Gt, BinOp::Ge];

    fn condition(vars: [Var; 3]) -> impl Strategy<Value = Expr> {
        let sum = move |by: [i64; 4]| {
            let terms = vars.iter().zip(by).map(|(v, k)| v.expr() * k);
            terms.fold(Expr::i32(by[3] as i32), |sum, term| sum + term)
        };
        let sum = prop::array::uniform4(-3i64..=3).prop_map(sum);
        (0..COMPARES.len(), sum.clone(), sum)
            .prop_map(|(op, a, b)| Expr::binary(COMPARES[op], a, b))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        /// Under guards a condition keeps its value wherever they hold.
        #[test]
        fn keeps_conditions_where_guards_hold(
            (vars, guards, asked) in {
                let vars = ["i", "j", "k"].map(Var::index);
                let guards = prop::collection::vec((condition(vars.clone()), any::<bool>()), 1..=3);
                (Just(vars.clone()), guards, condition(vars))
            }
        ) {
            let mut ranges = Ranges::default();
            vars.iter().for_each(|v| ranges.bind(v, Interval::new(-2, 4)));
            for (g, holds) in &guards {
                ranges.enter_guard(g, *holds);
            }
            let new = simplify(&asked, &ranges);
            for at in 0..343 {
                let env = [at % 7, at / 7 % 7, at / 49].map(|v| v - 2);
                let env: HashMap<Var, i64> = vars.iter().cloned().zip(env).collect();
                if guards.iter().all(|(g, holds)| (value(g, &env) != 0) == *holds) {
                    prop_assert_eq!(value(&new, &env) != 0, value(&asked, &env) != 0, "{} at {:?}", new, env);
                }
            }
        }
    }
}

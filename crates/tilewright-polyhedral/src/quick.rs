//! Conditions that are seen to be false without the engine.
//!
//! Most questions are easy: a linear index stays below an extent; two accesses with the indices
//! `4*i + j` and `4*i' + j'` for `0 <= j, j' < 4` meet only where `i = i'`. Intervals of atoms follow
//! from the constraints on them, a sum that cannot be zero or positive refutes a condition, and an
//! equation in which one pair of atoms outweighs all the rest makes them one. What is not refuted
//! here is the engine's to decide. Equal digits make equal numbers: `x // k = y // k` with
//! `x % k = y % k` is `x = y`.

use tilewright_ir::hash::HashMap;

use crate::answer::Known;
use crate::form::{Atom, Ends, Pred, Sum, Term};

/// Most conditions that are looked at together.
const MOST: usize = 64;

/// Whether a condition certainly holds at no point at which all of `guards` do.
pub(crate) fn is_never<'a>(guards: impl IntoIterator<Item = &'a Pred>, p: &Pred) -> bool {
    if let Pred::Bool(value) = p {
        return !value;
    }
    let mut known = Intervals::default();
    guards.into_iter().for_each(|g| known.learn(g));
    known.deny(p)
}

/// What bounds a sum where all of `guards` hold, as far as that is seen at once.
pub(crate) fn ends<'a>(guards: impl IntoIterator<Item = &'a Pred>, s: &Sum) -> Ends {
    let mut known = Intervals::default();
    if !s.terms.is_empty() {
        guards.into_iter().for_each(|g| known.learn(g));
    }
    known.ends(s)
}

/// Intervals of atoms.
#[derive(Clone, Default)]
struct Intervals(HashMap<Atom, Ends>);

impl Intervals {
    fn learn(&mut self, guard: &Pred) {
        match guard {
            Pred::Ge(s) => self.at_least_zero(s, 1),
            Pred::Eq(s) => {
                self.at_least_zero(s, 1);
                self.at_least_zero(s, -1);
            }
            Pred::And(parts) => parts.iter().for_each(|p| self.learn(p)),
            _ => {}
        }
    }

    /// Takes `sign * s >= 0` as given, for each atom by the ends of the others.
    fn at_least_zero(&mut self, s: &Sum, sign: i128) {
        for (term, c) in &s.terms {
            let Term::Atom(atom) = term else { continue };
            let mut rest = s.clone();
            rest.terms.remove(term);
            let (low, high) = self.ends(&rest);
            let most = if sign > 0 { high } else { low.and_then(i128::checked_neg) };
            let (Some(most), c) = (most, c * sign) else { continue };
            // c * atom >= -most
            let ends = if c > 0 {
                (most.div_euclid(c).checked_neg(), None)
            } else {
                (None, Some(most.div_euclid(-c)))
            };
            self.meet(atom, ends);
        }
    }

    fn meet(&mut self, atom: &Atom, (low, high): Ends) {
        let old = self.0.entry(atom.clone()).or_insert((None, None));
        old.0 = old.0.max(low);
        old.1 = match (old.1, high) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
    }

    /// The ends of an atom.
    fn of_atom(&self, a: &Atom) -> Ends {
        let (low, high) = self.0.get(a).copied().unwrap_or_default();
        let typed = a.type_range();
        (low.or(typed.map(|t| t.0)), high.or(typed.map(|t| t.1)))
    }

    /// The ends of a sum.
    fn ends(&self, s: &Sum) -> Ends {
        s.ends(&|a| self.of_atom(a))
    }

    /// Whether a condition certainly does not hold.
    fn deny(&self, p: &Pred) -> bool {
        match p {
            Pred::Bool(value) => !value,
            Pred::Ge(s) => self.ends(s).1.is_some_and(|high| high < 0),
            Pred::Eq(s) => {
                let (low, high) = self.ends(s);
                low.is_some_and(|low| low > 0) || high.is_some_and(|high| high < 0)
            }
            Pred::Ne(s) => self.ends(s) == (Some(0), Some(0)),
            Pred::Flag(..) => false,
            Pred::Or(parts) => parts.iter().all(|p| self.deny(p)),
            Pred::And(parts) => {
                parts.iter().any(|p| self.deny(p))
                    || parts.len() <= MOST && self.deny_together(parts.clone()).unwrap_or(false)
            }
        }
    }

    /// Whether conditions certainly do not hold together: equal atoms become one, until some
    /// condition is false, or two are opposites.
    fn deny_together(&self, parts: Vec<Pred>) -> Known<bool> {
        let mut known = self.clone();
        let mut parts = self.digits(parts)?;
        while let Some(fewer) = self.whole_numbers(&parts)? {
            parts = fewer;
        }
        while let Some((from, to)) = parts.iter().find_map(|p| known.equation(p)) {
            let ends = known.of_atom(&from);
            known.meet(&to, ends);
            parts = match Pred::And(parts).renamed(&|a| (*a == from).then(|| to.clone()))? {
                Pred::Bool(value) => return Ok(!value),
                Pred::And(parts) => parts,
                one => vec![one],
            };
            if parts.iter().any(|p| known.deny(p)) {
                return Ok(true);
            }
        }
        for (k, p) in parts.iter().enumerate() {
            for q in &parts[k + 1..] {
                if let (Pred::Ge(a), Pred::Ge(b)) = (p, q)
                    && a.clone().plus(b, 1)?.as_constant().is_some_and(|sum| sum < 0)
                {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// An equation with the values of atoms that have only one.
    fn without_points(&self, p: Pred) -> Pred {
        let Pred::Eq(mut s) = p else { return p };
        let points: Vec<(Term, i128)> = s
            .terms
            .iter()
            .filter_map(|(t, c)| match t.ends(&|a| self.of_atom(a)) {
                (Some(low), Some(high)) if low == high => Some((t.clone(), low.checked_mul(*c)?)),
                _ => None,
            })
            .collect();
        for (term, value) in points {
            if let Some(sum) = s.constant.checked_add(value) {
                s.constant = sum;
                s.terms.remove(&term);
            }
        }
        Pred::eq(s)
    }

    /// Equations taken apart: `c*a - c*b + rest = 0`, where the rest is between `-c` and `c`, is
    /// `a = b` and `rest = 0`.
    fn digits(&self, parts: Vec<Pred>) -> Known<Vec<Pred>> {
        let mut todo: Vec<Pred> = parts.into_iter().rev().collect();
        let mut done = Vec::new();
        while let Some(p) = todo.pop() {
            let p = self.without_points(p);
            let found = self.outweighed(&p).filter(|(.., rest)| *rest != Sum::default());
            let Some((a, b, rest)) = found else {
                done.push(p);
                continue;
            };
            done.push(Pred::eq(Sum::term(a).plus(&Sum::term(b), -1)?));
            todo.push(Pred::eq(rest));
        }
        Ok(done)
    }

    /// The pair of terms that outweighs the rest of an equation, and the rest: `c*a - c*b + rest = 0`,
    /// where that is between `-c` and `c`.
    fn outweighed(&self, p: &Pred) -> Option<(Term, Term, Sum)> {
        let Pred::Eq(s) = p else { return None };
        let mut terms: Vec<(&Term, &i128)> = s.terms.iter().collect();
        terms.sort_by_key(|(_, c)| -c.abs());
        let [(a, c), (b, d), ..] = terms[..] else { return None };
        let mut rest = s.clone();
        rest.terms.retain(|t, _| t != a && t != b);
        if c.checked_add(*d) != Some(0) {
            return None;
        }
        let (low, high) = self.ends(&rest);
        (low? > -c.abs() && high? < c.abs()).then(|| (a.clone(), b.clone(), rest))
    }

    /// Some equations with two of them as one: that of two quotients and that of the remainders.
    /// `None` where there are none.
    fn whole_numbers(&self, parts: &[Pred]) -> Known<Option<Vec<Pred>>> {
        for (k, p) in parts.iter().enumerate() {
            let Pred::Eq(s) = p else { continue };
            let mut terms = s.terms.iter();
            let (Some((Term::Mod(x, m), c)), Some((Term::Mod(y, n), d)), None) =
                (terms.next(), terms.next(), terms.next())
            else {
                continue;
            };
            if m != n || c.checked_add(*d) != Some(0) || s.constant != 0 {
                continue;
            }
            let quotients = self.without_points(Pred::eq(x.div(*m)?.plus(&y.div(*m)?, -1)?));
            let whole = quotients == Pred::Bool(true);
            let found = parts.iter().position(|q| *q == quotients);
            let Some(other) = found.or(whole.then_some(k)) else { continue };
            let rest = parts.iter().enumerate().filter(|(j, _)| *j != k && *j != other);
            let mut fewer: Vec<Pred> = rest.map(|(_, p)| p.clone()).collect();
            fewer.push(Pred::eq(x.as_ref().clone().plus(y, -1)?));
            return Ok(Some(fewer));
        }
        Ok(None)
    }

    /// Two atoms that an equation makes one: the second is the one to keep.
    fn equation(&self, p: &Pred) -> Option<(Atom, Atom)> {
        match self.outweighed(p)? {
            (Term::Atom(a), Term::Atom(b), _) => Some((b, a)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use tilewright_ir::{Expr, Var};

    use super::*;
    use crate::eval;
    use crate::normalizer::Normalizer;

    fn pred(e: &Expr) -> Pred {
        Normalizer::default().pred(e).expect("affine")
    }

    /// `0 <= v < extent` for each.
    fn ranges(vars: &[(&Var, i64)]) -> Vec<Pred> {
        vars.iter()
            .flat_map(|(v, n)| [v.expr().greater_equal(0), v.expr().less(*n)])
            .map(|e| pred(&e))
            .collect()
    }

    #[test]
    fn tiles_meet_only_where_they_are_the_same() {
        let [i, j, k, l] = ["i", "j", "k", "l"].map(Var::index);
        let guards = ranges(&[(&i, 8), (&j, 4), (&k, 8), (&l, 4)]);
        let meet = (&i * 4 + &j).equal(&k * 4 + &l);
        let differ = |a: &Var, b: &Var| a.expr().not_equal(b);
        for (a, b) in [(&i, &k), (&j, &l)] {
            assert!(is_never(&guards, &pred(&meet.clone().and(differ(a, b)))));
        }
        // Tiles that overlap may.
        let wide = ranges(&[(&i, 8), (&j, 5), (&k, 8), (&l, 5)]);
        assert!(!is_never(&wide, &pred(&meet.clone().and(differ(&i, &k)))));
        // Another order of two loops does not change the order of what is the same but for one.
        let swapped = (i.expr().less(&k).or(i.expr().equal(&k).and(j.expr().less(&l))))
            .and(l.expr().less(&j).or(l.expr().equal(&j).and(k.expr().less(&i))));
        assert!(is_never(&guards, &pred(&i.expr().equal(&k).and(swapped.clone()))));
        assert!(!is_never(&guards, &pred(&swapped)));
    }

    #[test]
    fn equal_digits_are_equal_numbers() {
        let [i, j, u] = ["i", "j", "u"].map(Var::index);
        let guards = ranges(&[(&i, 90), (&j, 90), (&u, 1)]);
        let quotients = (i.expr().floordiv(24) + &u).equal(j.expr().floordiv(24));
        let remainders = i.expr().floormod(24).equal(j.expr().floormod(24));
        let differ = i.expr().not_equal(&j);
        assert!(is_never(&guards, &all_of(&[&quotients, &remainders, &differ])));
        assert!(!is_never(&guards, &all_of(&[&remainders, &differ])));
        assert!(!is_never(&guards, &all_of(&[&quotients, &differ])));
        // Three digits.
        let low = i.expr().floormod(6).equal(j.expr().floormod(6));
        let digits = [&quotients, &middle_digit(&i).equal(middle_digit(&j)), &low, &differ];
        assert!(is_never(&guards, &all_of(&digits)));
        assert!(!is_never(&guards, &all_of(&[digits[0], digits[1], digits[3]])));
    }

    fn all_of(parts: &[&Expr]) -> Pred {
        pred(&parts.iter().fold(Expr::bool(true), |all, p| all.and((*p).clone())))
    }

    fn middle_digit(v: &Var) -> Expr {
        v.expr().floordiv(6).floormod(4)
    }

    #[test]
    fn what_is_never_holds_at_no_point() {
        // A generator of its own: the same conditions in every run.
        let mut state = 7u64;
        let mut draw = |n: u64| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            ((state >> 33) % n) as i64
        };
        let vars = ["a", "b", "c", "d"].map(Var::index);
        let mut denied = 0;
        for _ in 0..4000 {
            let extents = [0; 4].map(|_| draw(4) + 1);
            let guards = ranges(&[0, 1, 2, 3].map(|k| (&vars[k], extents[k])));
            let mut sum = |most: u64| {
                let start = Expr::i32(draw(9) as i32 - 4);
                vars.iter().fold(start, |s, v| s + v.expr() * (draw(most) - (most / 2) as i64))
            };
            let parts = [
                sum(9).equal(sum(3)),
                sum(5).greater_equal(sum(5)),
                sum(3).not_equal(sum(3)),
                sum(5).floordiv(3).less(sum(3)),
                (sum(3) + 20).floormod(4).equal((sum(3) + 20).floormod(4)),
                (sum(3) + 20).floordiv(4).equal((sum(3) + 20).floordiv(4)),
            ];
            let mut cond = Expr::bool(true);
            for part in parts {
                cond = match draw(3) {
                    0 => cond,
                    1 => cond.and(part),
                    _ => part.or(cond.clone().and(vars[0].expr().less(&vars[1]))),
                };
            }
            let p = pred(&cond);
            if !is_never(&guards, &p) {
                continue;
            }
            denied += 1;
            let points: i64 = extents.iter().product();
            for point in 0..points {
                let mut rest = point;
                let at = extents.map(|n| {
                    let value = rest % n;
                    rest /= n;
                    value
                });
                let env = |v: &Var| vars.iter().position(|w| w == v).map(|k| i128::from(at[k]));
                assert_eq!(eval::pred(&p, &env), Some(false), "{cond} at {at:?}");
            }
        }
        assert!(denied > 300, "{denied}");
    }
}

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

//! What is certain of terms that are not affine.
//!
//! `n * m`, `i // n` and `A[i]` become unknowns of their own, with the facts that are certain:
//!
//! * the range of a narrow, unsigned or `bool` type;
//! * `0 <= a % n < n`, `n * (a // n) + a % n = a`, and `0 <= a // n <= a` where `n >= 1` and
//!   `a >= 0` are proven;
//! * for a product `x * y` with proven bounds `x >= a`, `y >= b` the plane
//!   `x*y >= b*x + a*y - a*b`, and the three others (McCormick 1976, "Computability of global
//!   solutions to factorable nonconvex programs"); where both are not negative and the product is
//!   positive, so are both;
//! * for two products that share a factor `y >= 0`, `x1 <= x2 - k` gives `x1*y <= x2*y - k*y` for
//!   `k` 0 or 1, which is what `i*m + j < n*m` needs; and where `y >= 1`, `x1*y <= x2*y - 1` gives
//!   `x1 <= x2 - 1`, which is what `i // m < n` needs for `i < n*m`.
//!
//! A proof with unknowns holds for whatever values they have. A refutation counts if evaluation
//! confirms its point, or if the fact fails there for every value that the unknowns may have;
//! otherwise the answer is [`Reason::NotAffine`](crate::Reason::NotAffine), which names the terms.

use std::cell::RefCell;

use crate::answer::{Known, Reason, Unknown};
use crate::charged::Set as Raw;
use crate::domain::Domain;
use crate::eval;
use crate::form::{Atom, Nature, Pred, Sum, Term};
use crate::product::{atom_times, is_remainder, product, split_by};
use crate::quick::is_never;

impl Domain {
    /// A set of the domain's space with the facts about those atoms that are not plain variables. The guards of
    /// the domain hold at all points of the set.
    pub(crate) fn learn(&self, set: Raw) -> Known<Raw> {
        let atoms = &self.space.atoms;
        let mut learned = Learned { domain: self, atoms, set, points: RefCell::default() };
        for a in atoms {
            if let Some(ends) = a.narrow_range() {
                learned.add(Pred::between(&Sum::atom(a.clone()), ends)?)?;
            }
        }
        // What is known of products says that divisors are positive, and the other way round.
        let rounds =
            if atoms.iter().any(is_division) && atoms.iter().any(is_product) { 2 } else { 1 };
        for _ in 0..rounds {
            for a in atoms {
                match a.nature() {
                    Nature::Var(_) | Nature::Opaque => {}
                    Nature::Quotient(x, y) | Nature::Remainder(x, y) => learned.part(a, x, y)?,
                    Nature::Product(factors) => {
                        for at in 0..factors.len() {
                            learned.product(a, factors, at)?;
                        }
                    }
                }
            }
        }
        Ok(learned.set)
    }
}

fn is_division(a: &Atom) -> bool {
    matches!(a.nature(), Nature::Quotient(..) | Nature::Remainder(..))
}

fn is_product(a: &Atom) -> bool {
    matches!(a.nature(), Nature::Product(_))
}

/// The set so far.
struct Learned<'a> {
    domain: &'a Domain,
    atoms: &'a [Atom],
    set: Raw,
    /// Points of it that were found: what fails at one of them does not hold.
    points: RefCell<Vec<Vec<i128>>>,
}

impl Learned<'_> {
    fn holds(&self, p: Pred) -> Known<bool> {
        let fails = p.negate()?;
        if is_never(self.domain.guards.iter().chain(self.domain.engine.facts()), &fails) {
            return Ok(true);
        }
        if self.points.borrow().iter().any(|point| self.is_at(point, &fails)) {
            return Ok(false);
        }
        let bad = self.set.intersect(&self.domain.space.pred(&fails)?)?;
        let point = bad.sample()?;
        let holds = point.is_none();
        self.points.borrow_mut().extend(point.filter(|p| p.len() == self.atoms.len()));
        Ok(holds)
    }

    /// Whether a condition certainly holds at a point.
    fn is_at(&self, point: &[i128], p: &Pred) -> bool {
        let of = |a: &Atom| self.domain.space.position(a).and_then(|at| point.get(at).copied());
        eval::pred_of(p, &of) == Some(true)
    }

    /// The bounds of a sum, those of larger and smaller ones by their parts: as functions by pieces, each of these
    /// would double the pieces of all.
    fn bounds(&self, s: &Sum) -> Known<Bounds> {
        let (choices, plain) = s.terms.iter().partition::<Vec<_>, _>(|(t, _)| chooses(t));
        let terms = plain.into_iter().map(|(t, c)| (t.clone(), *c)).collect();
        let plain = Sum { terms, constant: s.constant };
        let mut all = match plain.as_constant() {
            Some(n) => both(i64::try_from(n).ok()),
            None => self.domain.bounds_in(&self.set, &plain)?,
        };
        for (term, c) in choices {
            let of = match term {
                Term::Max(a, b) => joined(self.bounds(a)?, self.bounds(b)?, i64::max),
                Term::Min(a, b) => {
                    swapped(joined(swapped(self.bounds(a)?), swapped(self.bounds(b)?), i64::min))
                }
                Term::Div(s, k) => {
                    let (low, high) = self.bounds(s)?;
                    let k = i64::try_from(*k).ok();
                    (checked_quotient(low, k), checked_quotient(high, k))
                }
                Term::Mod(_, k) => (Some(0), i64::try_from(k - 1).ok()),
                _ => (None, None),
            };
            let (low, high) = if *c < 0 { (of.1, of.0) } else { of };
            all = (
                checked_sum(all.0, checked_product(low, c)),
                checked_sum(all.1, checked_product(high, c)),
            );
        }
        Ok(all)
    }

    /// Whether all atoms have a place.
    fn known(&self, s: &Sum) -> bool {
        let mut all = true;
        s.atoms(&mut |a| all &= self.domain.space.position(a).is_some());
        all
    }

    fn add(&mut self, p: Pred) -> Known<()> {
        self.set = self.set.intersect(&self.domain.space.pred(&p)?)?;
        let mut points = self.points.take();
        points.retain(|point| self.is_at(point, &p));
        self.points = RefCell::new(points);
        Ok(())
    }

    /// `a` is `x // y` or `x % y`.
    fn part(&mut self, a: &Atom, x: &Sum, y: &Sum) -> Known<()> {
        if !self.holds(Pred::ge(y.clone().offset(-1)?))? {
            return Ok(());
        }
        let value = Sum::atom(a.clone());
        let positive = self.holds(Pred::ge(x.clone()))?;
        // (y*q + r) // y = q and (y*q + r) % y = r where 0 <= r < y.
        let (q, r) = split_by(x, y)?;
        if !q.terms.is_empty() && self.known(&q) && self.holds(is_remainder(&r, y)?)? {
            let is = if let Nature::Quotient(..) = a.nature() { q } else { r };
            self.add(Pred::eq(value.clone().plus(&is, -1)?))?;
        }
        if let Nature::Remainder(..) = a.nature() {
            self.add(is_remainder(&value, y)?)?;
        }
        if positive {
            self.add(Pred::ge(value.clone()))?;
            self.add(Pred::ge(x.clone().plus(&value, -1)?))?;
        }
        // x = y * (x // y) + x % y
        for q in self.atoms {
            let Nature::Quotient(qx, qy) = q.nature() else { continue };
            let product = (qx == x && qy == y).then(|| atom_times(q, y)).flatten();
            let Some(product) = product.filter(|p| self.known(p)) else { continue };
            let rest = x.clone().plus(&product, -1)?;
            match a.nature() {
                Nature::Remainder(..) => self.add(Pred::eq(rest.plus(&value, -1)?))?,
                _ => self.add(is_remainder(&rest, y)?)?,
            }
        }
        Ok(())
    }

    /// `a` is the product of factors, seen as that of one of them and the others.
    fn product(&mut self, a: &Atom, factors: &[Term], at: usize) -> Known<()> {
        let value = Sum::atom(a.clone());
        let x = Sum::term(factors[at].clone());
        let mut rest = factors.to_vec();
        rest.remove(at);
        let Some(y) = product(rest) else { return Ok(()) };
        if !(self.known(&x) && self.known(&y)) {
            return Ok(());
        }
        for p in envelope(&value, &x, self.bounds(&x)?, &y, self.bounds(&y)?)? {
            self.add(p)?;
        }
        if !self.holds(Pred::ge(y.clone()))? {
            return Ok(());
        }
        if self.holds(Pred::ge(x.clone()))? && self.holds(positive(&value)?)? {
            self.add(positive(&x)?)?;
            self.add(positive(&y)?)?;
        }
        let divides = self.holds(positive(&y)?)?;
        // Other products with the factor y.
        for other in self.atoms {
            let Some(z) = cofactor(other, &y).filter(|z| other != a && self.known(z)) else {
                continue;
            };
            let gap = z.plus(&x, -1)?;
            let least = Sum::atom(other.clone()).plus(&value, -1)?;
            if self.holds(positive(&gap)?)? {
                self.add(Pred::ge(least.plus(&y, -1)?))?;
            } else if self.holds(Pred::ge(gap.clone()))? {
                self.add(Pred::ge(least))?;
            } else if divides && self.holds(positive(&least)?)? {
                self.add(positive(&gap)?)?;
            }
        }
        Ok(())
    }
}

fn swapped((low, high): Bounds) -> (Option<i64>, Option<i64>) {
    (high, low)
}

fn checked_quotient(n: Option<i64>, k: Option<i64>) -> Option<i64> {
    Some(n?.div_euclid(k?))
}

fn checked_product(n: Option<i64>, c: &i128) -> Option<i64> {
    n?.checked_mul(i64::try_from(*c).ok()?)
}

fn checked_sum(a: Option<i64>, b: Option<i64>) -> Option<i64> {
    a?.checked_add(b?)
}

fn positive(s: &Sum) -> Known<Pred> {
    Ok(Pred::ge(s.clone().offset(-1)?))
}

/// `z` such that the atom is the product `z * y` of two factors.
fn cofactor(a: &Atom, y: &Sum) -> Option<Sum> {
    let Nature::Product(parts) = a.nature() else { return None };
    let [p, q] = parts.as_slice() else { return None };
    [(p, q), (q, p)]
        .into_iter()
        .find(|(t, _)| Sum::term((*t).clone()) == *y)
        .map(|(_, rest)| Sum::term(rest.clone()))
}

type Bounds = (Option<i64>, Option<i64>);

/// Whether a term is a larger or smaller one, or a part of a sum with such.
fn chooses(t: &Term) -> bool {
    match t {
        Term::Max(..) | Term::Min(..) => true,
        Term::Div(s, _) | Term::Mod(s, _) => s.terms.keys().any(chooses),
        _ => false,
    }
}

/// A number as both bounds.
fn both(n: Option<i64>) -> Bounds {
    (n, n)
}

/// The bounds of the larger one of two: one lower bound is enough, and both upper ones are needed.
fn joined(a: Bounds, b: Bounds, larger: fn(i64, i64) -> i64) -> Bounds {
    let low = match (a.0, b.0) {
        (Some(a), Some(b)) => Some(larger(a, b)),
        (one, other) => one.or(other),
    };
    (low, a.1.zip(b.1).map(|(a, b)| larger(a, b)))
}

/// The planes that bound a product `p = x * y`.
fn envelope(p: &Sum, x: &Sum, bx: Bounds, y: &Sum, by: Bounds) -> Known<Vec<Pred>> {
    let mut out = Vec::new();
    // sign * (x - a) * (y - b) >= 0 with p for x*y.
    let mut plane = |a: Option<i64>, b: Option<i64>, sign: i128| -> Known<()> {
        if let (Some(a), Some(b)) = (a.map(i128::from), b.map(i128::from)) {
            let corner = a.checked_mul(b).ok_or(Unknown::from(Reason::TooLarge))?;
            let s = p.clone().plus(x, -b)?.plus(y, -a)?.offset(corner)?;
            out.push(Pred::ge(s.scaled(sign)?));
        }
        Ok(())
    };
    plane(bx.0, by.0, 1)?;
    plane(bx.1, by.1, 1)?;
    plane(bx.1, by.0, -1)?;
    plane(bx.0, by.1, -1)?;
    Ok(out)
}

//! Digits that are the same modulo a base are equal.
//!
//! ```text
//! 0 <= a < g,  0 <= b < g,      g divides each coefficient and the constant of a - b:     a = b
//! 0 <= a < g,  0 <= b < g * h,  the same:                                                 0 <= (b - a) / g < h
//! ```
//!
//! That is what the digits of numbers are compared by, one after the other, where an equality says that sums of digits
//! are equal: with the lowest digits equal, what is left of the equality is divided by the base. A multiple of another
//! equality may be added to the difference first. Each rule is two cuts.

use std::collections::BTreeMap;

use tilewright_check::set::Affine;

use crate::search::{Derived, Refutation};
use crate::simplex::gcd;

/// Largest base for which equalities are looked through.
const LARGEST: i128 = 64;

/// A sum between zero and a base: the row that says it is not negative, and the one that it ends with.
#[derive(Clone, Copy)]
struct Digit {
    base: i128,
    low: usize,
    high: usize,
}

impl Digit {
    /// `base - 1` less the digit.
    fn turned(self) -> Digit {
        Digit { base: self.base, low: self.high, high: self.low }
    }
}

/// What a row is modulo a base, and the multiples of equalities that were added to it for that.
#[derive(Clone)]
struct Residue {
    of: Affine,
    equalities: Vec<(usize, i128)>,
}

/// Equalities modulo a base, each solved for an unknown: its number, and the inverse of its coefficient.
struct Solved(Vec<(usize, i128, Residue)>);

impl Solved {
    fn of(work: &[Derived], base: i128) -> Option<Solved> {
        let mut solved = Solved(Vec::new());
        let equalities = work.iter().enumerate().filter(|(_, d)| d.is_zero && base <= LARGEST);
        for (at, d) in equalities {
            let mut residue = solved.residue(&d.of, base)?;
            residue.equalities.push((at, 1));
            let unit = residue.of.terms.iter().find(|(_, c)| gcd(**c, base) == 1);
            let Some((unknown, c)) = unit.map(|(u, c)| (*u, *c)) else { continue };
            let inverse = (1..base).find(|k| k * c % base == 1)?;
            solved.0.push((unknown, inverse, residue));
        }
        Some(solved)
    }

    fn residue(&self, row: &Affine, base: i128) -> Option<Residue> {
        let mut residue = Residue { of: modulo(row, base), equalities: Vec::new() };
        for (unknown, inverse, by) in &self.0 {
            let Some(c) = residue.of.terms.get(unknown) else { continue };
            let k = (-c * inverse).rem_euclid(base);
            residue.of = modulo(&residue.of.plus(&by.of, k).ok()?, base);
            let multiples = by.equalities.iter().map(|(at, f)| (*at, f * k % base));
            residue.equalities.extend(multiples);
        }
        Some(residue)
    }
}

impl Refutation {
    /// Compares digits: with `nested` also those of different bases. Whether something is new.
    pub fn join_digits(&mut self, nested: bool) -> Option<bool> {
        let digits = self.digits()?;
        let mut bases: Vec<i128> = digits.iter().map(|d| d.base).collect();
        bases.sort_unstable();
        bases.dedup();
        let mut sums: Vec<Vec<(usize, i128)>> = Vec::new();
        for base in bases {
            let solved = Solved::of(&self.work, base)?;
            let residue = |at: usize| solved.residue(&self.work[at].of, base);
            // The digits of the base, by what they are modulo it.
            let mut known: BTreeMap<Affine, Digit> = BTreeMap::new();
            let same = digits.iter().filter(|d| d.base == base);
            let larger = digits.iter().filter(|d| nested && d.base > base && d.base % base == 0);
            for b in same.chain(larger) {
                let ways = [*b, b.turned()].map(|b| (b, residue(b.low)));
                let [(_, Some(here)), (_, Some(_))] = &ways else { return None };
                let found =
                    ways.iter().find_map(|(b, low)| known.get(&low.as_ref()?.of).map(|a| (*b, *a)));
                match found {
                    Some((b, a)) => {
                        for pair in [[b.low, a.high], [b.high, a.low]] {
                            let mut sum = Vec::new();
                            for at in pair {
                                sum.push((at, 1));
                                sum.extend(residue(at)?.equalities);
                            }
                            sums.push(sum);
                        }
                    }
                    None if b.base == base => drop(known.insert(here.of.clone(), *b)),
                    None => {}
                }
            }
        }
        let mut added: Vec<Derived> = Vec::new();
        for rows in sums {
            let mut sum = Derived::nothing(false);
            rows.iter().try_for_each(|(at, k)| sum.plus(&self.work[*at], *k))?;
            let by = sum.content().max(1);
            let divided: BTreeMap<usize, i128> =
                sum.of.terms.iter().map(|(u, c)| (*u, c / by)).collect();
            let constant = sum.of.constant.div_euclid(by);
            let is_known = |k: &Derived| k.of.terms == divided && k.of.constant <= constant;
            let negative = negated(&divided)?;
            let is_equal = |k: &Derived| k.is_zero && [&divided, &negative].contains(&&k.of.terms);
            let mut all = self.work.iter().chain(&added);
            if !divided.is_empty() && !all.any(|k| is_known(k) || is_equal(k)) {
                added.push(self.cut(&sum, by));
            }
        }
        let is_new = !added.is_empty();
        self.work.extend(added);
        Some(is_new)
    }

    /// The rows between two bounds: each once, whichever way it is turned.
    fn digits(&self) -> Option<Vec<Digit>> {
        let mut ends: BTreeMap<&BTreeMap<usize, i128>, usize> = BTreeMap::new();
        let rows = self.work.iter().enumerate();
        for (at, d) in rows.filter(|(_, d)| !d.is_zero && !d.of.terms.is_empty()) {
            let end = ends.entry(&d.of.terms).or_insert(at);
            if d.of.constant < self.work[*end].of.constant {
                *end = at;
            }
        }
        let mut all = Vec::new();
        for (terms, &low) in &ends {
            let is_turned = terms.values().next().is_some_and(|c| *c < 0);
            let negative = negated(terms)?;
            let Some(&high) = ends.get(&negative).filter(|_| !is_turned) else { continue };
            let constant = |at: usize| self.work[at].of.constant;
            let base = constant(low).checked_add(constant(high))?.checked_add(1)?;
            if base > 1 {
                all.push(Digit { base, low, high });
            }
        }
        Some(all)
    }
}

fn negated(terms: &BTreeMap<usize, i128>) -> Option<BTreeMap<usize, i128>> {
    terms.iter().map(|(u, c)| Some((*u, c.checked_neg()?))).collect()
}

/// The coefficients and the constant modulo a number.
fn modulo(of: &Affine, by: i128) -> Affine {
    let terms = of.terms.iter().map(|(u, c)| (*u, c.rem_euclid(by))).filter(|(_, c)| *c != 0);
    Affine { terms: terms.collect(), constant: of.constant.rem_euclid(by) }
}

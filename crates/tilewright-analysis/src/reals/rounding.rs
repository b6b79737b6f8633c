//! Rounding to integers, half to even.
//!
//! An even number that is added before is added behind. An odd one is where no tie is rounded, which is a question of
//! what the values are: sums and products of few small integers, with constants, are tried one by one. So a zero point
//! that is added before the rounding is the same as one that is added behind where that makes no difference.

use super::known::Grid;
use super::polynomial::{Monomial, Poly, constant, plus};
use super::{Atom, ROUNDING, Reals};
use tilewright_ir::Intrin;

/// Most values that are tried.
const VALUES: usize = 1 << 22;

/// The largest bound of what is known to be an integer.
const LARGEST: f64 = 1e9;

/// Where the number that is taken out of a sum ends: a remainder lies between this and two more.
const LEAST: f64 = -0.7;

/// What is nearer to a tie, as a part of the largest summand, may be one.
const NEAR: f64 = 1e-11;

impl Reals {
    /// A rounded polynomial.
    pub(super) fn rounded(&mut self, op: Intrin, x: Poly) -> Option<Poly> {
        let is_even = op == Intrin::NearbyInt;
        let round = if is_even { f64::round_ties_even } else { f64::round };
        if let Some(known) = self.evaluated(std::slice::from_ref(&x), |v| round(v[0])) {
            return Some(known);
        }
        // A quantised number that was read and is quantised again in the same way.
        if self.is_integer(&x) || self.is_made_of_integers(&x) {
            return Some(x);
        }
        if let Some(held) = self.rounded_clamp(op, &x, round) {
            return Some(held);
        }
        let whole = match self.first_added(&x) {
            Some(added) if is_even => 2.0 * ((added - LEAST) / 2.0).floor(),
            _ => 0.0,
        };
        let inside = plus(x, &constant(-whole), 1.0);
        let name = format!("{op:?}");
        let size = self.size(&inside) + whole.abs();
        if let Some(known) = self.rounded_otherwise(&name, &inside, size) {
            return Some(plus(known, &constant(whole), 1.0));
        }
        let ends = self.ends(&inside);
        let atom = self.atom(Atom::Of(name, vec![inside]));
        if let Some((low, high)) = ends.filter(|(low, high)| low.abs().max(high.abs()) < LARGEST) {
            self.integers.insert(atom, (low.floor() as i128, high.ceil() as i128));
        }
        Some(plus(Poly::from([(vec![(atom, 1)], 1.0)]), &constant(whole), 1.0))
    }

    /// The largest magnitude of what a polynomial adds up, as far as it is known.
    fn size(&self, p: &Poly) -> f64 {
        let each = p.iter().map(|(m, c)| match self.ends(&Poly::from([(m.clone(), *c)])) {
            Some((low, high)) => low.abs().max(high.abs()),
            None => 0.0,
        });
        each.sum()
    }

    /// A known rounding of the same, or of that with an integer added, or in another way, where no tie is rounded. What
    /// is added is as exact as the numbers are of which it is the sum, whose size is given.
    fn rounded_otherwise(&mut self, name: &str, x: &Poly, size: f64) -> Option<Poly> {
        let names = [Intrin::NearbyInt, Intrin::Round].map(|op| format!("{op:?}"));
        let plain = |p: &Poly| p.get(&Vec::new()).copied().unwrap_or(0.0);
        let added = self.first_added(x)?;
        for k in 0..self.atoms.len() {
            let Atom::Of(other, inside) = &self.atoms[k] else { continue };
            let [inside] = &inside[..] else { continue };
            let Some(other_added) = self.first_added(inside).filter(|_| names.contains(other))
            else {
                continue;
            };
            let near = (added - other_added).round();
            if near.abs() > 2.0 {
                continue;
            }
            let mut moved = plus(inside.clone(), &constant(near), 1.0);
            let mut beyond = 0.0;
            if !self.has_constants(x) {
                beyond = (plain(x) - plain(&moved)).abs();
                moved.remove(&Vec::new());
                moved = plus(moved, &constant(plain(x)), 1.0);
            }
            let rounding = self.differences(&moved, x).filter(|_| beyond <= ROUNDING * size);
            let Some(rounding) = rounding else { continue };
            let is_same = other == name && near % 2.0 == 0.0;
            let inside = inside.clone();
            let has_ties = |p| self.has_ties(p).unwrap_or(true);
            if !is_same && (has_ties(x) || has_ties(&inside)) {
                continue;
            }
            self.worst = self.worst.max(rounding).max(if size > 0.0 { beyond / size } else { 0.0 });
            return Some(plus(Poly::from([(vec![(k, 1)], 1.0)]), &constant(near), 1.0));
        }
        None
    }

    /// The number that is added, or the first one of those that are.
    fn first_added(&self, x: &Poly) -> Option<f64> {
        let added = self.coefficients(x).remove(&Vec::new()).unwrap_or_default();
        let grid = self.grid([&added])?;
        let first = *self.values(&added, &grid)?.0.first()?;
        (first.is_finite() && first.abs() < 1e9).then_some(first)
    }

    /// Whether a value may lie in the middle between two integers; `None` where they are too many, or unknown.
    fn has_ties(&self, x: &Poly) -> Option<bool> {
        let all = self.coefficients(x);
        let mut integers: Vec<(usize, f64, i128, i128)> = Vec::new();
        for (atom, power) in all.keys().flatten() {
            let (factor, low, high) = self.of_integer(*atom).filter(|_| *power > 0)?;
            if !integers.iter().any(|(known, ..)| known == atom) {
                integers.push((*atom, factor, low, high));
            }
        }
        let grid: Grid = self.grid(all.values())?;
        let terms: Vec<(&Monomial, Vec<f64>, f64)> = all
            .iter()
            .map(|(m, c)| self.values(c, &grid).map(|(values, size)| (m, values, size)))
            .collect::<Option<_>>()?;
        let each = terms.first()?.1.len();
        let extent = |low: i128, high: i128| usize::try_from(high - low + 1).ok();
        let count = integers.iter().try_fold(each.max(1), |n, (.., low, high)| {
            n.checked_mul(extent(*low, *high)?).filter(|n| *n <= VALUES)
        })?;
        let tries = count / each.max(1);
        let mut numbers = vec![0.0; terms.len()];
        for k in 0..tries {
            let (mut left, mut size) = (k, 0.0);
            numbers.fill(1.0);
            for (atom, factor, low, high) in &integers {
                let extent = extent(*low, *high)?;
                let value = (*low + (left % extent) as i128) as f64 / factor;
                left /= extent;
                for ((m, ..), number) in terms.iter().zip(&mut numbers) {
                    let power = m.iter().find(|(a, _)| a == atom).map_or(0, |(_, power)| *power);
                    *number *= value.powi(power);
                }
            }
            for ((.., most), number) in terms.iter().zip(&numbers) {
                size += most * number.abs();
            }
            for at in 0..each {
                let sum: f64 = terms.iter().zip(&numbers).map(|((_, v, _), n)| v[at] * n).sum();
                let beyond = (sum - sum.floor() - 0.5).abs();
                if beyond.is_nan() || beyond <= NEAR * size.max(1.0) {
                    return Some(true);
                }
            }
        }
        Some(false)
    }
}

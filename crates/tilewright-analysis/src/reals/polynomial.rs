//! Polynomials over numbered atoms, with coefficients that are compared as floats are.

use std::collections::BTreeMap;

/// By how much of the larger one two constants may differ that count as one.
pub const ROUNDING: f64 = 1.5e-6;

/// Most terms of a product.
const TERMS: usize = 64;

/// Atoms with their powers, by number.
pub(super) type Monomial = Vec<(usize, i32)>;

/// A sum of monomials with coefficients.
pub(super) type Poly = BTreeMap<Monomial, f64>;

pub(super) fn constant(c: f64) -> Poly {
    if c == 0.0 { Poly::new() } else { Poly::from([(Vec::new(), c)]) }
}

/// The number that a polynomial is.
pub(super) fn number(p: &Poly) -> Option<f64> {
    match p.iter().next() {
        None => Some(0.0),
        Some((m, c)) => (p.len() == 1 && m.is_empty()).then_some(*c),
    }
}

/// `a + b * factor`; what cancels but for rounding goes.
pub(super) fn plus(mut a: Poly, b: &Poly, factor: f64) -> Poly {
    for (m, c) in b {
        let c = c * factor;
        let sum = a.get(m).copied().unwrap_or(0.0) + c;
        if sum.abs() <= 1e-12 * c.abs() {
            a.remove(m);
        } else {
            a.insert(m.clone(), sum);
        }
    }
    a
}

/// The product; `None` where it has too many terms.
pub(super) fn times(a: &Poly, b: &Poly) -> Option<Poly> {
    if a.len() * b.len() > TERMS {
        return None;
    }
    let mut all = Poly::new();
    for (m, c) in a {
        for (n, d) in b {
            let mut powers: BTreeMap<usize, i32> = m.iter().copied().collect();
            for (atom, power) in n {
                *powers.entry(*atom).or_default() += power;
            }
            let powers: Monomial = powers.into_iter().filter(|(_, power)| *power != 0).collect();
            all = plus(all, &Poly::from([(powers, c * d)]), 1.0);
        }
    }
    Some(all)
}

/// The largest difference of coefficients, as a part of the larger one; `None` where the polynomials are not
/// equal but for rounding.
pub(super) fn differences(p: &Poly, q: &Poly) -> Option<f64> {
    if p.len() != q.len() {
        return None;
    }
    let mut worst: f64 = 0.0;
    for ((m, c), (n, d)) in p.iter().zip(q) {
        if m != n {
            return None;
        }
        if c != d {
            let part = (c - d).abs() / c.abs().max(d.abs());
            if part.is_nan() || part > ROUNDING {
                return None;
            }
            worst = worst.max(part);
        }
    }
    Some(worst)
}

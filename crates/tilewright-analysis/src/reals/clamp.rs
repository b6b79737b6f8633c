//! Values that are held between two numbers.
//!
//! However minima and maxima with numbers are nested, and whatever is multiplied or added between them, what is left is one
//! value between two ends. Rounding keeps order: a value that is held between ends and rounded is the rounded value, held
//! between the rounded ends. So a clip before a quantisation that clips at the same places or nearer says nothing.

use tilewright_ir::{BinOp, Intrin};

use super::polynomial::{Poly, constant, number, plus, times};
use super::{Atom, Reals};

/// The name of the function.
pub(super) const CLAMP: &str = "clamp";

impl Reals {
    /// The smaller or larger one of two polynomials, of which one is a number.
    pub(super) fn with_number(&mut self, op: BinOp, a: &Poly, b: &Poly) -> Option<Poly> {
        let (x, end) = match (number(a), number(b)) {
            (Some(end), None) => (b, end),
            (None, Some(end)) => (a, end),
            _ => return None,
        };
        match op {
            BinOp::Min => self.clamped(x, f64::NEG_INFINITY, end),
            BinOp::Max => self.clamped(x, end, f64::INFINITY),
            _ => None,
        }
    }

    /// A polynomial, held between two ends, the first of which is not larger.
    pub(super) fn clamped(&mut self, x: &Poly, low: f64, high: f64) -> Option<Poly> {
        if low.is_nan() || high.is_nan() {
            return None;
        }
        if let Some(known) = self.evaluated(std::slice::from_ref(x), |v| v[0].max(low).min(high)) {
            return Some(known);
        }
        // What is added, and a factor, go out.
        let added = x.get(&Vec::new()).copied().unwrap_or(0.0);
        let first = x.iter().find(|(m, _)| !m.is_empty()).map(|(_, c)| *c);
        let factor = first.filter(|_| !self.has_constants(x)).unwrap_or(1.0);
        if !added.is_finite() || !factor.is_finite() || factor == 0.0 {
            return None;
        }
        let inside = plus(x.clone(), &constant(-added), 1.0);
        let mut inside = times(&inside, &constant(1.0 / factor))?;
        let ends = [low, high].map(|end| (end - added) / factor);
        let [mut low, mut high] = if factor > 0.0 { ends } else { [ends[1], ends[0]] };
        if let Some((value, least, most)) = self.as_clamp(&inside) {
            (low, high) = (least.max(low).min(high), most.max(low).min(high));
            inside = value.clone();
        }
        if let Some((least, most)) = self.ends(&inside) {
            (low, high) = match (most <= low, least >= high) {
                (true, _) => (low, low),
                (_, true) => (high, high),
                _ => (
                    if least >= low { f64::NEG_INFINITY } else { low },
                    if most <= high { f64::INFINITY } else { high },
                ),
            };
        }
        let held = if low >= high {
            constant(low)
        } else if low.is_infinite() && high.is_infinite() {
            inside
        } else {
            self.clamp(inside, low, high)
        };
        Some(plus(times(&held, &constant(factor))?, &constant(added), 1.0))
    }

    fn clamp(&mut self, x: Poly, low: f64, high: f64) -> Poly {
        let whole = self.ends_of_integer(&x);
        let atom = Atom::Of(CLAMP.to_owned(), vec![x, constant(low), constant(high)]);
        let atom = self.atom(atom);
        let is_whole = |end: f64| end.is_infinite() || end.fract() == 0.0;
        if let Some((_, least, most)) = whole.filter(|_| is_whole(low) && is_whole(high)) {
            // Casts of numbers that are too large stay at the ends of the type.
            self.integers.insert(atom, (least.max(low as i128), most.min(high as i128)));
        }
        Poly::from([(vec![(atom, 1)], 1.0)])
    }

    /// What is held between which ends, where a polynomial is that.
    fn as_clamp(&self, p: &Poly) -> Option<(&Poly, f64, f64)> {
        let (m, factor) = p.first_key_value().filter(|_| p.len() == 1)?;
        let [(atom, 1)] = m[..] else { return None };
        match &self.atoms[atom] {
            Atom::Of(name, parts) if name == CLAMP && *factor == 1.0 => {
                let [x, low, high] = &parts[..] else { return None };
                Some((x, number(low)?, number(high)?))
            }
            _ => None,
        }
    }

    /// A rounded polynomial, held between what its ends are rounded to, where it is a line of one that is held.
    pub(super) fn rounded_clamp(
        &mut self,
        op: Intrin,
        x: &Poly,
        round: impl Fn(f64) -> f64,
    ) -> Option<Poly> {
        let added = x.get(&Vec::new()).copied().unwrap_or(0.0);
        let rest = plus(x.clone(), &constant(-added), 1.0);
        let (_, factor) = rest.first_key_value().filter(|_| rest.len() == 1)?;
        let factor = *factor;
        let (value, low, high) = self.as_clamp(&times(&rest, &constant(1.0 / factor))?)?;
        let line = plus(times(value, &constant(factor))?, &constant(added), 1.0);
        let ends = [low, high].map(|end| round(end * factor + added));
        let [low, high] = if factor > 0.0 { ends } else { [ends[1], ends[0]] };
        let inside = self.rounded(op, line)?;
        self.clamped(&inside, low, high)
    }
}

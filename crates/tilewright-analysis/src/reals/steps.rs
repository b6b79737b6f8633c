//! What is done to each element of a value: lines, rounding, and holding between two numbers.
//!
//! What a stage stores may be such steps of what an earlier one made; then it is that, with steps. Steps that keep order
//! go out of a maximum: the largest of several quantised values is the largest one, quantised. Where a maximum begins, and
//! what stands for cells beyond an edge, is then less than everything, as it was: it is at the lower end of what
//! the steps give.

use tilewright_ir::Intrin;

use super::clamp::CLAMP;
use super::polynomial::{Poly, ROUNDING, constant, number, plus, times};
use super::{Atom, Normal, Reals, plain_line};

/// What is done to an element.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Step {
    /// Times a number, and a number added.
    Line(f64, f64),
    Round(Intrin),
    /// Held between two numbers.
    Clamp(f64, f64),
}

impl Step {
    fn of(self, v: f64) -> f64 {
        match self {
            Step::Line(factor, shift) => v * factor + shift,
            Step::Round(Intrin::NearbyInt) => v.round_ties_even(),
            Step::Round(_) => v.round(),
            Step::Clamp(low, high) => v.max(low).min(high),
        }
    }
}

/// A maximum: of what it is, and what is then done to it: a factor, a number that is added, steps.
pub(super) struct Maximum {
    pub of: Poly,
    pub line: (f64, f64),
    pub steps: Vec<Step>,
}

/// The largest difference of two lists of steps, as a part of the larger number; `None` where they are others.
pub(super) fn differences(a: &[Step], b: &[Step]) -> Option<f64> {
    let near = |x: f64, y: f64| {
        let part = if x == y { 0.0 } else { (x - y).abs() / x.abs().max(y.abs()) };
        (part <= ROUNDING).then_some(part)
    };
    let mut each = a.iter().zip(b).map(|(a, b)| match (a, b) {
        (Step::Line(a, b), Step::Line(c, d)) | (Step::Clamp(a, b), Step::Clamp(c, d)) => {
            Some(near(*a, *c)?.max(near(*b, *d)?))
        }
        (a, b) => (a == b).then_some(0.0),
    });
    if a.len() != b.len() {
        return None;
    }
    each.try_fold(0.0, |most: f64, part| Some(most.max(part?)))
}

/// What is below each finite float counts as below everything.
pub(super) fn lowest(v: f64) -> f64 {
    if v <= f64::from(f32::MIN) { f64::NEG_INFINITY } else { v }
}

impl Reals {
    /// A polynomial after a step.
    pub(super) fn after(&mut self, step: &Step, x: Poly) -> Option<Poly> {
        match *step {
            Step::Line(factor, shift) => {
                Some(plus(times(&x, &constant(factor))?, &constant(shift), 1.0))
            }
            Step::Round(op) => self.rounded(op, x),
            Step::Clamp(low, high) => self.clamped(&x, low, high),
        }
    }

    /// The steps that a polynomial is of another one, the first one first; with `keeps_order` only those that do.
    pub(super) fn peeled(&self, p: Poly, keeps_order: bool) -> (Vec<Step>, Poly) {
        let (mut steps, mut p) = (Vec::new(), p);
        while let Some((line, step, inside)) = self.last_step(&p) {
            if keeps_order && line.0 <= 0.0 {
                break;
            }
            if line != (1.0, 0.0) {
                steps.push(Step::Line(line.0, line.1));
            }
            steps.push(step);
            p = inside.clone();
        }
        steps.reverse();
        (steps, p)
    }

    /// The line that a polynomial is of a step of another one.
    fn last_step(&self, p: &Poly) -> Option<((f64, f64), Step, &Poly)> {
        let mut terms = p.iter().filter(|(m, _)| !m.is_empty());
        let ((m, factor), None) = (terms.next()?, terms.next()) else { return None };
        let [(atom, 1)] = m[..] else { return None };
        let Atom::Of(name, parts) = &self.atoms[atom] else { return None };
        let step = match &parts[..] {
            [_, low, high] if name == CLAMP => Step::Clamp(number(low)?, number(high)?),
            [_] => {
                let mut all = [Intrin::NearbyInt, Intrin::Round].into_iter();
                Step::Round(all.find(|op| *name == format!("{op:?}"))?)
            }
            _ => return None,
        };
        let added = p.get(&Vec::new()).copied().unwrap_or(0.0);
        Some(((*factor, added), step, parts.first()?))
    }

    /// What a maximum that begins at a number is the maximum of, from nothing on; `None` where it begins with something that
    /// counts, or no step goes out.
    pub(super) fn out_of_maximum(&mut self, stage: &Normal, first: f64) -> Option<Maximum> {
        if !stage.is_some() {
            return None;
        }
        let guarded = self.guarded(&stage.value);
        let (condition, inside, beyond) = match guarded {
            Some((condition, inside, beyond)) => (Some(condition), inside, lowest(beyond)),
            None => (None, stage.value.clone(), f64::NEG_INFINITY),
        };
        let (steps, mut of) = self.peeled(inside, true);
        let line = plain_line(&of).filter(|_| !self.has_constants(&of)).unwrap_or((1.0, 0.0));
        of = times(&plus(of, &constant(-line.1), 1.0), &constant(1.0 / line.0))?;
        let least = steps.iter().fold(f64::NEG_INFINITY, |v, step| step.of(v));
        let is_below = match condition {
            // Where all cells are beyond the edge, that is what they are.
            Some(_) => first.max(beyond) == least,
            None => first <= least,
        };
        if !is_below || steps.is_empty() && condition.is_none() {
            return None;
        }
        let of = match condition {
            Some(condition) => self.choice(condition, of, constant(f64::NEG_INFINITY)),
            None => of,
        };
        Some(Maximum { of, line, steps })
    }

    /// A condition, what a polynomial is where it holds, and the number that it is elsewhere.
    fn guarded(&self, p: &Poly) -> Option<(Poly, Poly, f64)> {
        let mut terms = p.iter().filter(|(m, _)| !m.is_empty());
        let ((m, factor), None) = (terms.next()?, terms.next()) else { return None };
        let [(atom, 1)] = m[..] else { return None };
        let Atom::Of(name, parts) = &self.atoms[atom] else { return None };
        let [condition, inside, beyond] = &parts[..] else { return None };
        let beyond = number(beyond).filter(|_| name == "select")?;
        let added = p.get(&Vec::new()).copied().unwrap_or(0.0);
        let inside = plus(times(inside, &constant(*factor))?, &constant(added), 1.0);
        Some((condition.clone(), inside, beyond * factor + added))
    }
}

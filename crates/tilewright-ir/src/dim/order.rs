//! Which of two sizes is larger for all values of open ones: proofs from the ranges of these, and from
//! what quotients, larger and smaller ones are between.

use crate::hash::HashMap;

use crate::dim::range::SizeRange;
use crate::index::gcd;

use super::form::{Atom, Form, Term, without};
use super::{Dim, table};

/// Steps that a proof may take: each puts a bound in the place of a term.
const STEPS: usize = 64;

/// Terms of a sum that a proof looks at.
const TERMS: usize = 64;

/// What counts as no bound.
const FAR: i128 = i128::MAX / 4;

impl Form {
    /// The least and the most that it can be, as far as the ranges of its parts say it.
    pub(super) fn bounds(&self) -> Option<(i128, i128)> {
        let (mut low, mut high) = (0i128, 0i128);
        for (atoms, c) in &self.0 {
            let (mut least, mut most) = (1i128, 1i128);
            for atom in atoms {
                let (a, b) = atom.bounds()?;
                (least, most) = (least.saturating_mul(a), most.saturating_mul(b).min(FAR));
            }
            let (a, b) = if *c < 0 { (most, least) } else { (least, most) };
            low = low.saturating_add(c.saturating_mul(a));
            high = high.saturating_add(c.saturating_mul(b));
        }
        (low > -FAR && high < FAR).then_some((low, high))
    }

    /// Whether it is at least zero for all values of open sizes, as far as that can be shown.
    pub(super) fn is_never_negative(&self) -> bool {
        if self.compound().is_none() {
            return self.prove(&mut { STEPS }) || self.is_so_spelled_out();
        }
        if let Some(known) = table().signs.get(self) {
            return *known;
        }
        let shown = self.prove(&mut { STEPS }) || self.is_so_spelled_out();
        table().signs.insert(self.clone(), shown);
        shown
    }

    /// Whether it is never negative with what its variables stand for in their places.
    fn is_so_spelled_out(&self) -> bool {
        let stands_for = |atom: &Atom| match atom {
            Atom::Var(v) => v.stands_for(),
            _ => None,
        };
        if !self.0.iter().flat_map(|t| &t.0).any(|atom| stands_for(atom).is_some()) {
            return false;
        }
        let form = self.mapped_atoms(&stands_for, &mut HashMap::default());
        form != *self && form.is_never_negative()
    }

    fn prove(&self, steps: &mut usize) -> bool {
        if !is_negative(self) {
            return true;
        }
        if self.bounds().is_some_and(|(low, _)| low >= 0) {
            return true;
        }
        let Some(left) = steps.checked_sub(1).filter(|_| self.0.len() <= TERMS) else {
            return false;
        };
        *steps = left;
        let tight = self.tightened();
        let rest = tight.outweighed();
        if !is_negative(&rest) || rest.bounds().is_some_and(|(low, _)| low >= 0) {
            return true;
        }
        // What a positive term outweighs may be less than what it is known to be at least.
        rest.prove_by_parts(steps) || rest != tight && tight.prove_by_parts(steps)
    }

    /// A form that is negative for the same values: `8 * n - 4` is where `n - 1` is.
    fn tightened(&self) -> Form {
        let common = self.0.iter().filter(|t| !t.0.is_empty()).fold(0, |g, t| gcd(g, t.1));
        if common <= 1 {
            return self.clone();
        }
        Form(self.0.iter().map(|(atoms, c)| (atoms.clone(), c.div_euclid(common))).collect())
            .plus(&Form::default(), 1)
    }

    /// The same with a bound in the place of its deepest quotient, larger or smaller one.
    fn prove_by_parts(&self, steps: &mut usize) -> bool {
        let Some(atom) = self.compound() else { return false };
        match &atom {
            Atom::Var(_) => false,
            // A multiple of a whole number is negative only from the divisor on.
            Atom::Div(a, by) => {
                let (a, by) = (a.form(), by.form());
                let least = self.without_quotient(&atom, &a, &by);
                least.plus(&by, 1).plus(&Form::number(1), -1).prove(steps)
            }
            Atom::Max(a, b) => self.chosen(&atom, &a.form(), &b.form(), true, steps),
            Atom::Min(a, b) => self.chosen(&atom, &a.form(), &b.form(), false, steps),
        }
    }

    /// Less, without the negative terms that a positive one with the same factors outweighs: of `n * m - n`
    /// nothing is left, since `m` is at least one.
    fn outweighed(&self) -> Form {
        let mut sum = self.clone();
        loop {
            let negative = sum.0.iter().filter(|t| t.1 < 0);
            let pair = negative.flat_map(|n| sum.0.iter().filter(|p| p.1 > 0).map(move |p| (n, p)));
            let found = pair.into_iter().find_map(|((t, c), (p, k))| {
                let least = lowest(&without(p, t)?);
                // As much of the positive term as is needed, or all of it.
                let used = if least > 0 { (-c + least - 1) / least } else { 0 };
                let used = used.min(*k);
                (used > 0).then(|| {
                    let covers = used.saturating_mul(least).min(-c);
                    [(p.clone(), -used), (t.clone(), covers)]
                })
            });
            let Some(changes) = found else { return sum };
            for change in changes {
                sum = sum.plus(&Form(vec![change]), 1);
            }
        }
    }

    /// An atom that is no open size, none inside of which is another one of the form.
    fn compound(&self) -> Option<Atom> {
        let mut all = self.0.iter().flat_map(|t| &t.0).filter(|a| !matches!(a, Atom::Var(_)));
        let first = all.next()?;
        Some(
            all.fold(first, |deepest, a| if a.depth() > deepest.depth() { a } else { deepest })
                .clone(),
        )
    }

    /// A positive multiple of what is at most the form: without a quotient, which lies between
    /// `(a - by + 1) / by` and `a / by`.
    fn without_quotient(&self, atom: &Atom, a: &Form, by: &Form) -> Form {
        let low = a.plus(by, -1).plus(&Form::number(1), 1);
        let mut sum = Form::default();
        for term @ (atoms, c) in &self.0 {
            let own = Form(vec![term.clone()]);
            let product = match without(atoms, std::slice::from_ref(atom)) {
                Some(others) => Form(vec![(others, *c)]).times(if *c < 0 { a } else { &low }),
                None => own.times(by),
            };
            sum = sum.plus(&product, 1);
        }
        sum
    }

    /// Whether it is never negative, with either of two in the place of the larger or smaller one.
    fn chosen(&self, atom: &Atom, a: &Form, b: &Form, larger: bool, steps: &mut usize) -> bool {
        let of_atom: Vec<&Term> = self.0.iter().filter(|t| t.0.contains(atom)).collect();
        // The larger one is at least each of both, the smaller one at most.
        let bounded = of_atom.iter().all(|t| (t.1 > 0) == larger);
        if bounded && (self.replaced(atom, a).prove(steps) || self.replaced(atom, b).prove(steps)) {
            return true;
        }
        let most = of_atom.iter().map(|t| t.1.abs()).max().unwrap_or(1);
        let apart = if larger { a.plus(b, -1) } else { b.plus(a, -1) };
        // Where it is `a`, `apart` is not negative, and where it is `b`, its opposite.
        let mut side = |value: Form, sign: i128| {
            value.prove(steps) || value.plus(&apart, -sign * most).prove(steps)
        };
        side(self.replaced(atom, a), 1) && side(self.replaced(atom, b), -1)
    }
}

fn is_negative(f: &Form) -> bool {
    f.0.iter().any(|t| t.1 < 0)
}

/// The least that a product of atoms can be.
fn lowest(atoms: &[Atom]) -> i128 {
    let ends = atoms.iter().map(|a| a.bounds().map_or(0, |(low, _)| low.max(0)));
    ends.fold(1, i128::saturating_mul)
}

/// What is known of a size by its parts.
#[derive(Clone, Copy)]
pub(super) struct Extremes {
    /// The least and the most that it can be.
    bounds: Option<(i128, i128)>,
    /// How deep quotients, larger and smaller ones are in each other.
    depth: usize,
}

impl Dim {
    /// The same for each size once: parts are shared.
    fn extremes(self) -> Extremes {
        if let Some(known) = table().extremes.get(&self) {
            return *known;
        }
        let form = self.form();
        let depth = form.0.iter().flat_map(|t| &t.0).map(Atom::depth).max().unwrap_or(0);
        let found = Extremes { bounds: form.bounds(), depth };
        table().extremes.insert(self, found);
        found
    }
}

impl Atom {
    /// How deep quotients, larger and smaller ones are in each other.
    fn depth(&self) -> usize {
        match self {
            Atom::Var(_) => 0,
            Atom::Div(a, b) | Atom::Max(a, b) | Atom::Min(a, b) => {
                1 + a.extremes().depth.max(b.extremes().depth)
            }
        }
    }

    /// The least and the most that it can be.
    fn bounds(&self) -> Option<(i128, i128)> {
        Some(match self {
            Atom::Var(v) => {
                let range: SizeRange = v.range();
                (range.least() as i128, range.most() as i128)
            }
            Atom::Div(a, b) => {
                let ((low, high), (by, most)) = (a.extremes().bounds?, b.extremes().bounds?);
                (low.max(0) / most.max(1), high.max(0) / by.max(1))
            }
            Atom::Max(a, b) => {
                let ((a, b), (c, d)) = (a.extremes().bounds?, b.extremes().bounds?);
                (a.max(c), b.max(d))
            }
            Atom::Min(a, b) => {
                let ((a, b), (c, d)) = (a.extremes().bounds?, b.extremes().bounds?);
                (a.min(c), b.min(d))
            }
        })
    }
}

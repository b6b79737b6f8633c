//! What must hold of open sizes for two sizes to be equal.

use std::sync::LazyLock;

use crate::dtype::DType;
use crate::expr::Var;

use super::form::{Atom, Form, without};
use super::{Dim, MAX_CELLS, Remainders, SizeRange};

/// The largest number of which a size is looked for as a multiple, or next to one.
const MOST_MULTIPLE: usize = 256;

/// How often such a number goes into a size that is some more, and into one that is not. Nothing is known of them but
/// that: remainders of the size are none of theirs.
static TIMES: LazyLock<[Var; 2]> = LazyLock::new(|| {
    [SizeRange::WITH_ZERO, SizeRange::ALL].map(|range| Var::size("times", DType::I64, range))
});

/// What must hold of an open size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fact {
    /// It is this size.
    Is(Var, Dim),
    /// It is at least the one number and at most the other.
    Within(Var, usize, usize),
    /// It is a multiple of this number.
    Multiple(Var, usize),
    /// It is next to multiples of a number.
    Next(Var, Remainders),
}

impl Fact {
    /// What is the same as that two sizes are equal, as a fact about one of the open sizes that `of` names;
    /// `None` where it is no such fact, or none that is found.
    pub fn of_equal(a: Dim, b: Dim, of: &dyn Fn(&Var) -> bool) -> Option<Fact> {
        if a == b {
            return None;
        }
        let apart = a.form().plus(&b.form(), -1);
        let free: Vec<Var> = all_vars(a, b).into_iter().filter(|v| of(v)).collect();
        let solved = || free.iter().filter_map(|v| Some((v, apart.solved_for(v)?)));
        // One without differences, where there is a choice.
        let plain = solved().find(|(_, d)| d.form().0.iter().all(|t| t.1 > 0));
        if let Some((v, d)) = plain.or_else(|| solved().next()) {
            return Some(Fact::Is(v.clone(), d));
        }
        if let Some(fact) = within(a, b).filter(|fact| matches!(fact, Fact::Within(v, ..) if of(v)))
        {
            return Some(fact);
        }
        let found = free.iter().find_map(|v| multiple(a, b, v));
        found.or_else(|| free.iter().find_map(|v| next(a, b, v)))
    }
}

fn all_vars(a: Dim, b: Dim) -> Vec<Var> {
    let mut all = a.vars();
    all.extend(b.vars());
    all.sort();
    all.dedup();
    // The later one goes, where there is a choice.
    all.reverse();
    all
}

impl Form {
    /// The size that a variable is where the form is zero, if it is that for certain and for no other one.
    fn solved_for(&self, v: &Var) -> Option<Dim> {
        let own = Atom::Var(v.clone());
        let (mut factor, mut rest) = (Form::default(), Form::default());
        for (atoms, c) in &self.0 {
            match without(atoms, std::slice::from_ref(&own)) {
                Some(left) => factor = factor.plus(&Form(vec![(left, *c)]), 1),
                None => rest = rest.plus(&Form(vec![(atoms.clone(), -c)]), 1),
            }
        }
        let value = rest.exact_quotient(&factor)?;
        let is_size = value.as_number().is_none_or(|n| n > 0);
        (is_size && !value.clone().dim().vars().contains(v) && !factor.dim().vars().contains(v))
            .then(|| value.dim())
    }

    /// A form that is negative for the same values, without a quotient by a number that is its only open part.
    fn without_rounding(self) -> Form {
        let number = self.coefficient(&[]);
        let mut open = self.0.iter().filter(|t| !t.0.is_empty());
        let (Some((atoms, c)), None) = (open.next(), open.next()) else { return self };
        let [Atom::Div(x, by)] = atoms.as_slice() else { return self };
        let Some(by) = by.known().and_then(|by| i128::try_from(by).ok()) else { return self };
        // The quotient is at least a number, or at most one.
        let least = |n: i128| x.form().plus(&Form::number(n.saturating_mul(by)), -1);
        if *c > 0 {
            least(-number.div_euclid(*c)).without_rounding()
        } else {
            let beyond = least(number.div_euclid(-c).saturating_add(1));
            Form::number(-1).plus(&beyond, -1).without_rounding()
        }
    }
}

/// The range in which two sizes are equal that differ by which of two others is larger.
fn within(a: Dim, b: Dim) -> Option<Fact> {
    let mut pairs = Vec::new();
    a.collect_orders(&mut pairs);
    b.collect_orders(&mut pairs);
    pairs.iter().flat_map(|&(x, y)| [(x, y), (y, x)]).find_map(|(small, large)| {
        if a.ordered(small, large) != b.ordered(small, large) {
            return None;
        }
        // In the other order they differ by as much as these two do, or a multiple of that.
        let other = a.ordered(large, small).form().plus(&b.ordered(large, small).form(), -1);
        let apart = small.form().plus(&large.form(), -1);
        other.exact_quotient(&apart)?.as_number().filter(|n| *n != 0)?;
        // `large - small` is at least zero.
        let room = Form::default().plus(&apart, -1).without_rounding();
        let number = room.coefficient(&[]);
        let open: Vec<_> = room.0.iter().filter(|t| !t.0.is_empty()).collect();
        let [(atoms, c)] = open.as_slice() else { return None };
        let [Atom::Var(v)] = atoms.as_slice() else { return None };
        let range = v.range();
        let (mut least, mut most) = (range.least() as i128, range.most() as i128);
        if *c > 0 {
            least = least.max((-number).div_euclid(*c) + i128::from((-number).rem_euclid(*c) != 0));
        } else {
            most = most.min(number.div_euclid(-c));
        }
        let fits = least <= most && most <= MAX_CELLS as i128;
        fits.then(|| Fact::Within(v.clone(), least as usize, most as usize))
    })
}

/// The number of which a variable must be a multiple for two sizes to be equal, where they differ at all
/// others.
fn multiple(a: Dim, b: Dim, v: &Var) -> Option<Fact> {
    let n = candidates(a, b).find(|n| equal_for(*n, 0, a, v, b) == Some(true))?;
    // Which remainders there may be is known of all together.
    let known = v.range().remainders();
    let may_be = |more: &usize| !n.is_multiple_of(known.modulus) || known.contains(*more);
    (1..n)
        .filter(may_be)
        .all(|more| equal_for(n, more, a, v, b) == Some(false))
        .then(|| Fact::Multiple(v.clone(), n))
}

/// The remainders with which a variable must be next to multiples of a number for two sizes to be equal, where they
/// differ at all others.
fn next(a: Dim, b: Dim, v: &Var) -> Option<Fact> {
    let known = v.range().remainders();
    candidates(a, b).filter(|n| n.is_multiple_of(known.modulus)).find_map(|n| {
        let mut equal = Vec::new();
        for more in (0..n).filter(|r| known.contains(*r)) {
            if equal_for(n, more, a, v, b)? {
                equal.push(more);
            }
        }
        // One remainder says what the variable is, so that its multiples would be written in two ways; all of them
        // say nothing.
        let remainders = Remainders::of(n, &equal).filter(|r| r.count > 1 && *r != known)?;
        Some(Fact::Next(v.clone(), remainders))
    })
}

/// The numbers whose remainders may matter: divisors of what is divided by on the way to two sizes.
fn candidates(a: Dim, b: Dim) -> impl Iterator<Item = usize> {
    let mut divisors = 1;
    a.collect_divisors(&mut divisors);
    b.collect_divisors(&mut divisors);
    (2..=MOST_MULTIPLE).filter(move |n| divisors.is_multiple_of(*n))
}

/// Whether two sizes are equal where a variable is so often a number, and some more; `None` where that depends on how
/// often, or is not found.
fn equal_for(n: usize, more: usize, a: Dim, v: &Var, b: Dim) -> Option<bool> {
    let times = &TIMES[usize::from(more == 0)];
    let here = |d: Dim| d.substitute(&|w| (w == v).then(|| Dim::open(times) * n + more));
    let (a, b) = (here(a), here(b));
    if a == b {
        return Some(true);
    }
    let apart = a.form().plus(&b.form(), -1);
    let one = Form::number(1);
    let differ = apart.plus(&one, -1).is_never_negative()
        || Form::default().plus(&apart, -1).plus(&one, -1).is_never_negative();
    differ.then_some(false)
}

impl Dim {
    /// The pairs of which it has the larger or smaller one.
    fn collect_orders(self, found: &mut Vec<(Dim, Dim)>) {
        self.parts(&mut |atom| {
            if let Atom::Max(a, b) | Atom::Min(a, b) = atom
                && !found.contains(&(*a, *b))
            {
                found.push((*a, *b));
            }
        });
    }

    /// Multiplies a number by the numbers by which it, or a part of it, is divided; by no more where that would
    /// be large.
    fn collect_divisors(self, product: &mut usize) {
        self.parts(&mut |atom| {
            if let Atom::Div(_, by) = atom
                && let Some(by) = by.known()
            {
                *product = product.checked_mul(by.max(1)).unwrap_or(*product);
            }
        });
    }

    /// The size where one is at most another one.
    fn ordered(self, small: Dim, large: Dim) -> Dim {
        self.mapped(&|atom| {
            let is_pair =
                |a: &Dim, b: &Dim| (*a, *b) == (small, large) || (*b, *a) == (small, large);
            match atom {
                Atom::Max(a, b) if is_pair(a, b) => Some(large),
                Atom::Min(a, b) if is_pair(a, b) => Some(small),
                _ => None,
            }
        })
    }
}

//! Forms: sums of products of atoms, and their arithmetic in normal form.
//!
//! What is equal by the rules of polynomials is one form. Quotients that round down are brought into one
//! form too: whole multiples of the divisor stand before the quotient, common factors are gone, and a
//! quotient of a quotient is one (`(n // 2 + 1) // 2` is `(n + 2) // 4`), and nothing is divided that is the
//! opposite of a size: `-(-n // 16)` is `(n + 15) // 16`. A size without a half of it is the other half
//! (`n - n // 2` is `(n + 1) // 2`). A remainder is what a quotient leaves. Larger and
//! smaller ones are taken of what two sums do not have in common, so that `max(n - 3, 0)` and `max(n, 3) - 3`
//! are one form, in which nothing is taken away inside.

use crate::expr::Var;
use crate::index::gcd;

use super::{Dim, Remainders};

/// A factor of a product that is no number.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Atom {
    Var(Var),
    /// The quotient of a size by another, rounded down.
    Div(Dim, Dim),
    Max(Dim, Dim),
    Min(Dim, Dim),
}

/// Products of atoms, each with a coefficient other than zero, sorted; numbers have no atom.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub(super) struct Form(pub(super) Vec<Term>);

/// A divisor so long that a size and it, or a size times nearly all of it, may not fit `int32`.
pub(super) const LONG: i128 = 1 << 15;

/// Atoms in order, and their coefficient.
pub(super) type Term = (Vec<Atom>, i128);

impl Form {
    pub(super) fn number(value: i128) -> Form {
        Form(if value == 0 { Vec::new() } else { vec![(Vec::new(), value)] })
    }

    pub(super) fn atom(atom: Atom) -> Form {
        Form(vec![(vec![atom], 1)])
    }

    pub(super) fn as_number(&self) -> Option<i128> {
        match self.0.as_slice() {
            [] => Some(0),
            [(atoms, value)] if atoms.is_empty() => Some(*value),
            _ => None,
        }
    }

    pub(super) fn coefficient(&self, atoms: &[Atom]) -> i128 {
        let at = self.0.binary_search_by(|t| t.0.as_slice().cmp(atoms));
        at.map_or(0, |at| self.0[at].1)
    }

    /// `self + other * by`.
    pub(super) fn plus(&self, other: &Form, by: i128) -> Form {
        let mut terms = self.0.clone();
        for (atoms, c) in &other.0 {
            let c = c.saturating_mul(by);
            match terms.binary_search_by(|t| t.0.cmp(atoms)) {
                Ok(at) => terms[at].1 = terms[at].1.saturating_add(c),
                Err(at) => terms.insert(at, (atoms.clone(), c)),
            }
        }
        terms.retain(|t| t.1 != 0);
        Form(terms)
    }

    pub(super) fn times(&self, other: &Form) -> Form {
        let mut product = Form::default();
        for (a, x) in &self.0 {
            for (b, y) in &other.0 {
                let mut atoms: Vec<Atom> = a.iter().chain(b).cloned().collect();
                atoms.sort();
                product = product.plus(&Form(vec![(atoms, x.saturating_mul(*y))]), 1);
            }
        }
        product
    }

    /// Its terms, each with other atoms and another coefficient.
    fn mapped(&self, term: impl Fn(&Term) -> Option<Term>) -> Form {
        self.0.iter().filter_map(term).fold(Form::default(), |sum, t| sum.plus(&Form(vec![t]), 1))
    }

    /// The quotient by a form that divides it as a polynomial.
    pub(super) fn exact_quotient(&self, by: &Form) -> Option<Form> {
        let (lead, c) = by.leading()?;
        let (mut rest, mut quotient) = (self.clone(), Form::default());
        while let Some((atoms, a)) = rest.leading() {
            let left = without(atoms, lead)?;
            if a % c != 0 {
                return None;
            }
            let term = Form(vec![(left, a / c)]);
            quotient = quotient.plus(&term, 1);
            rest = rest.plus(&term.times(by), -1);
        }
        Some(quotient)
    }

    /// The term of the most factors; of several, the last in order.
    fn leading(&self) -> Option<&Term> {
        self.0.iter().max_by_key(|(atoms, _)| (atoms.len(), atoms))
    }

    /// The terms that a product divides, divided by it (with this quotient of coefficients), and what is left.
    fn multiples(&self, (divisor, d): &Term, quotient_of: fn(i128, i128) -> i128) -> (Form, Form) {
        let (mut quotient, mut rest) = (Form::default(), Form::default());
        for (atoms, c) in &self.0 {
            match without(atoms, divisor) {
                Some(left) => {
                    let times = quotient_of(*c, *d);
                    quotient = quotient.plus(&Form(vec![(left, times)]), 1);
                    rest = rest.plus(&Form(vec![(atoms.clone(), c - times * d)]), 1);
                }
                None => rest = rest.plus(&Form(vec![(atoms.clone(), *c)]), 1),
            }
        }
        rest.0.retain(|t| t.1 != 0);
        quotient.0.retain(|t| t.1 != 0);
        (quotient, rest)
    }

    /// The quotient by a form of positive value, rounded down.
    pub(super) fn floordiv(&self, by: &Form) -> Form {
        if let Some(quotient) = self.exact_quotient(by) {
            return quotient;
        }
        let [term @ (_, 1..)] = by.0.as_slice() else { return self.quotient(by) };
        // A remainder is small: taken apart, nothing would show that.
        if self.is_remainder() {
            return self.quotient(by);
        }
        let (whole, rest) = self.multiples(term, |c, d| c / d);
        if rest.is_opposite() {
            let up = by.plus(&rest, -1).plus(&Form::number(1), -1);
            return whole.plus(&up.floordiv(by), -1);
        }
        let (whole, rest) = self.multiples(term, i128::div_euclid);
        // What is left of other terms than those of the divisor may be negative; they stay together. So does what is
        // taken away: `(p - d) // 16` is `(p + 15 * d) // 16 - d`, whose sum may not fit `int32`.
        let is_taken = |t: &Term| !t.0.is_empty() && t.1 > 1 && self.coefficient(&t.0) < 0;
        if rest.0.iter().any(|t| t.1 < 0 || is_taken(t)) {
            return self.quotient(by);
        }
        let (rest, by) = rest.reduced(term);
        let quotient = rest.inner_quotient(&by).unwrap_or_else(|| rest.quotient(&by));
        whole.plus(&quotient, 1)
    }

    /// The form with a size in the place of its two halves, or one half in the place of the size without the other one:
    /// `n - (n + 1) // 2` is `n // 2`, also as a factor. `None` where there is neither.
    pub(super) fn without_halves(&self) -> Option<Form> {
        self.0.iter().find_map(|term| {
            term.0.iter().find_map(|atom| match atom {
                Atom::Div(x, by) => {
                    let by = by.known().filter(|by| by % 2 == 0)?;
                    self.without_half(term, atom, (*x, by / 2))
                }
                _ => None,
            })
        })
    }

    /// The same for one half of a quotient, which is a factor of a term.
    fn without_half(&self, term: &Term, atom: &Atom, (x, by): (Dim, usize)) -> Option<Form> {
        let times = -term.1;
        // Of which half or whole there is a term as often.
        let is_pair = |t: &Term| t.1.abs() % times.abs() == 0 && t.0.len() >= term.0.len();
        if !self.0.iter().any(|t| t != term && is_pair(t)) {
            return None;
        }
        let others = Form(vec![(without(&term.0, std::slice::from_ref(atom))?, 1)]);
        let x = x.form().floordiv(&Form::number(by as i128));
        let more = x.coefficient(&[]);
        let whole = x.plus(&Form::number(more), -1);
        let half = || {
            let rounded = whole.plus(&Form::number(1 - more), 1).floordiv(&Form::number(2));
            rounded.times(&others)
        };
        let rest = self.plus(&Form(vec![term.clone()]), -1);
        let has = |form: &Form, times: i128| {
            let mut all = form.0.iter().filter(|(atoms, _)| *atoms != others.0[0].0);
            all.all(|(atoms, c)| rest.coefficient(atoms) == c.saturating_mul(times))
        };
        if times > 0 {
            let whole = whole.times(&others);
            return has(&whole, times).then(|| rest.plus(&whole, -times).plus(&half(), times));
        }
        let half = half();
        has(&half, -times).then(|| rest.plus(&half, times).plus(&whole.times(&others), -times))
    }

    /// Whether all its open terms are subtracted.
    fn is_opposite(&self) -> bool {
        let mut open = self.0.iter().filter(|t| !t.0.is_empty()).peekable();
        open.peek().is_some() && open.all(|t| t.1 < 0)
    }

    /// Whether it is `x - k * (x // k)` for some form and number, or what that lacks to be `k - 1`.
    fn is_remainder(&self) -> bool {
        self.0.iter().any(|term| {
            let ([Atom::Div(x, a)], c) = (term.0.as_slice(), term.1) else { return false };
            if a.form().as_number() != Some(c.abs()) {
                return false;
            }
            let others = self.plus(&Form(vec![term.clone()]), -1);
            if c < 0 {
                others == *x.form()
            } else {
                others.plus(&x.form(), 1) == Form::number(c - 1)
            }
        })
    }

    /// Numerator and divisor without their common factors: `(6n + 5) // 4m` is `(3n + 2) // 2m`.
    fn reduced(&self, (atoms, d): &Term) -> (Form, Form) {
        let open = self.0.iter().filter(|t| !t.0.is_empty());
        let factor = open.clone().fold(*d, |g, t| gcd(g, t.1));
        let number = self.coefficient(&[]);
        let mut common = if number == 0 { atoms.clone() } else { Vec::new() };
        for (t, _) in open {
            let mut left = t.clone();
            common.retain(|a| take(&mut left, a));
        }
        let rest = self.mapped(|(t, c)| Some((without(t, &common)?, c.div_euclid(factor))));
        (rest, Form(vec![(without(atoms, &common).unwrap_or_default(), d / factor)]))
    }

    /// A quotient of a quotient as one: `(x // a + y) // b` is `(x + a * y) // (a * b)`.
    fn inner_quotient(&self, by: &Form) -> Option<Form> {
        let mut inner = None;
        for (atoms, c) in &self.0 {
            match atoms.as_slice() {
                [Atom::Div(x, a)] if *c == 1 && inner.is_none() => inner = Some((atoms, *x, *a)),
                _ if atoms.iter().any(|a| matches!(a, Atom::Div(..))) => return None,
                _ => {}
            }
        }
        let (atoms, x, a) = inner?;
        let others = self.plus(&Form(vec![(atoms.clone(), 1)]), -1);
        let (x, a) = (x.form(), a.form());
        Some(x.plus(&others.times(&a), 1).floordiv(&a.times(by)))
    }

    /// The quotient where it is a number for certain, else as an atom.
    fn quotient(&self, by: &Form) -> Form {
        if let (Some((low, high)), Some(d @ 1..)) = (self.bounds(), by.as_number())
            && low.div_euclid(d) == high.div_euclid(d)
        {
            return Form::number(low.div_euclid(d));
        }
        if self.is_never_negative()
            && by.plus(self, -1).plus(&Form::number(1), -1).is_never_negative()
        {
            return Form::number(0);
        }
        self.rounded(by)
            .unwrap_or_else(|| Form::atom(Atom::Div(self.clone().dim(), by.clone().dim())))
    }

    /// The quotient of a size next to multiples of a number, by a divisor of that number: so often that multiple, and a
    /// number. Of `h` that is at most 15 less than a multiple of 32, `(h + 15) // 16` is `(h + 31) // 32 * 2`.
    fn rounded(&self, by: &Form) -> Option<Form> {
        let by = by.as_number()?;
        let more = self.coefficient(&[]);
        let open = self.plus(&Form::number(more), -1);
        let [(atoms, 1)] = open.0.as_slice() else { return None };
        let [Atom::Var(v)] = atoms.as_slice() else { return None };
        let remainders = v.range().remainders();
        let modulus = i128::try_from(remainders.modulus).ok()?;
        if remainders == Remainders::ALL || by < 1 || modulus % by != 0 {
            return None;
        }
        let all = (0..remainders.modulus).filter(|r| remainders.contains(*r));
        let mut apart = all.map(|r| {
            let r = r as i128;
            (r + more).div_euclid(by) - modulus / by * i128::from(r > 0)
        });
        let first = apart.next()?;
        if apart.any(|other| other != first) {
            return None;
        }
        let up = open.plus(&Form::number(modulus - 1), 1).dim();
        let multiple = Form::atom(Atom::Div(up, Form::number(modulus).dim()));
        Some(Form::number(first).plus(&multiple, modulus / by))
    }

    /// The larger of two, or the smaller one.
    pub(super) fn choice(&self, other: &Form, larger: bool) -> Form {
        if self.plus(other, -1).is_never_negative() {
            return if larger { self.clone() } else { other.clone() };
        }
        if other.plus(self, -1).is_never_negative() {
            return if larger { other.clone() } else { self.clone() };
        }
        let common = self.mapped(|t| Some((t.0.clone(), t.1.min(other.coefficient(&t.0)))));
        let only = other
            .mapped(|t| Some((t.0.clone(), t.1.min(0))).filter(|_| self.coefficient(&t.0) == 0));
        let common = common.plus(&only, 1);
        let (x, y) = (self.plus(&common, -1).dim(), other.plus(&common, -1).dim());
        let (a, b) = if x <= y { (x, y) } else { (y, x) };
        common.plus(&Form::atom(if larger { Atom::Max(a, b) } else { Atom::Min(a, b) }), 1)
    }

    /// The quotient by a form of positive value, rounded towards zero, also of what may be negative.
    pub(super) fn truncdiv(&self, by: &Form) -> Form {
        let zero = Form::default();
        let minus = zero.plus(self, -1);
        if self.is_never_negative() {
            return self.floordiv(by);
        }
        if minus.is_never_negative() {
            return zero.plus(&minus.floordiv(by), -1);
        }
        let (up, down) = (self.choice(&zero, true), minus.choice(&zero, true));
        up.floordiv(by).plus(&down.floordiv(by), -1)
    }

    /// The form with something else in the place of an atom.
    pub(super) fn replaced(&self, atom: &Atom, with: &Form) -> Form {
        let mut sum = Form::default();
        for (atoms, c) in &self.0 {
            let mut product = Form::number(*c);
            for a in atoms {
                let own = Form::atom(a.clone());
                product = product.times(if a == atom { with } else { &own });
            }
            sum = sum.plus(&product, 1);
        }
        sum
    }
}

/// Takes an atom out of a product, if it is there.
pub(super) fn take(atoms: &mut Vec<Atom>, atom: &Atom) -> bool {
    let at = atoms.iter().position(|a| a == atom);
    at.map(|at| atoms.remove(at)).is_some()
}

/// A product without the factors of another one, if it has them all.
pub(super) fn without(atoms: &[Atom], factors: &[Atom]) -> Option<Vec<Atom>> {
    let mut left = atoms.to_vec();
    factors.iter().all(|a| take(&mut left, a)).then_some(left)
}

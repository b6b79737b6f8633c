//! Conditions on digits in a radix of open sizes, as conditions on the numbers.
//!
//! ```text
//! p // w // h < n     is     p < n * h * w
//! p // w % h < h + 2  holds where  1 <= h
//! ```
//!
//! Of `n * h * w` sets know little, and of the digits less. The number is below a size that stands for the product
//! ([`Var::stands_for`](tilewright_ir::Var::stands_for)), which is linear.

use crate::answer::Known;
use crate::domain::Domain;
use crate::form::{Nature, Pred, Sum, Term, too_large};
use crate::product::{times, without};
use crate::quick::is_never;

/// Most digits of one condition.
const MOST: usize = 8;

impl Domain {
    /// A condition without quotients and remainders by open sizes from which the given one follows; `None` where there
    /// are none, or they are no digits.
    pub(crate) fn of_numbers(&self, p: &Pred) -> Known<Option<Pred>> {
        match p {
            Pred::And(parts) => {
                let mut any = false;
                let mut all = Vec::with_capacity(parts.len());
                for part in parts {
                    let plain = self.of_numbers(part)?;
                    any |= plain.is_some();
                    all.push(plain.unwrap_or_else(|| part.clone()));
                }
                Ok(any.then(|| Pred::and(all)))
            }
            Pred::Ge(s) => {
                let (mut now, mut all) = (s.clone(), Vec::new());
                let mut count = 0;
                while let Some((next, more)) = self.without_digit(&now)? {
                    (now, count) = (next, count + 1);
                    all.extend(more);
                    if count > MOST {
                        return Ok(None);
                    }
                }
                if count == 0 {
                    return Ok(None);
                }
                all.push(Pred::ge(self.with_sizes_of_products(now)?));
                Ok(Some(Pred::and(all)))
            }
            _ => Ok(None),
        }
    }

    /// A sum with one digit less that is negative wherever the given one is, and what has to hold, too.
    fn without_digit(&self, s: &Sum) -> Known<Option<(Sum, Option<Pred>)>> {
        for (t, c) in &s.terms {
            let Term::Atom(a) = t else { continue };
            let minus = too_large(c.checked_neg())?;
            let rest = s.clone().plus(&Sum::term(t.clone()), minus)?;
            match a.nature() {
                Nature::Remainder(_, y) if self.is_positive(y) => {
                    let least = if *c > 0 { Sum::default() } else { y.clone().offset(-1)? };
                    return Ok(Some((rest.plus(&least, *c)?, None)));
                }
                Nature::Quotient(x, y) if *c < 0 && self.is_positive(y) => {
                    // The slowest digit of a number below a product of sizes is below the slowest size.
                    if let Some((number, size, slowest)) = self.slowest_digit(x, y)? {
                        let below = Pred::ge(size.plus(&number, -1)?.offset(-1)?);
                        return Ok(Some((rest.plus(&slowest.offset(-1)?, *c)?, Some(below))));
                    }
                    // `x // y <= r` is `x < (r + 1) * y`.
                    if let (-1, Some(product)) = (*c, times(&rest.offset(1)?, y)?) {
                        return Ok(Some((product.plus(x, -1)?.offset(-1)?, None)));
                    }
                }
                // `x // y >= -r` is `x >= -r * y`.
                Nature::Quotient(x, y) if *c == 1 && self.is_positive(y) => {
                    let Some(product) = times(&rest, y)? else { continue };
                    return Ok(Some((product.plus(x, 1)?, None)));
                }
                _ => {}
            }
        }
        Ok(None)
    }

    /// The number of which `x // y` is a digit, the product of all that it is divided by and one size more, in terms of a
    /// size that is known to stand for that, and the one size.
    fn slowest_digit(&self, x: &Sum, y: &Sum) -> Known<Option<(Sum, Sum, Sum)>> {
        let (mut number, mut divisors) = (x.clone(), vec![y.clone()]);
        while let Some(Term::Atom(a)) = number.as_term()
            && let Nature::Quotient(x, y) = a.nature()
        {
            if !self.is_positive(y) {
                return Ok(None);
            }
            divisors.push(y.clone());
            number = x.clone();
        }
        for (size, product, times) in self.products() {
            let mut left = Some((product.clone(), 1));
            for by in &divisors {
                left = left.and_then(|whole| divided(&whole, by));
            }
            if let Some((slowest, by)) = left.filter(|(_, by)| by % times == 0) {
                let all = Sum::term(size.clone()).scaled(by / times)?;
                return Ok(Some((number, all, Sum::term(slowest))));
            }
        }
        Ok(None)
    }

    /// The sizes that stand for multiples of products, where the engine knows which they are: the size, the product, and
    /// how often.
    fn products(&self) -> impl Iterator<Item = (&Term, &Term, i128)> {
        self.engine().facts().iter().filter_map(|fact| {
            let Pred::Eq(known) = fact else { return None };
            let mut terms = known.terms.iter();
            let (a, b) = (terms.next()?, terms.next()?);
            let is_equation = terms.next().is_none() && known.constant == 0;
            [(a, b), (b, a)].into_iter().find_map(|((size, one), (product, k))| {
                let found = is_equation && one.abs() == 1 && one * k < 0 && is_product(product);
                found.then_some((size, product, k.abs()))
            })
        })
    }

    /// Whether a size is positive, as far as that is seen at once.
    fn is_positive(&self, y: &Sum) -> bool {
        let facts = || self.guards.iter().chain(self.engine().facts());
        let is_factor_positive = |t: &Term| {
            let none = Sum::term(t.clone()).scaled(-1);
            none.is_ok_and(|s| is_never(facts(), &Pred::ge(s)))
        };
        let mut terms = y.terms.iter();
        match (terms.next(), terms.next(), y.constant) {
            (Some((t, 1..)), None, 0) => {
                t.factors().iter().all(is_factor_positive) || self.divides_elements(t.factors())
            }
            _ => y.scaled(-1).is_ok_and(|s| is_never(facts(), &Pred::ge(s))),
        }
    }

    /// Whether sizes, which are not negative, are factors of a product that is positive: pixels that there are are those
    /// of images that have some.
    fn divides_elements(&self, sizes: &[Term]) -> bool {
        self.products().any(|(size, product, _)| {
            let none = Sum::term(size.clone()).scaled(-1);
            sizes.iter().all(|t| product.factors().contains(t))
                && product.factors().iter().all(|t| self.is_never_negative(t))
                && none.is_ok_and(|s| self.is_refuted(&Pred::ge(s)) == Ok(true))
        })
    }

    fn is_never_negative(&self, t: &Term) -> bool {
        let negative = Sum::term(t.clone()).scaled(-1).and_then(|s| s.offset(-1));
        let facts = self.guards.iter().chain(self.engine().facts());
        negative.is_ok_and(|s| is_never(facts, &Pred::ge(s)))
    }

    /// A sum with the sizes that stand for products in the place of these.
    fn with_sizes_of_products(&self, mut s: Sum) -> Known<Sum> {
        for (size, product, times) in self.products() {
            if let Some(c) = s.terms.get(product).copied().filter(|c| c % times == 0) {
                let minus = too_large(c.checked_neg())?;
                let size = Sum::term(size.clone());
                s = s.plus(&Sum::term(product.clone()), minus)?.plus(&size, c / times)?;
            }
        }
        Ok(s)
    }
}

/// A term divided by a multiple of a factor of it, and the number that it was divided by in all; `None` where it has no
/// such factor.
fn divided((of, so_far): &(Term, i128), by: &Sum) -> Option<(Term, i128)> {
    let ((t, k), None) = (by.terms.iter().next()?, by.terms.iter().nth(1)) else { return None };
    let rest = without(of, t.factors()).filter(|_| by.constant == 0)?;
    Some((rest.as_term()?.clone(), so_far.checked_mul(*k)?))
}

fn is_product(t: &Term) -> bool {
    matches!(t, Term::Atom(a) if matches!(a.nature(), Nature::Product(_)))
}

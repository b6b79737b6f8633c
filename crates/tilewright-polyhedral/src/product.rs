//! Products of terms, and division by them.
//!
//! To integer sets a product of two variables is an atom. These functions look at its factors
//! ([`Nature::Product`]), and at quotients and remainders by divisors that are not constant
//! ([`Nature::Quotient`], [`Nature::Remainder`]): they apply what holds of them for all integers,
//! such as `x // y * y + x % y = x`, and divide sums by common factors.

use std::collections::BTreeSet;

use tilewright_ir::{BinOp, DType, Expr};

use crate::answer::Known;
use crate::form::{Atom, Nature, Pred, Sum, Term, gcd, too_large};

/// `q` and `r` with `x = y * q + r`, where `q` takes the products that have `y` as a factor.
pub(crate) fn split_by(x: &Sum, y: &Sum) -> Known<(Sum, Sum)> {
    let Some(factor) = y.as_term() else { return Ok((Sum::default(), x.clone())) };
    let (mut q, mut r) = (Sum::default(), Sum::constant(x.constant));
    for (t, c) in &x.terms {
        match without(t, factor.factors()) {
            Some(s) => q = q.plus(&s, *c)?,
            None => r = r.plus(&Sum::term(t.clone()), *c)?,
        }
    }
    Ok((q, r))
}

/// `x` with `s` in the place of `s % y`, `s % -y` and `s % (y*z)`, which modulo `y` is the same;
/// `None` if there is none.
pub(crate) fn without_remainders(x: &Sum, y: &Sum) -> Known<Option<Sum>> {
    let (mut out, negative) = (x.clone(), y.clone().scaled(-1)?);
    for (t, c) in &x.terms {
        if let Term::Atom(a) = t
            && let Nature::Remainder(s, by) = a.nature()
            && (by == y || *by == negative || is_multiple(by, y)?)
        {
            let minus = too_large(c.checked_neg())?;
            out = out.plus(s, *c)?.plus(&Sum::term(t.clone()), minus)?;
        }
    }
    Ok((out != *x).then_some(out))
}

/// Whether `x` is a product with the factor `y`.
fn is_multiple(x: &Sum, y: &Sum) -> Known<bool> {
    let (q, r) = split_by(x, y)?;
    Ok(r == Sum::default() && q != Sum::default())
}

/// A sum with `x - x % y` in the place of `x // y * y`, so that what is equal cancels.
pub(crate) fn without_quotients(s: &Sum) -> Known<Sum> {
    let mut out = s.clone();
    // Quotients of remainders of quotients: each round takes one level.
    for _ in 0..8 {
        let before = out.clone();
        for (t, c) in &before.terms {
            if let Some(difference) = as_difference(t)? {
                let minus = too_large(c.checked_neg())?;
                out = out.plus(&difference, *c)?.plus(&Sum::term(t.clone()), minus)?;
            }
        }
        if out == before {
            break;
        }
    }
    Ok(out)
}

/// `rest * (x - x % y)` for a term `rest * (x // y) * y`, where `y` is one term.
fn as_difference(t: &Term) -> Known<Option<Sum>> {
    for f in t.factors() {
        let Term::Atom(a) = f else { continue };
        let Nature::Quotient(x, y) = a.nature() else { continue };
        let Some(divisor) = y.as_term() else { continue };
        let divisors = [divisor.factors(), std::slice::from_ref(f)].concat();
        let Some(rest) = without(t, &divisors) else { continue };
        let Some(remainder) = remainder(x, y, a.expr().dtype())? else { continue };
        let difference = x.clone().plus(&remainder, -1)?;
        let Some((rest, _)) = rest.terms.iter().next() else { return Ok(Some(difference)) };
        let mut out = Sum::default().plus(&Sum::term(rest.clone()), difference.constant)?;
        for (part, c) in &difference.terms {
            let Some(product) = monomial(rest, part) else { return Ok(None) };
            out = out.plus(&Sum::term(product), *c)?;
        }
        return Ok(Some(out));
    }
    Ok(None)
}

/// A sum with `x * rest` in the place of `x // y * y * rest + x % y * rest`: what is put together of the digits of a
/// number is the number.
pub(crate) fn joined_digits(s: &Sum) -> Known<Sum> {
    let mut out = s.clone();
    // Each round takes two digits.
    while let Some(joined) = two_digits(&out)? {
        out = joined;
    }
    Ok(out)
}

/// Whether a sum adds up digits of numbers in a radix of open sizes and other atoms, and nothing else: what sets know of
/// digits makes none of them another term, unless a number is a multiple of the size that divides it.
pub(crate) fn is_plain_digits(s: &Sum) -> Known<bool> {
    let mut any = false;
    for t in s.terms.keys() {
        for f in t.factors() {
            let Term::Atom(a) = f else { return Ok(false) };
            let (Nature::Quotient(x, y) | Nature::Remainder(x, y)) = a.nature() else { continue };
            let (multiple, _) = split_by(x, y)?;
            if multiple != Sum::default() {
                return Ok(false);
            }
            any = true;
        }
    }
    Ok(any)
}

fn two_digits(s: &Sum) -> Known<Option<Sum>> {
    for (t, c) in &s.terms {
        for f in t.factors() {
            let Term::Atom(a) = f else { continue };
            let Nature::Remainder(x, y) = a.nature() else { continue };
            let Some(rest) = without(t, std::slice::from_ref(f)) else { continue };
            let Some(quotient) = quotient_in(s, x, y) else { continue };
            let upper = times(&rest, &Sum::atom(quotient))?;
            let upper = match upper {
                Some(upper) => times(&upper, y)?,
                None => None,
            };
            let (Some(upper), Some(number)) = (upper, times(&rest, x)?) else { continue };
            let has = |(t, k): (&Term, &i128)| s.terms.get(t) == Some(&(c * k));
            if upper.constant != 0 || upper.terms.is_empty() || !upper.terms.iter().all(has) {
                continue;
            }
            let minus = too_large(c.checked_neg())?;
            let out = s.clone().plus(&Sum::term(t.clone()), minus)?.plus(&upper, minus)?;
            return Ok(Some(out.plus(&number, *c)?));
        }
    }
    Ok(None)
}

/// The quotient `x // y` in a sum.
fn quotient_in(s: &Sum, x: &Sum, y: &Sum) -> Option<Atom> {
    let factors = s.terms.keys().flat_map(|t| t.factors());
    let mut atoms = factors.filter_map(|f| match f {
        Term::Atom(a) => Some(a),
        _ => None,
    });
    let is = |a: &&Atom| matches!(a.nature(), Nature::Quotient(u, v) if u == x && v == y);
    atoms.find(is).cloned()
}

/// The product of two sums; `None` where one of two terms has no expression.
pub(crate) fn times(a: &Sum, b: &Sum) -> Known<Option<Sum>> {
    let mut out = Sum::constant(too_large(a.constant.checked_mul(b.constant))?);
    for (x, y) in [(a, b), (b, a)] {
        for (t, c) in &x.terms {
            let c = too_large(c.checked_mul(y.constant))?;
            out = out.plus(&Sum::term(t.clone()), c)?;
        }
    }
    for (x, c) in &a.terms {
        for (y, k) in &b.terms {
            let Some(product) = monomial(x, y) else { return Ok(None) };
            out = out.plus(&Sum::term(product), too_large(c.checked_mul(*k))?)?;
        }
    }
    Ok(Some(out))
}

/// `x % y` without what `y` divides; `None` where that has no expression.
fn remainder(x: &Sum, y: &Sum, dtype: DType) -> Known<Option<Sum>> {
    let x = without_remainders(x, y)?.unwrap_or_else(|| x.clone());
    let (_, x) = split_by(&x, y)?;
    if x == Sum::default() {
        return Ok(Some(x));
    }
    let (Some(a), Some(b)) = (crate::render::sum(&x, dtype), crate::render::sum(y, dtype)) else {
        return Ok(None);
    };
    let expr = Expr::binary(BinOp::FloorMod, a, b);
    Ok(Some(Sum::atom(Atom::term(expr, Nature::Remainder(x, y.clone())))))
}

/// The product of two terms as an atom; `None` where a factor has no expression.
pub(crate) fn monomial(x: &Term, y: &Term) -> Option<Term> {
    let mut all = [x.factors(), y.factors()].concat();
    all.sort();
    product_of(all)
}

/// `g`, `p` and `q` with `x = g * p` and `y = g * q`, where `g` is a constant times a product of
/// terms; `None` if there is nothing in common.
pub(crate) fn common_factor(x: &Sum, y: &Sum) -> Option<(Sum, Sum, Sum)> {
    let terms = || x.terms.iter().chain(&y.terms);
    let constants = [x.constant, y.constant];
    let k = terms().map(|(_, c)| *c).chain(constants).fold(0, gcd);
    let mut common: Vec<Term> = match constants {
        [0, 0] => terms().next().map(|(t, _)| t.factors().to_vec()).unwrap_or_default(),
        _ => Vec::new(),
    };
    for (t, _) in terms() {
        let mut left = t.factors().to_vec();
        common
            .retain(|f| left.iter().position(|x| x == f).map(|at| left.swap_remove(at)).is_some());
    }
    if k == 0 || (k == 1 && common.is_empty()) {
        return None;
    }
    let (p, q) = (divided(x, k, &common)?, divided(y, k, &common)?);
    Some((product(common)?.scaled(k).ok()?, p, q))
}

fn divided(s: &Sum, k: i128, common: &[Term]) -> Option<Sum> {
    let mut out = Sum::constant(s.constant / k);
    for (t, c) in &s.terms {
        out = out.plus(&without(t, common)?, c / k).ok()?;
    }
    Some(out)
}

/// A term divided by factors of it; `None` where it has not all of them.
pub(crate) fn without(t: &Term, divisors: &[Term]) -> Option<Sum> {
    let mut left = t.factors().to_vec();
    for f in divisors {
        let at = left.iter().position(|x| x == f)?;
        left.remove(at);
    }
    product(left)
}

/// The product of any number of sorted terms.
pub(crate) fn product(mut factors: Vec<Term>) -> Option<Sum> {
    match factors.len() {
        0 => Some(Sum::constant(1)),
        1 => factors.pop().map(Sum::term),
        _ => product_of(factors).map(Sum::term),
    }
}

/// The product of sorted terms as an atom.
fn product_of(factors: Vec<Term>) -> Option<Term> {
    let mut t = DType::I32;
    for f in &factors {
        Sum::term(f.clone()).atoms(&mut |a| {
            if a.expr().dtype().bits == 64 {
                t = DType::I64;
            }
        });
    }
    let exprs = factors.iter().map(|f| crate::render::sum(&Sum::term(f.clone()), t));
    let product = exprs.collect::<Option<Vec<Expr>>>()?.into_iter().reduce(|p, e| p * e)?;
    Some(Term::Atom(Atom::term(product, Nature::Product(factors))))
}

/// The atom, and the atoms in what is known of it.
pub(crate) fn close(a: &Atom, into: &mut BTreeSet<Atom>) {
    if !into.insert(a.clone()) {
        return;
    }
    match a.nature() {
        Nature::Var(_) | Nature::Opaque => {}
        Nature::Quotient(x, y) | Nature::Remainder(x, y) => {
            x.atoms(&mut |a| close(a, into));
            y.atoms(&mut |a| close(a, into));
            if let (Nature::Quotient(..), Some(product)) = (a.nature(), atom_times(a, y)) {
                product.atoms(&mut |a| close(a, into));
            }
        }
        Nature::Product(parts) => {
            for t in parts {
                Sum::term(t.clone()).atoms(&mut |a| close(a, into));
            }
        }
    }
}

/// `q * y` as a sum, where `y` is one term with coefficient one.
pub(crate) fn atom_times(q: &Atom, y: &Sum) -> Option<Sum> {
    monomial(&Term::Atom(q.clone()), y.as_term()?).map(Sum::term)
}

/// `0 <= r < y`.
pub(crate) fn is_remainder(r: &Sum, y: &Sum) -> Known<Pred> {
    Ok(Pred::and([Pred::ge(r.clone()), Pred::ge(y.clone().plus(r, -1)?.offset(-1)?)]))
}

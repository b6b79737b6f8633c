//! Inverses of index maps.
//!
//! For an injective map `y = f(x)` the inverse gives each `x` as an expression of `y` that is right
//! on the image. Two ways:
//!
//! **By structure.** The terms of `f` (variables, quotients) are unknowns of a linear system. Each
//! output is an equation: with remainders written as differences, `y1 = x % 4` is
//! `x - 4 * (x // 4) = y1`, and with `y0 = x // 4` elimination gives `x = 4*y0 + y1`. An output
//! that packs several terms, `y = 12*a + 4*b + c` with `0 <= c < 4` and `0 <= 4*b + c < 12`, gives
//! an equation a digit: `a = y // 12`, `b = y % 12 // 4`, `c = y % 4`. Where ranges overlap, as in
//! `y = 6*a + 7*b + 3*c` with `0 <= b < 3`, a remainder may still tell a term: `b = y % 3`, since 3
//! divides the other coefficients, and then `2*a + c = (y - 7*b) // 3`. That covers splits, fusions,
//! permutations, skews, offsets, and their compositions. The result is checked: substituting `f` for `y`
//! must give `x` back at every point of the domain, which also proves that `f` is injective.
//!
//! **By the engine**, where the structure does not show or does not check: the reversed relation as
//! a piecewise affine function, simplified under the image.

use std::collections::BTreeSet;

use tilewright_ir::visit::{Fold, Subst};
use tilewright_ir::{BinOp, Expr, ExprKind, Var};

use crate::answer::{Known, Reason};
use crate::domain::Domain;
use crate::form::{Atom, Pred, Sum, Term, gcd, too_large};
use crate::normalizer::canonical;
use crate::relation::Relation;
use crate::render;

/// `left = right`, with terms of the map on the left and cells on the right.
type Equation = (Sum, Sum);

impl Relation {
    /// The inverse on the image: one expression of `cells` for each variable of the domain.
    ///
    /// # Errors
    /// [`Reason::Mismatch`] for a map that is not injective, with two points that collide.
    pub fn inverse(&self, cells: &[Var]) -> Known<Vec<Expr>> {
        self.fits(cells)?;
        self.domain.ask(|| {
            if let Some(why) = self.hidden_terms() {
                return Err(why);
            }
            match self.by_structure(cells)? {
                Some(found) => Ok(found),
                None => self.by_engine(cells),
            }
        })
    }

    fn by_structure(&self, cells: &[Var]) -> Known<Option<Vec<Expr>>> {
        let Some(out) = self.inverse_by_structure(cells)? else { return Ok(None) };
        if !out.iter().any(|e| {
            e.any(|e| matches!(e.kind(), ExprKind::Binary(BinOp::FloorDiv | BinOp::FloorMod, ..)))
        }) {
            return Ok(Some(out));
        }
        // What is known of the cells makes the digits shorter: the outermost needs no remainder.
        let image = self.range(cells)?.domain();
        Ok(Some(out.iter().map(|e| image.simplify(e)).collect()))
    }

    /// The inverse that the structure of the map tells, not simplified.
    pub(crate) fn inverse_by_structure(&self, cells: &[Var]) -> Known<Option<Vec<Expr>>> {
        let d = &self.domain;
        let mut equations: Vec<Equation> = Vec::new();
        for (s, cell) in self.sums.iter().zip(cells) {
            let s = d.reduce(s)?;
            let y = Sum::var(cell);
            equations.push((canonical(&s)?, y.clone()));
            let mut digits = packed(d, &s, &y)?;
            if digits.is_empty() {
                digits = residues(d, &s, &y)?;
            }
            for (term, digit) in digits {
                equations.push((canonical(&term)?, digit));
            }
        }
        for (left, right) in without_quotients(&equations)? {
            for (term, digit) in packed(d, &left, &right)? {
                equations.push((canonical(&term)?, digit));
            }
        }
        let mut subst = Subst::vars(cells.iter().cloned().zip(self.exprs.iter().cloned()));
        let mut out = Vec::new();
        for v in d.vars() {
            // A variable with one value need not show in the image.
            let solved = match d.reduce(&Sum::var(v))?.as_constant() {
                Some(only) => Some(Sum::constant(only)),
                None => solve(&equations, &Term::Atom(Atom::var(v)))?,
            };
            let Some(solved) = solved else { return Ok(None) };
            let Some(e) = render::sum(&solved, v.dtype()) else { return Ok(None) };
            let back = subst.expr(&e);
            let mut normalizer = d.normalizer();
            let difference = normalizer.sum(&back)?.plus(&Sum::var(v), -1)?;
            if !d.holds(&Pred::eq(difference))? {
                return Ok(None);
            }
            out.push(e);
        }
        Ok(Some(out))
    }

    fn by_engine(&self, cells: &[Var]) -> Known<Vec<Expr>> {
        if let Some(collision) = self.collision()? {
            return Err(Reason::Mismatch(collision.to_string()).into());
        }
        let d = &self.domain;
        let image = self.range(cells)?.domain();
        let mut sums = self.sums.clone();
        sums.extend(image.space.atoms[cells.len()..].iter().cloned().map(Sum::atom));
        let graph = d.space.graph(&sums)?.intersect_domain(&d.set()?)?;
        let inverse = graph.reverse().coalesce()?;
        let mut out = Vec::new();
        for (at, v) in d.vars().enumerate() {
            let function = inverse.function(at)?.coalesce()?;
            let pieces = function
                .pieces()
                .map(|(set, aff)| Ok((set, image.space.lift(aff)?)))
                .collect::<Known<_>>()?;
            out.push(image.write_pieces(pieces, v.dtype())?);
        }
        Ok(out)
    }
}

/// The terms that a sum packs, each as an expression of the whole; empty where their ranges
/// overlap.
fn packed(d: &Domain, s: &Sum, y: &Sum) -> Known<Vec<Equation>> {
    let mut terms: Vec<(&Term, i128)> = s.terms.iter().map(|(t, c)| (t, *c)).collect();
    terms.sort_by_key(|(t, c)| (std::cmp::Reverse(*c), (*t).clone()));
    if terms.len() < 2 || terms.iter().any(|(_, c)| *c <= 0) {
        return Ok(Vec::new());
    }
    // The whole without its constant is a number in the mixed radix of the coefficients, with
    // each term counted from its least value.
    let mut lowest = Vec::new();
    for (t, _) in &terms {
        match d.sum_bounds(&Sum::term((*t).clone()))?.0 {
            Some(lo) => lowest.push(i128::from(lo)),
            None => return Ok(Vec::new()),
        }
    }
    let mut number = y.clone().offset(-s.constant)?;
    for ((_, c), lo) in terms.iter().zip(&lowest) {
        number = number.offset(too_large(c.checked_mul(-lo))?)?;
    }
    let mut out = Vec::new();
    // What is left of the number below a digit: one remainder, as long as each coefficient divides the next.
    let (mut rest, mut divides) = (number.clone(), true);
    for (at, (t, c)) in terms.iter().enumerate() {
        // What lies below this digit must be less than one of it.
        let mut below = Sum::default();
        for ((t, c), lo) in terms[at + 1..].iter().zip(&lowest[at + 1..]) {
            below = below.plus(&Sum::term((*t).clone()).offset(-lo)?, *c)?;
        }
        let fits = Pred::ge(Sum::constant(c - 1).plus(&below, -1)?);
        if !d.holds(&fits)? {
            return Ok(Vec::new());
        }
        if let Some((_, above)) = at.checked_sub(1).and_then(|i| terms.get(i)) {
            let higher = at.checked_sub(2).and_then(|i| terms.get(i));
            divides &= higher.is_none_or(|(_, higher)| higher % above == 0);
            rest = if divides { number.modulo(*above)? } else { rest.modulo(*above)? };
        }
        out.push((Sum::term((*t).clone()), rest.clone().div(*c)?.offset(lowest[at])?));
    }
    Ok(out)
}

/// Terms of a sum that remainders tell, each as an expression of the whole: one after the other, as long
/// as the coefficients of all others have a divisor that is prime to its own, and is not less than the
/// number of its values.
fn residues(d: &Domain, s: &Sum, y: &Sum) -> Known<Vec<Equation>> {
    let mut number = y.clone().offset(-s.constant)?;
    // What is left of the number, and of its terms: coefficient, least value, number of values.
    let mut left = Vec::new();
    for (t, c) in &s.terms {
        let (Some(lo), Some(hi)) = d.sum_bounds(&Sum::term(t.clone()))? else {
            return Ok(Vec::new());
        };
        number = number.offset(too_large(c.checked_mul(-i128::from(lo)))?)?;
        left.push((t, *c, i128::from(lo), i128::from(hi) - i128::from(lo) + 1));
    }
    let mut out = Vec::new();
    while !left.is_empty() {
        let common = left.iter().fold(0, |g, (_, c, ..)| gcd(g, *c));
        if common > 1 {
            number = number.div(common)?;
            left.iter_mut().for_each(|(_, c, ..)| *c /= common);
        }
        if let [(t, c, lo, _)] = left[..] {
            // Its coefficient is 1 or -1 now.
            out.push((Sum::term(t.clone()), number.scaled(c)?.offset(lo)?));
            break;
        }
        let step = (0..left.len()).find_map(|k| {
            let others = left.iter().enumerate().filter(|(i, _)| *i != k);
            let by = others.fold(0, |g, (_, (_, c, ..))| gcd(g, *c));
            let inverse = inverse_modulo(left[k].1, by).filter(|_| left[k].3 <= by)?;
            Some((k, by, inverse))
        });
        let Some((k, by, inverse)) = step else { break };
        let (t, c, lo, _) = left.remove(k);
        let digit = number.scaled(inverse)?.modulo(by)?;
        out.push((Sum::term(t.clone()), digit.clone().offset(lo)?));
        number = number.plus(&digit, -c)?.div(by)?;
        left.iter_mut().for_each(|(_, c, ..)| *c /= by);
    }
    Ok(out)
}

/// The number whose product with another is 1 modulo `by`; `None` where the two are not prime to each
/// other, or `by` is less than 2.
fn inverse_modulo(number: i128, by: i128) -> Option<i128> {
    let (mut old, mut new) = ((number.rem_euclid(by.max(1)), 1), (by, 0));
    if by < 2 {
        return None;
    }
    while new.0 != 0 {
        let q = old.0 / new.0;
        (old, new) = (new, (old.0 - q * new.0, old.1 - q * new.1));
    }
    (old.0 == 1).then(|| old.1.rem_euclid(by))
}

/// What equations say of variables alone, where quotients of them go when several are taken together:
/// `i + (j + 3) // 4 = y0` and `(j + 3) % 4 = y1` say `4*i + j + 3 = 4*y0 + y1`.
fn without_quotients(equations: &[Equation]) -> Known<Vec<Equation>> {
    let terms = equations.iter().flat_map(|(l, _)| l.terms.keys());
    let quotients: BTreeSet<Term> =
        terms.filter(|t| !matches!(t, Term::Atom(_))).cloned().collect();
    if quotients.is_empty() {
        return Ok(Vec::new());
    }
    eliminate(equations.to_vec(), quotients)
}

/// The equations without some terms: elimination over the rationals.
fn eliminate(mut rows: Vec<Equation>, columns: BTreeSet<Term>) -> Known<Vec<Equation>> {
    for column in columns {
        // The row with the smallest coefficient eliminates the column from the others.
        let Some((_, _, pivot)) = rows
            .iter()
            .enumerate()
            .filter_map(|(i, (l, _))| {
                Some((l.terms.get(&column)?.unsigned_abs(), l.terms.len(), i))
            })
            .min()
        else {
            continue;
        };
        let (left, right) = rows.swap_remove(pivot);
        let Some(p) = left.terms.get(&column).copied() else { continue };
        for (l, r) in &mut rows {
            let Some(c) = l.terms.get(&column).copied() else { continue };
            // p * row - c * pivot row
            let g = gcd(p, c);
            *l = l.scaled(p / g)?.plus(&left, -c / g)?;
            *r = r.scaled(p / g)?.plus(&right, -c / g)?;
        }
    }
    Ok(rows)
}

/// The value of one term as a sum of right sides, where it is integral.
fn solve(equations: &[Equation], wanted: &Term) -> Known<Option<Sum>> {
    let terms = equations.iter().flat_map(|(l, _)| l.terms.keys());
    let columns: BTreeSet<Term> = terms.filter(|t| *t != wanted).cloned().collect();
    for (l, r) in eliminate(equations.to_vec(), columns)? {
        let Some(c) = l.terms.get(wanted).copied().filter(|_| l.terms.len() == 1) else { continue };
        let total = r.offset(-l.constant)?;
        if total.content() % c == 0 && total.constant % c == 0 {
            let mut out = Sum::constant(total.constant / c);
            for (t, k) in total.terms {
                out = out.plus(&Sum::term(t), k / c)?;
            }
            return Ok(Some(out));
        }
    }
    Ok(None)
}

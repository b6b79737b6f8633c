//! The simplest equal expression under a domain.
//!
//! Candidates are made in several ways, the engine checks each one against the original, and the
//! cheapest by [`cost`] that passes is taken; the original is always a candidate, so that nothing
//! gets worse. Every candidate is checked, however it was made. Order and ties are fixed, so
//! that one input gives one output.
//!
//! **Indices.** With `x` standing for a sum and ranges from the domain:
//!
//! * `(k*a + r) // k = a + m` and `(k*a + r) % k = r - k*m` where `r` stays in `k*m .. k*(m+1)`;
//! * `(g*a + r) // (g*k) = (a + m) // k` and `(g*a + r) % (g*k) = (a + m) % k * g + r - g*m`
//!   where `r` stays in `g*m .. g*(m+1)`: `(8*a + b) // 32` is `a // 4` for `0 <= b < 8`;
//! * `x // k * k + x % k = x`; `x - x // k * k = x % k`; `(x - 1) // k + 1 = (x + k - 1) // k`;
//! * `min(a, b) + s` is `min(a + s, b + s)`, either way round;
//! * truncating division is floor division where the sign is known; `min`, `max` and selections
//!   whose condition is decided go; a variable with one value is that value;
//! * what the engine itself makes of the expression under the domain.
//!
//! **Conditions.** A condition is the set of points where it holds. Closed forms of one set differ
//! (`io * 4 + ii >= 14`, `io == 3 and ii >= 2`), so these are tried:
//!
//! * the parts of the given condition that do not follow from the others and the domain;
//! * the set relative to the domain (its *gist*), as it is, and with its equalities made explicit;
//! * the negation of the same for the complement, one constraint after the other: a complement
//!   that is one conjunction gives a short disjunction;
//! * the bounding box of the set or of the complement, where that is the set.
//!
//! ```
//! # use tilewright_ir::{Expr, Var};
//! # use tilewright_polyhedral::Engine;
//! let engine = Engine::new();
//! let (io, ii) = (Var::index("io"), Var::index("ii"));
//! let d = engine.box_of(&[(io.clone(), 4), (ii.clone(), 4)]);
//! let flat = &io * 4 + &ii;
//! assert_eq!(d.simplify(&flat.clone().floormod(4)).to_string(), "ii");
//! assert_eq!(d.simplify(&flat.greater_equal(14)).to_string(), "io == 3 and ii >= 2");
//! # Ok::<(), tilewright_ir::Error>(())
//! ```
//!
//! **Limits.** The result holds under the domain only, and under the assumption of the whole crate
//! that index arithmetic stays in its type. Where the engine does not answer within its quota the
//! original comes back.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use tilewright_ir::hash::HashMap;

use tilewright_ir::visit::fold_expr_children;
use tilewright_ir::{CallTarget, DType, Expr, ExprKind, Fold, Intrin};

use crate::answer::{Known, Proof, Reason};
use crate::charged::{Ends, Set as Raw};
use crate::domain::Domain;
use crate::form::{Atom, Nature, Pred, Sum, Term, gcd};
use crate::normalizer::{canonical, within_size};
use crate::product::{is_plain_digits, is_remainder, joined_digits, split_by};
use crate::render::{self, cost};
use crate::space::reading_order;

/// Most pieces of a set that is written out as a disjunction.
const MAX_PARTS: usize = 8;

/// The reduced forms of terms under one domain. Reduced parts are reduced again in their new
/// surroundings, which doubles the work at each level unless what is known is kept.
type Reduced = HashMap<Term, Sum>;

impl Domain {
    /// The simplest expression that is equal at every point: an index or a condition. Other
    /// expressions, vectors, and what cannot be analysed come back as they are.
    pub fn simplify(&self, e: &Expr) -> Expr {
        if e.dtype().lanes != 1 {
            return e.clone();
        }
        if e.dtype().is_bool() {
            self.simplify_predicate(e)
        } else if e.dtype().is_int() {
            self.simplify_index(e)
        } else {
            e.clone()
        }
    }

    /// The simplest integer expression that is equal at every point.
    fn simplify_index(&self, e: &Expr) -> Expr {
        if e.as_int().is_some() {
            return e.clone();
        }
        let e = &Operands(self).expr(e);
        let found = self.try_simplify_index(e);
        match found {
            Ok(Some(better)) => better,
            _ => e.clone(),
        }
    }

    fn try_simplify_index(&self, e: &Expr) -> Known<Option<Expr>> {
        let s = self.normalizer().sum(e)?;
        let s = joined_digits(&s).unwrap_or(s);
        if is_plain_digits(&s)? {
            let plain = render::sum(&s, e.dtype());
            return Ok(plain.filter(|plain| cost(plain) < cost(e)));
        }
        // Of what is written, the price of the original alone counts.
        let question = self.question("simplify").map(|q| q.sum(&s).number(e.dtype()));
        self.engine.remembered(question.map(|q| q.number(cost(e))), || {
            self.ask(|| self.reach(|f| s.atoms(f))?.simplest(&s, e.dtype(), Some(e)))
        })
    }

    /// The simplest condition that holds at the same points of the domain.
    pub fn simplify_predicate(&self, e: &Expr) -> Expr {
        let found = self.try_simplify_predicate(e);
        match found {
            Ok(Some(better)) => better,
            _ => e.clone(),
        }
    }

    fn try_simplify_predicate(&self, e: &Expr) -> Known<Option<Expr>> {
        let p = self.normalizer().pred(e)?;
        let question = self.question("simplify").map(|q| q.pred(&p).number(cost(e)));
        self.engine.remembered(question, || {
            self.ask(|| {
                let d = self.reach(|f| p.atoms(f))?;
                let inside = d.set()?.intersect(&d.space.pred(&p)?)?;
                d.closed_form(&inside, Some(&p), Some(e))
            })
        })
    }

    /// The simplest expression for a sum whose atoms are all in the space; `None` if nothing is
    /// simpler than `original`.
    pub(crate) fn simplest(
        &self,
        s: &Sum,
        t: DType,
        original: Option<&Expr>,
    ) -> Known<Option<Expr>> {
        let reduced = self.reduce(s)?;
        let mut sums = vec![reduced.clone()];
        push(&mut sums, canonical(&reduced)?);
        push(&mut sums, canonical(s)?);
        push(&mut sums, s.clone());
        if let Ok(Some(from_engine)) = self.by_engine(s) {
            if let Ok(r) = self.reduce(&from_engine) {
                push(&mut sums, r);
            }
            push(&mut sums, from_engine);
        }
        for at in 0..sums.len() {
            if let Ok(dressed) = dress(&sums[at], t) {
                push(&mut sums, dressed);
            }
        }
        let written = sums.iter().map(|c| (c, render::sum(c, t)));
        cheapest(written, original, |c| self.holds(&Pred::eq(c.clone().plus(s, -1)?)))
    }

    /// What the engine makes of a sum under the domain, if it is one piece.
    fn by_engine(&self, s: &Sum) -> Known<Option<Sum>> {
        let f = self.space.sum(s)?.coalesce()?.gist(&self.set()?)?.coalesce()?;
        let mut pieces = f.pieces();
        match (pieces.next(), pieces.next()) {
            (Some((_, aff)), None) => self.space.lift(aff).map(Some),
            _ => Ok(None),
        }
    }

    /// Applies what the domain says about ranges, from the inside out.
    pub(crate) fn reduce(&self, s: &Sum) -> Known<Sum> {
        self.reduce_sum(s, &mut Reduced::default())
    }

    fn reduce_sum(&self, s: &Sum, done: &mut Reduced) -> Known<Sum> {
        let mut out = Sum::constant(s.constant);
        for (t, c) in &s.terms {
            let known = match done.get(t) {
                Some(known) => known.clone(),
                None => {
                    let new = within_size(self.reduce_term(t, done)?)?;
                    done.insert(t.clone(), new.clone());
                    new
                }
            };
            out = out.plus(&known, *c)?;
        }
        Ok(out)
    }

    fn range(&self, s: &Sum) -> Known<(Option<i128>, Option<i128>)> {
        let (lo, hi) = self.sum_bounds(s)?;
        Ok((lo.map(i128::from), hi.map(i128::from)))
    }

    /// `m` such that the sum stays in `k*m .. k*(m+1)`.
    fn cell(&self, s: &Sum, k: i128) -> Known<Option<i128>> {
        Ok(match self.range(s)? {
            (Some(lo), Some(hi)) if lo.div_euclid(k) == hi.div_euclid(k) => Some(lo.div_euclid(k)),
            _ => None,
        })
    }

    fn reduce_term(&self, t: &Term, done: &mut Reduced) -> Known<Sum> {
        match t {
            Term::Atom(a) => self.reduce_atom(a),
            Term::Div(s, k) | Term::Mod(s, k) => {
                let s = self.reduce_sum(s, done)?;
                let divide = matches!(t, Term::Div(..));
                let (quotient, rest) = s.split(*k);
                if let Some(m) = self.cell(&rest, *k)? {
                    return if divide { quotient.offset(m) } else { rest.offset(-m * k) };
                }
                let Some((g, whole, part)) = self.grouped(&rest, *k)? else {
                    return div_or_mod(&s, *k, divide);
                };
                let inner = self.reduce_sum(&div_or_mod(&whole, k / g, divide)?, done)?;
                if divide { quotient.plus(&inner, 1) } else { inner.scaled(g)?.plus(&part, 1) }
            }
            Term::TruncDiv(s, k) | Term::TruncMod(s, k) => {
                let s = self.reduce_sum(s, done)?;
                let divide = matches!(t, Term::TruncDiv(..));
                match self.range(&s)? {
                    (Some(0..), _) => self.reduce_sum(&div_or_mod(&s, *k, divide)?, done),
                    (_, Some(..=0)) => {
                        let negated = div_or_mod(&s.scaled(-1)?, *k, divide)?;
                        self.reduce_sum(&negated, done)?.scaled(-1)
                    }
                    _ if divide => Ok(Sum::term(Term::TruncDiv(Box::new(s), *k))),
                    _ => Ok(Sum::term(Term::TruncMod(Box::new(s), *k))),
                }
            }
            Term::Min(a, b) | Term::Max(a, b) => {
                let (a, b) = (self.reduce_sum(a, done)?, self.reduce_sum(b, done)?);
                let smaller = matches!(t, Term::Min(..));
                match self.range(&a.clone().plus(&b, -1)?)? {
                    (_, Some(..=0)) => Ok(if smaller { a } else { b }),
                    (Some(0..), _) => Ok(if smaller { b } else { a }),
                    _ if smaller => a.min(b),
                    _ => a.max(b),
                }
            }
            Term::Select(c, a, b) => {
                if self.holds(c)? {
                    return self.reduce_sum(a, done);
                }
                if self.holds(&c.negate()?)? {
                    return self.reduce_sum(b, done);
                }
                // Each side under its own condition.
                let yes = self.constrain(vec![(**c).clone()]).reduce(a)?;
                let no = self.constrain(vec![c.negate()?]).reduce(b)?;
                let inside = self.set()?.intersect(&self.space.pred(c)?)?;
                let cond = match self.closed_form(&inside, Some(c), None)? {
                    Some(e) => self.normalizer().pred(&e)?,
                    None => (**c).clone(),
                };
                Ok(Sum::select(cond, yes, no))
            }
        }
    }

    fn reduce_atom(&self, a: &Atom) -> Known<Sum> {
        let value = Sum::atom(a.clone());
        if let (Some(lo), Some(hi)) = self.range(&value)?
            && lo == hi
        {
            return Ok(Sum::constant(lo));
        }
        let (Nature::Quotient(x, y) | Nature::Remainder(x, y)) = a.nature() else {
            return Ok(value);
        };
        let (q, r) = split_by(x, y)?;
        match self.holds(&is_remainder(&r, y)?)? {
            true if matches!(a.nature(), Nature::Quotient(..)) => Ok(q),
            true => Ok(r),
            false => Ok(value),
        }
    }

    /// A divisor `g` of `k` such that the sum is `g * a + r` with `r` in `g*m .. g*(m+1)`:
    /// `g`, `a + m`, `r - g*m`. The largest such divisor.
    fn grouped(&self, rest: &Sum, k: i128) -> Known<Option<(i128, Sum, Sum)>> {
        let mut divisors: Vec<i128> =
            rest.terms.values().map(|c| gcd(*c, k)).filter(|g| *g > 1).collect();
        divisors.sort_unstable_by(|a, b| b.cmp(a));
        divisors.dedup();
        for g in divisors {
            let (whole, part) = rest.split(g);
            if let Some(m) = self.cell(&part, g)? {
                return Ok(Some((g, whole.offset(m)?, part.offset(-m * g)?)));
            }
        }
        Ok(None)
    }

    /// The simplest condition for a part of the domain's set. `given` is a condition that is known
    /// to describe it, `original` its expression: `None` if nothing is simpler than that.
    pub(crate) fn closed_form(
        &self,
        inside: &Raw,
        given: Option<&Pred>,
        original: Option<&Expr>,
    ) -> Known<Option<Expr>> {
        if inside.is_empty()? {
            return Ok(Some(Expr::bool(false)));
        }
        let outside = self.set()?.subtract(inside)?;
        if outside.is_empty()? {
            return Ok(Some(Expr::bool(true)));
        }
        // Nothing is simpler than `i < 3` that is not constant, but `flag`.
        let flags = self.space.atoms.iter().any(|a| a.expr().dtype().is_bool());
        if original.is_some_and(|o| cost(o) <= if flags { 1 } else { 3 }) {
            return Ok(None);
        }
        let mut found: Vec<Pred> = Vec::new();
        if let Some(p) = given {
            push(&mut found, p.clone());
            push(&mut found, self.pruned(p)?);
        }
        let mut box_of_all = None;
        let mut shapes = |set: &Raw| -> Known<Vec<Vec<Vec<Pred>>>> {
            let coalesced = set.coalesce()?;
            let explicit = coalesced.detect_equalities()?;
            let mut out = Vec::new();
            for s in [coalesced, explicit] {
                if s.count() <= MAX_PARTS {
                    let gist = s.gist(&self.set()?)?.coalesce()?;
                    let gist = gist.compute_divs()?.remove_redundancies()?;
                    push(&mut out, self.space.lift_set(&gist)?);
                }
            }
            let all = match &box_of_all {
                Some(all) => all,
                None => &*box_of_all.insert(self.ends(&self.set()?)?),
            };
            if let Some(b) = self.as_box(set, all)? {
                push(&mut out, vec![b]);
            }
            Ok(out)
        };
        for shape in shapes(inside)? {
            push(&mut found, Pred::or(shape.into_iter().map(Pred::and)));
        }
        let mut forms: BTreeMap<Pred, Pred> = BTreeMap::new();
        for shape in shapes(&outside)? {
            let mut all = Vec::new();
            for part in shape {
                let mut any = Vec::new();
                for c in part {
                    let form = match forms.entry(c) {
                        Entry::Occupied(form) => form.into_mut(),
                        Entry::Vacant(new) => {
                            let form = self.alone(&new.key().negate()?)?;
                            new.insert(form)
                        }
                    };
                    any.push(form.clone());
                }
                all.push(Pred::or(any));
            }
            push(&mut found, Pred::and(all));
        }
        for at in 0..found.len() {
            let dressed = dress_pred(&found[at])?;
            push(&mut found, dressed);
        }
        cheapest(found.iter().map(|p| (p, render::pred(p))), original, |p| {
            self.set()?.intersect(&self.space.pred(p)?)?.is_equal(inside)
        })
    }

    /// The domain without a part of it, where that part is one conjunction relative to the domain:
    /// one of its constraints fails. `None` where it is not.
    pub(crate) fn complement_form(&self, part: &Raw) -> Known<Option<Expr>> {
        let gist = part.coalesce()?.gist(&self.set()?)?;
        if gist.count() != 1 {
            return Ok(None);
        }
        let mut any = Vec::new();
        for constraint in self.space.lift_set(&gist)?.into_iter().flatten() {
            any.push(dress_pred(&self.alone(&constraint.negate()?)?)?);
        }
        any.sort_by_cached_key(|p| match p {
            Pred::And(parts) => reading_order(parts),
            p => reading_order(std::slice::from_ref(p)),
        });
        Ok(render::pred(&Pred::or(any)))
    }

    /// The simplest closed form of one condition, by its gist; itself where that is no conjunction.
    fn alone(&self, p: &Pred) -> Known<Pred> {
        let inside = self.set()?.intersect(&self.space.pred(p)?)?;
        let gist = inside.detect_equalities()?.gist(&self.set()?)?;
        if gist.count() != 1 {
            return Ok(p.clone());
        }
        let form = self.space.lift_set(&gist)?.into_iter().map(Pred::and).next();
        Ok(match form {
            Some(q) if weight(&q) <= weight(p) => q,
            _ => p.clone(),
        })
    }

    /// Without the parts that follow from the others and the domain, and with simpler sums.
    fn pruned(&self, p: &Pred) -> Known<Pred> {
        Ok(match p {
            Pred::Ge(s) => Pred::ge(self.reduce(s)?),
            Pred::Eq(s) => Pred::eq(self.reduce(s)?),
            Pred::Ne(s) => Pred::eq(self.reduce(s)?).negate()?,
            Pred::And(parts) => {
                let parts = parts.iter().map(|p| self.pruned(p)).collect::<Known<Vec<_>>>()?;
                Pred::and(self.needed(parts)?)
            }
            Pred::Or(parts) => {
                // `a or b` without a is not (not a and not b) without not a.
                let parts =
                    parts.iter().map(|p| self.pruned(p)?.negate()).collect::<Known<Vec<_>>>()?;
                Pred::and(self.needed(parts)?).negate()?
            }
            _ => p.clone(),
        })
    }

    /// The members of a conjunction that do not follow from the others.
    fn needed(&self, mut parts: Vec<Pred>) -> Known<Vec<Pred>> {
        let mut order: Vec<usize> = (0..parts.len()).collect();
        // The heaviest are the first to go.
        order.sort_by_key(|i| std::cmp::Reverse((weight(&parts[*i]), *i)));
        for at in order {
            let kept = std::mem::replace(&mut parts[at], Pred::Bool(true));
            let others = self.space.pred(&Pred::and(parts.iter().cloned()))?;
            let fails = self.space.pred(&kept.negate()?)?;
            if !self.set()?.intersect(&others)?.intersect(&fails)?.is_empty()? {
                parts[at] = kept;
            }
        }
        Ok(parts)
    }

    /// The least and greatest value of each variable in a set.
    fn ends(&self, set: &Raw) -> Known<Vec<Ends>> {
        let vars = self.space.atoms.iter().enumerate().filter(|(_, a)| a.as_var().is_some());
        vars.map(|(at, _)| set.ends(at)).collect()
    }

    /// Constant bounds of the variables that are tighter than those of the domain.
    fn as_box(&self, set: &Raw, all: &[Ends]) -> Known<Option<Vec<Pred>>> {
        let mut parts = Vec::new();
        let vars = self.space.atoms.iter().filter(|a| a.as_var().is_some());
        for ((a, (lo, hi)), (all_lo, all_hi)) in vars.zip(self.ends(set)?).zip(all) {
            let value = Sum::atom(a.clone());
            let (all_lo, all_hi) = (*all_lo, *all_hi);
            if lo == all_lo && hi == all_hi {
                continue;
            }
            match (lo, hi) {
                (Some(l), Some(h)) if l == h => {
                    parts.push(Pred::eq(value.offset(-i128::from(l))?));
                }
                _ => {
                    if let Some(l) = lo.filter(|_| lo != all_lo) {
                        parts.push(Pred::ge(value.clone().offset(-i128::from(l))?));
                    }
                    if let Some(h) = hi.filter(|_| hi != all_hi) {
                        parts.push(Pred::ge(Sum::constant(i128::from(h)).plus(&value, -1)?));
                    }
                }
            }
        }
        Ok((!parts.is_empty()).then_some(parts))
    }

    /// Whether two conditions hold at the same points.
    pub fn same_condition(&self, a: &Expr, b: &Expr) -> Proof {
        if a.dtype().is_bool() && b.dtype().is_bool() {
            self.equal(a, b)
        } else {
            Proof::Unknown(Reason::Mismatch("not conditions".into()).into())
        }
    }
}

fn div_or_mod(s: &Sum, k: i128, divide: bool) -> Known<Sum> {
    if divide { s.div(k) } else { s.modulo(k) }
}

/// Simplifies the operands of bit operations, which forms take apart into digits.
struct Operands<'d>(&'d Domain);

impl Fold for Operands<'_> {
    fn expr(&mut self, e: &Expr) -> Expr {
        match e.kind() {
            ExprKind::Call(CallTarget::Intrin(op), args)
                if matches!(op, Intrin::BitAnd | Intrin::BitOr | Intrin::BitXor)
                    && e.dtype().is_int() =>
            {
                let args = args.iter().map(|a| self.0.simplify(a)).collect();
                Expr::call(CallTarget::Intrin(*op), args, e.dtype())
            }
            ExprKind::Call(..) | ExprKind::Binary(..) | ExprKind::Cast(_) => {
                fold_expr_children(self, e)
            }
            _ => e.clone(),
        }
    }
}

/// The cheapest of some forms that is right, as it is written; `None` where none is cheaper than the
/// original.
fn cheapest<'f, T: 'f>(
    forms: impl Iterator<Item = (&'f T, Option<Expr>)>,
    original: Option<&Expr>,
    is_right: impl Fn(&T) -> Known<bool>,
) -> Known<Option<Expr>> {
    let mut best: Vec<(u64, &T, Expr)> =
        forms.filter_map(|(form, e)| e.map(|e| (cost(&e), form, e))).collect();
    best.sort_by_key(|(c, ..)| *c);
    for (c, form, e) in best {
        if original.is_some_and(|o| cost(o) <= c) {
            return Ok(None);
        }
        if is_right(form)? {
            return Ok(Some(e));
        }
    }
    Ok(None)
}

fn push<T: PartialEq>(list: &mut Vec<T>, item: T) {
    if !list.contains(&item) {
        list.push(item);
    }
}

/// The cost of a condition; what cannot be written is heaviest.
fn weight(p: &Pred) -> u64 {
    render::pred(p).map_or(u64::MAX, |e| cost(&e))
}

fn price(s: &Sum, t: DType) -> u64 {
    render::sum(s, t).map_or(u64::MAX, |e| cost(&e))
}

/// Writes a sum as people do: differences as remainders, constants inside of divisions, wherever
/// that is shorter.
fn dress(s: &Sum, t: DType) -> Known<Sum> {
    let mut out = Sum::constant(s.constant);
    for (term, c) in &s.terms {
        let term = match term {
            Term::Div(inner, k) => Term::Div(Box::new(dress(inner, t)?), *k),
            Term::Mod(inner, k) => Term::Mod(Box::new(dress(inner, t)?), *k),
            other => other.clone(),
        };
        out = out.plus(&Sum::term(term), *c)?;
    }
    loop {
        let mut best: Option<Sum> = None;
        let mut least = price(&out, t);
        let mut offer = |candidate: Sum| {
            let p = price(&candidate, t);
            if p < least {
                least = p;
                best = Some(candidate);
            }
        };
        for (term, d) in &out.terms {
            let without = out.clone().plus(&Sum::term(term.clone()), -d)?;
            match term {
                // d * (x // k) = times * (x % k - x) with times = -d / k, truncating or not
                Term::Div(inner, k) | Term::TruncDiv(inner, k) if d % k == 0 => {
                    let remainder = match term {
                        Term::Div(..) => inner.modulo(*k)?,
                        _ => Sum::term(Term::TruncMod(inner.clone(), *k)),
                    };
                    let times = -d / k;
                    offer(without.clone().plus(&remainder, times)?.plus(inner, -times)?);
                }
                // min(a, b) + s = min(a + s, b + s), s - min(a, b) = max(s - a, s - b)
                Term::Min(a, b) | Term::Max(a, b) if d.abs() == 1 => {
                    let (a, b) = (without.clone().plus(a, *d)?, without.clone().plus(b, *d)?);
                    let (a, b) = (Box::new(a), Box::new(b));
                    let smaller = matches!(term, Term::Min(..)) == (*d == 1);
                    let moved = if smaller { Term::Min(a, b) } else { Term::Max(a, b) };
                    offer(Sum::term(moved));
                }
                _ => {}
            }
            if let Term::Div(inner, k) = term
                && out.constant != 0
                && out.constant % d == 0
            {
                // c + d * (x // k) = d * ((x + c/d*k) // k)
                let shifted = inner.as_ref().clone().offset(out.constant / d * k)?;
                let mut moved = without.clone();
                moved.constant = 0;
                offer(moved.plus(&Sum::term(Term::Div(Box::new(shifted), *k)), *d)?);
            }
        }
        match best {
            Some(better) => out = better,
            None => return Ok(out),
        }
    }
}

fn dress_pred(p: &Pred) -> Known<Pred> {
    let t = DType::I64;
    Ok(match p {
        Pred::Ge(s) | Pred::Eq(s) | Pred::Ne(s) => {
            if let Some(flag) = as_flag(p, s) {
                return Ok(flag);
            }
            let s = dress(s, t)?;
            match p {
                Pred::Ge(_) => Pred::Ge(s),
                Pred::Eq(_) => Pred::Eq(s),
                _ => Pred::Ne(s),
            }
        }
        Pred::And(parts) => Pred::and(parts.iter().map(dress_pred).collect::<Known<Vec<_>>>()?),
        Pred::Or(parts) => Pred::or(parts.iter().map(dress_pred).collect::<Known<Vec<_>>>()?),
        p => p.clone(),
    })
}

/// A comparison of a `bool` with a number as the `bool` itself.
fn as_flag(p: &Pred, s: &Sum) -> Option<Pred> {
    let (Term::Atom(a), c) = s.terms.iter().next()? else { return None };
    if s.terms.len() != 1 || !a.expr().dtype().is_bool() {
        return None;
    }
    match (holds_at(0, c, s, p), holds_at(1, c, s, p)) {
        (false, true) => Some(Pred::Flag(a.clone(), true)),
        (true, false) => Some(Pred::Flag(a.clone(), false)),
        (both, _) => Some(Pred::Bool(both)),
    }
}

fn holds_at(v: i128, c: &i128, s: &Sum, p: &Pred) -> bool {
    let value = c * v + s.constant;
    match p {
        Pred::Ge(_) => value >= 0,
        Pred::Eq(_) => value == 0,
        _ => value != 0,
    }
}

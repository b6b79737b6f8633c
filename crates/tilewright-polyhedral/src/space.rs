//! Between normal forms and the engine.
//!
//! A [`Space`] is a list of atoms; atom `k` is dimension `k` of the engine's sets. Symbolic sizes
//! and terms that are not affine are dimensions like any other here: a fact that is asked of all
//! points is asked of all their values too. Lowering goes through the engine's constructors (no
//! text is parsed), lifting reads affine functions and constraints back.

use presburger::{self as pb, Aff};

use crate::answer::{Known, Reason, Unknown};
use crate::charged::{Constraint, Ctx, Map, PwAff, Set};
use crate::form::{Atom, Pred, Sum, Term};

/// Which atom is which dimension.
pub(crate) struct Space {
    pub ctx: Ctx,
    pub atoms: Vec<Atom>,
    dims: pb::Space,
}

impl Space {
    pub fn new(ctx: &Ctx, atoms: Vec<Atom>) -> Space {
        let dims = pb::Space::set(0, atoms.len());
        Space { ctx: ctx.clone(), atoms, dims }
    }

    pub fn len(&self) -> usize {
        self.atoms.len()
    }

    pub fn position(&self, atom: &Atom) -> Option<usize> {
        self.atoms.iter().position(|a| a == atom)
    }

    /// All points.
    pub fn universe(&self) -> Set {
        self.ctx.universe(&self.dims)
    }

    /// No point.
    pub fn empty(&self) -> Set {
        self.ctx.empty(&self.dims)
    }

    fn place(&self, atom: &Atom) -> Known<usize> {
        self.position(atom)
            .ok_or_else(|| Reason::Engine(format!("{} has no place", atom.name())).into())
    }

    /// The function that a sum is.
    pub fn sum(&self, s: &Sum) -> Known<PwAff> {
        let mut total = self.ctx.function(&self.dims, self.row(s)?);
        for (term, c) in &s.terms {
            if matches!(term, Term::Atom(_)) {
                continue;
            }
            let mut part = self.term(term)?;
            if *c != 1 {
                part = part.scale(*c)?;
            }
            total = total.add(&part)?;
        }
        Ok(total)
    }

    fn term(&self, term: &Term) -> Known<PwAff> {
        match term {
            Term::Atom(a) => self.sum(&Sum::atom(a.clone())),
            Term::Div(s, k) => self.sum(s)?.floor_div(*k),
            Term::Mod(s, k) => self.sum(s)?.modulo(*k),
            Term::TruncDiv(s, k) | Term::TruncMod(s, k) => {
                let p = self.sum(s)?;
                let (up, down) = match term {
                    Term::TruncDiv(..) => (p.floor_div(*k)?, p.neg()?.floor_div(*k)?.neg()?),
                    _ => (p.modulo(*k)?, p.neg()?.modulo(*k)?.neg()?),
                };
                let above = p.nonneg()?;
                let below = above.complement()?;
                up.intersect_domain(&above)?.union_add(&down.intersect_domain(&below)?)
            }
            Term::Min(a, b) => self.sum(a)?.min(&self.sum(b)?),
            Term::Max(a, b) => self.sum(a)?.max(&self.sum(b)?),
            Term::Select(c, a, b) => {
                let (yes, no) = (self.pred(c)?, self.pred(&c.negate()?)?);
                let no = self.sum(b)?.intersect_domain(&no)?;
                self.sum(a)?.intersect_domain(&yes)?.union_add(&no)
            }
        }
    }

    /// The points at which a condition holds.
    pub fn pred(&self, p: &Pred) -> Known<Set> {
        match p {
            Pred::Ge(s) | Pred::Eq(s) if is_affine(s) => self.rows(&[p]),
            Pred::Bool(true) => Ok(self.universe()),
            Pred::Bool(false) => Ok(self.empty()),
            Pred::Ge(s) => self.sum(s)?.nonneg(),
            Pred::Eq(s) => self.sum(s)?.zero(),
            Pred::Ne(s) => self.sum(s)?.non_zero(),
            Pred::Flag(a, value) => {
                self.sum(&Sum::atom(a.clone()).offset(-i128::from(*value))?)?.zero()
            }
            Pred::And(parts) => self.all(parts),
            Pred::Or(parts) => {
                let mut any = self.empty();
                for p in parts {
                    any = any.union(&self.pred(p)?);
                }
                Ok(any)
            }
        }
    }

    /// The points at which all of some conditions hold. Constraints on affine functions, which most
    /// conditions are, become rows of one system. Unions come last: they multiply what is
    /// intersected after them.
    pub fn all<'a>(&self, parts: impl IntoIterator<Item = &'a Pred>) -> Known<Set> {
        let (mut rows, mut others, mut unions) = (Vec::new(), Vec::new(), Vec::new());
        let mut todo: Vec<&Pred> = parts.into_iter().collect();
        todo.reverse();
        while let Some(p) = todo.pop() {
            match p {
                Pred::And(parts) => todo.extend(parts.iter().rev()),
                Pred::Or(_) | Pred::Ne(_) => unions.push(p),
                Pred::Ge(s) | Pred::Eq(s) if is_affine(s) => rows.push(p),
                Pred::Bool(true) => {}
                p => others.push(p),
            }
        }
        let all = if rows.is_empty() { self.universe() } else { self.rows(&rows)? };
        let others = others.into_iter().chain(unions);
        others.into_iter().try_fold(all, |all, p| all.intersect(&self.pred(p)?))
    }

    /// The points of constraints on affine functions, for which no function by pieces is made.
    fn rows(&self, constraints: &[&Pred]) -> Known<Set> {
        self.ctx.conjunction(
            &self.dims,
            &self.rows_of(true, constraints)?,
            &self.rows_of(false, constraints)?,
        )
    }

    fn rows_of(&self, equal: bool, constraints: &[&Pred]) -> Known<Vec<Vec<i128>>> {
        let sums = constraints.iter().filter_map(|p| match p {
            Pred::Ge(s) if !equal => Some(s),
            Pred::Eq(s) if equal => Some(s),
            _ => None,
        });
        sums.map(|s| self.row(s)).collect()
    }

    /// The constant of the affine part of a sum, and its coefficients.
    fn row(&self, s: &Sum) -> Known<Vec<i128>> {
        let mut row = vec![0; self.len() + 1];
        row[0] = s.constant;
        for (term, c) in &s.terms {
            if let Term::Atom(atom) = term {
                row[self.place(atom)? + 1] = *c;
            }
        }
        Ok(row)
    }

    /// Reads a function back. Where it is not integral by itself it is where it is used, and the
    /// floor changes nothing.
    pub fn lift(&self, aff: &Aff) -> Known<Sum> {
        self.lift_nested(aff, 0)
    }

    fn lift_nested(&self, aff: &Aff, depth: usize) -> Known<Sum> {
        if depth > 16 {
            return Err(Reason::TooLarge.into());
        }
        let denominator = aff.denominator();
        let whole = self.ctx.known(aff.scale(denominator))?;
        let mut sum = Sum::constant(within_i64(whole.constant())?);
        for (at, atom) in self.atoms.iter().enumerate() {
            let c = within_i64(whole.coefficient(at))?;
            if c != 0 {
                sum = sum.plus(&Sum::atom(atom.clone()), c)?;
            }
        }
        for at in 0..whole.divs() {
            let c = within_i64(whole.div_coefficient(at))?;
            if c != 0 {
                let inner = self.lift_nested(&whole.div(at), depth + 1)?;
                sum = sum.plus(&inner, c)?;
            }
        }
        sum.div(within_i64(denominator)?)
    }

    /// Reads a conjunction back.
    fn lift_conjunction(&self, constraints: &[Constraint]) -> Known<Vec<Pred>> {
        let mut out = Vec::new();
        for constraint in constraints {
            let sum = self.lift(&constraint.function)?;
            out.push(if constraint.is_equality { Pred::eq(sum) } else { Pred::ge(sum) });
        }
        // By the first variable, so that conditions read in the order of the loops.
        out.sort_by_cached_key(|p| {
            let mut first = usize::MAX;
            p.atoms(&mut |a| first = first.min(self.position(a).unwrap_or(first)));
            (first, p.clone())
        });
        Ok(out)
    }

    /// Reads a set back as a union of conjunctions.
    pub fn lift_set(&self, set: &Set) -> Known<Vec<Vec<Pred>>> {
        let parts = set.compute_divs()?.constraints();
        let parts = parts.iter().map(|part| self.lift_conjunction(part));
        let mut out = parts.collect::<Known<Vec<_>>>()?;
        out.sort_by_cached_key(|part| reading_order(part));
        Ok(out)
    }

    /// A space with more atoms behind, and what it takes to bring a set of this space there.
    pub fn extended(&self, more: Vec<Atom>) -> Space {
        Space::new(&self.ctx, self.atoms.iter().cloned().chain(more).collect())
    }

    /// The relation from each point of this space to the values of some sums.
    pub fn graph(&self, sums: &[Sum]) -> Known<Map> {
        let mut map = self.universe().to_nothing();
        for s in sums {
            map = map.flat_range_product(&self.sum(s)?.graph()?)?;
        }
        Ok(map)
    }

    /// A set over `atoms` as a set of this space, which has all of them.
    pub fn gather(&self, set: Set, atoms: &[Atom]) -> Known<Set> {
        if let Some(missing) = between(&self.atoms, atoms) {
            return Ok(missing.into_iter().fold(set, |s, at| s.insert_dims(at, 1)));
        }
        let sums: Vec<Sum> = atoms.iter().cloned().map(Sum::atom).collect();
        set.apply(&self.graph(&sums)?.reverse())
    }

    /// A set of this space as the set of the values that some atoms take.
    pub fn scatter(&self, set: Set, atoms: &[Atom]) -> Known<Set> {
        if let Some(others) = between(&self.atoms, atoms) {
            return others.into_iter().rev().try_fold(set, |s, at| s.project_out(at, 1));
        }
        let sums: Vec<Sum> = atoms.iter().cloned().map(Sum::atom).collect();
        set.apply(&self.graph(&sums)?)
    }

    /// A set of this space in an extended one.
    pub fn embed(&self, set: Set, into: &Space) -> Known<Set> {
        match into.len().checked_sub(self.len()) {
            Some(0) => Ok(set),
            Some(n) => Ok(set.append_dims(n)),
            None => Err(Unknown::from(Reason::Engine("a space shrank".into()))),
        }
    }
}

/// A coefficient that is read back; sums of larger ones are of no use.
fn within_i64(value: pb::Int) -> Known<i128> {
    i64::try_from(value).map(i128::from).map_err(|_| Reason::TooLarge.into())
}

/// Whether a sum has no terms but atoms.
fn is_affine(s: &Sum) -> bool {
    s.terms.keys().all(|t| matches!(t, Term::Atom(_)))
}

/// Where the atoms of `all` are that are not among `some`, if those come in the same order.
fn between(all: &[Atom], some: &[Atom]) -> Option<Vec<usize>> {
    let mut rest = some.iter().peekable();
    let others = all.iter().enumerate().filter(|(_, a)| rest.next_if_eq(a).is_none());
    let others = others.map(|(at, _)| at).collect();
    rest.next().is_none().then_some(others)
}

/// A key that puts smaller values first: `i == 0 or i == 3`.
pub(crate) fn reading_order(part: &[Pred]) -> impl Ord + use<> {
    part.iter()
        .map(|p| match p {
            Pred::Eq(s) => (0, order_key(s)),
            Pred::Ge(s) => (1, order_key(s)),
            _ => (2, Default::default()),
        })
        .collect::<Vec<_>>()
}

fn order_key(s: &Sum) -> (std::collections::BTreeMap<Term, i128>, i128) {
    (s.terms.clone(), s.constant.saturating_neg())
}

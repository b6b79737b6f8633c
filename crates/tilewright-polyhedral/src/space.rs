//! Between normal forms and the engine.
//!
//! A [`Space`] is a list of atoms; atom `k` is dimension `k` of the engine's sets. Symbolic sizes
//! and terms that are not affine are dimensions like any other here: a fact that is asked of all
//! points is asked of all their values too. Lowering goes through the engine's constructors (no
//! text is parsed), lifting reads affine functions and constraints back.

use std::cell::OnceCell;
use std::ffi::{c_int, c_uint};

use crate::answer::{Known, Reason, Unknown};
use crate::form::{Atom, Pred, Sum, Term};
use crate::isl::api::{DIV, IN, PARAM, SET};
use crate::isl::{Aff, BasicSet, Ctx, LocalSpace, Map, PwAff, Set, Space as IslSpace};

/// Which atom is which dimension.
pub(crate) struct Space {
    pub ctx: Ctx,
    pub atoms: Vec<Atom>,
    isl: OnceCell<(IslSpace, LocalSpace)>,
}

impl Space {
    pub fn new(ctx: &Ctx, atoms: Vec<Atom>) -> Space {
        Space { ctx: ctx.clone(), atoms, isl: OnceCell::new() }
    }

    /// What the engine calls the space.
    fn isl(&self) -> Known<&(IslSpace, LocalSpace)> {
        if let Some(isl) = self.isl.get() {
            return Ok(isl);
        }
        let isl = self.ctx.space(std::iter::empty(), self.atoms.len())?;
        let local = isl.clone().local()?;
        Ok(self.isl.get_or_init(|| (isl, local)))
    }

    pub fn len(&self) -> usize {
        self.atoms.len()
    }

    pub fn position(&self, atom: &Atom) -> Option<usize> {
        self.atoms.iter().position(|a| a == atom)
    }

    /// All points.
    pub fn universe(&self) -> Known<Set> {
        self.isl()?.0.clone().universe()
    }

    /// No point.
    pub fn empty(&self) -> Known<Set> {
        self.isl()?.0.clone().empty()
    }

    fn aff(&self, s: &Sum) -> Known<Aff> {
        let mut aff = self.isl()?.1.clone().zero()?;
        aff = match c_int::try_from(s.constant) {
            Ok(small) => aff.set_constant_si(small)?,
            Err(_) => aff.set_constant_val(self.ctx.val(s.constant)?)?,
        };
        for (term, c) in &s.terms {
            let Term::Atom(atom) = term else { continue };
            let at = self.place(atom)? as c_int;
            aff = match c_int::try_from(*c) {
                Ok(small) => aff.set_coefficient_si(IN, at, small)?,
                Err(_) => aff.set_coefficient_val(IN, at, self.ctx.val(*c)?)?,
            };
        }
        Ok(aff)
    }

    fn place(&self, atom: &Atom) -> Known<usize> {
        let missing = || Reason::Engine(format!("{} has no place", atom.name())).into();
        self.position(atom).ok_or_else(missing)
    }

    /// The function that a sum is.
    pub fn sum(&self, s: &Sum) -> Known<PwAff> {
        let mut total = self.aff(s)?.piecewise()?;
        for (term, c) in &s.terms {
            if matches!(term, Term::Atom(_)) {
                continue;
            }
            let mut part = self.term(term)?;
            if *c != 1 {
                part = part.scale(self.ctx.val(*c)?)?;
            }
            total = total.add(part)?;
        }
        Ok(total)
    }

    fn term(&self, term: &Term) -> Known<PwAff> {
        let floor = |p: PwAff, k: i128| p.scale_down(self.ctx.val(k)?)?.floor();
        match term {
            Term::Atom(a) => self.sum(&Sum::atom(a.clone())),
            Term::Div(s, k) => floor(self.sum(s)?, *k),
            Term::Mod(s, k) => self.sum(s)?.modulo(self.ctx.val(*k)?),
            Term::TruncDiv(s, k) | Term::TruncMod(s, k) => {
                let p = self.sum(s)?;
                let (up, down) = match term {
                    Term::TruncDiv(..) => {
                        (floor(p.clone(), *k)?, floor(p.clone().neg()?, *k)?.neg()?)
                    }
                    _ => {
                        let k = self.ctx.val(*k)?;
                        (p.clone().modulo(k.clone())?, p.clone().neg()?.modulo(k)?.neg()?)
                    }
                };
                let above = p.nonneg()?;
                let below = above.clone().complement()?;
                up.on_domain(above)?.union_add(down.on_domain(below)?)
            }
            Term::Min(a, b) => self.sum(a)?.min(self.sum(b)?),
            Term::Max(a, b) => self.sum(a)?.max(self.sum(b)?),
            Term::Select(c, a, b) => {
                let (yes, no) = (self.pred(c)?, self.pred(&c.negate()?)?);
                self.sum(a)?.on_domain(yes)?.union_add(self.sum(b)?.on_domain(no)?)
            }
        }
    }

    /// The points at which a condition holds.
    pub fn pred(&self, p: &Pred) -> Known<Set> {
        match p {
            Pred::Ge(s) | Pred::Eq(s) if is_affine(s) => self.rows(&[p])?.set(),
            Pred::Bool(true) => self.universe(),
            Pred::Bool(false) => self.empty(),
            Pred::Ge(s) => self.sum(s)?.nonneg(),
            Pred::Eq(s) => self.sum(s)?.zero(),
            Pred::Ne(s) => self.sum(s)?.non_zero(),
            Pred::Flag(a, value) => {
                self.sum(&Sum::atom(a.clone()).offset(-i128::from(*value))?)?.zero()
            }
            Pred::And(parts) => self.all(parts),
            Pred::Or(parts) => {
                let mut any = self.empty()?;
                for p in parts {
                    any = any.union(self.pred(p)?)?;
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
        let all = if rows.is_empty() { self.universe()? } else { self.rows(&rows)?.set()? };
        let others = others.into_iter().chain(unions);
        others.into_iter().try_fold(all, |all, p| all.intersect(self.pred(p)?))
    }

    /// The points of constraints on affine functions, for which no function by pieces is made.
    fn rows(&self, constraints: &[&Pred]) -> Known<BasicSet> {
        let rows = |equal: bool| -> Known<Vec<Vec<i128>>> {
            let sums = constraints.iter().filter_map(|p| match p {
                Pred::Ge(s) if !equal => Some(s),
                Pred::Eq(s) if equal => Some(s),
                _ => None,
            });
            sums.map(|s| self.row(s)).collect()
        };
        self.ctx.basic_set(&self.isl()?.0, &rows(true)?, &rows(false)?)
    }

    /// The constant of an affine function, and its coefficients.
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
        self.lift_nested(aff, IN, 0)
    }

    /// Reads back a function of parameters, where parameter `k` is atom `k`.
    pub fn lift_params(&self, aff: &Aff) -> Known<Sum> {
        self.lift_nested(aff, PARAM, 0)
    }

    fn lift_nested(&self, aff: &Aff, input: c_uint, depth: usize) -> Known<Sum> {
        if depth > 16 {
            return Err(Reason::TooLarge.into());
        }
        let denominator = i128::from(aff.denominator()?.int()?);
        let whole = match denominator {
            1 => aff.clone(),
            k => aff.clone().scale(self.ctx.val(k)?)?,
        };
        let mut sum = Sum::constant(i128::from(whole.constant()?.int()?));
        let coefficient = |kind: c_uint, at: usize| -> Known<i128> {
            Ok(i128::from(whole.coefficient(kind, at as c_int)?.int()?))
        };
        for (at, atom) in self.atoms.iter().enumerate() {
            let c = coefficient(input, at)?;
            if c != 0 {
                sum = sum.plus(&Sum::atom(atom.clone()), c)?;
            }
        }
        for at in 0..whole.dim(DIV)? {
            let c = coefficient(DIV, at)?;
            if c != 0 {
                let inner = self.lift_nested(&whole.div(at as c_int)?, input, depth + 1)?;
                sum = sum.plus(&inner, c)?;
            }
        }
        sum.div(denominator)
    }

    /// Reads a conjunction back; its divisions must be known.
    fn lift_basic(&self, part: &BasicSet) -> Known<Vec<Pred>> {
        let mut out = Vec::new();
        for constraint in part.constraints()? {
            let sum = self.lift(&constraint.aff()?)?;
            out.push(if constraint.is_equality()? { Pred::eq(sum) } else { Pred::ge(sum) });
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
        let known = set.clone().compute_divs()?;
        let mut out =
            known.parts()?.iter().map(|p| self.lift_basic(p)).collect::<Known<Vec<_>>>()?;
        out.sort_by_cached_key(|part| reading_order(part));
        Ok(out)
    }

    /// A space with more atoms behind, and what it takes to bring a set of this space there.
    pub fn extended(&self, more: Vec<Atom>) -> Space {
        Space::new(&self.ctx, self.atoms.iter().cloned().chain(more).collect())
    }

    /// The relation from each point of this space to the values of some sums.
    pub fn graph(&self, sums: &[Sum]) -> Known<Map> {
        let mut map = self.universe()?.nothing()?;
        for s in sums {
            map = map.flat_range_product(self.sum(s)?.graph()?)?;
        }
        Ok(map)
    }

    /// A set over `atoms` as a set of this space, which has all of them.
    pub fn gather(&self, set: Set, atoms: &[Atom]) -> Known<Set> {
        if let Some(missing) = between(&self.atoms, atoms) {
            return missing.into_iter().try_fold(set, |s, at| s.insert_dims(SET, at, 1));
        }
        let sums: Vec<Sum> = atoms.iter().cloned().map(Sum::atom).collect();
        set.apply(self.graph(&sums)?.reverse()?)
    }

    /// A set of this space as the set of the values that some atoms take.
    pub fn scatter(&self, set: Set, atoms: &[Atom]) -> Known<Set> {
        if let Some(others) = between(&self.atoms, atoms) {
            return others.into_iter().rev().try_fold(set, |s, at| s.project_out(SET, at, 1));
        }
        let sums: Vec<Sum> = atoms.iter().cloned().map(Sum::atom).collect();
        set.apply(self.graph(&sums)?)
    }

    /// A set of this space in an extended one.
    pub fn embed(&self, set: Set, into: &Space) -> Known<Set> {
        match into.len().checked_sub(self.len()) {
            Some(0) => Ok(set),
            Some(n) => set.add_dims(SET, n as c_uint),
            None => Err(Unknown::from(Reason::Engine("a space shrank".into()))),
        }
    }
}

/// Whether a sum has no terms but atoms.
fn is_affine(s: &Sum) -> bool {
    s.terms.keys().all(|t| matches!(t, Term::Atom(_)))
}

/// Where the atoms of `all` are that are not among `some`, if those come in the same order.
fn between(all: &[Atom], some: &[Atom]) -> Option<Vec<c_uint>> {
    let mut rest = some.iter().peekable();
    let others = all.iter().zip(0..).filter(|(a, _)| rest.next_if_eq(a).is_none());
    let others = others.map(|(_, at)| at).collect();
    rest.next().is_none().then_some(others)
}

/// A key that puts smaller values first: `i == 0 or i == 3`.
pub(crate) fn reading_order(part: &[Pred]) -> impl Ord + use<> {
    let of = |s: &Sum| (s.terms.clone(), s.constant.saturating_neg());
    let key = |p: &Pred| match p {
        Pred::Eq(s) => (0, of(s)),
        Pred::Ge(s) => (1, of(s)),
        _ => (2, Default::default()),
    };
    part.iter().map(key).collect::<Vec<_>>()
}

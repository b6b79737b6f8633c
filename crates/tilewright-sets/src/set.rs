//! Sets of integer points, by themselves.
//!
//! A [`Set`] has dimensions, which are variables, and may depend on symbolic sizes. It comes from
//! a [`Domain`] or from what a relation touches, and goes back into a condition. Operations are
//! exact; a set that is only known from outside (terms that are not affine had to be eliminated)
//! says so, and answers that would not be certain are [`Reason::NotAffine`].

use std::rc::Rc;

use tilewright_ir::{Expr, Var};

use crate::answer::{Known, Proof, Reason, Unknown, Witness, not_affine};
use crate::bounds::Bounds;
use crate::domain::Domain;
use crate::engine::Engine;
use crate::form::{Atom, Sum};
use crate::isl::Set as Raw;
use crate::space::Space;

/// A set of integer points. A clone shares it.
#[derive(Clone)]
pub struct Set {
    pub(crate) engine: Engine,
    /// The dimensions, then what is symbolic.
    pub(crate) space: Rc<Space>,
    pub(crate) dims: usize,
    pub(crate) raw: Raw,
    /// Why the set may be larger than what it stands for.
    pub(crate) vague: Option<Unknown>,
}

impl Domain {
    /// The points of the domain as a set over its variables.
    pub fn to_set(&self) -> Known<Set> {
        self.engine.ask(|| {
            let vars: Vec<Var> = self.vars().cloned().collect();
            let (outer, atoms) = self.outer(&vars)?;
            let dropped = self.space.atoms.iter().filter(|a| !atoms.contains(a));
            let mut dropped = dropped.map(Atom::expr).peekable();
            let vague = match (self.vague(), dropped.peek()) {
                (Some(why), _) => Some(why.clone()),
                (None, Some(_)) => Some(not_affine(dropped)),
                (None, None) => None,
            };
            let set = outer.set.clone();
            Ok(Set {
                engine: self.engine.clone(),
                space: outer.space,
                dims: self.vars,
                raw: set,
                vague,
            })
        })
    }
}

impl Domain {
    /// The points at which the values of `exprs`, one a dimension of the set, are not in it.
    ///
    /// With a set that is only known from outside, these are points at which they are certainly
    /// not in what it stands for.
    ///
    /// ```
    /// # use tilewright_ir::Var;
    /// # use tilewright_sets::Engine;
    /// let engine = Engine::new()?;
    /// let (i, c) = (Var::index("i"), Var::index("c"));
    /// let cells = engine.box_of(&[(c, 6)]).to_set()?;
    /// let rest = engine.box_of(&[(i.clone(), 8)]).outside(&[&i * 2], &cells)?;
    /// assert!(rest.prove(&i.expr().greater_equal(3)).is_yes());
    /// assert_eq!(rest.bounds(&i.expr())?, (Some(3), Some(7)));
    /// # Ok::<(), tilewright_ir::Error>(())
    /// ```
    pub fn outside(&self, exprs: &[Expr], set: &Set) -> Known<Domain> {
        self.engine.ask(|| {
            let (d, inside) = self.preimage(exprs, set)?;
            Ok(d.within(d.set.clone().subtract(inside)?.coalesce()?))
        })
    }

    /// Whether it is certain that the values of `exprs`, one a dimension of the set, are in it at
    /// every point.
    pub fn lies_in(&self, exprs: &[Expr], set: &Set) -> bool {
        set.is_exact()
            && self.engine.ask(|| {
                let (d, inside) = self.preimage(exprs, set)?;
                d.set.is_subset(&inside)
            }) == Ok(true)
    }

    /// The points whose values of `exprs` are in the set, among others that the domain does not
    /// have.
    fn preimage(&self, exprs: &[Expr], set: &Set) -> Known<(Domain, Raw)> {
        if exprs.len() != set.dims {
            let what = format!("{} expressions for {} dimensions", exprs.len(), set.dims);
            return Err(Reason::Mismatch(what).into());
        }
        let mut normalizer = self.engine.normalizer();
        let mut sums = exprs.iter().map(|e| normalizer.sum(e)).collect::<Known<Vec<_>>>()?;
        let symbolic = &set.space.atoms[set.dims..];
        sums.extend(symbolic.iter().cloned().map(Sum::atom));
        let d = self.reach(|f| sums.iter().for_each(|s| s.atoms(f)))?;
        let inside = set.raw.clone().apply(d.space.graph(&sums)?.reverse()?)?;
        Ok((d, inside))
    }
}

impl Set {
    /// The dimensions.
    pub fn vars(&self) -> impl Iterator<Item = &Var> {
        self.space.atoms.iter().take(self.dims).filter_map(Atom::as_var)
    }

    /// Whether the set is exactly what it stands for, and not larger.
    pub fn is_exact(&self) -> bool {
        self.vague.is_none()
    }

    /// The points as a domain, for questions about expressions.
    pub fn domain(&self) -> Known<Domain> {
        Domain::of_raw(&self.engine, self.space.atoms.clone(), self.dims, self.raw.clone())
    }

    fn certain(&self) -> Known<()> {
        self.vague.clone().map_or(Ok(()), Err)
    }

    /// Both sets in one space.
    fn aligned(&self, other: &Set) -> Known<(Rc<Space>, Raw, Raw)> {
        if !self.vars().eq(other.vars()) {
            return Err(Reason::Mismatch("sets over different variables".into()).into());
        }
        if self.space.atoms == other.space.atoms {
            return Ok((self.space.clone(), self.raw.clone(), other.raw.clone()));
        }
        let mut atoms = self.space.atoms.clone();
        for a in &other.space.atoms {
            if !atoms.contains(a) {
                atoms.push(a.clone());
            }
        }
        let space = Space::new(&self.engine.ctx, atoms)?;
        let a = space.gather(self.raw.clone(), &self.space.atoms)?;
        let b = space.gather(other.raw.clone(), &other.space.atoms)?;
        Ok((Rc::new(space), a, b))
    }

    /// In as few pieces as they go into, which takes longer than the operation itself.
    fn combine(&self, other: &Set, operation: impl Fn(Raw, Raw) -> Known<Raw>) -> Known<Set> {
        self.in_pieces(other, |a, b| operation(a, b)?.coalesce())
    }

    /// In whatever pieces the operation gives: good for one question.
    fn in_pieces(&self, other: &Set, operation: impl Fn(Raw, Raw) -> Known<Raw>) -> Known<Set> {
        self.engine.ask(|| {
            let (space, a, b) = self.aligned(other)?;
            let vague = self.vague.clone().or_else(|| other.vague.clone());
            let raw = operation(a, b)?;
            Ok(Set { engine: self.engine.clone(), space, dims: self.dims, raw, vague })
        })
    }

    /// Points of both.
    pub fn intersect(&self, other: &Set) -> Known<Set> {
        self.combine(other, Raw::intersect)
    }

    /// Points of either.
    pub fn union(&self, other: &Set) -> Known<Set> {
        self.combine(other, Raw::union)
    }

    /// Points of this one that are not of the other, which must be exact.
    pub fn subtract(&self, other: &Set) -> Known<Set> {
        other.certain()?;
        self.combine(other, Raw::subtract)
    }

    /// All integer points that are not in the set, which must be exact.
    pub fn complement(&self) -> Known<Set> {
        self.certain()?;
        self.engine.ask(|| Ok(Set { raw: self.raw.clone().complement()?, ..self.clone() }))
    }

    /// The values that `vars` take, in the order given. What is not affine and varies with another
    /// variable goes with it; the result is then only known from outside.
    pub fn project(&self, vars: &[Var]) -> Known<Set> {
        self.engine.ask(|| {
            let mut atoms: Vec<Atom> = vars.iter().map(Atom::var).collect();
            if let Some(a) = atoms.iter().find(|a| !self.space.atoms[..self.dims].contains(a)) {
                return Err(Reason::Mismatch(format!("no dimension `{}`", a.expr())).into());
            }
            let gone = self.vars().filter(|v| !vars.contains(v)).cloned().collect();
            let (lost, stays): (Vec<&Atom>, Vec<&Atom>) =
                self.space.atoms[self.dims..].iter().partition(|a| a.varies_with(&gone));
            atoms.extend(stays.into_iter().cloned());
            let why = (!lost.is_empty()).then(|| not_affine(lost.into_iter().map(Atom::expr)));
            let raw = self.space.scatter(self.raw.clone(), &atoms)?.coalesce()?;
            let space = Rc::new(Space::new(&self.engine.ctx, atoms)?);
            let vague = self.vague.clone().or(why);
            Ok(Set { space, dims: vars.len(), raw, vague, ..self.clone() })
        })
    }

    /// The points over the variables of both whose values are in this set and in the other one:
    /// the variables of this set, then those that only the other one has. With [`Set::project`],
    /// relations compose.
    ///
    /// ```
    /// # use tilewright_ir::Var;
    /// # use tilewright_sets::Engine;
    /// let engine = Engine::new()?;
    /// let [i, j, k] = ["i", "j", "k"].map(Var::index);
    /// let square = |a: &Var, b: &Var| engine.box_of(&[(a.clone(), 8), (b.clone(), 8)]);
    /// let next = |a: &Var, b: &Var| square(a, b).with_guard(&b.expr().equal(a + 1)).to_set();
    /// let both = next(&i, &j)?.join(&next(&j, &k)?)?.project(&[i.clone(), k.clone()])?;
    /// let second = square(&i, &k).with_guard(&k.expr().equal(&i + 2)).to_set()?;
    /// assert!(both.is_equal(&second).is_yes());
    /// # Ok::<(), tilewright_ir::Error>(())
    /// ```
    pub fn join(&self, other: &Set) -> Known<Set> {
        self.engine.ask(|| {
            let mut atoms = self.space.atoms[..self.dims].to_vec();
            let add = |atoms: &mut Vec<Atom>, more: &[Atom]| {
                for a in more {
                    if !atoms.contains(a) {
                        atoms.push(a.clone());
                    }
                }
            };
            add(&mut atoms, &other.space.atoms[..other.dims]);
            let dims = atoms.len();
            add(&mut atoms, &self.space.atoms[self.dims..]);
            add(&mut atoms, &other.space.atoms[other.dims..]);
            let space = Space::new(&self.engine.ctx, atoms)?;
            let a = space.gather(self.raw.clone(), &self.space.atoms)?;
            let b = space.gather(other.raw.clone(), &other.space.atoms)?;
            let raw = a.intersect(b)?.coalesce()?;
            let vague = self.vague.clone().or_else(|| other.vague.clone());
            Ok(Set { engine: self.engine.clone(), space: Rc::new(space), dims, raw, vague })
        })
    }

    /// The points that satisfy every linear equation which all points of the set satisfy: the
    /// smallest set of that kind around it.
    pub fn affine_hull(&self) -> Known<Set> {
        self.engine.ask(|| Ok(Set { raw: self.raw.clone().affine_hull()?.set()?, ..self.clone() }))
    }

    /// The same points over other variables, one for each dimension.
    pub fn over(&self, vars: impl IntoIterator<Item = Var>) -> Known<Set> {
        let new: Vec<Atom> = vars.into_iter().map(|v| Atom::var(&v)).collect();
        let symbolic = self.space.atoms[self.dims..].iter();
        let clash = symbolic.clone().any(|a| new.contains(a));
        if clash || new.len() != self.dims {
            return Err(Reason::Mismatch("not one new variable for each dimension".into()).into());
        }
        let atoms = new.into_iter().chain(symbolic.cloned()).collect();
        let space = Rc::new(Space::new(&self.engine.ctx, atoms)?);
        Ok(Set { space, ..self.clone() })
    }

    fn decide(
        &self,
        holds: Known<bool>,
        witness: impl FnOnce() -> Known<Option<Witness>>,
    ) -> Proof {
        let proof: Known<Proof> = holds.and_then(|holds| {
            if holds {
                return Ok(Proof::Yes);
            }
            self.certain()?;
            let witness = witness()?.ok_or_else(|| Unknown::from(Reason::TooLarge))?;
            Ok(Proof::No { witness })
        });
        proof.into()
    }

    /// Whether there is no point; the witness of a no is one.
    pub fn is_empty(&self) -> Proof {
        let ask = || self.engine.ask(|| self.raw.is_empty());
        self.decide(ask(), || self.point())
    }

    /// Whether it is certain that there is no point: [`Set::is_empty`] without the witness, which
    /// takes longer to find.
    pub fn is_void(&self) -> bool {
        self.engine.ask(|| self.raw.is_empty()) == Ok(true)
    }

    /// Whether it is certain that every point is one of the other: [`Set::is_subset`] without the
    /// witness.
    pub fn is_within(&self, other: &Set) -> bool {
        other.is_exact() && self.in_pieces(other, Raw::subtract).is_ok_and(|rest| rest.is_void())
    }

    /// Whether every point is one of the other, which must be exact for a yes.
    pub fn is_subset(&self, other: &Set) -> Proof {
        let difference = match (self.in_pieces(other, Raw::subtract), &other.vague) {
            (Ok(d), _) => Set { vague: self.vague.clone(), ..d },
            (Err(e), _) => return Proof::Unknown(e),
        };
        match (difference.is_empty(), &other.vague) {
            (Proof::Yes, Some(why)) => Proof::Unknown(why.clone()),
            (proof, _) => proof,
        }
    }

    /// Whether both have the same points; both must be exact for a yes.
    pub fn is_equal(&self, other: &Set) -> Proof {
        match self.is_subset(other) {
            Proof::Yes => other.is_subset(self),
            proof => proof,
        }
    }

    /// Whether no point is in both.
    pub fn is_disjoint(&self, other: &Set) -> Proof {
        match self.in_pieces(other, Raw::intersect) {
            Ok(both) => both.is_empty(),
            Err(e) => Proof::Unknown(e),
        }
    }

    /// Some point, with values for the symbolic sizes; `None` for the empty set.
    pub fn point(&self) -> Known<Option<Witness>> {
        self.engine.ask(|| match self.raw.is_empty()? {
            true => Ok(None),
            false => self.domain()?.friendly_point(&self.raw),
        })
    }

    /// The lexicographically smallest point, one expression of the symbolic sizes a dimension.
    pub fn lexmin(&self) -> Known<Vec<Expr>> {
        self.lexicographic(false)
    }

    /// The lexicographically largest point.
    pub fn lexmax(&self) -> Known<Vec<Expr>> {
        self.lexicographic(true)
    }

    fn lexicographic(&self, largest: bool) -> Known<Vec<Expr>> {
        use crate::isl::api::{PARAM, SET};
        self.certain()?;
        self.engine.ask(|| {
            let symbolic = (self.space.len() - self.dims) as u32;
            let dims = self.dims as u32;
            if self.raw.is_empty()? {
                return Err(Reason::Empty.into());
            }
            let raw = self.raw.clone().move_dims(PARAM, 0, SET, dims, symbolic)?;
            let best = if largest { raw.lexmax() } else { raw.lexmin() };
            let best = best.map_err(|e| match e.reason() {
                Reason::Engine(_) => Reason::Unbounded.into(),
                _ => e,
            })?;
            let raw = best.move_dims(SET, dims, PARAM, 0, symbolic)?;
            let d = Domain::of_raw(&self.engine, self.space.atoms.clone(), self.dims, raw)?;
            let vars: Vec<Var> = self.vars().cloned().collect();
            vars.iter().map(|v| Ok(d.tight_bounds(&v.expr(), &[])?.min)).collect()
        })
    }

    /// The smallest box around the set: bounds of each dimension in the symbolic sizes.
    pub fn hull(&self) -> Known<Vec<Bounds>> {
        let d = self.domain()?;
        self.vars().map(|v| d.tight_bounds(&v.expr(), &[])).collect()
    }

    /// The simplest condition that holds at those points of `within` that are in the set.
    ///
    /// The set must be exact, and its dimensions variables of the domain.
    pub fn condition(&self, within: &Domain) -> Known<Expr> {
        self.certain()?;
        self.engine.ask(|| {
            let d = within.reach(|f| self.space.atoms.iter().for_each(f))?;
            let inside = d.space.gather(self.raw.clone(), &self.space.atoms)?;
            let inside = inside.intersect(d.set.clone())?;
            d.closed_form(&inside, None, None)?.ok_or_else(|| Reason::NoClosedForm.into())
        })
    }
}

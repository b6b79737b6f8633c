//! Sets of integer points, by themselves.
//!
//! A [`Set`] has dimensions, which are variables, and may depend on symbolic sizes. It comes from
//! a [`Domain`] or from what a relation touches, and goes back into a condition. Operations are
//! exact; a set that is only known from outside (terms that are not affine had to be eliminated)
//! says so, and answers that would not be certain are [`Reason::NotAffine`].

use tilewright_ir::{Expr, Var};

use crate::answer::{Known, Proof, Reason, Unknown, Witness};
use crate::charged::Set as Raw;
use crate::domain::{Domain, forgotten};
use crate::form::{Atom, Sum};

/// A set of integer points. A clone shares it.
#[derive(Clone)]
pub struct Set {
    /// The points, without guards: the dimensions are the variables. It may be larger than what it
    /// stands for.
    pub(crate) points: Domain,
}

impl Domain {
    /// The points of the domain as a set over its variables.
    pub fn to_set(&self) -> Known<Set> {
        self.ask(|| {
            let vars: Vec<Var> = self.vars().cloned().collect();
            let (outer, atoms) = self.outer(&vars)?;
            let dropped = self.space.atoms.iter().filter(|a| !atoms.contains(a));
            Ok(Set { points: outer.blurred(self.vague().or_else(|| forgotten(dropped))) })
        })
    }

    /// The points at which the values of `exprs`, one a dimension of the set, are not in it.
    ///
    /// With a set that is only known from outside, these are points at which they are certainly
    /// not in what it stands for.
    ///
    /// ```
    /// # use tilewright_ir::Var;
    /// # use tilewright_polyhedral::Engine;
    /// let engine = Engine::new();
    /// let (i, c) = (Var::index("i"), Var::index("c"));
    /// let cells = engine.box_of(&[(c, 6)]).to_set()?;
    /// let rest = engine.box_of(&[(i.clone(), 8)]).outside(&[&i * 2], &cells)?;
    /// assert!(rest.prove(&i.expr().greater_equal(3)).is_yes());
    /// assert_eq!(rest.bounds(&i.expr())?, (Some(3), Some(7)));
    /// # Ok::<(), tilewright_ir::Error>(())
    /// ```
    pub fn outside(&self, exprs: &[Expr], set: &Set) -> Known<Domain> {
        self.ask(|| {
            let (d, inside) = self.preimage(exprs, set)?;
            Ok(d.within(d.set()?.subtract(&inside)?.coalesce()?))
        })
    }

    /// Whether it is certain that the values of `exprs`, one a dimension of the set, are in it at
    /// every point.
    pub fn lies_in(&self, exprs: &[Expr], set: &Set) -> bool {
        set.is_exact()
            && self.ask(|| {
                let (d, inside) = self.preimage(exprs, set)?;
                d.set()?.is_subset(&inside)
            }) == Ok(true)
    }

    /// The points whose values of `exprs` are in the set, among others that the domain does not
    /// have.
    fn preimage(&self, exprs: &[Expr], set: &Set) -> Known<(Domain, Raw)> {
        let (Domain { space, vars: dims, .. }, set) = (&set.points, set.points.set()?);
        if exprs.len() != *dims {
            let what = format!("{} expressions for {dims} dimensions", exprs.len());
            return Err(Reason::Mismatch(what).into());
        }
        let mut normalizer = self.normalizer();
        let mut sums = exprs.iter().map(|e| normalizer.sum(e)).collect::<Known<Vec<_>>>()?;
        sums.extend(space.atoms[*dims..].iter().cloned().map(Sum::atom));
        let d = self.reach(|f| sums.iter().for_each(|s| s.atoms(f)))?;
        let inside = set.apply(&d.space.graph(&sums)?.reverse())?;
        Ok((d, inside))
    }
}

impl Set {
    /// The dimensions.
    pub fn vars(&self) -> impl Iterator<Item = &Var> {
        self.points.vars()
    }

    /// Whether the set is exactly what it stands for, and not larger.
    pub fn is_exact(&self) -> bool {
        self.points.vague().is_none()
    }

    /// The points as a domain, for questions about expressions.
    pub fn domain(&self) -> Domain {
        self.points.clone().certain()
    }

    fn certain(&self) -> Known<()> {
        self.points.vague().map_or(Ok(()), Err)
    }

    fn ask<T>(&self, work: impl Fn(&Domain) -> Known<T>) -> Known<T> {
        self.points.ask(|| work(&self.points))
    }

    /// An operation on the points of two sets over the same variables, in whatever pieces it gives: good
    /// for one question.
    fn in_pieces(&self, other: &Set, operation: impl Fn(&Raw, &Raw) -> Known<Raw>) -> Known<Set> {
        self.ask(|points| {
            if !self.vars().eq(other.vars()) {
                return Err(Reason::Mismatch("sets over different variables".into()).into());
            }
            let (both, set) = points.side_by_side(&other.points)?;
            Ok(Set { points: both.within(operation(&both.set()?, &set)?) })
        })
    }

    /// The same in as few pieces as they go into, which takes longer than the operation itself.
    fn combine(&self, other: &Set, operation: impl Fn(&Raw, &Raw) -> Known<Raw>) -> Known<Set> {
        self.in_pieces(other, |a, b| operation(a, b)?.coalesce())
    }

    /// Points of both.
    pub fn intersect(&self, other: &Set) -> Known<Set> {
        self.combine(other, Raw::intersect)
    }

    /// Points of either.
    pub fn union(&self, other: &Set) -> Known<Set> {
        self.combine(other, |a, b| Ok(a.union(b)))
    }

    /// The points of any of some sets; `None` where there are no sets.
    ///
    /// # Errors
    /// The first of theirs, or that of [`Set::union`].
    pub fn union_of(sets: impl IntoIterator<Item = Known<Set>>) -> Known<Option<Set>> {
        let mut sets = sets.into_iter();
        let Some(first) = sets.next() else { return Ok(None) };
        sets.try_fold(first?, |all, set| all.union(&set?)).map(Some)
    }

    /// Points of this one that are not of the other, which must be exact.
    pub fn subtract(&self, other: &Set) -> Known<Set> {
        other.certain()?;
        self.combine(other, Raw::subtract)
    }

    /// The values that `vars` take, in the order given. What is not affine and varies with another
    /// variable goes with it; the result is then only known from outside.
    pub fn project(&self, vars: &[Var]) -> Known<Set> {
        self.ask(|points| {
            let Domain { space, vars: dims, .. } = points;
            let mut atoms: Vec<Atom> = vars.iter().map(Atom::var).collect();
            if let Some(a) = atoms.iter().find(|a| !space.atoms[..*dims].contains(a)) {
                return Err(Reason::Mismatch(format!("no dimension `{}`", a.expr())).into());
            }
            let gone = self.vars().filter(|v| !vars.contains(v)).cloned().collect();
            let (lost, stays): (Vec<&Atom>, Vec<&Atom>) =
                space.atoms[*dims..].iter().partition(|a| a.varies_with(&gone));
            atoms.extend(stays.into_iter().cloned());
            let why = points.vague().or_else(|| forgotten(lost));
            let set = space.scatter(points.set()?, &atoms)?.coalesce()?;
            let projected = Domain::of_raw(&points.engine, atoms, vars.len(), set);
            Ok(Set { points: projected.blurred(why) })
        })
    }

    /// The points over the variables of both whose values are in this set and in the other one:
    /// the variables of this set, then those that only the other one has. With [`Set::project`],
    /// relations compose.
    ///
    /// ```
    /// # use tilewright_ir::Var;
    /// # use tilewright_polyhedral::Engine;
    /// let engine = Engine::new();
    /// let [i, j, k] = ["i", "j", "k"].map(Var::index);
    /// let square = |a: &Var, b: &Var| engine.box_of(&[(a.clone(), 8), (b.clone(), 8)]);
    /// let next = |a: &Var, b: &Var| square(a, b).with_guard(&b.expr().equal(a + 1)).to_set();
    /// let both = next(&i, &j)?.join(&next(&j, &k)?)?.project(&[i.clone(), k.clone()])?;
    /// let second = square(&i, &k).with_guard(&k.expr().equal(&i + 2)).to_set()?;
    /// assert!(both.is_within(&second) && second.is_within(&both));
    /// # Ok::<(), tilewright_ir::Error>(())
    /// ```
    pub fn join(&self, other: &Set) -> Known<Set> {
        self.ask(|points| {
            let (both, set) = points.side_by_side(&other.points)?;
            let set = both.set()?.intersect(&set)?.coalesce()?;
            Ok(Set { points: both.within(set) })
        })
    }

    /// The points that satisfy every linear equation which all points of the set satisfy: the
    /// smallest set of that kind around it.
    pub fn affine_hull(&self) -> Known<Set> {
        self.ask(|points| Ok(Set { points: points.within(points.set()?.affine_hull()?) }))
    }

    /// The same points over other variables, one for each dimension.
    pub fn over(&self, vars: impl IntoIterator<Item = Var>) -> Known<Set> {
        let points = &self.points;
        let new: Vec<Atom> = vars.into_iter().map(|v| Atom::var(&v)).collect();
        let symbolic = points.space.atoms[points.vars..].iter();
        let clash = symbolic.clone().any(|a| new.contains(a));
        if clash || new.len() != points.vars {
            return Err(Reason::Mismatch("not one new variable for each dimension".into()).into());
        }
        let atoms = new.into_iter().chain(symbolic.cloned()).collect();
        Ok(Set { points: points.over(atoms)? })
    }

    /// Whether there is no point; the witness of a no is one.
    pub fn is_empty(&self) -> Proof {
        self.try_is_empty().into()
    }

    fn try_is_empty(&self) -> Known<Proof> {
        if self.ask(|points| points.set()?.is_empty())? {
            return Ok(Proof::Yes);
        }
        self.certain()?;
        let witness = self.point()?.ok_or_else(|| Unknown::from(Reason::TooLarge))?;
        Ok(Proof::No { witness })
    }

    /// Whether it is certain that there is no point: [`Set::is_empty`] without the witness, which
    /// takes longer to find.
    pub fn is_void(&self) -> bool {
        self.ask(|points| points.set()?.is_empty()) == Ok(true)
    }

    /// Whether it is certain that every point is one of the other: [`Set::is_subset`] without the
    /// witness.
    pub fn is_within(&self, other: &Set) -> bool {
        other.is_exact()
            && self.ask(|points| {
                if !self.vars().eq(other.vars()) {
                    return Err(Reason::Mismatch("sets over different variables".into()).into());
                }
                let (both, set) = points.side_by_side(&other.points)?;
                both.set()?.is_subset(&set)
            }) == Ok(true)
    }

    /// Whether every point is one of the other, which must be exact for a yes.
    pub fn is_subset(&self, other: &Set) -> Proof {
        let rest = match self.in_pieces(other, Raw::subtract) {
            Ok(rest) => rest.points.certain().blurred(self.points.vague()),
            Err(e) => return Proof::Unknown(e),
        };
        match (Set { points: rest }.is_empty(), other.points.vague()) {
            (Proof::Yes, Some(why)) => Proof::Unknown(why),
            (proof, _) => proof,
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
        self.ask(|points| {
            if points.set()?.is_empty()? { Ok(None) } else { points.friendly_point(&points.set()?) }
        })
    }

    /// The simplest condition that holds at those points of `within` that are in the set.
    ///
    /// The set must be exact, and its dimensions variables of the domain.
    pub fn condition(&self, within: &Domain) -> Known<Expr> {
        self.certain()?;
        self.ask(|points| {
            let (space, set) = (&points.space, points.set()?);
            let d = within.reach(|f| space.atoms.iter().for_each(f))?;
            let inside = d.space.gather(set, &space.atoms)?;
            let inside = inside.intersect(&d.set()?)?;
            d.closed_form(&inside, None, None)?.ok_or_else(|| Reason::NoClosedForm.into())
        })
    }
}

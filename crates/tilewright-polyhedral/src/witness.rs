//! Points that show that something does not hold.
//!
//! A set of points at which a fact fails refutes it where one of them counts: where the domain is
//! known exactly, and what is not affine has the value that it needs ([`Domain::witness_of`]). Among
//! such points one is shown that is easy to look at.

use std::collections::BTreeSet;

use tilewright_ir::Var;

use crate::answer::{Known, Reason, Unknown, Witness, not_affine};
use crate::charged::Set as Raw;
use crate::domain::Domain;
use crate::eval;
use crate::form::{Atom, Nature, Pred};
use crate::product::close;

/// Most variables of a point that is looked for in order. The lexicographically smallest one of more
/// takes long, and is no easier to look at.
const MOST_IN_ORDER: usize = 16;

impl Domain {
    /// What kept a refutation from counting.
    pub(crate) fn why_vague(&self, fails: &Pred) -> Unknown {
        if let Some(why) = self.vague() {
            return why;
        }
        let mut terms: BTreeSet<Atom> = BTreeSet::new();
        fails.atoms(&mut |a| close(a, &mut terms));
        let mut unknown: Vec<&Atom> = terms.iter().filter(|a| a.as_var().is_none()).collect();
        if unknown.is_empty() {
            unknown = self.space.atoms.iter().filter(|a| a.as_var().is_none()).collect();
        }
        not_affine(unknown.into_iter().map(Atom::expr))
    }

    /// A point of `bad` at which `fails` holds for certain.
    pub(crate) fn witness_of(&self, bad: &Raw, fails: &Pred) -> Known<Option<Witness>> {
        if self.vague().is_some() {
            return Ok(None);
        }
        let hidden = self.unknowns();
        if hidden.is_empty() {
            return self.friendly_point(bad);
        }
        // Points at which evaluation confirms everything.
        for lowest in [0, 1, 2, 3, -5] {
            let near = bad.intersect(&self.near(lowest, 64)?)?;
            let near = self.project(near, &hidden)?;
            if near.is_empty()? {
                continue;
            }
            for set in [near.lexmin()?, near.lexmax()?] {
                let Some(witness) = self.read_point(&set)? else { continue };
                let env = |v: &Var| witness.get(v).map(i128::from);
                let guarded =
                    self.guards.iter().try_fold(true, |all, g| Some(all & eval::pred(g, &env)?));
                if guarded == Some(true) && eval::pred(fails, &env) == Some(true) {
                    return Ok(Some(witness));
                }
            }
        }
        // Points at which the unknowns do not matter. What is certain of the unknowns, alone:
        if hidden.iter().any(|i| !matches!(self.space.atoms[*i].nature(), Nature::Opaque)) {
            return Ok(None);
        }
        let possible = self.without_guards().learn(self.space.universe())?;
        let escape = self.project(possible.subtract(bad)?, &hidden)?;
        let certain = self.project(possible, &hidden)?.subtract(&escape)?;
        if certain.is_empty()? {
            return Ok(None);
        }
        self.friendly_point(&self.reinsert(certain, &hidden))
    }

    fn project(&self, mut set: Raw, dims: &[usize]) -> Known<Raw> {
        for at in dims.iter().rev() {
            set = set.project_out(*at, 1)?;
        }
        Ok(set)
    }

    fn reinsert(&self, set: Raw, dims: &[usize]) -> Raw {
        dims.iter().fold(set, |set, at| set.insert_dims(*at, 1))
    }

    /// Points whose variables are in `lowest..=lowest + width`.
    fn near(&self, lowest: i128, width: i128) -> Known<Raw> {
        let ends = (lowest, lowest + width);
        self.space.pred(&self.between(|a| a.as_var().map(|_| ends))?)
    }

    /// The positions of the atoms that are no variables.
    fn unknowns(&self) -> Vec<usize> {
        (0..self.space.len()).filter(|i| self.space.atoms[*i].as_var().is_none()).collect()
    }

    /// A point that is easy to look at: the lexicographically smallest where there is one, or one
    /// with small numbers.
    pub(crate) fn friendly_point(&self, set: &Raw) -> Known<Option<Witness>> {
        let hidden = self.unknowns();
        let seen = self.project(set.clone(), &hidden)?;
        if self.space.len() - hidden.len() > MOST_IN_ORDER {
            return self.read_point(&seen);
        }
        if seen.is_bounded()? {
            return self.read_point(&seen.lexmin()?);
        }
        for (lowest, width) in [(0, 64), (-64, 128), (-(1 << 31), (1 << 32) - 1)] {
            let near = self.project(set.intersect(&self.near(lowest, width)?)?, &hidden)?;
            if !near.is_empty()? {
                return self.read_point(&near.lexmin()?);
            }
        }
        self.read_point(&seen)
    }

    /// Some point of a set of this space's variables alone.
    fn read_point(&self, set: &Raw) -> Known<Option<Witness>> {
        let Some(point) = set.sample()? else { return Ok(None) };
        let vars = self.space.atoms.iter().filter_map(Atom::as_var);
        let values = vars
            .zip(point)
            .map(|(v, x)| match i64::try_from(x) {
                Ok(x) => Ok((v.clone(), x)),
                Err(_) => Err(Reason::TooLarge.into()),
            })
            .collect::<Known<Vec<_>>>()?;
        Ok(Some(Witness { values }))
    }
}

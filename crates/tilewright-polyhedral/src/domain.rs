//! Domains, and questions about them.
//!
//! A [`Domain`] is the set of points at which a piece of code runs: variables with their ranges
//! (loops, block iteration variables), symbolic sizes, and guards. Questions are universal: a fact
//! is proven if it holds at every point of the domain and for every value of the symbolic sizes.
//! The method is refutation: the set of points of the domain where the fact fails is built exactly,
//! and the fact holds if that set is empty. If it is not, one of its points is the witness.
//!
//! ```
//! # use tilewright_ir::{Expr, Var};
//! # use tilewright_polyhedral::Engine;
//! let engine = Engine::new()?;
//! let (io, ii) = (Var::index("io"), Var::index("ii"));
//! let d = engine.box_of(&[(io.clone(), 4), (ii.clone(), 4)]);
//! let flat = &io * 4 + &ii;
//! assert!(d.prove(&flat.clone().floordiv(4).equal(&io)).is_yes());
//! let refuted = d.prove(&flat.less(14));
//! assert_eq!(refuted.to_string(), "no, at io=3, ii=2");
//! # Ok::<(), tilewright_ir::Error>(())
//! ```
//!
//! Terms that are not affine are unknowns, of which some things are certain (`unknowns`).
//!
//! An element of a buffer is one value at one moment: facts about it (guards that load) are the
//! caller's to end where the buffer may change.

use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use tilewright_ir::extent::holds;
use tilewright_ir::{Expr, Range, Var};

use crate::answer::{Known, Proof, Reason, Unknown, Witness, not_affine};
use crate::engine::Engine;
use crate::eval;
use crate::form::{Atom, Nature, Pred, Sum};
use crate::isl::Set as Raw;
use crate::isl::api::SET;
use crate::normalizer::{Normalizer, canonical};
use crate::product::{close, without_quotients};
use crate::quick::is_never;
use crate::space::Space;

/// Points at which code runs. A clone shares the set.
#[derive(Clone)]
pub struct Domain {
    pub(crate) engine: Engine,
    /// The first `vars` atoms are the domain's variables in order; the rest are symbolic variables
    /// and unknowns, as they came.
    pub(crate) space: Rc<Space>,
    pub(crate) vars: usize,
    pub(crate) set: Raw,
    /// Guards in normal form, for evaluation.
    pub(crate) guards: Rc<Vec<Pred>>,
    /// Why the set may be larger than the domain: a guard that could not be built.
    pub(crate) vague: Option<Unknown>,
}

impl Engine {
    /// A domain without variables: one point, nothing known.
    pub fn domain(&self) -> Domain {
        match Domain::of_raw_in(self, Vec::new(), 0, Space::universe) {
            Ok(unit) => unit,
            // No question is under way here, so that nothing limits the few operations of this.
            Err(e) => unreachable!("the set of the empty tuple: {e}"),
        }
    }

    /// The points with `range.min <= var < range.min + range.extent` for each variable, where each
    /// guard holds. Variables that only occur in ranges and guards are symbolic.
    pub fn domain_of(&self, ranges: &[(Var, Range)], guards: &[Expr]) -> Domain {
        self.domain().with(ranges.iter().map(|(v, r)| (v, r)), guards)
    }

    /// The points `0 <= var < extent`.
    pub fn box_of(&self, extents: &[(Var, i64)]) -> Domain {
        let ranges: Vec<(Var, Range)> = extents
            .iter()
            .map(|(v, n)| (v.clone(), Range::upto(Expr::int(*n, v.dtype()))))
            .collect();
        self.domain_of(&ranges, &[])
    }
}

impl Domain {
    /// The domain with more variables and their ranges, where each guard holds.
    fn with<'a>(
        &self,
        ranges: impl Iterator<Item = (&'a Var, &'a Range)> + Clone,
        guards: &[Expr],
    ) -> Domain {
        let mut normalizer = self.engine.normalizer();
        let (mut preds, mut vague) = (Vec::new(), None);
        let mut add = |p: Known<Pred>| match p {
            Ok(p) => preds.push(p),
            Err(e) => vague = Some(e),
        };
        for (var, range) in ranges.clone() {
            range_preds(&mut normalizer, var, range).into_iter().for_each(&mut add);
        }
        guards.iter().for_each(|g| add(normalizer.pred(g)));
        self.declare(ranges.map(|(v, _)| v)).constrain(preds).blurred(vague)
    }

    /// The same points, of which one is meant: variables are symbolic, each with one value.
    pub fn fixed(&self) -> Domain {
        Domain { vars: 0, ..self.clone() }
    }

    /// The domain whose points are a given set over `atoms`, of which the first `vars` are its
    /// variables.
    pub(crate) fn of_raw(
        engine: &Engine,
        atoms: Vec<Atom>,
        vars: usize,
        set: Raw,
    ) -> Known<Domain> {
        Domain::of_raw_in(engine, atoms, vars, |_| Ok(set))
    }

    /// The same where the set is made in the space.
    fn of_raw_in(
        engine: &Engine,
        atoms: Vec<Atom>,
        vars: usize,
        set: impl FnOnce(&Space) -> Known<Raw>,
    ) -> Known<Domain> {
        let space = Rc::new(Space::new(&engine.ctx, atoms)?);
        let (set, engine) = (set(&space)?, engine.clone());
        Ok(Domain { engine, space, vars, set, guards: Rc::default(), vague: None })
    }

    /// The domain with other names for variables. What is not affine and mentions one of them is
    /// forgotten.
    pub(crate) fn renamed(&self, names: &HashMap<Var, Var>) -> Domain {
        let old: BTreeSet<Var> = names.keys().cloned().collect();
        let keeps = |a: &&Atom| a.as_var().is_some() || !a.varies_with(&old);
        let kept: Vec<Atom> = self.space.atoms.iter().filter(keeps).cloned().collect();
        let why = forgotten(self.space.atoms.iter().filter(|a| !kept.contains(a)));
        let made = self.engine.ask(|| {
            let set = self.space.scatter(self.set.clone(), &kept)?;
            let atoms = kept.iter().map(|a| match a.as_var().and_then(|v| names.get(v)) {
                Some(new) => Atom::var(new),
                None => a.clone(),
            });
            let atoms: Vec<Atom> = atoms.collect();
            let mut out = Domain::of_raw(&self.engine, atoms, self.vars, set)?;
            let env = |a: &Atom| a.as_var().and_then(|v| names.get(v)).map(Atom::var);
            let guards = self.guards.iter().map(|g| g.renamed(&env)).collect::<Known<_>>()?;
            out.guards = Rc::new(guards);
            Ok(out)
        });
        match made {
            Ok(out) => out.blurred(self.vague.clone().or(why)),
            Err(e) => self.clone().blurred(Some(e)),
        }
    }

    /// The part of the domain that is a set of its space.
    pub(crate) fn within(&self, set: Raw) -> Domain {
        Domain { set, ..self.clone() }
    }

    /// The atoms whose values differ from point to point without being variables.
    pub(crate) fn hidden(&self) -> Vec<Atom> {
        let vars: BTreeSet<Var> = self.vars().cloned().collect();
        let hidden = |a: &&Atom| a.as_var().is_none() && a.varies_with(&vars);
        self.space.atoms.iter().filter(hidden).cloned().collect()
    }

    /// Points of both domains, which share the variables that they have in common. What is read
    /// from memory may differ between the two, and is forgotten.
    pub(crate) fn join(&self, other: &Domain) -> Known<Domain> {
        let (both, set) = self.beside(other)?;
        Ok(Domain { set: both.set.clone().intersect(set)?, ..both })
    }

    /// The points of [`Domain::join`] as far as this domain restricts them, and as far as the
    /// other one does.
    pub(crate) fn beside(&self, other: &Domain) -> Known<(Domain, Raw)> {
        self.without_memory()?.side_by_side(&other.without_memory()?)
    }

    /// [`Domain::beside`] of two domains at one moment.
    pub(crate) fn side_by_side(&self, other: &Domain) -> Known<(Domain, Raw)> {
        let guards = Rc::new(self.guards.iter().chain(other.guards.iter()).cloned().collect());
        let vague = self.vague.clone().or_else(|| other.vague.clone());
        let (ours, theirs) = (&self.space.atoms, &other.space.atoms);
        if self.vars == other.vars && ours == theirs {
            return Ok((Domain { guards, vague, ..self.clone() }, other.set.clone()));
        }
        let own = [&ours[..self.vars], &theirs[..other.vars]].concat();
        let rest = [&ours[self.vars..], &theirs[other.vars..]].concat();
        let (mut atoms, mut seen) = (Vec::new(), BTreeSet::new());
        atoms.extend(own.iter().filter(|a| seen.insert(*a)).cloned());
        let vars = atoms.len();
        atoms.extend(rest.iter().filter(|a| seen.insert(*a)).cloned());
        let space = Space::new(&self.engine.ctx, atoms)?;
        // What is given of sizes holds for both, also where one of them does not name the size.
        let gathered = |of: &Domain| {
            let set = space.gather(of.set.clone(), &of.space.atoms)?;
            self.given_in(&space, &of.space, set)
        };
        let (set, theirs) = (gathered(self)?, gathered(other)?);
        Ok((Domain { space: Rc::new(space), vars, set, guards, vague, ..self.clone() }, theirs))
    }

    /// The domain without what it knows of memory; vague if that was anything.
    fn without_memory(&self) -> Known<Domain> {
        let reads = |a: &&Atom| a.as_var().is_none() && !a.expr().effects().constant();
        let (memory, others): (Vec<&Atom>, Vec<&Atom>) = self.space.atoms.iter().partition(reads);
        let Some(why) = forgotten(memory) else { return Ok(self.clone()) };
        let atoms: Vec<Atom> = others.into_iter().cloned().collect();
        let set = self.space.scatter(self.set.clone(), &atoms)?;
        let vague = self.vague.clone().or(Some(why));
        Ok(Domain { vague, ..Domain::of_raw(&self.engine, atoms, self.vars, set)? })
    }

    /// The domain, known only from outside for this reason.
    pub(crate) fn blurred(self, why: Option<Unknown>) -> Domain {
        Domain { vague: self.vague.or(why), ..self }
    }

    /// Adds variables of the domain, without ranges.
    fn declare<'a>(&self, vars: impl Iterator<Item = &'a Var>) -> Domain {
        let mut atoms = self.space.atoms.clone();
        let mut count = self.vars;
        let mut out = self.clone();
        let made: Known<()> = (|| {
            for var in vars {
                let atom = Atom::var(var);
                match atoms.iter().position(|a| *a == atom) {
                    Some(at) if at < count => continue,
                    Some(at) => {
                        // So far a symbolic variable: it moves in front of those.
                        let (from, to) = (at as u32, count as u32);
                        out.set = move_dim(out.set.clone(), from, to)?;
                        atoms.remove(at);
                    }
                    None => out.set = out.set.clone().insert_dims(SET, count as u32, 1)?,
                }
                atoms.insert(count, atom);
                count += 1;
            }
            out.space = Rc::new(Space::new(&self.engine.ctx, atoms)?);
            out.vars = count;
            Ok(())
        })();
        match made {
            Ok(()) => out,
            Err(e) => Domain { vague: Some(e), ..self.clone() },
        }
    }

    /// The domain with one more variable: `range.min <= var < range.min + range.extent`.
    pub fn with_var(&self, var: &Var, range: &Range) -> Domain {
        self.with(std::iter::once((var, range)), &[])
    }

    /// The part of the domain where a condition holds.
    ///
    /// A condition that is too hard to represent is left out: what is proven without it is proven,
    /// and nothing is refuted any more.
    pub fn with_guard(&self, cond: &Expr) -> Domain {
        match self.engine.normalizer().pred(cond) {
            Ok(p) => self.constrain(vec![p]),
            Err(e) => Domain { vague: Some(e), ..self.clone() },
        }
    }

    /// The domain where each condition in normal form holds.
    pub(crate) fn constrain(&self, preds: Vec<Pred>) -> Domain {
        let made = self.engine.ask(|| {
            let mut out = self.reach(|f| preds.iter().for_each(|p| p.atoms(f)))?;
            // Unions last: they multiply what is intersected after them.
            let (later, now): (Vec<&Pred>, Vec<&Pred>) =
                preds.iter().partition(|p| matches!(p, Pred::Or(_) | Pred::Ne(_)));
            if !now.is_empty() {
                out.set = out.set.clone().intersect(out.space.all(now)?)?;
            }
            for p in later {
                out.set = out.set.clone().intersect(out.space.pred(p)?)?;
            }
            // Facts about terms that are not affine rest on the guards.
            if out.space.atoms.iter().any(|a| a.as_var().is_none()) {
                out.set = out.learn(&out.space.atoms)?;
            }
            let mut guards = (*self.guards).clone();
            guards.extend(preds.iter().cloned());
            out.guards = Rc::new(guards);
            Ok(out)
        });
        made.unwrap_or_else(|e| Domain { vague: Some(e), ..self.clone() })
    }

    /// The domain with a place for every atom that `each` names.
    pub(crate) fn reach(&self, each: impl FnOnce(&mut dyn FnMut(&Atom))) -> Known<Domain> {
        let mut new: BTreeSet<Atom> = BTreeSet::new();
        each(&mut |a| {
            if self.space.position(a).is_none() {
                close(a, &mut new);
            }
        });
        new.retain(|a| self.space.position(a).is_none());
        if new.is_empty() {
            return Ok(self.clone());
        }
        let space = self.space.extended(new.iter().cloned().collect())?;
        let set = self.space.embed(self.set.clone(), &space)?;
        let set = self.given_in(&space, &self.space, set)?;
        let mut out = Domain { space: Rc::new(space), set, ..self.clone() };
        if new.iter().any(|a| a.as_var().is_none() || a.narrow_range().is_some()) {
            let all: Vec<Atom> = out.space.atoms.clone();
            out.set = out.learn(&all)?;
        }
        Ok(out)
    }

    /// The points of a set at which what is given of sizes holds, as far as a space has places for it and
    /// `before` had none.
    fn given_in(&self, space: &Space, before: &Space, set: Raw) -> Known<Raw> {
        let placed = |space: &Space, p: &Pred| {
            let mut all = true;
            p.atoms(&mut |a| all &= space.position(a).is_some());
            all
        };
        let facts = self.engine.facts().iter();
        let new: Vec<&Pred> = facts.filter(|p| placed(space, p) && !placed(before, p)).collect();
        if new.is_empty() { Ok(set) } else { set.intersect(space.all(new)?) }
    }

    /// Least and greatest value of a sum over a set of this space, where there are such.
    pub(crate) fn bounds_in(&self, set: &Raw, s: &Sum) -> Known<(Option<i64>, Option<i64>)> {
        let f = self.space.sum(s)?.on_domain(set.clone())?;
        match (f.clone().min_val(), f.max_val()) {
            (Ok(lo), Ok(hi)) => Ok((lo.to_i64(), hi.to_i64())),
            // isl does not optimise a function whose pieces have become fractions by equalities
            // of the set; the set of its values it does.
            _ => {
                let values = set.clone().apply(self.space.graph(std::slice::from_ref(s))?)?;
                values.ends(0)
            }
        }
    }

    /// The domain's own variables, outermost first.
    pub fn vars(&self) -> impl Iterator<Item = &Var> {
        self.space.atoms.iter().take(self.vars).filter_map(Atom::as_var)
    }

    /// The engine.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The same domain under another quota of operations a question.
    pub fn with_quota(&self, operations: u64) -> Domain {
        Domain { engine: self.engine.with_quota(operations), ..self.clone() }
    }

    /// Why the domain is only known from outside, if it is.
    pub(crate) fn vague(&self) -> Option<&Unknown> {
        self.vague.as_ref()
    }

    /// Whether a condition holds at every point.
    ///
    /// A vector condition is asked of every lane; the witness has the lane.
    pub fn prove(&self, cond: &Expr) -> Proof {
        let ask = || {
            let (d, fails) = self.form(|n| n.pred(cond)?.negate())?;
            d.refute(fails)
        };
        self.engine.ask(ask).into()
    }

    /// A form of expressions, and the domain with the lane that is in it.
    fn form<T>(&self, make: impl FnOnce(&mut Normalizer) -> Known<T>) -> Known<(Domain, T)> {
        let mut normalizer = self.engine.normalizer();
        let form = make(&mut normalizer)?;
        let domain = match &normalizer.lane {
            None => self.clone(),
            Some((lane, n)) => self.with_var(lane, &Range::upto(Expr::i32(i32::from(*n)))),
        };
        Ok((domain, form))
    }

    /// Whether it is certain that a condition holds at every point: [`Domain::prove`] without the
    /// witness, which takes longer to find. The constant false holds where there is no point.
    pub fn proves(&self, cond: &Expr) -> bool {
        let ask = || {
            let (d, fails) = self.form(|n| n.pred(cond)?.negate())?;
            let Some((d, bad)) = d.part(&fails)? else { return Ok(true) };
            // What is symbolic ends where its type does.
            Ok(d.space.len() > d.vars && bad.intersect(d.space.pred(&d.typed()?)?)?.is_empty()?)
        };
        self.engine.ask(ask) == Ok(true)
    }

    /// Why it cannot be said whether a condition holds at every point, at none, or at some only;
    /// `None` where it can.
    pub fn doubt(&self, cond: &Expr) -> Option<Unknown> {
        let exact = self.engine.ask(|| {
            let (d, p) = self.form(|n| n.pred(cond))?;
            let d = d.reach(|f| p.atoms(f))?;
            Ok(d.vague.is_none() && d.space.atoms.iter().all(|a| a.as_var().is_some()))
        });
        if exact == Ok(true) {
            return None;
        }
        [cond.clone(), !cond.clone()].into_iter().find_map(|c| match self.prove(&c) {
            Proof::Unknown(why) => Some(why),
            _ => None,
        })
    }

    /// Whether two expressions have one value at every point: integers, or conditions.
    pub fn equal(&self, a: &Expr, b: &Expr) -> Proof {
        let ask = || {
            let (d, differ) = self.form(|n| {
                if a.dtype().is_bool() || b.dtype().is_bool() {
                    return Pred::differ(n.pred(a)?, n.pred(b)?);
                }
                // With remainders as differences, most of what is equal cancels.
                let d = canonical(&n.sum(a)?.plus(&n.sum(b)?, -1)?)?;
                Pred::eq(without_quotients(&d)?).negate()
            })?;
            d.refute(differ)
        };
        self.engine.ask(ask).into()
    }

    /// Whether the domain has no point; the witness of a no is one.
    pub fn is_empty(&self) -> Proof {
        self.engine.ask(|| self.refute(Pred::Bool(true))).into()
    }

    /// One point of the domain, away from the ends of what its variables can be; what is not
    /// affine keeps all its values.
    ///
    /// # Errors
    /// [`Reason::Empty`] for a domain without points.
    pub fn middle(&self) -> Known<Domain> {
        self.engine.ask(|| {
            let mut set = self.set.clone();
            if set.is_empty()? {
                return Err(Reason::Empty.into());
            }
            for (at, atom) in self.space.atoms.iter().enumerate() {
                if atom.as_var().is_none() {
                    continue;
                }
                let (low, high) = set.ends(at)?;
                let (first, last) = (low.or(high).unwrap_or(0), high.or(low).unwrap_or(0));
                let is = |v: i64| {
                    let value = Sum::atom(atom.clone()).offset(-i128::from(v))?;
                    set.clone().intersect(self.space.pred(&Pred::eq(value))?)
                };
                let middle = is(first.midpoint(last))?;
                set = if middle.is_empty()? { is(first)? } else { middle };
            }
            Ok(self.within(set))
        })
    }

    /// The points at which a condition holds; `None` where there certainly is none.
    fn part(&self, p: &Pred) -> Known<Option<(Domain, Raw)>> {
        // Most conditions are seen to hold nowhere without the engine.
        if is_never(self.guards.iter().chain(self.engine.facts()), p) {
            return Ok(None);
        }
        let d = self.reach(|f| p.atoms(f))?;
        let part = d.set.clone().intersect(d.space.pred(p)?)?;
        Ok((!part.is_empty()?).then_some((d, part)))
    }

    /// The constraints in normal form that do not depend on memory; there may be others.
    pub(crate) fn constraints(&self) -> impl Iterator<Item = &Pred> {
        self.guards.iter().filter(|g| {
            let mut constant = true;
            g.atoms(&mut |a| constant &= a.expr().effects().constant());
            constant
        })
    }

    /// Proves that a condition holds nowhere.
    pub(crate) fn refute(&self, fails: Pred) -> Known<Proof> {
        let Some((d, bad)) = self.part(&fails)? else { return Ok(Proof::Yes) };
        let fits = |w: &Witness| w.values.iter().all(|(v, x)| holds(v.dtype(), (*x).into()));
        match d.witness_of(&bad, &fails) {
            Ok(Some(witness)) if fits(&witness) => return Ok(Proof::No { witness }),
            Ok(None) => return Err(d.why_vague(&fails)),
            Err(e) if *e.reason() != Reason::TooLarge => return Err(e),
            _ => {}
        }
        // The point is none that the variables' types allow. These bounds would burden every
        // question, and hardly ever matter.
        let bad = bad.intersect(d.space.pred(&d.typed()?)?)?;
        if bad.is_empty()? {
            return Ok(Proof::Yes);
        }
        match d.witness_of(&bad, &fails)? {
            Some(witness) => Ok(Proof::No { witness }),
            None => Err(d.why_vague(&fails)),
        }
    }

    /// Every variable is in the range of its type. A product of data is one before it wraps.
    fn typed(&self) -> Known<Pred> {
        self.between(|a| {
            let t = a.expr().dtype();
            t.min_int().zip(t.max_int()).filter(|_| !(a.is_data() && a.is_product()))
        })
    }

    /// Each atom is between the ends that are given for it.
    fn between(&self, ends: impl Fn(&Atom) -> Option<(i128, i128)>) -> Known<Pred> {
        let mut parts = Vec::new();
        for a in self.space.atoms.iter() {
            if let Some(ends) = ends(a) {
                parts.push(Pred::between(&Sum::atom(a.clone()), ends)?);
            }
        }
        Ok(Pred::and(parts))
    }

    /// Whether a condition in normal form holds at every point; no witness is looked for.
    pub(crate) fn holds(&self, p: &Pred) -> Known<bool> {
        let fails = p.negate()?;
        if let Pred::Bool(fails) = fails {
            return Ok(!fails);
        }
        Ok(self.part(&fails)?.is_none())
    }

    /// What kept a refutation from counting.
    fn why_vague(&self, fails: &Pred) -> Unknown {
        if let Some(why) = &self.vague {
            return why.clone();
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
    fn witness_of(&self, bad: &Raw, fails: &Pred) -> Known<Option<Witness>> {
        if self.vague.is_some() {
            return Ok(None);
        }
        let hidden = self.unknowns();
        if hidden.is_empty() {
            return self.friendly_point(bad);
        }
        // Points at which evaluation confirms everything.
        for lowest in [0, 1, 2, 3, -5] {
            let near = bad.clone().intersect(self.near(lowest, 64)?)?;
            let near = self.project(near, &hidden)?;
            if near.is_empty()? {
                continue;
            }
            for set in [near.clone().lexmin()?, near.lexmax()?] {
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
        let free = Domain { set: self.space.universe()?, ..self.clone() };
        let possible = free.learn(&self.space.atoms)?;
        let escape = self.project(possible.clone().subtract(bad.clone())?, &hidden)?;
        let certain = self.project(possible, &hidden)?.subtract(escape)?;
        if certain.is_empty()? {
            return Ok(None);
        }
        self.friendly_point(&self.reinsert(certain, &hidden)?)
    }

    fn project(&self, mut set: Raw, dims: &[usize]) -> Known<Raw> {
        for at in dims.iter().rev() {
            set = set.project_out(SET, *at as u32, 1)?;
        }
        Ok(set)
    }

    fn reinsert(&self, mut set: Raw, dims: &[usize]) -> Known<Raw> {
        for at in dims {
            set = set.insert_dims(SET, *at as u32, 1)?;
        }
        Ok(set)
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
        if seen.is_bounded()? {
            return self.read_point(&seen.lexmin()?);
        }
        for (lowest, width) in [(0, 64), (-64, 128), (-(1 << 31), (1 << 32) - 1)] {
            let near = self.project(set.clone().intersect(self.near(lowest, width)?)?, &hidden)?;
            if !near.is_empty()? {
                return self.read_point(&near.lexmin()?);
            }
        }
        self.read_point(&seen)
    }

    /// Some point of a set of this space's variables alone.
    fn read_point(&self, set: &Raw) -> Known<Option<Witness>> {
        let point = set.clone().sample()?;
        if point.is_void()? {
            return Ok(None);
        }
        let vars = self.space.atoms.iter().filter_map(Atom::as_var).enumerate();
        let values = vars
            .map(|(i, v)| Ok((v.clone(), point.coordinate(SET, i as i32)?.int()?)))
            .collect::<Known<Vec<_>>>()?;
        Ok(Some(Witness { values }))
    }

    /// Least and greatest value of an integer expression over the domain; `None` where it is not
    /// bounded, or where the bound does not fit 64 bits.
    ///
    /// With terms that are not affine the bounds hold, and may be wider than needed.
    ///
    /// # Errors
    /// [`Reason::Empty`] for a domain without points.
    pub fn bounds(&self, e: &Expr) -> Known<(Option<i64>, Option<i64>)> {
        self.engine.ask(|| {
            let (d, s) = self.form(|n| n.sum(e))?;
            d.sum_bounds(&s)
        })
    }

    pub(crate) fn sum_bounds(&self, s: &Sum) -> Known<(Option<i64>, Option<i64>)> {
        let d = self.reach(|f| s.atoms(f))?;
        if d.set.is_empty()? {
            return Err(Reason::Empty.into());
        }
        if let Some(k) = s.as_constant() {
            let k = i64::try_from(k).ok();
            return Ok((k, k));
        }
        d.bounds_in(&d.set, s)
    }
}

/// That some atoms are forgotten, if there are any.
pub(crate) fn forgotten<'a>(atoms: impl IntoIterator<Item = &'a Atom>) -> Option<Unknown> {
    let mut lost = atoms.into_iter().map(Atom::expr).peekable();
    lost.peek().is_some().then(|| not_affine(lost))
}

/// `min <= var` and `var < min + extent`.
fn range_preds(normalizer: &mut Normalizer, var: &Var, range: &Range) -> [Known<Pred>; 2] {
    let min = normalizer.sum(&range.min);
    let below = min.clone().and_then(|m| Ok(Pred::ge(Sum::var(var).plus(&m, -1)?)));
    let above = min.and_then(|m| {
        let end = m.plus(&normalizer.sum(&range.extent)?, 1)?;
        Ok(Pred::ge(end.plus(&Sum::var(var), -1)?.offset(-1)?))
    });
    [below, above]
}

/// Moves dimension `from` in front of dimension `to`, which is not behind it.
fn move_dim(set: Raw, from: u32, to: u32) -> Known<Raw> {
    match from == to {
        true => Ok(set),
        // Within one kind isl moves nothing; by way of the parameters it does.
        false => {
            use crate::isl::api::PARAM;
            set.move_dims(PARAM, 0, SET, from, 1)?.move_dims(SET, to, PARAM, 0, 1)
        }
    }
}

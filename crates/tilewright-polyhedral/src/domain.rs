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
//! let engine = Engine::new();
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
//! A domain is a list of conditions. Its set is made once something asks for it, from all of them
//! together, with what is certain of the terms in them that are not affine: most domains are only passed through, and most questions about
//! the others are answered without a set (`quick`). What each condition is charged does not depend
//! on whether the set is made ([`budget`]), nor does any answer.
//!
//! An element of a buffer is one value at one moment: facts about it (guards that load) are the
//! caller's to end where the buffer may change.

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use tilewright_ir::hash::HashMap;

use tilewright_ir::extent::holds;
use tilewright_ir::{Expr, Range, Var};

use crate::answer::{Known, Proof, Reason, Unknown, not_affine};
use crate::budget;
use crate::charged::Set as Raw;
use crate::engine::Engine;
use crate::form::{Atom, Pred, Sum};
use crate::memory::Question;
use crate::normalizer::Normalizer;
use crate::product::close;
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
    points: Points,
    /// Guards in normal form, for evaluation.
    pub(crate) guards: Rc<Vec<Pred>>,
    /// Why the set may be larger than the domain: a guard that could not be built.
    vague: Option<Unknown>,
}

/// The set of a domain.
#[derive(Clone)]
enum Points {
    /// Where all guards hold.
    Guarded(Rc<OnceCell<ConjunctionSet>>),
    /// A set of the space.
    Set(Raw),
}

/// The set where guards hold, and what is certain of terms that are not affine.
struct ConjunctionSet {
    set: Raw,
    /// Why it may be larger than that: a guard that could not be built.
    vague: Option<Unknown>,
}

impl ConjunctionSet {
    fn exact(set: Raw) -> ConjunctionSet {
        ConjunctionSet { set, vague: None }
    }
}

impl Points {
    fn guarded() -> Points {
        Points::Guarded(Rc::default())
    }
}

impl Engine {
    /// A domain without variables: one point, nothing known.
    pub fn domain(&self) -> Domain {
        Domain {
            engine: self.clone(),
            space: Rc::new(Space::new(&self.ctx, Vec::new())),
            vars: 0,
            points: Points::guarded(),
            guards: Rc::default(),
            vague: None,
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
        let mut normalizer = self.normalizer();
        let (mut preds, mut vague) = (Vec::new(), None);
        let mut add = |p: Known<Pred>, preds: &mut Vec<Pred>| match p {
            Ok(p) => preds.push(p),
            Err(e) => vague = Some(e),
        };
        for (var, range) in ranges.clone() {
            let ends = range_preds(&mut normalizer, var, range);
            ends.into_iter().for_each(|p| add(p, &mut preds));
        }
        if !guards.is_empty() {
            let known = Rc::new(self.guards.iter().chain(&preds).cloned().collect());
            let mut normalizer = normalizer.under(&known);
            guards.iter().for_each(|g| add(normalizer.pred(g), &mut preds));
        }
        self.declare(ranges.map(|(v, _)| v)).constrain(preds).blurred(vague)
    }

    /// The same points, of which one is meant: variables are symbolic, each with one value.
    pub fn fixed(&self) -> Domain {
        Domain { vars: 0, ..self.clone() }
    }

    /// The domain whose points are a given set over `atoms`, of which the first `vars` are its
    /// variables.
    pub(crate) fn of_raw(engine: &Engine, atoms: Vec<Atom>, vars: usize, set: Raw) -> Domain {
        let space = Rc::new(Space::new(&engine.ctx, atoms));
        let (points, engine) = (Points::Set(set), engine.clone());
        Domain { engine, space, vars, points, guards: Rc::default(), vague: None }
    }

    pub(crate) fn set(&self) -> Known<Raw> {
        match &self.points {
            Points::Set(set) => Ok(set.clone()),
            Points::Guarded(cell) => match cell.get() {
                Some(made) => Ok(made.set.clone()),
                None => {
                    let made = self.conjunction();
                    Ok(cell.get_or_init(|| made).set.clone())
                }
            },
        }
    }

    /// The set where all guards hold. A guard that cannot be built within the quota is left out.
    fn conjunction(&self) -> ConjunctionSet {
        let all = self.engine.prepare(|| self.space.all(self.guards_and_given()));
        let mut made = all.map_or_else(|_| self.each_guard(), ConjunctionSet::exact);
        if !self.space.atoms.iter().all(is_free) {
            match self.engine.prepare(|| self.learn(made.set.clone())) {
                Ok(set) => made.set = set,
                Err(e) => made.vague = Some(e),
            }
        }
        made
    }

    /// The set where those guards hold that can be built within the quota.
    fn each_guard(&self) -> ConjunctionSet {
        let mut made = ConjunctionSet::exact(self.space.universe());
        for guard in self.guards_and_given() {
            match self.engine.prepare(|| made.set.intersect(&self.space.pred(guard)?)) {
                Ok(set) => made.set = set,
                Err(e) => made.vague = Some(e),
            }
        }
        made
    }

    /// Runs a question. The set of the domain is made before, so that what the question is charged
    /// does not depend on the questions before it.
    pub(crate) fn ask<T>(&self, work: impl Fn() -> Known<T>) -> Known<T> {
        self.engine.affords()?;
        self.set()?;
        self.engine.ask(work)
    }

    /// The domain with other names for variables. What is not affine and mentions one of them is
    /// forgotten.
    pub(crate) fn renamed(&self, names: &HashMap<Var, Var>) -> Domain {
        let old: BTreeSet<Var> = names.keys().cloned().collect();
        let kept: Vec<Atom> = self
            .space
            .atoms
            .iter()
            .filter(|a| a.as_var().is_some() || !a.varies_with(&old))
            .cloned()
            .collect();
        let why = forgotten(self.space.atoms.iter().filter(|a| !kept.contains(a)));
        let env = |a: &Atom| a.as_var().and_then(|v| names.get(v)).map(Atom::var);
        let atoms: Vec<Atom> = kept.iter().map(|a| env(a).unwrap_or_else(|| a.clone())).collect();
        let guards = || self.guards.iter().map(|g| g.renamed(&env)).collect::<Known<_>>();
        let made = match &self.points {
            // Sets know dimensions by their places, so that this is the same one.
            Points::Guarded(_) if why.is_none() => guards().map(|guards| {
                let new = self.guarded(atoms, self.vars, guards);
                // What is given of sizes may hold of others under new names.
                let is_same = self.engine.facts().is_empty();
                if is_same { Domain { points: self.points.clone(), ..new } } else { new }
            }),
            _ => self.ask(|| {
                let set = self.space.scatter(self.set()?, &kept)?;
                let out = Domain::of_raw(&self.engine, atoms.clone(), self.vars, set);
                Ok(Domain { guards: Rc::new(guards()?), ..out })
            }),
        };
        match made {
            Ok(out) => out.blurred(self.vague.clone().or(why)),
            Err(e) => self.clone().blurred(Some(e)),
        }
    }

    /// The domain of guards over atoms.
    fn guarded(&self, atoms: Vec<Atom>, vars: usize, guards: Vec<Pred>) -> Domain {
        let space = Rc::new(Space::new(&self.engine.ctx, atoms));
        let (points, guards) = (Points::guarded(), Rc::new(guards));
        Domain { space, vars, points, guards, ..self.clone() }
    }

    /// The part of the domain that is a set of its space.
    pub(crate) fn within(&self, set: Raw) -> Domain {
        Domain { vague: self.vague(), points: Points::Set(set), ..self.clone() }
    }

    /// The same points in another space, with as many atoms, without guards.
    pub(crate) fn over(&self, atoms: Vec<Atom>) -> Known<Domain> {
        let points = Points::Set(self.set()?);
        let space = Rc::new(Space::new(&self.engine.ctx, atoms));
        Ok(Domain { space, points, vague: self.vague(), ..self.clone() })
    }

    /// The atoms whose values differ from point to point without being variables.
    pub(crate) fn hidden(&self) -> Vec<Atom> {
        let vars: BTreeSet<Var> = self.vars().cloned().collect();
        self.space
            .atoms
            .iter()
            .filter(|a| a.as_var().is_none() && a.varies_with(&vars))
            .cloned()
            .collect()
    }

    /// Points of both domains, which share the variables that they have in common. What is read
    /// from memory may differ between the two, and is forgotten.
    pub(crate) fn join(&self, other: &Domain) -> Known<Domain> {
        let (ours, theirs) = (self.without_memory()?, other.without_memory()?);
        if let (Points::Guarded(_), Points::Guarded(_)) = (&ours.points, &theirs.points) {
            let (atoms, vars) = ours.atoms_beside(&theirs);
            let guards = ours.guards.iter().chain(theirs.guards.iter()).cloned().collect();
            return Ok(ours.guarded(atoms, vars, guards).blurred(theirs.vague));
        }
        let (both, set) = ours.side_by_side(&theirs)?;
        Ok(both.within(both.set()?.intersect(&set)?))
    }

    /// The points of [`Domain::join`] as far as this domain restricts them, and as far as the
    /// other one does, at one moment.
    pub(crate) fn side_by_side(&self, other: &Domain) -> Known<(Domain, Raw)> {
        let guards = Rc::new(self.guards.iter().chain(other.guards.iter()).cloned().collect());
        let (set, theirs) = (self.set()?, other.set()?);
        let vague = self.vague().or_else(|| other.vague());
        if self.vars == other.vars && self.space.atoms == other.space.atoms {
            let points = Points::Set(set);
            return Ok((Domain { guards, vague, points, ..self.clone() }, theirs));
        }
        let (atoms, vars) = self.atoms_beside(other);
        let space = Space::new(&self.engine.ctx, atoms);
        // What is given of sizes holds for both, also where one of them does not name the size.
        let set = space.gather(set, &self.space.atoms)?;
        let points = Points::Set(self.given_in(&space, &self.space, set)?);
        let theirs = space.gather(theirs, &other.space.atoms)?;
        let theirs = self.given_in(&space, &other.space, theirs)?;
        Ok((Domain { space: Rc::new(space), vars, points, guards, vague, ..self.clone() }, theirs))
    }

    /// The atoms of both domains, each once: the variables of this one, those of the other one, and
    /// the rest. Second, how many are variables.
    fn atoms_beside(&self, other: &Domain) -> (Vec<Atom>, usize) {
        let (ours, theirs) = (&self.space.atoms, &other.space.atoms);
        let own = ours[..self.vars].iter().chain(&theirs[..other.vars]);
        let rest = ours[self.vars..].iter().chain(&theirs[other.vars..]);
        let (mut atoms, mut seen) = (Vec::new(), BTreeSet::new());
        atoms.extend(own.filter(|a| seen.insert(*a)).cloned());
        let vars = atoms.len();
        atoms.extend(rest.filter(|a| seen.insert(*a)).cloned());
        (atoms, vars)
    }

    /// The domain without what it knows of memory; vague if that was anything.
    fn without_memory(&self) -> Known<Domain> {
        let (memory, others): (Vec<&Atom>, Vec<&Atom>) = self
            .space
            .atoms
            .iter()
            .partition(|a| a.as_var().is_none() && !a.expr().effects().constant());
        let Some(why) = forgotten(memory) else { return Ok(self.clone()) };
        let atoms: Vec<Atom> = others.into_iter().cloned().collect();
        let set = self.space.scatter(self.set()?, &atoms)?;
        let vague = self.vague().or(Some(why));
        Ok(Domain { vague, ..Domain::of_raw(&self.engine, atoms, self.vars, set) })
    }

    /// The space of the domain, with nothing that guards say.
    pub(crate) fn without_guards(&self) -> Domain {
        Domain { guards: Rc::default(), points: Points::guarded(), ..self.clone() }
    }

    /// The domain as if it were known exactly.
    pub(crate) fn certain(self) -> Domain {
        Domain { vague: None, ..self }
    }

    /// The domain, known only from outside for this reason.
    pub(crate) fn blurred(self, why: Option<Unknown>) -> Domain {
        Domain { vague: self.vague.or(why), ..self }
    }

    /// Adds variables of the domain, without ranges.
    fn declare<'a>(&self, vars: impl Iterator<Item = &'a Var>) -> Domain {
        let mut atoms = self.space.atoms.clone();
        let mut count = self.vars;
        // Where each dimension was that is new among the variables, and where it is now.
        let mut moves: Vec<(Option<usize>, usize)> = Vec::new();
        for var in vars {
            let atom = Atom::var(var);
            let at = atoms.iter().position(|a| *a == atom);
            match at {
                Some(at) if at < count => continue,
                // So far a symbolic variable: it moves in front of those.
                Some(at) => drop(atoms.remove(at)),
                None => {}
            }
            moves.push((at, count));
            atoms.insert(count, atom);
            count += 1;
        }
        if moves.is_empty() {
            return self.clone();
        }
        let points = match &self.points {
            Points::Guarded(_) => Points::guarded(),
            Points::Set(set) => {
                let moved = moves.into_iter().fold(set.clone(), |set, (from, to)| match from {
                    Some(from) => set.move_dim(from, to),
                    None => set.insert_dims(to, 1),
                });
                Points::Set(moved)
            }
        };
        let space = Rc::new(Space::new(&self.engine.ctx, atoms));
        Domain { space, vars: count, points, ..self.clone() }
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
        match self.normalizer().pred(cond) {
            Ok(p) => self.constrain(vec![p]),
            Err(e) => Domain { vague: Some(e), ..self.clone() },
        }
    }

    /// The domain where each condition in normal form holds.
    pub(crate) fn constrain(&self, preds: Vec<Pred>) -> Domain {
        if let Some(out) = self.reach_guarded(|f| preds.iter().for_each(|p| p.atoms(f))) {
            budget::close(0);
            return Domain { guards: self.guards_with(&preds), points: Points::guarded(), ..out };
        }
        let made = self.ask(|| {
            let out = self.reach(|f| preds.iter().for_each(|p| p.atoms(f)))?;
            let mut set = out.set()?.intersect(&out.space.all(&preds)?)?;
            // Facts about terms that are not affine rest on the guards.
            if out.space.atoms.iter().any(|a| a.as_var().is_none()) {
                set = out.learn(set)?;
            }
            Ok(Domain { guards: self.guards_with(&preds), ..out.within(set) })
        });
        made.unwrap_or_else(|e| Domain { vague: Some(e), ..self.clone() })
    }

    fn guards_with(&self, preds: &[Pred]) -> Rc<Vec<Pred>> {
        Rc::new(self.guards.iter().chain(preds).cloned().collect())
    }

    /// The domain with a place for every atom that `each` names, if it is one of guards alone.
    fn reach_guarded(&self, each: impl FnOnce(&mut dyn FnMut(&Atom))) -> Option<Domain> {
        let Points::Guarded(_) = self.points else { return None };
        let new = self.new_atoms(each);
        if new.is_empty() {
            return Some(self.clone());
        }
        let space = Rc::new(self.space.extended(new.into_iter().collect()));
        Some(Domain { space, points: Points::guarded(), ..self.clone() })
    }

    /// The domain with a place for every atom that `each` names.
    pub(crate) fn reach(&self, each: impl FnOnce(&mut dyn FnMut(&Atom))) -> Known<Domain> {
        let new = self.new_atoms(each);
        if new.is_empty() {
            return Ok(self.clone());
        }
        let plain = new.iter().all(is_free);
        let space = Rc::new(self.space.extended(new.into_iter().collect()));
        if let (Points::Guarded(made), true) = (&self.points, plain) {
            let is_same = self.newly_given(&space, &self.space).next().is_none();
            let made = made.get().filter(|_| is_same).map(|made| -> Known<ConjunctionSet> {
                let set = self.space.embed(made.set.clone(), &space)?;
                Ok(ConjunctionSet { set, vague: made.vague.clone() })
            });
            let made = made.transpose()?.map_or_else(OnceCell::new, OnceCell::from);
            return Ok(Domain { space, points: Points::Guarded(Rc::new(made)), ..self.clone() });
        }
        let set = self.space.embed(self.set()?, &space)?;
        let points = Points::Set(self.given_in(&space, &self.space, set)?);
        let out = Domain { space, points, vague: self.vague(), ..self.clone() };
        if plain { Ok(out) } else { Ok(out.within(out.learn(out.set()?)?)) }
    }

    /// The atoms that `each` names, and those in what is known of them, which have no place yet.
    fn new_atoms(&self, each: impl FnOnce(&mut dyn FnMut(&Atom))) -> BTreeSet<Atom> {
        let mut new: BTreeSet<Atom> = BTreeSet::new();
        each(&mut |a| {
            if self.space.position(a).is_none() {
                close(a, &mut new);
            }
        });
        new.retain(|a| self.space.position(a).is_none());
        new
    }

    /// [`Domain::reach`] as a question of its own.
    pub(crate) fn reached(&self, each: impl Fn(&mut dyn FnMut(&Atom))) -> Known<Domain> {
        match self.reach_guarded(&each) {
            Some(out) => Ok(out),
            None => self.ask(|| self.reach(&each)),
        }
    }

    /// The conditions that are given of sizes for which a space has places, and `before` had none.
    fn newly_given<'a>(
        &'a self,
        space: &'a Space,
        before: &'a Space,
    ) -> impl Iterator<Item = &'a Pred> {
        let facts = self.engine.facts().iter();
        facts.filter(|p| has_places(space, p) && !has_places(before, p))
    }

    /// The points of a set at which these hold.
    fn given_in(&self, space: &Space, before: &Space, set: Raw) -> Known<Raw> {
        let new: Vec<&Pred> = self.newly_given(space, before).collect();
        if new.is_empty() { Ok(set) } else { set.intersect(&space.all(new)?) }
    }

    /// The guards, and what is given of the sizes that the space names.
    fn guards_and_given(&self) -> impl Iterator<Item = &Pred> {
        let facts = self.engine.facts().iter().filter(|p| has_places(&self.space, p));
        self.guards.iter().chain(facts)
    }

    /// Least and greatest value of a sum over a set of this space, where there are such.
    pub(crate) fn bounds_in(&self, set: &Raw, s: &Sum) -> Known<(Option<i64>, Option<i64>)> {
        let f = self.space.sum(s)?.intersect_domain(set)?;
        Ok((f.extreme_value(false)?, f.extreme_value(true)?))
    }

    /// The domain's own variables, outermost first.
    pub fn vars(&self) -> impl Iterator<Item = &Var> {
        self.space.atoms.iter().take(self.vars).filter_map(Atom::as_var)
    }

    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The same domain under another quota of operations a question.
    pub fn with_quota(&self, operations: u64) -> Domain {
        Domain { engine: self.engine.with_quota(operations), ..self.clone() }
    }

    /// Why the domain is only known from outside, if it is.
    pub(crate) fn vague(&self) -> Option<Unknown> {
        self.vague.clone().or_else(|| match (&self.points, self.set()) {
            (_, Err(e)) => Some(e),
            (Points::Guarded(made), _) => made.get().and_then(|made| made.vague.clone()),
            (Points::Set(_), _) => None,
        })
    }

    /// Whether a condition holds at every point.
    ///
    /// A vector condition is asked of every lane; the witness has the lane.
    pub fn prove(&self, cond: &Expr) -> Proof {
        self.form(|n| n.pred(cond)?.negate()).and_then(|(d, fails)| d.refuted(fails)).into()
    }

    /// [`Domain::refute`] as a question of its own.
    pub(crate) fn refuted(&self, fails: Pred) -> Known<Proof> {
        if self.engine.sees(|| is_never(self.guards.iter().chain(self.engine.facts()), &fails))? {
            return Ok(Proof::Yes);
        }
        let question = self.question("refute").map(|q| q.pred(&fails));
        self.engine.remembered(question, || self.ask(|| self.refute(fails.clone())))
    }

    /// A question about the domain, if that is one of guards alone.
    pub(crate) fn question(&self, what: &'static str) -> Option<Question> {
        match &self.points {
            Points::Guarded(_) if self.vague.is_none() => {
                let question = Question::new(what, self.engine.quota());
                let question = question.domain(self.vars, &self.space.atoms, &self.guards);
                // All that is given: the condition that is asked of may name more sizes.
                Some(self.engine.facts().iter().fold(question, Question::pred))
            }
            _ => None,
        }
    }

    /// What brings expressions that are used at points of the domain into normal form.
    pub(crate) fn normalizer(&self) -> Normalizer {
        self.engine.normalizer().under(&self.guards)
    }

    /// A form of expressions, and the domain with the lane that is in it.
    pub(crate) fn form<T>(
        &self,
        make: impl FnOnce(&mut Normalizer) -> Known<T>,
    ) -> Known<(Domain, T)> {
        let mut normalizer = self.normalizer();
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
        self.try_proves(cond) == Ok(true)
    }

    fn try_proves(&self, cond: &Expr) -> Known<bool> {
        let (d, holds) = self.form(|n| n.pred(cond))?;
        // Numbers are asked of first: with digits, there is more to know.
        if let Ok(Some(of_numbers)) = d.of_numbers(&holds)
            && of_numbers.negate().and_then(|fails| d.is_refuted(&fails)) == Ok(true)
        {
            return Ok(true);
        }
        d.is_refuted(&holds.negate()?)
    }

    /// [`Domain::is_never`] as a question of its own.
    pub(crate) fn is_refuted(&self, fails: &Pred) -> Known<bool> {
        if self.engine.sees(|| is_never(self.guards.iter().chain(self.engine.facts()), fails))? {
            return Ok(true);
        }
        let question = self.question("proves").map(|q| q.pred(fails));
        self.engine.remembered(question, || self.ask(|| self.is_never(fails)))
    }

    /// Whether a condition certainly holds at no point. What is symbolic ends where its type does.
    pub(crate) fn is_never(&self, p: &Pred) -> Known<bool> {
        let Some((d, bad)) = self.part(p)? else { return Ok(true) };
        Ok(d.space.len() > d.vars && bad.intersect(&d.space.pred(&d.typed()?)?)?.is_empty()?)
    }

    /// Why it cannot be said whether a condition holds at every point, at none, or at some only;
    /// `None` where it can.
    pub fn doubt(&self, cond: &Expr) -> Option<Unknown> {
        let exact = self.ask(|| {
            let (d, p) = self.form(|n| n.pred(cond))?;
            let d = d.reach(|f| p.atoms(f))?;
            Ok(d.vague().is_none() && d.space.atoms.iter().all(|a| a.as_var().is_some()))
        });
        if exact == Ok(true) {
            return None;
        }
        [cond.clone(), !cond.clone()].into_iter().find_map(|c| match self.prove(&c) {
            Proof::Unknown(why) => Some(why),
            _ => None,
        })
    }

    /// Whether the domain has no point; the witness of a no is one.
    pub fn is_empty(&self) -> Proof {
        self.refuted(Pred::Bool(true)).into()
    }

    /// Whether it is certain that the domain has no point: [`Domain::is_empty`] without the witness,
    /// which takes longer to find.
    pub fn is_void(&self) -> bool {
        self.proves(&Expr::bool(false))
    }

    /// One point of the domain, away from the ends of what its variables can be; what is not
    /// affine keeps all its values.
    ///
    /// # Errors
    /// [`Reason::Empty`] for a domain without points.
    pub fn middle(&self) -> Known<Domain> {
        self.ask(|| {
            let mut set = self.set()?;
            if set.is_empty()? {
                return Err(Reason::Empty.into());
            }
            for (at, atom) in self.space.atoms.iter().enumerate() {
                if atom.as_var().is_none() {
                    continue;
                }
                let (low, high) = set.ends(at)?;
                let (first, last) = (low.or(high).unwrap_or(0), high.or(low).unwrap_or(0));
                let middle = self.part_at(first.midpoint(last), atom, &set)?;
                set = if middle.is_empty()? { self.part_at(first, atom, &set)? } else { middle };
            }
            Ok(self.within(set))
        })
    }

    fn part_at(&self, v: i64, atom: &Atom, set: &Raw) -> Known<Raw> {
        let value = Sum::atom(atom.clone()).offset(-i128::from(v))?;
        set.intersect(&self.space.pred(&Pred::eq(value))?)
    }

    /// The points at which a condition holds; `None` where there certainly is none.
    fn part(&self, p: &Pred) -> Known<Option<(Domain, Raw)>> {
        // Most conditions are seen to hold nowhere without the engine.
        if is_never(self.guards.iter().chain(self.engine.facts()), p) {
            return Ok(None);
        }
        let d = self.reach(|f| p.atoms(f))?;
        let part = match &d.points {
            // All at once, where the set itself is not there yet.
            Points::Guarded(made) if made.get().is_none() && d.space.atoms.iter().all(is_free) => {
                d.space.all(d.guards_and_given().chain([p])).ok()
            }
            _ => None,
        };
        let part = part.map_or_else(|| d.set()?.intersect(&d.space.pred(p)?), Ok)?;
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
        match d.witness_of(&bad, &fails) {
            Ok(Some(witness))
                if witness.values.iter().all(|(v, x)| holds(v.dtype(), (*x).into())) =>
            {
                return Ok(Proof::No { witness });
            }
            Ok(None) => return Err(d.why_vague(&fails)),
            Err(e) if *e.reason() != Reason::TooLarge => return Err(e),
            _ => {}
        }
        // The point is none that the variables' types allow. These bounds would burden every
        // question, and hardly ever matter.
        let bad = bad.intersect(&d.space.pred(&d.typed()?)?)?;
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
    pub(crate) fn between(&self, ends: impl Fn(&Atom) -> Option<(i128, i128)>) -> Known<Pred> {
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

    /// Least and greatest value of an integer expression over the domain; `None` where it is not
    /// bounded, or where the bound does not fit 64 bits.
    ///
    /// With terms that are not affine the bounds hold, and may be wider than needed.
    ///
    /// # Errors
    /// [`Reason::Empty`] for a domain without points.
    pub fn bounds(&self, e: &Expr) -> Known<(Option<i64>, Option<i64>)> {
        let (d, s) = self.form(|n| n.sum(e))?;
        let question = d.question("bounds").map(|q| q.sum(&s));
        d.engine.remembered(question, || d.ask(|| d.sum_bounds(&s)))
    }

    pub(crate) fn sum_bounds(&self, s: &Sum) -> Known<(Option<i64>, Option<i64>)> {
        let d = self.reach(|f| s.atoms(f))?;
        let set = d.set()?;
        if set.is_empty()? {
            return Err(Reason::Empty.into());
        }
        if let Some(k) = s.as_constant() {
            let k = i64::try_from(k).ok();
            return Ok((k, k));
        }
        d.bounds_in(&set, s)
    }
}

/// Whether nothing is certain of an atom but what conditions say: it is a variable that can be any number.
fn is_free(a: &Atom) -> bool {
    a.as_var().is_some() && a.narrow_range().is_none()
}

/// Whether a space has a place for every atom of a condition.
fn has_places(space: &Space, p: &Pred) -> bool {
    let mut all = true;
    p.atoms(&mut |a| all &= space.position(a).is_some());
    all
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

//! Accesses: what a load or store touches, and when two of them meet.
//!
//! An [`AccessRelation`] is indices on a [`Domain`]: the loops and guards around a load or store. *Touched*
//! is its image, with the condition that describes it and not just a box. Two accesses conflict
//! where they name one cell; they are independent, under a condition on both iterations, if the
//! set of conflicting pairs is empty. Variables that occur in both domains stand for one value
//! (loops around both); iterations that may differ need variables of their own
//! ([`AccessRelation::elsewhere`]).
//!
//! ```
//! # use tilewright_ir::Var;
//! # use tilewright_polyhedral::{AccessRelation, Engine};
//! let engine = Engine::new();
//! let i = Var::index("i");
//! // for i in range(8): A[i] = ...      for i in range(8): ... = A[i + 1]
//! let d = engine.box_of(&[(i.clone(), 8)]);
//! let write = AccessRelation::new(&d, &[i.expr()]);
//! let (read, names) = AccessRelation::new(&d, &[&i + 1]).elsewhere();
//! let j = names[&i].clone();
//! // In one loop, would an iteration read what a later one writes?
//! let conflict = write.independent(&read, &[i.expr().greater(&j)]);
//! assert_eq!(conflict.to_string(), "no, at i=1, i=0");
//! // Does an iteration read what an earlier one wrote?
//! assert!(write.independent(&read, &[i.expr().less(&j)]).is_yes());
//! # Ok::<(), tilewright_ir::Error>(())
//! ```
//!
//! **Limits.** An index that loads may be anything: the touched set is then only known from
//! outside, and a conflict is [`Reason::NotAffine`](crate::Reason::NotAffine).

use std::rc::Rc;
use tilewright_ir::hash::HashMap;

use tilewright_ir::equal::same_expr;
use tilewright_ir::index::divided_by_size;
use tilewright_ir::visit::{Fold, Subst};
use tilewright_ir::{BinOp, Expr, Var};

use crate::answer::{Known, Proof, Unknown, not_affine};
use crate::domain::Domain;
use crate::form::{Nature, Pred, Sum};
use crate::memory::Question;
use crate::quick::is_never;
use crate::set::Set;

/// A load or store with the points at which it runs.
#[derive(Clone)]
pub struct AccessRelation {
    /// The points.
    pub domain: Domain,
    /// One index an axis.
    pub indices: Vec<Expr>,
}

/// Pairs of indices with one pair of numbers in the place of their quotients and their remainders by an open size:
/// numbers are equal where both are. As sets have it, quotients by open sizes may be any numbers.
fn without_digits<'a>(pairs: impl Iterator<Item = (&'a Expr, &'a Expr)>) -> Vec<(Expr, Expr)> {
    let mut pairs: Vec<(Expr, Expr)> = pairs.map(|(a, b)| (a.clone(), b.clone())).collect();
    while let Some((quotient, remainder, numbers)) = digits_of(&pairs) {
        pairs[quotient] = numbers;
        pairs.remove(remainder);
    }
    pairs
}

/// Whether a condition is about digits of a number that is a quotient by an open size itself.
fn has_nested_digits(p: &Pred) -> bool {
    let mut any = false;
    p.atoms(&mut |a| {
        if let Nature::Quotient(x, _) | Nature::Remainder(x, _) = a.nature() {
            x.atoms(&mut |inner| any |= matches!(inner.nature(), Nature::Quotient(..)));
        }
    });
    any
}

/// A pair of quotients, the pair of the remainders, and the numbers that these are of.
fn digits_of(pairs: &[(Expr, Expr)]) -> Option<(usize, usize, (Expr, Expr))> {
    let of = |pair: &(Expr, Expr), op: BinOp| {
        let ((x, by), (y, other)) = (by_open(&pair.0, op)?, by_open(&pair.1, op)?);
        same_expr(&by, &other).then_some((x, y, by))
    };
    pairs.iter().enumerate().find_map(|(quotient, pair)| {
        let (x, y, by) = of(pair, BinOp::FloorDiv)?;
        let remainder = pairs.iter().position(|other| {
            of(other, BinOp::FloorMod).is_some_and(|(u, v, other)| {
                same_expr(&u, &x) && same_expr(&v, &y) && same_expr(&by, &other)
            })
        })?;
        Some((quotient, remainder, (x, y)))
    })
}

/// What is divided, and an open divisor.
fn by_open(e: &Expr, op: BinOp) -> Option<(Expr, Expr)> {
    let (_, x, by) = divided_by_size(e).filter(|(found, ..)| *found == op)?;
    Some((x.clone(), by.clone()))
}

impl AccessRelation {
    /// Indices on a domain.
    pub fn new(domain: &Domain, indices: &[Expr]) -> AccessRelation {
        AccessRelation { domain: domain.clone(), indices: indices.to_vec() }
    }

    /// The same access at another iteration: every variable of the domain renamed. Second, the
    /// new variables by the old ones.
    pub fn elsewhere(&self) -> (AccessRelation, HashMap<Var, Var>) {
        let vars: Vec<Var> = self.domain.vars().cloned().collect();
        self.elsewhere_in(&vars)
    }

    /// The same with only some variables renamed; the others stay common.
    pub fn elsewhere_in(&self, vars: &[Var]) -> (AccessRelation, HashMap<Var, Var>) {
        let names: HashMap<Var, Var> = vars.iter().map(|v| (v.clone(), v.fresh())).collect();
        let mut subst = Subst::vars(names.iter().map(|(v, w)| (v.clone(), w.expr())));
        let indices = self.indices.iter().map(|e| subst.expr(e)).collect();
        (AccessRelation { domain: self.domain.renamed(&names), indices }, names)
    }

    /// The cells that are touched, over one variable an axis.
    pub fn touched(&self, cells: &[Var]) -> Known<Set> {
        self.domain.map(&self.indices)?.range(cells)
    }

    /// The condition under which both touch one cell, and why it may hold more often than that.
    fn meeting(&self, other: &AccessRelation, when: &[Expr]) -> Known<(Pred, Option<Unknown>)> {
        let guards = self.domain.guards.iter().chain(other.domain.guards.iter());
        let guards = Rc::new(guards.cloned().collect());
        let mut normalizer = self.domain.engine.normalizer().under(&guards);
        let mut meet = Vec::new();
        let mut why: Option<Unknown> = None;
        for (a, b) in without_digits(self.indices.iter().zip(&other.indices)) {
            let (a, b) = (&a, &b);
            if let Some(e) = [a, b].into_iter().find(|e| !e.effects().constant()) {
                why = Some(not_affine([e]));
                continue;
            }
            let d: Sum = normalizer.sum(a)?.plus(&normalizer.sum(b)?, -1)?;
            meet.push(Pred::eq(d));
        }
        for cond in when {
            meet.push(normalizer.pred(cond)?);
        }
        Ok((Pred::and(meet), why))
    }

    /// Whether a condition on both is seen to hold nowhere without the engine.
    fn never(&self, other: &AccessRelation, p: &Pred) -> Known<bool> {
        let known = || self.domain.constraints().chain(other.domain.constraints());
        self.domain.engine().sees(|| is_never(known(), p))
    }

    /// A question about where a condition on both holds, if both domains are those of guards.
    fn question(&self, what: &'static str, other: &AccessRelation, p: &Pred) -> Option<Question> {
        let (ours, theirs) = (self.domain.question(what)?, &other.domain);
        theirs.question(what)?;
        Some(ours.domain(theirs.vars, &theirs.space.atoms, &theirs.guards).pred(p))
    }

    /// Whether it is certain that no point of one and point of the other touch the same cell while
    /// all of `when` holds. That is [`AccessRelation::independent`] without the witness, which takes
    /// longer to find.
    pub fn is_disjoint(&self, other: &AccessRelation, when: &[Expr]) -> bool {
        self.try_is_disjoint(other, when) == Ok(true)
    }

    fn try_is_disjoint(&self, other: &AccessRelation, when: &[Expr]) -> Known<bool> {
        let (meet, _) = self.meeting(other, when)?;
        self.meets_nowhere(other, &meet)
    }

    /// Whether a condition on both certainly holds at no point of one and point of the other.
    pub(crate) fn meets_nowhere(&self, other: &AccessRelation, meet: &Pred) -> Known<bool> {
        if self.never(other, meet)? {
            return Ok(true);
        }
        // Of digits that are left sets know little, and take long.
        if has_nested_digits(meet) {
            return Ok(false);
        }
        let engine = self.domain.engine();
        engine.remembered(self.question("apart", other, meet), || {
            engine.ask(|| self.domain.join(&other.domain)?.is_never(meet))
        })
    }

    /// The pairs of a point of one and a point of the other that touch the same cell while all of
    /// `when` holds, as far as that is known without memory.
    pub fn meet(&self, other: &AccessRelation, when: &[Expr]) -> Known<Domain> {
        self.domain.ask(|| {
            let (meet, why) = self.meeting(other, when)?;
            Ok(self.domain.join(&other.domain)?.blurred(why).constrain(vec![meet]))
        })
    }

    /// Whether no point of one and point of the other touch the same cell while all of `when`
    /// holds. The witness of a no is the pair: the variables of this access first.
    pub fn independent(&self, other: &AccessRelation, when: &[Expr]) -> Proof {
        self.try_independent(other, when).into()
    }

    fn try_independent(&self, other: &AccessRelation, when: &[Expr]) -> Known<Proof> {
        let (meet, why) = self.meeting(other, when)?;
        if self.never(other, &meet)? {
            return Ok(Proof::Yes);
        }
        let engine = self.domain.engine();
        let question = self.question("independent", other, &meet);
        engine.remembered(question.map(|q| q.number(why.is_some())), || {
            engine
                .ask(|| self.domain.join(&other.domain)?.blurred(why.clone()).refute(meet.clone()))
        })
    }
}

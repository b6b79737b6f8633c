//! Equality by cases: conditions that two terms depend on are taken to be true and then false.
//!
//! Conditions that were taken are a path: a set of integers says which others follow and which cases
//! cannot be, and whether two integers are the same there. Orders that were taken are kept beside it
//! and closed under transitivity. That is for floats (a comparison that is true has no `NaN` in it),
//! and for integers where the set says nothing. Terms of other types are the same where their
//! operators are and their integers are the same on the path.

use tilewright_ir::index::Interval;
use tilewright_ir::{BinOp, DType};

use tilewright_ir::scalar::{self, Scalar};

use super::canon::Canon;
use super::path::{Integers, Path};
use super::term::{Fast, Node, Term, Terms, Val, Wrong, free};

/// Conditions that are taken to be true and then false, one inside the other.
const CONDITIONS: usize = 12;

/// Pairs of parts that are compared for one pair of terms.
const PARTS: usize = 256;

/// One term is not greater than another, or less.
struct Order {
    low: Term,
    high: Term,
    strict: bool,
}

/// Proves that canonical values are the same for all data.
pub struct Prover<'t> {
    pub terms: &'t mut Terms,
    /// Sums and products of floats are reordered, too.
    pub reassociate: bool,
    /// Terms that may still be visited.
    pub steps: &'t mut u64,
    /// What is asked about integers.
    pub integers: &'t mut Integers,
    /// Inputs for which the values differ, where integers that are unequal gave some.
    pub hints: Vec<(Term, u64)>,
    path: Path,
    orders: Vec<Order>,
    /// Pairs of terms that are not equal.
    unequal: Vec<(Term, Term)>,
}

impl<'t> Prover<'t> {
    /// A prover that knows nothing.
    pub fn new(
        terms: &'t mut Terms,
        reassociate: bool,
        steps: &'t mut u64,
        integers: &'t mut Integers,
    ) -> Self {
        Prover {
            terms,
            reassociate,
            steps,
            integers,
            hints: Vec::new(),
            path: Path::default(),
            orders: Vec::new(),
            unequal: Vec::new(),
        }
    }

    /// Takes a condition on the inputs to hold.
    pub fn assume(&mut self, condition: Term) {
        self.path.enter(self.terms, condition, true);
        self.suppose(condition, true);
    }

    /// Whether two canonical values are the same for all data, where the first is not arbitrary.
    pub fn prove(&mut self, a: Val, b: Val) -> Result<bool, Wrong> {
        self.cases(a, b, CONDITIONS)
    }

    fn cases(&mut self, a: Val, b: Val, depth: usize) -> Result<bool, Wrong> {
        if a == b || free(self.terms, a) || self.alike(a, b)? {
            return Ok(true);
        }
        let roots = [a, b].into_iter().filter_map(|v| match v {
            Val::Term(t) => Some(t),
            Val::Known(_) => None,
        });
        let roots: Vec<Term> = roots.collect();
        let below = self.terms.below(roots.iter().copied());
        let Some(condition) = self.condition(&below) else {
            self.hint(a, b)?;
            return Ok(false);
        };
        let decided = self.decide(condition);
        for truth in [true, false] {
            if decided == Some(!truth) {
                continue;
            }
            let work = 2 * below.len() as u64;
            let enough = depth > 0 || decided.is_some();
            match self.steps.checked_sub(work).filter(|_| enough) {
                Some(left) => *self.steps = left,
                None => return Ok(false),
            }
            let before = (self.orders.len(), self.unequal.len());
            self.suppose(condition, truth);
            self.path.enter(self.terms, condition, truth);
            let proven = if self.path.is_void(self.integers, self.terms) {
                true
            } else {
                let known = self.known(&below, condition, truth);
                let mut canon = Canon::new(self.terms, self.reassociate, &known);
                canon.prepare(&roots)?;
                let (x, y) = (canon.get(a), canon.get(b));
                self.cases(x, y, depth - usize::from(decided.is_none()))?
            };
            self.path.leave();
            self.orders.truncate(before.0);
            self.unequal.truncate(before.1);
            if !proven {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Values of terms that follow from what was taken.
    fn known(&mut self, below: &[Term], condition: Term, truth: bool) -> Fast<Term, u64> {
        let mut known: Fast<Term, u64> = Fast::default();
        for t in below {
            let dtype = self.terms.dtype(*t);
            if dtype.is_bool() {
                known.extend(self.decide(*t).map(|truth| (*t, u64::from(truth))));
            } else if let Some(value) =
                self.path.quick_range(self.terms, *t).and_then(Interval::as_point)
            {
                known.insert(*t, Scalar::int(value as i64, dtype).bits());
            }
        }
        known.insert(condition, u64::from(truth));
        known
    }

    /// The value of a condition, where it follows from what was taken.
    fn decide(&mut self, t: Term) -> Option<bool> {
        self.follows(t).or_else(|| self.path.truth(self.integers, self.terms, t))
    }

    /// Whether two values are the same on the path: integers and conditions that are, or the same
    /// operator on such.
    fn alike(&mut self, a: Val, b: Val) -> Result<bool, Wrong> {
        let dtype = match (a, b) {
            (Val::Term(t), _) | (_, Val::Term(t)) => self.terms.dtype(t),
            _ => return Ok(a == b),
        };
        let mut left = vec![(self.terms.term(a, dtype)?, self.terms.term(b, dtype)?)];
        for _ in 0..PARTS {
            let Some((x, y)) = left.pop() else { return Ok(true) };
            if x == y || self.path.equal(self.integers, self.terms, x, y) {
                continue;
            }
            let same = match (self.terms.node(x), self.terms.node(y)) {
                (Node::Binary(p, t, ..), Node::Binary(q, u, ..)) => p == q && t == u,
                (Node::Intrin(p, t, ..), Node::Intrin(q, u, ..)) => p == q && t == u,
                (Node::Many(p, m), Node::Many(q, n)) => {
                    p == q && self.terms.list(m).len() == self.terms.list(n).len()
                }
                (Node::Cast(t, _), Node::Cast(u, _)) | (Node::Bits(t, _), Node::Bits(u, _)) => {
                    t == u
                }
                (Node::Not(_), Node::Not(_)) | (Node::Ite(..), Node::Ite(..)) => true,
                _ => false,
            };
            if !same || self.terms.dtype(x) != self.terms.dtype(y) {
                return Ok(false);
            }
            let (mut xs, mut ys) = (Vec::new(), Vec::new());
            self.terms.children(x, |c| xs.push(c));
            self.terms.children(y, |c| ys.push(c));
            left.extend(xs.into_iter().zip(ys));
        }
        Ok(false)
    }

    /// Notes inputs for which two values differ.
    fn hint(&mut self, a: Val, b: Val) -> Result<(), Wrong> {
        let dtype = match (a, b) {
            (Val::Term(t), _) | (_, Val::Term(t)) => self.terms.dtype(t),
            _ => DType::BOOL,
        };
        if dtype.is_int() || dtype.is_bool() {
            let (a, b) = (self.terms.term(a, dtype)?, self.terms.term(b, dtype)?);
            let found = self.path.distinguish(self.integers, self.terms, a, b);
            self.hints = found.unwrap_or_default();
        }
        Ok(())
    }

    /// The first condition among terms that decides something and is no combination of others.
    fn condition(&self, below: &[Term]) -> Option<Term> {
        let mut first: Option<Term> = None;
        let mut offer = |t: Term| {
            let combines = matches!(
                self.terms.node(t),
                Node::Const(_)
                    | Node::Not(_)
                    | Node::Ite(..)
                    | Node::Many(..)
                    | Node::Binary(BinOp::And | BinOp::Or, ..)
            );
            if !combines && first.is_none_or(|f| t < f) {
                first = Some(t);
            }
        };
        for &t in below {
            match self.terms.node(t) {
                Node::Ite(c, ..) | Node::Not(c) => offer(c),
                _ => {}
            }
            if let Some((BinOp::And | BinOp::Or, _, parts)) = self.terms.operator(t) {
                parts.iter().copied().for_each(&mut offer);
            }
        }
        first
    }

    /// Takes a condition to have a value.
    fn suppose(&mut self, condition: Term, truth: bool) {
        let Node::Binary(op, dtype, [a, b]) = self.terms.node(condition) else { return };
        let mut add = |low, high, strict| self.orders.push(Order { low, high, strict });
        match (op, truth) {
            (BinOp::Lt | BinOp::Le, true) => add(a, b, op == BinOp::Lt),
            // Not of floats: no order holds for NaN.
            (BinOp::Lt | BinOp::Le, false) if !dtype.is_float() => add(b, a, op == BinOp::Le),
            (BinOp::Eq, true) => {
                add(a, b, false);
                add(b, a, false);
            }
            (BinOp::Eq, false) => self.unequal.push((a, b)),
            _ => {}
        }
    }

    /// The value of a comparison, where it follows from the orders that are known.
    fn follows(&self, t: Term) -> Option<bool> {
        let Node::Binary(op, _, [a, b]) = self.terms.node(t) else { return None };
        if self.orders.is_empty() || !matches!(op, BinOp::Lt | BinOp::Le | BinOp::Eq) {
            return None;
        }
        let (up, down) = (self.leads(a, b), self.leads(b, a));
        match (op, up, down) {
            (BinOp::Lt, Some(true), _) | (BinOp::Le, Some(_), _) => Some(true),
            (BinOp::Lt, _, Some(_)) | (BinOp::Le, _, Some(true)) => Some(false),
            (BinOp::Eq, Some(true), _) | (BinOp::Eq, _, Some(true)) => Some(false),
            (BinOp::Eq, Some(_), Some(_)) => Some(true),
            (BinOp::Eq, ..) => self
                .unequal
                .iter()
                .any(|(x, y)| {
                    (self.same(a, *x) && self.same(b, *y)) || (self.same(a, *y) && self.same(b, *x))
                })
                .then_some(false),
            _ => None,
        }
    }

    fn same(&self, a: Term, b: Term) -> bool {
        a == b || (self.leads(a, b).is_some() && self.leads(b, a).is_some())
    }

    /// Whether orders lead up from one term to another, and whether one of them is strict.
    fn leads(&self, from: Term, to: Term) -> Option<bool> {
        let mut reached: Vec<(Term, bool)> = vec![(from, false)];
        let mut at = 0;
        let mut found = None;
        while let Some(&(t, strict)) = reached.get(at) {
            at += 1;
            for o in &self.orders {
                let step = if o.low == t {
                    Some(o.strict)
                } else {
                    self.constants(t, o.low).map(|less| less || o.strict)
                };
                let Some(step) = step else { continue };
                let next = (o.high, strict || step);
                let end = if o.high == to {
                    Some(next.1)
                } else {
                    self.constants(o.high, to).map(|less| less || next.1)
                };
                found = found.max(end);
                if !reached.contains(&next) {
                    reached.push(next);
                }
            }
        }
        found
    }

    /// Whether a constant is less than another that is not below it.
    fn constants(&self, a: Term, b: Term) -> Option<bool> {
        let dtype = self.terms.dtype(a);
        let (Val::Known(x), Val::Known(y)) = (self.terms.val(a), self.terms.val(b)) else {
            return None;
        };
        scalar::binary(BinOp::Le, dtype, x, y)
            .is_ok_and(|bits| bits == 1)
            .then(|| scalar::binary(BinOp::Lt, dtype, x, y).is_ok_and(|bits| bits == 1))
    }
}

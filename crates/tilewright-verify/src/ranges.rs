//! Intervals of integer terms: what the type, the operators and narrowed parts allow.
//!
//! Arithmetic wraps. So an operator keeps the interval of its operands only where no result leaves
//! the type; else it may be any value of the type. Bounds are `i128`, in which sums and products of
//! 64-bit integers fit.

use tilewright_ir::index::Interval;
use tilewright_ir::{BinOp, Intrin};

use super::term::{Fast, Node, Term, Terms};

/// Operators that are looked through.
const DEPTH: usize = 12;

/// Intervals that are known of terms, beyond what they are made of.
#[derive(Default)]
pub struct Ranges {
    known: Fast<Term, Interval>,
}

/// A term whose interval became narrower, and the one that was noted before.
pub type Narrowed = (Term, Option<Interval>);

impl Ranges {
    /// The interval of an integer or `bool`; `None` for other types.
    pub fn interval(&self, terms: &Terms, t: Term) -> Option<Interval> {
        self.at(terms, t, DEPTH)
    }

    fn at(&self, terms: &Terms, t: Term, depth: usize) -> Option<Interval> {
        let whole = Interval::of_type(terms.dtype(t))?;
        let made = self.exact(terms, t, depth).filter(|r| r.within(whole));
        let r = made.unwrap_or(whole);
        Some(self.known.get(&t).map_or(r, |known| r.meet(*known)))
    }

    /// The interval of what an operator gives before it is reduced to its type.
    pub fn unwrapped(&self, terms: &Terms, t: Term) -> Option<Interval> {
        self.exact(terms, t, DEPTH)
    }

    fn exact(&self, terms: &Terms, t: Term, depth: usize) -> Option<Interval> {
        let below = depth.checked_sub(1)?;
        if let Some((op, _, operands)) = terms.operator(t) {
            let mut parts = operands.iter().map(|t| self.at(terms, *t, below));
            let first = parts.next()??;
            return parts.try_fold(first, |r, part| Interval::binary(op, r, part?));
        }
        match terms.node(t) {
            Node::Const(_) => terms.constant(t).map(Interval::point),
            Node::Cast(_, a) => self.at(terms, a, below),
            Node::Ite(_, a, b) => Some(self.at(terms, a, below)?.union(self.at(terms, b, below)?)),
            Node::Intrin(Intrin::BitAnd, _, [a, b]) => {
                let (a, b) = (self.at(terms, a, below)?, self.at(terms, b, below)?);
                let mask = [a, b].into_iter().filter(|r| r.lo >= 0).map(|r| r.hi).min()?;
                Some(Interval::new(0, mask))
            }
            Node::Intrin(Intrin::Shr, dtype, [a, b]) => {
                let (a, by) = (self.at(terms, a, below)?, self.at(terms, b, below)?);
                let by = by.as_point().filter(|by| *by < i128::from(dtype.bits))?;
                let by = u32::try_from(by).ok()?;
                Some(Interval::new(a.lo >> by, a.hi >> by))
            }
            _ => None,
        }
    }

    /// Notes that a term lies in a range, and what follows for the parts of it.
    pub fn narrow(&mut self, terms: &Terms, t: Term, to: Interval, undo: &mut Vec<Narrowed>) {
        self.narrow_at(terms, t, to, DEPTH, undo);
    }

    fn narrow_at(
        &mut self,
        terms: &Terms,
        t: Term,
        to: Interval,
        depth: usize,
        undo: &mut Vec<Narrowed>,
    ) {
        let (Some(old), Some(below)) = (self.interval(terms, t), depth.checked_sub(1)) else {
            return;
        };
        let new = old.meet(to);
        if new == old {
            return;
        }
        undo.push((t, self.known.insert(t, new)));
        let Some(whole) = Interval::of_type(terms.dtype(t)) else { return };
        // What was reduced to the type says nothing about the parts.
        if self.unwrapped(terms, t).is_none_or(|r| !r.within(whole)) {
            return;
        }
        let constant = |t: &Term| terms.constant(*t);
        let parts: Option<(BinOp, Term, i128)> = match terms.operator(t) {
            Some((op, _, [x, k])) if constant(k).is_some() => constant(k).map(|k| (op, *x, k)),
            Some((op @ (BinOp::Add | BinOp::Mul), _, [k, x])) => constant(k).map(|k| (op, *x, k)),
            Some((op @ (BinOp::Min | BinOp::Max), _, operands)) => {
                let side = side(op, new);
                operands.iter().for_each(|t| self.narrow_at(terms, *t, side, below, undo));
                None
            }
            Some(_) => None,
            None => match terms.node(t) {
                Node::Cast(from, x) if from.is_int() => Some((BinOp::Add, x, 0)),
                _ => None,
            },
        };
        let inner = parts.and_then(|(op, x, k)| {
            let Interval { lo, hi } = new;
            let inner = match op {
                BinOp::Add => Interval::new(lo - k, hi - k),
                BinOp::Sub => Interval::new(lo + k, hi + k),
                // lo <= k*x <= hi
                BinOp::Mul if k > 0 => Interval::new(-(-lo).div_euclid(k), hi.div_euclid(k)),
                // lo <= x // k <= hi
                BinOp::FloorDiv if k > 0 => {
                    Interval::new(lo.checked_mul(k)?, hi.checked_mul(k)? + k - 1)
                }
                _ => return None,
            };
            Some((x, inner))
        });
        if let Some((x, inner)) = inner {
            self.narrow_at(terms, x, inner, below, undo);
        }
    }

    /// Forgets what was noted, last first.
    pub fn undo(&mut self, narrowed: Vec<Narrowed>) {
        for (t, old) in narrowed.into_iter().rev() {
            match old {
                Some(r) => self.known.insert(t, r),
                None => self.known.remove(&t),
            };
        }
    }
}

/// What the operands of a `min` or `max` are within, where the result is.
fn side(op: BinOp, values: Interval) -> Interval {
    match op {
        BinOp::Min => Interval::new(values.lo, i128::MAX),
        _ => Interval::new(i128::MIN, values.hi),
    }
}

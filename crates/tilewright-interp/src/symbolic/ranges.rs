//! Intervals of integer terms: what the type, the operators and narrowed parts allow.
//!
//! Arithmetic wraps. So an operator keeps the interval of its operands only where no result leaves
//! the type; else it may be any value of the type. Bounds are `i128`, in which sums and products of
//! 64-bit integers fit.

use tilewright_ir::{BinOp, DType, Intrin};

use crate::scalar::Scalar;

use super::term::{Fast, Node, Term, Terms};

/// Operators that are looked through.
const DEPTH: usize = 12;

/// Least and greatest value. The least is greater than the greatest where there is none.
pub type Range = (i128, i128);

/// The values of a type of integers or of `bool`.
pub fn whole(dtype: DType) -> Option<Range> {
    match dtype.is_bool() {
        true => Some((0, 1)),
        false => Some((dtype.min_int()?, dtype.max_int()?)),
    }
}

/// Whether a range lies inside another.
pub fn inside(r: Range, outer: Range) -> bool {
    outer.0 <= r.0 && r.1 <= outer.1
}

fn meet(a: Range, b: Range) -> Range {
    (a.0.max(b.0), a.1.min(b.1))
}

/// Intervals that are known of terms, beyond what they are made of.
#[derive(Default)]
pub struct Ranges {
    known: Fast<Term, Range>,
}

/// A term whose interval became narrower, and the one that was noted before.
pub type Narrowed = (Term, Option<Range>);

impl Ranges {
    /// The interval of an integer or `bool`; `None` for other types.
    pub fn of(&self, terms: &Terms, t: Term) -> Option<Range> {
        self.at(terms, t, DEPTH)
    }

    fn at(&self, terms: &Terms, t: Term, depth: usize) -> Option<Range> {
        let whole = whole(terms.dtype(t))?;
        let made = self.exact(terms, t, depth).filter(|r| inside(*r, whole));
        let r = made.unwrap_or(whole);
        Some(self.known.get(&t).map_or(r, |known| meet(r, *known)))
    }

    /// The interval of what an operator gives before it is reduced to its type.
    pub fn unwrapped(&self, terms: &Terms, t: Term) -> Option<Range> {
        self.exact(terms, t, DEPTH)
    }

    fn exact(&self, terms: &Terms, t: Term, depth: usize) -> Option<Range> {
        let below = depth.checked_sub(1)?;
        let of = |t: Term| self.at(terms, t, below);
        match terms.node(t) {
            Node::Const(bits) => {
                let v = Scalar::from_bits(bits, terms.dtype(t)).as_i128();
                Some((v, v))
            }
            Node::Binary(op, dtype, a, b) if dtype.is_int() => operate(op, of(a)?, of(b)?),
            Node::Many(op, list) => {
                let mut parts = terms.list(list).iter().map(|t| of(*t));
                let first = parts.next()??;
                parts.try_fold(first, |r, part| operate(op, r, part?))
            }
            Node::Cast(_, a) => of(a),
            Node::Ite(_, a, b) => {
                let (a, b) = (of(a)?, of(b)?);
                Some((a.0.min(b.0), a.1.max(b.1)))
            }
            Node::Intrin(Intrin::BitAnd, _, a, b) => {
                let (a, b) = (of(a)?, of(b)?);
                let mask = [a, b].into_iter().filter(|r| r.0 >= 0).map(|r| r.1).min()?;
                Some((0, mask))
            }
            Node::Intrin(Intrin::Shr, dtype, a, b) => {
                let (a, by) = (of(a)?, of(b)?);
                let fits = by.0 == by.1 && by.0 < i128::from(dtype.bits);
                let by = u32::try_from(by.0).ok().filter(|_| fits)?;
                Some((a.0 >> by, a.1 >> by))
            }
            _ => None,
        }
    }

    /// Notes that a term lies in a range, and what follows for the parts of it.
    pub fn narrow(&mut self, terms: &Terms, t: Term, to: Range, undo: &mut Vec<Narrowed>) {
        self.narrow_at(terms, t, to, DEPTH, undo);
    }

    fn narrow_at(
        &mut self,
        terms: &Terms,
        t: Term,
        to: Range,
        depth: usize,
        undo: &mut Vec<Narrowed>,
    ) {
        let (Some(old), Some(below)) = (self.of(terms, t), depth.checked_sub(1)) else { return };
        let new = meet(old, to);
        if new == old {
            return;
        }
        undo.push((t, self.known.insert(t, new)));
        let Some(whole) = whole(terms.dtype(t)) else { return };
        // What was reduced to the type says nothing about the parts.
        if self.unwrapped(terms, t).is_none_or(|r| !inside(r, whole)) {
            return;
        }
        let constant = |t: Term| match terms.node(t) {
            Node::Const(bits) => Some(Scalar::from_bits(bits, terms.dtype(t)).as_i128()),
            _ => None,
        };
        let parts: Option<(BinOp, Term, i128)> = match terms.node(t) {
            Node::Binary(op, _, x, k) if constant(k).is_some() => constant(k).map(|k| (op, x, k)),
            Node::Binary(op @ (BinOp::Add | BinOp::Mul), _, k, x) => {
                constant(k).map(|k| (op, x, k))
            }
            Node::Many(op @ (BinOp::Add | BinOp::Mul), list) => match *terms.list(list) {
                [k, x] => constant(k).map(|k| (op, x, k)),
                _ => None,
            },
            Node::Cast(from, x) if from.is_int() => Some((BinOp::Add, x, 0)),
            Node::Many(op @ (BinOp::Min | BinOp::Max), list) => {
                let side = match op {
                    BinOp::Min => (new.0, i128::MAX),
                    _ => (i128::MIN, new.1),
                };
                for part in terms.list(list).to_vec() {
                    self.narrow_at(terms, part, side, below, undo);
                }
                None
            }
            Node::Binary(op @ (BinOp::Min | BinOp::Max), _, a, b) => {
                let side = match op {
                    BinOp::Min => (new.0, i128::MAX),
                    _ => (i128::MIN, new.1),
                };
                self.narrow_at(terms, a, side, below, undo);
                self.narrow_at(terms, b, side, below, undo);
                None
            }
            _ => None,
        };
        let inner = parts.and_then(|(op, x, k)| {
            let (lo, hi) = new;
            let inner = match op {
                BinOp::Add => (lo - k, hi - k),
                BinOp::Sub => (lo + k, hi + k),
                // lo <= k*x <= hi
                BinOp::Mul if k > 0 => (-(-lo).div_euclid(k), hi.div_euclid(k)),
                // lo <= x // k <= hi
                BinOp::FloorDiv if k > 0 => (lo.checked_mul(k)?, hi.checked_mul(k)? + k - 1),
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

/// What an operator gives for operands in ranges, before it is reduced to a type.
pub fn operate(op: BinOp, a: Range, b: Range) -> Option<Range> {
    Some(match op {
        BinOp::Add => (a.0.checked_add(b.0)?, a.1.checked_add(b.1)?),
        BinOp::Sub => (a.0.checked_sub(b.1)?, a.1.checked_sub(b.0)?),
        BinOp::Mul => {
            let corners = [(a.0, b.0), (a.0, b.1), (a.1, b.0), (a.1, b.1)];
            let mut all = corners.into_iter().map(|(x, y)| x.checked_mul(y));
            let first = all.next()??;
            all.try_fold((first, first), |r, v| v.map(|v| (r.0.min(v), r.1.max(v))))?
        }
        BinOp::Min => (a.0.min(b.0), a.1.min(b.1)),
        BinOp::Max => (a.0.max(b.0), a.1.max(b.1)),
        BinOp::FloorDiv if b.0 == b.1 && b.0 > 0 => (a.0.div_euclid(b.0), a.1.div_euclid(b.0)),
        BinOp::FloorMod if b.0 == b.1 && b.0 > 0 => {
            let same = a.0.div_euclid(b.0) == a.1.div_euclid(b.0);
            if same { (a.0.rem_euclid(b.0), a.1.rem_euclid(b.0)) } else { (0, b.0 - 1) }
        }
        BinOp::TruncDiv if b.0 == b.1 && b.0 > 0 => (a.0 / b.0, a.1 / b.0),
        BinOp::TruncMod if b.0 == b.1 && b.0 > 0 => match (a.0 >= 0, a.1 < b.0) {
            (true, true) => a,
            (true, false) => (0, b.0 - 1),
            _ => (1 - b.0, b.0 - 1),
        },
        _ => return None,
    })
}

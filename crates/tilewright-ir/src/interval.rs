//! A small interval analysis of integer expressions.
//!
//! It knows what values variables can have (loop variables between their bounds, sizes not
//! negative) and answers with an interval that holds all values of an expression: never too small,
//! often too large. Arithmetic that may leave its type gives the whole type.
//!
//! [`Ranges::exact`] answers only where every variable below has known values and no operation
//! below leaves its type; so [`Ranges::leaves`] can say that an operation is one that wraps.
//!
//! Code generation asks which divisions are plain unsigned ones and which loads may be done early,
//! schedules ask which index arithmetic needs 64 bits.

use std::collections::{HashMap, HashSet};

use crate::dtype::{DType, TypeKind};
use crate::expr::{BinOp, CallTarget, Expr, ExprKind, Intrin, Var};
use crate::stmt::Range;

/// `lo..=hi`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// The smallest value.
    pub lo: i128,
    /// The largest value.
    pub hi: i128,
}

impl Interval {
    fn new(a: i128, b: i128) -> Interval {
        Interval { lo: a.min(b), hi: a.max(b) }
    }

    /// All values of a type; everything for types without integers.
    pub fn all(dtype: DType) -> Interval {
        let (lo, hi) = (dtype.min_int(), dtype.max_int());
        Interval { lo: lo.unwrap_or(i64::MIN.into()), hi: hi.unwrap_or(u64::MAX.into()) }
    }

    fn union(self, other: Interval) -> Interval {
        Interval { lo: self.lo.min(other.lo), hi: self.hi.max(other.hi) }
    }

    /// Whether a value is in it.
    pub fn contains(self, value: i128) -> bool {
        (self.lo..=self.hi).contains(&value)
    }

    fn within(self, other: Interval) -> bool {
        self.lo >= other.lo && self.hi <= other.hi
    }
}

/// What is known about variables.
#[derive(Clone, Default)]
pub struct Ranges {
    vars: HashMap<Var, Interval>,
    /// Variables of `vars` whose bounds are known as they are, not only by a type.
    tight: HashSet<Var>,
    /// By the address of the node, which the node beside it keeps alive.
    memo: HashMap<usize, (Expr, Interval)>,
    /// The same for [`Ranges::exact`].
    exact: HashMap<usize, (Expr, Option<Interval>)>,
}

impl Ranges {
    /// Says what values a variable has.
    pub fn bind(&mut self, var: &Var, values: Interval) {
        self.bind_as(var, values, false);
    }

    /// Says that the values of a variable are those of an interval that is [`Ranges::exact`].
    pub fn bind_exact(&mut self, var: &Var, values: Interval) {
        self.bind_as(var, values, true);
    }

    fn bind_as(&mut self, var: &Var, values: Interval, tight: bool) {
        let known = self.vars.insert(var.clone(), values);
        let was = if tight { !self.tight.insert(var.clone()) } else { self.tight.remove(var) };
        if known.is_some_and(|k| k != values) || was != tight {
            self.memo.clear();
            self.exact.clear();
        }
    }

    /// Says that a variable is a size: not negative.
    pub fn bind_size(&mut self, var: &Var) {
        let all = Interval::all(var.dtype());
        self.bind(var, Interval { lo: 0, hi: all.hi });
    }

    /// Says that a variable runs through a range.
    pub fn bind_loop(&mut self, var: &Var, range: &Range) {
        let tight = self.exact(&range.min).is_some() && self.exact(&range.extent).is_some();
        let (min, extent) = (self.of(&range.min), self.of(&range.extent));
        let values = Interval { lo: min.lo, hi: min.hi + (extent.hi - 1).max(0) };
        let all = Interval::all(var.dtype());
        let values = Interval { lo: values.lo.max(all.lo), hi: values.hi.min(all.hi) };
        self.bind_as(var, values, tight);
    }

    /// The values that an expression can have, in any of its lanes.
    pub fn of(&mut self, e: &Expr) -> Interval {
        if let Some((_, known)) = self.memo.get(&e.address()) {
            return *known;
        }
        let all = Interval::all(e.dtype());
        let found = self.node(e, false).filter(|i| i.within(all)).unwrap_or(all);
        self.memo.insert(e.address(), (e.clone(), found));
        found
    }

    /// The values of an expression in which every variable has known bounds and no operation may
    /// leave its type; `None` for any other.
    pub fn exact(&mut self, e: &Expr) -> Option<Interval> {
        if let Some((_, known)) = self.exact.get(&e.address()) {
            return *known;
        }
        let all = Interval::all(e.dtype());
        let found = self.node(e, true).filter(|i| i.within(all));
        self.exact.insert(e.address(), (e.clone(), found));
        found
    }

    /// The values that a sum, difference or product of signed integers would have if its type held
    /// them, where the operands are [`Ranges::exact`] and the type does not.
    pub fn leaves(&mut self, e: &Expr) -> Option<Interval> {
        let grows = matches!(e.kind(), ExprKind::Binary(BinOp::Add | BinOp::Sub | BinOp::Mul, ..));
        if !grows || e.dtype().kind != TypeKind::Int {
            return None;
        }
        let all = Interval::all(e.dtype());
        self.node(e, true).filter(|i| !i.within(all))
    }

    /// Whether the machine's value of an expression is that of exact arithmetic on its operands.
    pub fn stays(&mut self, e: &Expr) -> bool {
        let all = Interval::all(e.dtype());
        self.node(e, false).is_some_and(|i| i.within(all))
    }

    fn child(&mut self, e: &Expr, exact: bool) -> Option<Interval> {
        if exact { self.exact(e) } else { Some(self.of(e)) }
    }

    fn node(&mut self, e: &Expr, exact: bool) -> Option<Interval> {
        Some(match e.kind() {
            ExprKind::Int(v) => {
                let unsigned = e.dtype().min_int() == Some(0);
                let v = if unsigned { i128::from(*v as u64) } else { i128::from(*v) };
                Interval::new(v, v)
            }
            ExprKind::Var(v) if exact && !self.tight.contains(v) => return None,
            ExprKind::Var(v) => *self.vars.get(v)?,
            ExprKind::Cast(a) if a.dtype().is_int() || a.dtype().is_bool() => {
                self.child(a, exact)?
            }
            ExprKind::Broadcast(a) => self.child(a, exact)?,
            ExprKind::Select(_, t, f) | ExprKind::IfThenElse(_, t, f) => {
                self.child(t, exact)?.union(self.child(f, exact)?)
            }
            ExprKind::Let(var, value, body) => {
                let value = self.child(value, exact)?;
                self.bind_as(var, value, exact);
                self.child(body, exact)?
            }
            ExprKind::Ramp(base, stride) => {
                let (base, stride) = (self.child(base, exact)?, self.child(stride, exact)?);
                let last = i128::from(e.dtype().lanes) - 1;
                let steps = Interval::new(stride.lo * last, stride.hi * last);
                let first = Interval::new(0, 0);
                let steps = steps.union(first);
                Interval { lo: base.lo + steps.lo, hi: base.hi + steps.hi }
            }
            ExprKind::Call(CallTarget::Intrin(op), args) => match (op, args.as_slice()) {
                (op, [a]) if op.is_hint() => self.child(a, exact)?,
                (Intrin::BitAnd, [a, b]) => {
                    let (a, b) = (self.child(a, exact)?, self.child(b, exact)?);
                    let bounds = [a, b].into_iter().filter(|i| i.lo >= 0);
                    Interval { lo: 0, hi: bounds.map(|i| i.hi).min()? }
                }
                (Intrin::Shr, [a, b]) => {
                    let (a, b) = (self.child(a, exact)?, self.child(b, exact)?);
                    if a.lo < 0 {
                        return None;
                    }
                    let in_width = b.lo >= 0 && b.hi < i128::from(e.dtype().bits);
                    Interval { lo: 0, hi: if in_width { a.hi >> b.lo } else { a.hi } }
                }
                _ => return None,
            },
            ExprKind::Binary(op, a, b) if a.dtype().is_int() => {
                let (a, b) = (self.child(a, exact)?, self.child(b, exact)?);
                return binary(*op, a, b);
            }
            _ => return None,
        })
    }
}

/// The values of `a op b`; `None` where nothing is known. The operands fit in 65 bits.
fn binary(op: BinOp, a: Interval, b: Interval) -> Option<Interval> {
    Some(match op {
        BinOp::Add => Interval { lo: a.lo + b.lo, hi: a.hi + b.hi },
        BinOp::Sub => Interval { lo: a.lo - b.hi, hi: a.hi - b.lo },
        BinOp::Mul => {
            let all = [(a.lo, b.lo), (a.lo, b.hi), (a.hi, b.lo), (a.hi, b.hi)];
            let all: Option<Vec<i128>> = all.iter().map(|(x, y)| x.checked_mul(*y)).collect();
            let all = all?;
            Interval { lo: *all.iter().min()?, hi: *all.iter().max()? }
        }
        BinOp::Min => Interval { lo: a.lo.min(b.lo), hi: a.hi.min(b.hi) },
        BinOp::Max => Interval { lo: a.lo.max(b.lo), hi: a.hi.max(b.hi) },
        BinOp::FloorDiv if b.lo > 0 => Interval {
            lo: a.lo.div_euclid(if a.lo >= 0 { b.hi } else { b.lo }),
            hi: a.hi.div_euclid(if a.hi >= 0 { b.lo } else { b.hi }),
        },
        BinOp::TruncDiv if b.lo > 0 && a.lo >= 0 => Interval { lo: a.lo / b.hi, hi: a.hi / b.lo },
        BinOp::FloorMod if b.lo > 0 && a.lo >= 0 && a.hi < b.lo => a,
        BinOp::FloorMod if b.lo > 0 && a.lo >= 0 => Interval { lo: 0, hi: a.hi.min(b.hi - 1) },
        BinOp::FloorMod if b.lo > 0 => Interval { lo: 0, hi: b.hi - 1 },
        BinOp::TruncMod if b.lo > 0 && a.lo >= 0 => Interval { lo: 0, hi: a.hi.min(b.hi - 1) },
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::eval_int;
    use proptest::prelude::*;

    #[test]
    fn bounds_of_loops_and_casts() {
        let i = Var::index("i");
        let mut ranges = Ranges::default();
        ranges.bind_loop(&i, &Range { min: Expr::i32(3), extent: Expr::i32(10) });
        let of = |e: Expr, ranges: &mut Ranges| ranges.of(&e);
        assert_eq!(of(&i * 2 - 6, &mut ranges), Interval { lo: 0, hi: 18 });
        assert_eq!(of((&i - 5).floordiv(4), &mut ranges), Interval { lo: -1, hi: 1 });
        assert_eq!(of(i.expr().cast(DType::U8), &mut ranges), Interval { lo: 3, hi: 12 });
        // -5 is not in the type, so nothing is known.
        assert_eq!(of((&i - 8).cast(DType::U8), &mut ranges), Interval::all(DType::U8));
        // Neither is a sum that may wrap.
        let big = of(&i * i64::from(i32::MAX / 2), &mut ranges);
        assert_eq!(big, Interval::all(DType::I32));
    }

    #[test]
    fn what_leaves_its_type_is_known_to() {
        let [i, n] = ["i", "n"].map(Var::index);
        let mut ranges = Ranges::default();
        ranges.bind_size(&n);
        ranges.bind_loop(&i, &Range { min: Expr::i32(0), extent: Expr::i32(65536) });
        let far = &i * 65536;
        let reached = Interval { lo: 0, hi: 65535 << 16 };
        assert_eq!((ranges.leaves(&far), ranges.exact(&far)), (Some(reached), None));
        assert_eq!(ranges.leaves(&(&i * 32768)), None);
        // Only what is known is said: an open size may be small, and a sum of what wraps is that.
        assert_eq!(ranges.leaves(&(&i * &n)), None);
        assert_eq!((ranges.leaves(&(far.clone() + &i)), ranges.exact(&far)), (None, None));
        let wide = i.expr().cast(DType::I64) * 65536;
        assert_eq!(ranges.exact(&wide), Some(reached));
    }

    fn op() -> impl Strategy<Value = BinOp> {
        proptest::sample::select(vec![
            BinOp::Add,
            BinOp::Sub,
            BinOp::Mul,
            BinOp::Min,
            BinOp::Max,
            BinOp::FloorDiv,
            BinOp::FloorMod,
            BinOp::TruncDiv,
            BinOp::TruncMod,
        ])
    }

    proptest! {
        #[test]
        fn an_interval_holds_every_value(
            op in op(), lo in -20i64..20, len in 0i64..12, blo in -8i64..12, blen in 0i64..6,
            dtype in proptest::sample::select(vec![DType::I8, DType::I32, DType::U8, DType::U64]),
        ) {
            let signed = dtype.min_int() != Some(0);
            let shift = if signed { 0 } else { 20 };
            let (x, y) = (Var::new("x", dtype), Var::new("y", dtype));
            let (lo, blo) = (lo + shift, (blo + shift).max(1 - i64::from(signed) * 9));
            let mut ranges = Ranges::default();
            ranges.bind(&x, Interval { lo: lo.into(), hi: (lo + len).into() });
            ranges.bind(&y, Interval { lo: blo.into(), hi: (blo + blen).into() });
            let found = ranges.of(&Expr::binary(op, x.expr(), y.expr()));
            for a in lo..=lo + len {
                for b in blo..=blo + blen {
                    if let Some(v) = eval_int(op, a, b, dtype) {
                        let v = if signed { i128::from(v) } else { i128::from(v as u64) };
                        prop_assert!(found.contains(v), "{a} {op:?} {b} = {v} not in {found:?}");
                    }
                }
            }
        }
    }
}

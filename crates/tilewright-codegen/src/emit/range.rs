//! A small interval analysis of integer expressions.
//!
//! It knows what values variables can have (loop variables between their bounds, sizes not
//! negative) and answers with an interval that holds all values of an expression: never too small,
//! often too large. Arithmetic that may leave its type gives the whole type.
//!
//! It decides which divisions are plain unsigned ones, which loads may be done early, and nothing
//! about what a program means.

use std::collections::HashMap;

use tilewright_ir::{BinOp, CallTarget, DType, Expr, ExprKind, Intrin, Range, Var};

/// `lo..=hi`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Interval {
    pub lo: i128,
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

    pub fn contains(self, value: i128) -> bool {
        (self.lo..=self.hi).contains(&value)
    }

    fn within(self, other: Interval) -> bool {
        self.lo >= other.lo && self.hi <= other.hi
    }
}

/// What is known about variables.
#[derive(Clone, Default)]
pub(super) struct Ranges {
    vars: HashMap<Var, Interval>,
    /// By the address of the node, which the node beside it keeps alive.
    memo: HashMap<usize, (Expr, Interval)>,
}

impl Ranges {
    /// Says what values a variable has.
    pub fn bind(&mut self, var: &Var, values: Interval) {
        let known = self.vars.insert(var.clone(), values);
        if known.is_some_and(|k| k != values) {
            self.memo.clear();
        }
    }

    /// Says that a variable is a size: not negative.
    pub fn bind_size(&mut self, var: &Var) {
        let all = Interval::all(var.dtype());
        self.bind(var, Interval { lo: 0, hi: all.hi });
    }

    /// Says that a variable runs through a range.
    pub fn bind_loop(&mut self, var: &Var, range: &Range) {
        let (min, extent) = (self.of(&range.min), self.of(&range.extent));
        let values = Interval { lo: min.lo, hi: min.hi + (extent.hi - 1).max(0) };
        let all = Interval::all(var.dtype());
        self.bind(var, Interval { lo: values.lo.max(all.lo), hi: values.hi.min(all.hi) });
    }

    /// The values that an expression can have, in any of its lanes.
    pub fn of(&mut self, e: &Expr) -> Interval {
        if let Some((_, known)) = self.memo.get(&e.address()) {
            return *known;
        }
        let all = Interval::all(e.dtype());
        let found = self.node(e).filter(|i| i.within(all)).unwrap_or(all);
        self.memo.insert(e.address(), (e.clone(), found));
        found
    }

    fn node(&mut self, e: &Expr) -> Option<Interval> {
        Some(match e.kind() {
            ExprKind::Int(v) => {
                let unsigned = e.dtype().min_int() == Some(0);
                let v = if unsigned { i128::from(*v as u64) } else { i128::from(*v) };
                Interval::new(v, v)
            }
            ExprKind::Var(v) => *self.vars.get(v)?,
            ExprKind::Cast(a) if a.dtype().is_int() || a.dtype().is_bool() => self.of(a),
            ExprKind::Broadcast(a) => self.of(a),
            ExprKind::Select(_, t, f) | ExprKind::IfThenElse(_, t, f) => {
                self.of(t).union(self.of(f))
            }
            ExprKind::Let(var, value, body) => {
                let value = self.of(value);
                self.bind(var, value);
                self.of(body)
            }
            ExprKind::Ramp(base, stride) => {
                let (base, stride) = (self.of(base), self.of(stride));
                let last = i128::from(e.dtype().lanes) - 1;
                let steps = Interval::new(stride.lo * last, stride.hi * last);
                let first = Interval::new(0, 0);
                let steps = steps.union(first);
                Interval { lo: base.lo + steps.lo, hi: base.hi + steps.hi }
            }
            ExprKind::Call(CallTarget::Intrin(op), args) => match (op, args.as_slice()) {
                (op, [a]) if op.is_hint() => self.of(a),
                (Intrin::BitAnd, [a, b]) => {
                    let (a, b) = (self.of(a), self.of(b));
                    let bounds = [a, b].into_iter().filter(|i| i.lo >= 0);
                    Interval { lo: 0, hi: bounds.map(|i| i.hi).min()? }
                }
                (Intrin::Shr, [a, b]) => {
                    let (a, b) = (self.of(a), self.of(b));
                    if a.lo < 0 {
                        return None;
                    }
                    let in_width = b.lo >= 0 && b.hi < i128::from(e.dtype().bits);
                    Interval { lo: 0, hi: if in_width { a.hi >> b.lo } else { a.hi } }
                }
                _ => return None,
            },
            ExprKind::Binary(op, a, b) if a.dtype().is_int() => {
                let (a, b) = (self.of(a), self.of(b));
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
    use proptest::prelude::*;
    use tilewright_ir::expr::eval_int;

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

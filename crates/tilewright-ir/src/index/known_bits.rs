//! Which binary digits of an integer are known to be zero, by masks, shifts and ranges.

use crate::expr::CallTarget;
use crate::index::Ranges;
use crate::{BinOp, Expr, ExprKind, Intrin};

impl Ranges {
    /// The binary digits of an integer that may be one, as a mask; `None` where it may be negative.
    pub fn possible_ones(&self, e: &Expr) -> Option<u64> {
        let shifted = |ones: u64, by: &Expr| {
            let by = u32::try_from(by.as_int()?).ok()?;
            (ones.leading_zeros() > by).then(|| ones << by)
        };
        let power = |k: &Expr| {
            k.as_int().and_then(|k| u64::try_from(k).ok()).filter(|k| k.is_power_of_two())
        };
        let found = match e.kind() {
            ExprKind::Binary(BinOp::Mul, a, k) => {
                self.possible_ones(a).zip(power(k)).and_then(|(ones, k)| {
                    (ones.leading_zeros() > k.trailing_zeros()).then(|| ones << k.trailing_zeros())
                })
            }
            ExprKind::Binary(BinOp::FloorDiv, a, k) => {
                self.possible_ones(a).zip(power(k)).map(|(ones, k)| ones >> k.trailing_zeros())
            }
            ExprKind::Call(CallTarget::Intrin(op), args) => match (op, args.as_slice()) {
                (Intrin::BitAnd, [a, b]) => match (self.possible_ones(a), self.possible_ones(b)) {
                    (Some(a), Some(b)) => Some(a & b),
                    (some, other) => some.or(other),
                },
                (Intrin::BitOr | Intrin::BitXor, [a, b]) => {
                    self.possible_ones(a).zip(self.possible_ones(b)).map(|(a, b)| a | b)
                }
                (Intrin::Shl, [a, by]) => self.possible_ones(a).and_then(|ones| shifted(ones, by)),
                (Intrin::Shr, [a, by]) => self
                    .possible_ones(a)
                    .zip(by.as_int())
                    .and_then(|(ones, by)| ones.checked_shr(u32::try_from(by).ok()?)),
                _ => None,
            },
            ExprKind::Int(v) => u64::try_from(*v).ok(),
            _ => None,
        };
        let values = self.interval(e);
        let below = u64::try_from(values.hi).ok().filter(|_| values.lo >= 0);
        let below = below.map(|most| match most.leading_zeros() {
            64 => 0,
            n => u64::MAX >> n,
        });
        match (found, below) {
            (Some(a), Some(b)) => Some(a & b),
            (some, other) => some.or(other),
        }
    }
}

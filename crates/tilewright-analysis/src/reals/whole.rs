//! Integers in the reals: sums and products that stay in their types, and floats that were rounded and bounded.
//!
//! What does not leave its type is the number that it is in the reals. So a value that is stored as `uint8` with
//! 128 added is the one that is stored as `int8` without, once the 128 is taken away again.

use tilewright_ir::{BinOp, CallTarget, DType, Dim, Expr, ExprKind, Intrin, IterKind};

use super::polynomial::{Poly, constant, plus, times};
use super::{Atom, Reals, long};

/// An integer: what it is, and between what it lies.
pub(super) struct Whole {
    pub value: Poly,
    low: i128,
    high: i128,
}

/// Bits of types whose integers `float64` has.
const BITS: u8 = 32;

impl Reals {
    /// An integer that is what it is in the reals; `None` where it may have left its type, or is something else.
    pub(super) fn whole(&mut self, side: usize, e: &Expr) -> Option<Whole> {
        let (least, most) = range(e.dtype())?;
        let found = match e.kind() {
            ExprKind::Int(_) => {
                let c = i128::from(e.as_int()?);
                Whole { value: constant(c as f64), low: c, high: c }
            }
            ExprKind::Load(buffer, at) => {
                let (number, factor) = *self.buffers[side].get(buffer)?;
                let at: Option<Vec<String>> =
                    long(buffer, at).map(|i| self.text(side, i)).collect();
                let element = self.of_atom(Atom::Element(number, at?));
                Whole { value: times(&element, &constant(factor))?, low: least, high: most }
            }
            ExprKind::Cast(inner) if inner.dtype().is_int() => self.whole(side, inner)?,
            ExprKind::Cast(inner) => {
                let (low, high) = rounded(inner)?;
                Whole { value: self.poly(side, inner)?, low: low?, high: high? }
            }
            ExprKind::Binary(op @ (BinOp::Add | BinOp::Sub | BinOp::Mul), a, b) => {
                let (a, b) = (self.whole(side, a)?, self.whole(side, b)?);
                match op {
                    BinOp::Add => Whole {
                        value: plus(a.value, &b.value, 1.0),
                        low: a.low + b.low,
                        high: a.high + b.high,
                    },
                    BinOp::Sub => Whole {
                        value: plus(a.value, &b.value, -1.0),
                        low: a.low - b.high,
                        high: a.high - b.low,
                    },
                    _ => {
                        let ends = [a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high];
                        Whole {
                            value: times(&a.value, &b.value)?,
                            low: *ends.iter().min()?,
                            high: *ends.iter().max()?,
                        }
                    }
                }
            }
            ExprKind::Select(c, t, f) | ExprKind::IfThenElse(c, t, f) => {
                let c = self.poly_of_condition(side, c)?;
                let (t, f) = (self.whole(side, t)?, self.whole(side, f)?);
                let (low, high) = (t.low.min(f.low), t.high.max(f.high));
                Whole { value: self.choice(c, t.value, f.value), low, high }
            }
            _ => return None,
        };
        (least <= found.low && found.high <= most).then_some(found)
    }

    /// Whether a sum over some axes is the sum of the reals, as far as types go.
    pub(super) fn is_exact_sum(
        &mut self,
        side: usize,
        value: &Expr,
        dims: &[(Dim, IterKind)],
    ) -> bool {
        if value.dtype().is_float() {
            return true;
        }
        let mut count = dims.iter().filter(|(_, kind)| *kind != IterKind::Spatial);
        let count =
            count.try_fold(1i128, |all, (n, _)| all.checked_mul(i128::try_from(n.known()?).ok()?));
        let (Some(count), Some(whole)) = (count, self.whole(side, value)) else { return false };
        let Some((least, most)) = range(value.dtype()) else { return false };
        let all = |end: i128| end.checked_mul(count);
        all(whole.low).is_some_and(|low| least <= low)
            && all(whole.high).is_some_and(|high| high <= most)
    }
}

/// The range of a type of integers.
fn range(dtype: DType) -> Option<(i128, i128)> {
    let is_small = dtype.is_int() && dtype.lanes == 1 && dtype.bits <= BITS;
    is_small.then_some((dtype.min_int()?, dtype.max_int()?))
}

/// The ends, as far as they are known, of a float that is an integer.
fn rounded(e: &Expr) -> Option<(Option<i128>, Option<i128>)> {
    let both = |a, b, f: fn(i128, i128) -> i128| Option::zip(a, b).map(|(a, b)| f(a, b));
    Some(match e.kind() {
        ExprKind::Float(_) => {
            let v = e.as_float()?;
            let whole = (v.fract() == 0.0 && v.abs() < 9e15).then_some(v as i128)?;
            (Some(whole), Some(whole))
        }
        ExprKind::Cast(inner) if inner.dtype().is_float() => rounded(inner)?,
        ExprKind::Cast(inner) => match inner.as_int() {
            Some(c) => (Some(c.into()), Some(c.into())),
            None => {
                let (low, high) = range(inner.dtype())?;
                (Some(low), Some(high))
            }
        },
        ExprKind::Call(CallTarget::Intrin(op), args) => match op {
            Intrin::NearbyInt | Intrin::Round | Intrin::Floor | Intrin::Ceil | Intrin::Trunc => {
                (None, None)
            }
            op if op.is_hint() => rounded(args.first()?)?,
            _ => return None,
        },
        ExprKind::Binary(op, a, b) => {
            let ((low, high), (least, most)) = (rounded(a)?, rounded(b)?);
            match op {
                BinOp::Add => (both(low, least, |a, b| a + b), both(high, most, |a, b| a + b)),
                BinOp::Sub => (both(low, most, |a, b| a - b), both(high, least, |a, b| a - b)),
                BinOp::Max => (low.max(least), both(high, most, i128::max)),
                BinOp::Min => (
                    both(low, least, i128::min),
                    match (high, most) {
                        (Some(a), Some(b)) => Some(a.min(b)),
                        (a, b) => a.or(b),
                    },
                ),
                _ => return None,
            }
        }
        _ => return None,
    })
}

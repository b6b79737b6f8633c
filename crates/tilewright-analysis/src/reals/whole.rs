//! Integers in the reals: sums and products that stay in their types, and floats that were rounded and bounded.
//!
//! What does not leave its type is the number that it is in the reals. So a value that is stored as `uint8` with
//! 128 added is the one that is stored as `int8` without, once the 128 is taken away again.

use tilewright_ir::{BinOp, CallTarget, DType, Dim, Expr, ExprKind, Intrin, IterKind, dim};

use super::clamp::CLAMP;
use super::polynomial::{Poly, constant, plus, times};
use super::{Atom, Elements, ROUNDING, Reals};

/// An integer: what it is, and between what it lies.
pub(super) struct Whole {
    pub value: Poly,
    low: i128,
    high: i128,
}

/// The largest integer that is looked for in floats: `float32` is exact to some millionths of it.
const LARGEST: i32 = 1 << 20;

/// What gives integers.
const WHOLE: [Intrin; 5] =
    [Intrin::NearbyInt, Intrin::Round, Intrin::Floor, Intrin::Ceil, Intrin::Trunc];

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
                let known = self.buffers[side].get(buffer)?.clone();
                let value = self.element(side, &known, buffer, at)?;
                let (low, high) = match known {
                    Elements::Constant(id) => self.constants[id].whole?,
                    Elements::Made(_) => (least, most),
                };
                let whole = Whole { value, low, high };
                self.know_integer(&whole);
                whole
            }
            ExprKind::Cast(inner) if inner.dtype().is_int() => self.whole(side, inner)?,
            ExprKind::Cast(inner) => {
                let (low, high) = rounded(inner)?;
                let found = Whole { value: self.poly(side, inner)?, low: low?, high: high? };
                self.know_integer(&found);
                found
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

    /// Notes the atom that an integer is, but for a number that is added.
    fn know_integer(&mut self, whole: &Whole) {
        let added = whole.value.get(&Vec::new()).copied().unwrap_or(0.0);
        let mut rest = whole.value.iter().filter(|(m, _)| !m.is_empty());
        if let (Some((m, 1.0)), None) = (rest.next(), rest.next())
            && let [(atom, 1)] = m[..]
            && added.fract() == 0.0
            && added.abs() <= f64::from(LARGEST)
        {
            let (mut low, mut high) = (whole.low - added as i128, whole.high - added as i128);
            if let Some((1.0, least, most)) = self.of_integer(atom) {
                (low, high) = (low.max(least), high.min(most));
            }
            self.integers.insert(atom, (low, high));
        }
    }

    /// Whether a polynomial is an integer for all data, small enough that floats on the way to it are less than a half away.
    pub(super) fn is_integer(&self, p: &Poly) -> bool {
        let is_whole = p.iter().all(|(m, c)| {
            let c = match m[..] {
                [] => *c,
                [(atom, 1)] => match self.of_integer(atom) {
                    Some((factor, ..)) => c / factor,
                    None => return false,
                },
                _ => return false,
            };
            // A product by a scale and a division by it leave rounding, of `float32` in constants.
            (c - c.round()).abs() <= ROUNDING * c.abs()
        });
        let largest = f64::from(LARGEST);
        is_whole && self.ends(p).is_some_and(|(low, high)| -largest <= low && high <= largest)
    }

    /// Whether a polynomial is made of integers by whole numbers, however large they are.
    pub(super) fn is_made_of_integers(&self, p: &Poly) -> bool {
        let is_rounded = |atom: usize| match &self.atoms[atom] {
            Atom::Of(name, parts) if name == CLAMP => {
                let ends = parts[1..].iter().map(super::number);
                let mut ends =
                    ends.map(|end| end.is_some_and(|v| v.is_infinite() || v.fract() == 0.0));
                ends.all(|is_whole| is_whole) && self.is_made_of_integers(&parts[0])
            }
            Atom::Of(name, _) => WHOLE.iter().any(|op| *name == format!("{op:?}")),
            _ => self.of_integer(atom).is_some_and(|(factor, ..)| factor == 1.0),
        };
        p.iter().all(|(m, c)| {
            c.fract() == 0.0 && m.iter().all(|(atom, power)| *power > 0 && is_rounded(*atom))
        })
    }

    /// A factor by which an atom is an integer, with the least and the largest one.
    pub(super) fn of_integer(&self, atom: usize) -> Option<(f64, i128, i128)> {
        if let Some((low, high)) = self.integers.get(&atom) {
            return Some((1.0, *low, *high));
        }
        match &self.atoms[atom] {
            Atom::Element(number, _) => self.integer_elements.get(number).copied(),
            Atom::Constant(id, _) => self.constants[*id].whole.map(|(low, high)| (1.0, low, high)),
            _ => None,
        }
    }

    /// The smaller or larger one of two polynomials, where it is one of them for all data.
    pub(super) fn within(&self, op: BinOp, a: &Poly, b: &Poly) -> Option<Poly> {
        let ((low, high), (least, most)) = (self.ends(a)?, self.ends(b)?);
        let (first, second) = match op {
            BinOp::Min => (high <= least, most <= low),
            _ => (low >= most, least >= high),
        };
        if first {
            return Some(a.clone());
        }
        second.then(|| b.clone())
    }

    /// Between what a polynomial lies whose atoms are integers.
    pub(super) fn ends(&self, p: &Poly) -> Option<(f64, f64)> {
        let mut ends = (0.0, 0.0);
        for (m, c) in p {
            let (low, high) = match m[..] {
                [] => (*c, *c),
                [(atom, 1)] => {
                    let (factor, low, high) = self.of_integer(atom)?;
                    let (x, y) = (low as f64 * c / factor, high as f64 * c / factor);
                    (x.min(y), x.max(y))
                }
                _ => return None,
            };
            ends = (ends.0 + low, ends.1 + high);
        }
        Some(ends)
    }

    /// A factor by which a polynomial is an integer, with the least and the largest one.
    pub(super) fn ends_of_integer(&self, p: &Poly) -> Option<(f64, i128, i128)> {
        let (low, high) = self.ends(p).filter(|_| self.is_integer(p))?;
        Some((1.0, low.round() as i128, high.round() as i128))
    }

    /// Between which integers what a stage stores lies, if it stores what it computes, or the sum of that.
    pub(super) fn ends_of_stage(
        &self,
        p: &Poly,
        sum: Option<(BinOp, u64)>,
        dims: &[(Dim, IterKind)],
    ) -> Option<(i128, i128)> {
        let (_, low, high) = self.ends_of_integer(p)?;
        match sum {
            None => Some((low, high)),
            Some((BinOp::Add, 0)) => {
                let reduced = dims.iter().filter(|(_, kind)| *kind != IterKind::Spatial);
                let count = dim::known(&reduced.map(|(n, _)| *n).collect::<Vec<_>>())?;
                let count = count.iter().try_fold(1i128, |n, m| n.checked_mul(*m as i128))?;
                Some((low.checked_mul(count)?, high.checked_mul(count)?))
            }
            _ => None,
        }
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

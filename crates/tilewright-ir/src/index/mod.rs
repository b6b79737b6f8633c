//! Simplification of index expressions by intervals.
//!
//! Index arithmetic is brought to the form `sum of coefficient * atom + constant`, in which
//! division and remainder by a constant split into an exact part and a rest whose interval
//! decides it:
//!
//! ```text
//! (i*20 + j*5 + k) // 5   =  i*4 + j          where 0 <= k < 5
//! (i*20 + j*5 + k) % 20   =  j*5 + k          where 0 <= j*5 + k < 20
//! (i // 4)*4 + i % 4      =  i
//! (i // 4) // 5           =  i // 20
//! (i*4 + j) // 8          =  i // 2           where 0 <= j < 4
//! ```
//!
//! Machine integers wrap, so every step that is not ring arithmetic (division, remainder,
//! comparison) is taken only where the interval of the exact value fits the type
//! ([`Linear::fits`]): then the exact value and the machine's value are one.
//!
//! Intervals of single variables and the conditions around a place decide, and nothing else: fusion
//! and lowering need no sets. Other passes ask the exact ones.

mod affine;
mod bind;
mod expand;
mod guard;
mod interval;
mod known_bits;
mod linear;
mod values;
mod wide;

use crate::equal::same_expr;
use crate::extent::holds;
use crate::visit::fold_expr_children;
use crate::{BinOp, DType, Expr, ExprKind, Fold, TypeKind};

pub use affine::{Affine, is_flat};
pub use expand::multiply_out;
pub use interval::{Interval, Ranges};
pub use linear::{LIMIT, Linear, divided, divided_by_size, gcd};
pub use wide::in_64_bits;

/// The linear form of an integer expression, with divisions taken apart by intervals; `None` for
/// other types and large coefficients.
pub fn linear(e: &Expr, ranges: &Ranges) -> Option<Linear> {
    is_index_type(e.dtype()).then(|| Simplify { ranges }.linear(e)).flatten()
}

/// A simpler expression with the same value wherever the variables keep their ranges. Integers
/// and conditions are simplified; floating-point arithmetic stays as it is.
pub fn simplify(e: &Expr, ranges: &Ranges) -> Expr {
    let mut s = Simplify { ranges };
    Fold::expr(&mut s, e)
}

/// Simplifies where a value is only looked up: indices of loads and conditions. Arithmetic on
/// data stays as written, integer data included.
pub fn simplify_indices(value: &Expr, ranges: &Ranges) -> Expr {
    struct Indices<'a>(&'a Ranges);
    impl Fold for Indices<'_> {
        fn expr(&mut self, e: &Expr) -> Expr {
            match e.kind() {
                ExprKind::Load(b, indices) => {
                    let new: Vec<Expr> = indices.iter().map(|i| simplify(i, self.0)).collect();
                    if new.iter().zip(indices).all(|(x, y)| x.ptr_eq(y)) {
                        e.clone()
                    } else {
                        Expr::load(b, new)
                    }
                }
                ExprKind::Select(c, t, f) | ExprKind::IfThenElse(c, t, f) => {
                    let cond = simplify(c, self.0);
                    if cond.is_true() || cond.is_false() {
                        return self.expr(if cond.is_true() { t } else { f });
                    }
                    // Both sides of a selection are evaluated.
                    let (x, y) = match e.kind() {
                        ExprKind::Select(..) => (self.expr(t), self.expr(f)),
                        _ => {
                            let ranges = self.0;
                            let x = ranges.under(&cond, true, || self.expr(t));
                            (x, ranges.under(&cond, false, || self.expr(f)))
                        }
                    };
                    if cond.ptr_eq(c) && x.ptr_eq(t) && y.ptr_eq(f) {
                        return e.clone();
                    }
                    match e.kind() {
                        ExprKind::Select(..) => Expr::select(cond, x, y),
                        _ => Expr::if_then_else(cond, x, y),
                    }
                }
                _ => fold_expr_children(self, e),
            }
        }
    }
    Indices(ranges).expr(value)
}

/// [`same_expr`] of two lists.
pub fn same_all(a: &[Expr], b: &[Expr]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_expr(a, b))
}

/// Whether an integer is made of variables and constants only.
pub fn is_index(e: &Expr) -> bool {
    let effects = e.effects();
    let calls = effects.calls || effects.intrinsics;
    effects.constant() && !calls && !effects.binds && !effects.floats
}

struct Simplify<'a> {
    ranges: &'a Ranges,
}

impl Fold for Simplify<'_> {
    fn expr(&mut self, e: &Expr) -> Expr {
        let ExprKind::Binary(op, a, b) = e.kind() else {
            return self.other(e);
        };
        let new = if op.is_logic() {
            self.logic(*op, a, b)
        } else if !is_index_type(a.dtype()) {
            None
        } else if op.is_compare() {
            self.compare(*op, a, b)
        } else {
            self.linear(e).and_then(|l| l.to_expr())
        };
        match new {
            Some(new) if same_expr(&new, e) => e.clone(),
            Some(new) => new,
            None => fold_expr_children(self, e),
        }
    }
}

/// Whether this is the type of a scalar index.
pub fn is_index_type(d: DType) -> bool {
    d.kind == TypeKind::Int && d.lanes == 1
}

impl Simplify<'_> {
    /// Everything but operators of two operands: conditions that are decided, casts of constants.
    fn other(&mut self, e: &Expr) -> Expr {
        let new = match e.kind() {
            ExprKind::IfThenElse(c, t, f) => {
                let (cond, ranges) = (self.expr(c), self.ranges);
                let x = ranges.under(&cond, true, || self.expr(t));
                let y = ranges.under(&cond, false, || self.expr(f));
                if cond.ptr_eq(c) && x.ptr_eq(t) && y.ptr_eq(f) {
                    e.clone()
                } else {
                    Expr::if_then_else(cond, x, y)
                }
            }
            _ => fold_expr_children(self, e),
        };
        match new.kind() {
            ExprKind::Select(c, t, f) | ExprKind::IfThenElse(c, t, f) => {
                match (c.is_true(), c.is_false()) {
                    (true, _) => t.clone(),
                    (_, true) => f.clone(),
                    _ => new,
                }
            }
            ExprKind::Not(a) if a.is_true() || a.is_false() => Expr::bool(a.is_false()),
            ExprKind::Cast(a) if a.as_int().is_some() && is_index_type(a.dtype()) => {
                if is_index_type(new.dtype()) {
                    a.clone().cast(new.dtype())
                } else {
                    new
                }
            }
            _ => new,
        }
    }

    fn logic(&mut self, op: BinOp, a: &Expr, b: &Expr) -> Option<Expr> {
        if a.dtype().lanes != 1 {
            return None;
        }
        let x = self.expr(a);
        let ranges = self.ranges;
        let y = ranges.under(&x, op == BinOp::And, || self.expr(b));
        let is_new = !x.ptr_eq(a) || !y.ptr_eq(b);
        either(op, &x, &y).cloned().or_else(|| is_new.then(|| Expr::binary(op, x, y)))
    }

    fn compare(&mut self, op: BinOp, a: &Expr, b: &Expr) -> Option<Expr> {
        let (x, y) = (self.linear(a)?, self.linear(b)?);
        x.fits(self.ranges).and(y.fits(self.ranges))?;
        let Interval { lo, hi } = x.clone().plus(&y, -1)?.values(self.ranges)?;
        let decided = match op {
            BinOp::Lt => decide(hi < 0, lo >= 0),
            BinOp::Le => decide(hi <= 0, lo > 0),
            BinOp::Gt => decide(lo > 0, hi <= 0),
            BinOp::Ge => decide(lo >= 0, hi < 0),
            BinOp::Eq => decide(lo == 0 && hi == 0, lo > 0 || hi < 0),
            BinOp::Ne => decide(lo > 0 || hi < 0, lo == 0 && hi == 0),
            _ => None,
        };
        if let Some(value) = decided {
            return Some(Expr::bool(value));
        }
        let (x, y) = self.cancelled(&x, &y).unwrap_or((x, y));
        Some(Expr::binary(op, x.to_expr()?, y.to_expr()?))
    }

    /// Two sides of a comparison without what stands on both; `None` where nothing does.
    fn cancelled(&self, x: &Linear, y: &Linear) -> Option<(Linear, Linear)> {
        let difference = x.clone().plus(y, -1)?;
        let constants = x.constant != 0 && y.constant != 0;
        if difference.terms.len() == x.terms.len() + y.terms.len() && !constants {
            return None;
        }
        let mut left = Linear::constant(difference.constant.max(0), x.dtype);
        let mut right = Linear::constant(difference.constant.min(0), x.dtype);
        for (atom, by) in difference.terms {
            let side = if by > 0 { &mut left } else { &mut right };
            side.terms.push((atom, by));
        }
        let right = right.times(-1)?;
        left.fits(self.ranges).and(right.fits(self.ranges))?;
        Some((left, right))
    }

    /// The linear form of an integer expression; `None` where coefficients get too large.
    fn linear(&mut self, e: &Expr) -> Option<Linear> {
        let ExprKind::Binary(op, a, b) = e.kind() else {
            return Some(match self.ranges.interval(e).as_point() {
                Some(value) => Linear::constant(value, e.dtype()),
                None => Linear::atom(self.expr(e)),
            });
        };
        let (x, y) = (self.linear(a)?, self.linear(b)?);
        let sum = match (op, x.as_constant(), y.as_constant()) {
            (BinOp::Add, ..) => x.plus(&y, 1)?,
            (BinOp::Sub, ..) => x.plus(&y, -1)?,
            (BinOp::Mul, _, Some(c)) => x.times(c)?,
            (BinOp::Mul, Some(c), _) => y.times(c)?,
            (BinOp::FloorDiv | BinOp::TruncDiv, _, Some(c)) if self.divides(*op, &x, c) => {
                self.division(BinOp::FloorDiv, x, c)?
            }
            (BinOp::FloorMod | BinOp::TruncMod, _, Some(c)) if self.divides(*op, &x, c) => {
                self.division(BinOp::FloorMod, x, c)?
            }
            (BinOp::Min | BinOp::Max, ..) => self.extremum(*op, x, y)?,
            _ => Linear::atom(Expr::binary(*op, x.to_expr()?, y.to_expr()?)),
        };
        self.recombine(sum)
    }

    /// Whether division by `c` may be taken apart as floor division.
    fn divides(&self, op: BinOp, x: &Linear, c: i128) -> bool {
        let floor = matches!(op, BinOp::FloorDiv | BinOp::FloorMod);
        let fits = x.fits(self.ranges);
        c > 0 && holds(x.dtype, c) && fits.is_some_and(|i| floor || i.lo >= 0)
    }

    fn extremum(&mut self, op: BinOp, x: Linear, y: Linear) -> Option<Linear> {
        let known = x.fits(self.ranges).and(y.fits(self.ranges)).is_some();
        let Interval { lo, hi } = x.clone().plus(&y, -1)?.values(self.ranges)?;
        let (left, right) = if op == BinOp::Min { (hi <= 0, lo >= 0) } else { (lo >= 0, hi <= 0) };
        if known && (left || right) {
            Some(if left { x } else { y })
        } else {
            Some(Linear::atom(Expr::binary(op, x.to_expr()?, y.to_expr()?)))
        }
    }

    /// Terms that `c` divides, divided, and the others; likewise for the constant.
    fn split(x: Linear, c: i128) -> (Linear, Linear) {
        let mut exact = Linear::constant(x.constant.div_euclid(c), x.dtype);
        let mut rest = Linear::constant(x.constant.rem_euclid(c), x.dtype);
        for (atom, k) in x.terms {
            if k % c == 0 { exact.terms.push((atom, k / c)) } else { rest.terms.push((atom, k)) }
        }
        (exact, rest)
    }

    /// `x // c` or `x % c` for a positive `c`, where `x` fits its type.
    fn division(&mut self, op: BinOp, x: Linear, c: i128) -> Option<Linear> {
        let floor = op == BinOp::FloorDiv;
        let whole = x.clone();
        let (exact, mut rest) = Self::split(x, c);
        let Interval { lo, hi } = rest.values(self.ranges)?;
        let cell = lo.div_euclid(c);
        if cell == hi.div_euclid(c) {
            rest.constant -= cell * c;
            let cell = Linear::constant(cell, rest.dtype);
            return if floor { exact.plus(&cell, 1) } else { Some(rest) };
        }
        // (g*y + s) // (g*d) = y // d and (g*y + s) % (g*d) = g*(y % d) + s where 0 <= s < g
        let (mut rest, small, g) = self.coarse(rest, c)?;
        let d = c / g;
        if rest.fits(self.ranges).is_none() {
            return Some(Linear::atom(division(op, &whole, c)?));
        }
        if floor {
            // (a + y // e) // d = (a*e + y) // (e*d)
            if let Some((joined, by)) = self.join(&rest, d) {
                return exact.plus(&self.division(op, joined, by)?, 1);
            }
            return exact.plus(&Linear::atom(division(op, &rest, d)?), 1);
        }
        // (y % e) % d = y % d where d divides e
        if let [(atom, 1)] = &rest.terms[..]
            && rest.constant == 0
            && let Some((y, e)) = remainder(atom)
            && e % d == 0
        {
            rest = Linear::atom(y.clone());
        }
        small.plus(&Linear::atom(division(op, &rest, d)?), g)
    }

    /// `a*e + y` and `e*d` for `a + y // e`, where both fit the type.
    fn join(&mut self, x: &Linear, d: i128) -> Option<(Linear, i128)> {
        let at = x.terms.iter().position(|t| t.1 == 1 && quotient(&t.0).is_some())?;
        let (y, e) = quotient(&x.terms[at].0)?;
        let mut rest = x.clone();
        rest.terms.remove(at);
        let joined = self.linear(y)?.plus(&rest, e)?;
        let by = e.checked_mul(d).filter(|by| *by <= LIMIT)?;
        joined.fits(self.ranges).map(|_| (joined, by))
    }

    /// `x = g*y + s` with `0 <= s < g` for a `g` that divides `c`: `y`, `s` and `g`, with as many
    /// terms in `s` as can be.
    fn coarse(&self, mut x: Linear, c: i128) -> Option<(Linear, Linear, i128)> {
        x.terms.sort_by_key(|t| t.1.abs());
        for k in (0..x.terms.len()).rev() {
            let (low, high) = x.terms.split_at(k);
            let g = high.iter().fold(c, |g, t| gcd(g, t.1.abs()));
            let constant = x.constant.rem_euclid(g);
            let small = Linear { terms: low.to_vec(), constant, dtype: x.dtype };
            let Interval { lo, hi } = small.values(self.ranges)?;
            if 0 <= lo && hi < g {
                let terms = high.iter().map(|(a, k)| (a.clone(), k / g)).collect();
                let y = Linear { terms, constant: x.constant.div_euclid(g), dtype: x.dtype };
                return Some((y, small, g));
            }
        }
        None
    }

    /// `m*c*(e // c) + m*(e % c)` becomes `m*e`; so does `m*c*(e // c) + m*(f % c)` where `f` differs
    /// from `e` by a multiple of `c`. Quotient and remainder may both be widened, as in the address of a cell in
    /// large memory; then `e` is.
    fn recombine(&mut self, mut sum: Linear) -> Option<Linear> {
        'again: loop {
            for at in 0..sum.terms.len() {
                let (atom, m) = &sum.terms[at];
                let (atom, is_wide) = narrow(atom);
                let Some((f, c)) = remainder(atom) else { continue };
                let (m, wanted) = (*m, m.checked_mul(c)?);
                if !sum.terms.iter().any(|t| t.1 == wanted) {
                    continue;
                }
                let f = self.linear(f)?;
                if f.fits(self.ranges).is_none() {
                    continue;
                }
                let q = self.division(BinOp::FloorDiv, f.clone(), c)?;
                for pair in (0..sum.terms.len()).filter(|p| *p != at) {
                    let (other, coefficient) = &sum.terms[pair];
                    let (other, other_is_wide) = narrow(other);
                    if *coefficient != wanted || other_is_wide != is_wide {
                        continue;
                    }
                    // Others may have been added to the quotient before both were widened.
                    let (other, more) = match is_wide.then(|| self.linear(other)).flatten() {
                        Some(all) if all.constant != 0 || all.terms.len() > 1 => {
                            match self.quotient_and_rest(all, c) {
                                Some((quotient, rest)) => (quotient, Some(rest)),
                                None => continue,
                            }
                        }
                        _ => (other.clone(), None),
                    };
                    let other = &other;
                    let same =
                        q.constant == 0 && matches!(&q.terms[..], [(q, 1)] if same_expr(q, other));
                    let e = if same { Some(f.clone()) } else { self.congruent(other, &f, c)? };
                    let Some(mut e) = e else { continue };
                    if is_wide {
                        e = widened(&e)?;
                    }
                    let mut index = 0;
                    sum.terms.retain(|_| {
                        index += 1;
                        index - 1 != at && index - 1 != pair
                    });
                    sum = sum.plus(&e, m)?;
                    if let Some(more) = more {
                        sum = sum.plus(&more, wanted)?;
                    }
                    continue 'again;
                }
            }
            return Some(sum);
        }
    }

    /// A quotient by `c` that is in a sum which fits its type, and the others of that sum, widened.
    fn quotient_and_rest(&self, all: Linear, c: i128) -> Option<(Expr, Linear)> {
        all.fits(self.ranges)?;
        let is_quotient =
            |(atom, k): &(Expr, i128)| *k == 1 && quotient(atom).is_some_and(|q| q.1 == c);
        let at = all.terms.iter().position(is_quotient)?;
        let mut rest = all;
        let (found, _) = rest.terms.remove(at);
        rest.fits(self.ranges)?;
        Some((found, widened(&rest)?))
    }

    /// `e` of a quotient `e // c` where `e` fits its type and differs from `f` by a multiple of `c`.
    fn congruent(&mut self, atom: &Expr, f: &Linear, c: i128) -> Option<Option<Linear>> {
        let Some((e, _)) = quotient(atom).filter(|(_, by)| *by == c) else { return Some(None) };
        let e = self.linear(e)?;
        // A remainder by a multiple of `c` differs from what it is of by a multiple of `c`, too.
        let mut apart = e.clone().plus(f, -1)?;
        while let Some(at) = apart
            .terms
            .iter()
            .position(|(atom, k)| k % c != 0 && remainder(atom).is_some_and(|(_, by)| by % c == 0))
        {
            let (atom, k) = apart.terms.remove(at);
            let of = self.linear(remainder(&atom)?.0)?;
            if of.fits(self.ranges).is_none() {
                return Some(None);
            }
            apart = apart.plus(&of, k)?;
        }
        let multiple = apart.constant % c == 0 && apart.terms.iter().all(|(_, k)| k % c == 0);
        Some(Some(e).filter(|e| multiple && e.fits(self.ranges).is_some()))
    }
}

/// The operand that `and` or `or` of two conditions is, where a constant among them says so.
pub fn either<'e>(op: BinOp, x: &'e Expr, y: &'e Expr) -> Option<&'e Expr> {
    if decides(op, x) || is_neutral(op, y) {
        Some(x)
    } else if decides(op, y) || is_neutral(op, x) {
        Some(y)
    } else {
        None
    }
}

/// Whether an operand decides the value of `and` or `or`, whatever the other one is.
fn decides(op: BinOp, e: &Expr) -> bool {
    if op == BinOp::And { e.is_false() } else { e.is_true() }
}

/// Whether `and` or `or` with an operand is the other one.
fn is_neutral(op: BinOp, e: &Expr) -> bool {
    if op == BinOp::And { e.is_true() } else { e.is_false() }
}

/// A sum in 64 bits, as a number or as one term.
fn widened(sum: &Linear) -> Option<Linear> {
    let wide = DType::I64.with_lanes(sum.dtype.lanes);
    Some(match sum.as_constant() {
        Some(value) => Linear::constant(value, wide),
        None => Linear::atom(sum.to_expr()?.cast(wide)),
    })
}

/// What is widened to 64 bits, and whether anything is.
fn narrow(atom: &Expr) -> (&Expr, bool) {
    match atom.kind() {
        ExprKind::Cast(e)
            if atom.dtype().scalar() == DType::I64 && e.dtype().scalar() == DType::I32 =>
        {
            (e, true)
        }
        _ => (atom, false),
    }
}

fn quotient(atom: &Expr) -> Option<(&Expr, i128)> {
    divided(atom, BinOp::FloorDiv)
}

fn remainder(atom: &Expr) -> Option<(&Expr, i128)> {
    divided(atom, BinOp::FloorMod)
}

fn decide(yes: bool, no: bool) -> Option<bool> {
    (yes || no).then_some(yes)
}

/// `x op c` as a node; the numerator itself where `c` is one.
fn division(op: BinOp, x: &Linear, c: i128) -> Option<Expr> {
    let c = i64::try_from(c).ok().filter(|_| holds(x.dtype, c))?;
    let c = Expr::int(c, x.dtype);
    let x = x.to_expr()?;
    Some(if op == BinOp::FloorDiv { x.floordiv(c) } else { x.floormod(c) })
}

//! Normal forms back to expressions, and the measure of what is simple.
//!
//! A sum is written with its positive terms first, larger coefficients before smaller ones, and
//! its constant last: `io * 4 + ii + 1`. A comparison has its variables on the left where all
//! point one way (`io * 4 + ii < 14`), and the negative ones on the right where they do not
//! (`i < n`).
//!
//! **The measure.** Of several equal expressions the one with the least [`cost`] is taken, and of
//! several with the same cost the one that was offered first. The cost counts every node: leaves
//! and comparisons 1, `and` 1, `or` and `not` 2, addition 2, multiplication 3, floor division and
//! remainder 4, `min` and `max` 5, truncating division, selection, loads and calls 6. So
//! `io == 3 and ii >= 2` (7) comes before `io * 4 + ii >= 14` (10).

use tilewright_ir::hash::HashMap;

use tilewright_ir::visit::{self, Visit};
use tilewright_ir::{BinOp, DType, Expr, ExprKind, TypeKind};

use crate::form::{Pred, Sum, Term};

/// How much there is to read, evaluate and get wrong in an expression; smaller is simpler.
///
/// Shared nodes count each time that they stand in the text, up to a bound of 2^32.
pub fn cost(e: &Expr) -> u64 {
    struct Cost {
        known: HashMap<usize, u64>,
        sum: u64,
    }
    impl Visit for Cost {
        fn expr(&mut self, e: &Expr) {
            if let Some(known) = self.known.get(&e.address()) {
                self.sum = (self.sum + known).min(1 << 32);
                return;
            }
            let before = self.sum;
            self.sum = 0;
            visit::walk_expr(self, e);
            let own = match e.kind() {
                ExprKind::Binary(op, ..) => match op {
                    BinOp::And => 1,
                    BinOp::Or => 2,
                    BinOp::Add | BinOp::Sub => 2,
                    BinOp::Mul => 3,
                    BinOp::FloorDiv | BinOp::FloorMod => 4,
                    BinOp::Min | BinOp::Max => 5,
                    BinOp::TruncDiv | BinOp::TruncMod | BinOp::Div => 6,
                    _ => 1,
                },
                ExprKind::Not(_) => 2,
                ExprKind::Select(..)
                | ExprKind::IfThenElse(..)
                | ExprKind::Load(..)
                | ExprKind::Call(..) => 6,
                _ => 1,
            };
            let total = (self.sum + own).min(1 << 32);
            self.known.insert(e.address(), total);
            self.sum = (before + total).min(1 << 32);
        }
    }
    let mut cost = Cost { known: HashMap::default(), sum: 0 };
    cost.expr(e);
    cost.sum
}

/// A constant of a type, if it fits.
fn constant(value: i128, t: DType) -> Option<Expr> {
    let fits = t.min_int()? <= value && value <= t.max_int()?;
    let bits = match t.kind {
        TypeKind::UInt => u64::try_from(value).ok()? as i64,
        _ => i64::try_from(value).ok()?,
    };
    fits.then(|| Expr::int(bits, t))
}

/// Whether sums in a type have the values of sums of integers: small and unsigned types wrap.
fn holds_sums(t: DType) -> bool {
    t.kind == TypeKind::Int && t.bits >= 32
}

/// The sum as an expression of an integer type; `None` where the type cannot hold it, or is not
/// known to hold a sum of data.
pub(crate) fn sum(s: &Sum, t: DType) -> Option<Expr> {
    // What a narrower type holds is the sum, and not each of the wider values that it is made of.
    let mut wider = false;
    s.atoms(&mut |a| wider |= a.expr().dtype() == DType::I64);
    if wider && t == DType::I32 { Some(exact(s, DType::I64)?.cast(t)) } else { exact(s, t) }
}

/// The sum with all of its parts in one type.
fn exact(s: &Sum, t: DType) -> Option<Expr> {
    let single = s.constant == 0 && s.terms.len() == 1 && s.terms.values().all(|c| *c == 1);
    let plain = single && matches!(s.terms.keys().next(), Some(Term::Atom(_) | Term::Select(..)));
    if !(holds_sums(t) && s.stays_in(t) || s.terms.is_empty() || plain) {
        return None;
    }
    let mut terms: Vec<(&Term, i128)> = s.terms.iter().map(|(t, c)| (t, *c)).collect();
    terms.sort_by_key(|(_, c)| (*c < 0, std::cmp::Reverse(c.unsigned_abs())));
    let mut out: Option<Expr> = None;
    let mut offset = s.constant;
    let negated = matches!(terms.first(), Some((_, -1)));
    if negated || (offset > 0 && terms.first().is_some_and(|(_, c)| *c < 0)) {
        // `14 - x`, and `0 - x` where there is nothing to subtract from.
        out = Some(constant(offset, t)?);
        offset = 0;
    }
    for (which, c) in terms {
        let e = term(which, t)?;
        out = Some(match (out, c) {
            (None, 1) => e,
            (None, c) => e * constant(c, t)?,
            (Some(sum), 1) => sum + e,
            // Not by the operator: it would fold `0 - x`.
            (Some(sum), -1) => Expr::binary(BinOp::Sub, sum, e),
            (Some(sum), c) if c < 0 => sum - e * constant(-c, t)?,
            (Some(sum), c) => sum + e * constant(c, t)?,
        });
    }
    Some(match (out, offset) {
        (None, k) => constant(k, t)?,
        (Some(sum), 0) => sum,
        (Some(sum), k) if k < 0 => sum - constant(-k, t)?,
        (Some(sum), k) => sum + constant(k, t)?,
    })
}

fn term(which: &Term, t: DType) -> Option<Expr> {
    match which {
        Term::Atom(a) => Some(a.expr().clone().cast(t)),
        Term::Div(s, k) => render_op(BinOp::FloorDiv, s, constant(*k, t)?, t),
        Term::Mod(s, k) => render_op(BinOp::FloorMod, s, constant(*k, t)?, t),
        Term::TruncDiv(s, k) => render_op(BinOp::TruncDiv, s, constant(*k, t)?, t),
        Term::TruncMod(s, k) => render_op(BinOp::TruncMod, s, constant(*k, t)?, t),
        Term::Min(a, b) => render_op(BinOp::Min, a, exact(b, t)?, t),
        Term::Max(a, b) => render_op(BinOp::Max, a, exact(b, t)?, t),
        Term::Select(c, a, b) => {
            let c = pred(c)?;
            let flag = a.as_constant() == Some(1) && b.as_constant() == Some(0);
            if flag { Some(c.cast(t)) } else { Some(Expr::select(c, exact(a, t)?, exact(b, t)?)) }
        }
    }
}

fn render_op(op: BinOp, a: &Sum, b: Expr, t: DType) -> Option<Expr> {
    Some(Expr::binary(op, exact(a, t)?, b))
}

/// The type in which a sum can be compared; `None` where there is none.
fn compare_type(s: &Sum) -> Option<DType> {
    let (mut wide, mut ok) = (false, true);
    s.atoms(&mut |a| {
        let t = a.expr().dtype();
        wide |= t.bits == 64 || t == DType::U32;
        ok &= t != DType::U64;
    });
    wide |=
        !(i32::try_from(s.constant).is_ok() && s.terms.values().all(|v| i32::try_from(*v).is_ok()));
    ok.then_some(if wide { DType::I64 } else { DType::I32 })
}

/// The condition as an expression; `None` where a number does not fit.
pub(crate) fn pred(p: &Pred) -> Option<Expr> {
    match p {
        Pred::Bool(b) => Some(Expr::bool(*b)),
        Pred::Flag(a, true) => Some(a.expr().clone()),
        Pred::Flag(a, false) => Some(!a.expr().clone()),
        Pred::And(parts) => render_all(parts)?.into_iter().reduce(|a, b| a.and(b)),
        Pred::Or(parts) => render_all(parts)?.into_iter().reduce(|a, b| a.or(b)),
        Pred::Eq(s) => compare(s, BinOp::Eq),
        Pred::Ne(s) => compare(s, BinOp::Ne),
        Pred::Ge(s) => compare(s, BinOp::Ge),
    }
}

fn render_all(parts: &[Pred]) -> Option<Vec<Expr>> {
    parts.iter().map(pred).collect::<Option<Vec<Expr>>>()
}

/// `s op 0` with the terms on the sides where they read best.
fn compare(s: &Sum, op: BinOp) -> Option<Expr> {
    let t = compare_type(s)?;
    let (plus, minus) = (terms_of_sign(true, s), terms_of_sign(false, s));
    let k = s.constant;
    match (plus.terms.is_empty(), minus.terms.is_empty()) {
        // plus + k >= 0
        (_, true) => compare_sums(op, &plus, &Sum::constant(-k), t),
        // k - minus >= 0
        (true, false) => match op {
            BinOp::Ge => compare_sums(BinOp::Lt, &minus, &Sum::constant(k.checked_add(1)?), t),
            _ => compare_sums(op, &minus, &Sum::constant(k), t),
        },
        // plus - minus + k >= 0
        (false, false) => match op {
            // The longer side goes to the left.
            BinOp::Ge if k <= 0 && plus.terms.len() > minus.terms.len() => {
                compare_sums(BinOp::Ge, &plus, &with_constant(&minus, -k), t)
            }
            BinOp::Ge if k == 0 => compare_sums(BinOp::Le, &minus, &plus, t),
            BinOp::Ge if k > 0 => {
                compare_sums(BinOp::Lt, &minus, &with_constant(&plus, k.checked_add(1)?), t)
            }
            BinOp::Ge if k == -1 => compare_sums(BinOp::Lt, &minus, &plus, t),
            BinOp::Ge => compare_sums(BinOp::Ge, &plus, &with_constant(&minus, -k), t),
            _ if k > 0 => compare_sums(op, &minus, &with_constant(&plus, k), t),
            _ => compare_sums(op, &plus, &with_constant(&minus, -k), t),
        },
    }
}

fn terms_of_sign(positive: bool, s: &Sum) -> Sum {
    Sum {
        constant: 0,
        terms: (s.terms.iter())
            .filter(|(_, c)| (**c > 0) == positive)
            .map(|(t, c)| (t.clone(), c.abs()))
            .collect(),
    }
}

fn compare_sums(op: BinOp, a: &Sum, b: &Sum, t: DType) -> Option<Expr> {
    Some(Expr::binary(op, sum(a, t)?, sum(b, t)?))
}

fn with_constant(s: &Sum, k: i128) -> Sum {
    Sum { constant: k, terms: s.terms.clone() }
}

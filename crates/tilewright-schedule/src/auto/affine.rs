//! Accesses as affine functions of iteration variables.
//!
//! The flat offset of a load or store is `constant + sum(coefficient * variable)` for most
//! accesses of tensor programs. From the coefficients a schedule reads everything: zero means
//! that the access does not move along an axis, one that it moves to the neighbour.
//!
//! Parts that are not affine (`k % 2`, an index that is loaded from memory) are kept as *opaque*
//! terms; a variable inside such a term has no coefficient.

use std::collections::HashMap;

use tilewright_ir::visit::free_vars;
use tilewright_ir::{BinOp, Buffer, DType, Expr, ExprKind, Var};

/// `constant + sum(coefficient * variable) + sum(coefficient * opaque term)`.
#[derive(Clone, Debug, Default)]
pub struct Affine {
    /// The part that does not depend on variables.
    pub constant: i64,
    coefficients: HashMap<Var, i64>,
    /// Terms that are not affine, with their factors.
    pub opaque: Vec<(Expr, i64)>,
}

impl Affine {
    /// The form of an integer expression; `None` where a number leaves `i64`.
    pub fn of(e: &Expr) -> Option<Affine> {
        match e.kind() {
            ExprKind::Int(v) => Some(Affine { constant: *v, ..Default::default() }),
            ExprKind::Var(v) => {
                Some(Affine { coefficients: HashMap::from([(v.clone(), 1)]), ..Default::default() })
            }
            // Sums of narrower types wrap, and so do those of unsigned ones, below zero.
            ExprKind::Binary(..) if !matches!(e.dtype(), DType::I32 | DType::I64) => {
                Some(Affine::term(e))
            }
            ExprKind::Binary(BinOp::Add, a, b) => Affine::of(a)?.plus(&Affine::of(b)?, 1),
            ExprKind::Binary(BinOp::Sub, a, b) => Affine::of(a)?.plus(&Affine::of(b)?, -1),
            ExprKind::Binary(BinOp::Mul, a, b) => {
                let (x, y) = (Affine::of(a)?, Affine::of(b)?);
                match (x.as_constant(), y.as_constant()) {
                    (Some(k), _) => Affine::default().plus(&y, k),
                    (_, Some(k)) => Affine::default().plus(&x, k),
                    _ => Some(Affine::term(e)),
                }
            }
            _ => Some(Affine::term(e)),
        }
    }

    fn term(e: &Expr) -> Affine {
        Affine { opaque: vec![(e.clone(), 1)], ..Default::default() }
    }

    /// The flat offset of `indices` in a compact buffer of constant shape.
    pub fn of_access(buffer: &Buffer, indices: &[Expr]) -> Option<Affine> {
        if !buffer.strides.is_empty() || buffer.elem_offset.is_some() {
            return None;
        }
        let shape = buffer.const_shape()?;
        let mut stride = 1i64;
        let mut sum = Affine::default();
        for (index, extent) in indices.iter().zip(&shape).rev() {
            sum = sum.plus(&Affine::of(index)?, stride)?;
            stride = stride.checked_mul(*extent)?;
        }
        // The offset is computed in 32 bits.
        i32::try_from(stride).ok().map(|_| sum)
    }

    fn plus(mut self, other: &Affine, times: i64) -> Option<Affine> {
        self.constant = self.constant.checked_add(other.constant.checked_mul(times)?)?;
        for (v, k) in &other.coefficients {
            let old = self.coefficients.get(v).copied().unwrap_or(0);
            self.coefficients.insert(v.clone(), old.checked_add(k.checked_mul(times)?)?);
        }
        for (e, k) in &other.opaque {
            self.opaque.push((e.clone(), k.checked_mul(times)?));
        }
        Some(self)
    }

    /// The coefficient of a variable; `None` where it stands in an opaque term.
    pub fn coefficient(&self, v: &Var) -> Option<i64> {
        let hidden = self.opaque.iter().any(|(e, _)| free_vars(e).contains(v));
        (!hidden).then(|| self.coefficients.get(v).copied().unwrap_or(0))
    }

    /// The value, where it is one number.
    pub fn as_constant(&self) -> Option<i64> {
        let fixed = self.opaque.is_empty() && self.coefficients.values().all(|k| *k == 0);
        fixed.then_some(self.constant)
    }

    /// Variables with a coefficient other than zero.
    pub fn vars(&self) -> impl Iterator<Item = (&Var, i64)> {
        self.coefficients.iter().filter(|(_, k)| **k != 0).map(|(v, k)| (v, *k))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coefficients_of_a_strided_access() {
        let (h, w) = (Var::index("h"), Var::index("w"));
        let b = Buffer::with_extents("B", &[3, 10, 7], DType::F32);
        let at = [Expr::i32(2), &h * 2 + 1, w.expr() - 3];
        let a = Affine::of_access(&b, &at).expect("affine");
        let steps = (a.coefficient(&h), a.coefficient(&w));
        assert_eq!((a.constant, steps), (140 + 7 - 3, (Some(14), Some(1))));
    }

    #[test]
    fn what_is_not_affine_is_opaque() {
        let (h, w) = (Var::index("h"), Var::index("w"));
        let a = Affine::of(&(h.expr().floordiv(2) * 6 + &w)).expect("fits");
        assert_eq!((a.coefficient(&h), a.coefficient(&w)), (None, Some(1)));
        assert_eq!(a.opaque[0].1, 6);
        assert_eq!(Affine::of(&(h.expr() * &w)).and_then(|a| a.coefficient(&w)), None);
    }
}

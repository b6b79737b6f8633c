//! Accesses as affine functions of iteration variables.
//!
//! The flat offset of a load or store is `constant + sum(coefficient * variable)` for most
//! accesses of tensor programs. From the coefficients a schedule reads everything: zero means
//! that the access does not move along an axis, one that it moves to the neighbour.

use std::collections::HashMap;

use tilewright_ir::{BinOp, Buffer, Expr, ExprKind, Var};

/// `constant + sum(coefficient * variable)`; variables without a coefficient have zero.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Affine {
    /// The part that does not depend on variables.
    pub constant: i64,
    coefficients: HashMap<Var, i64>,
}

impl Affine {
    /// The affine form of an integer expression, if it has one within `i64`.
    pub fn of(e: &Expr) -> Option<Affine> {
        match e.kind() {
            ExprKind::Int(v) => Some(Affine { constant: *v, ..Default::default() }),
            ExprKind::Var(v) => {
                Some(Affine { constant: 0, coefficients: HashMap::from([(v.clone(), 1)]) })
            }
            ExprKind::Binary(BinOp::Add, a, b) => Affine::of(a)?.plus(&Affine::of(b)?, 1),
            ExprKind::Binary(BinOp::Sub, a, b) => Affine::of(a)?.plus(&Affine::of(b)?, -1),
            ExprKind::Binary(BinOp::Mul, a, b) => {
                let (a, b) = (Affine::of(a)?, Affine::of(b)?);
                match (a.as_constant(), b.as_constant()) {
                    (Some(k), _) => Affine::default().plus(&b, k),
                    (_, Some(k)) => Affine::default().plus(&a, k),
                    _ => None,
                }
            }
            _ => None,
        }
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
            let sum = self.coefficient(v).checked_add(k.checked_mul(times)?)?;
            self.coefficients.insert(v.clone(), sum);
        }
        Some(self)
    }

    /// The coefficient of a variable.
    pub fn coefficient(&self, v: &Var) -> i64 {
        self.coefficients.get(v).copied().unwrap_or(0)
    }

    /// The value, where it does not depend on variables.
    pub fn as_constant(&self) -> Option<i64> {
        self.coefficients.values().all(|k| *k == 0).then_some(self.constant)
    }

    /// Variables with a coefficient other than zero.
    pub fn vars(&self) -> impl Iterator<Item = (&Var, i64)> {
        self.coefficients.iter().filter(|(_, k)| **k != 0).map(|(v, k)| (v, *k))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright_ir::DType;

    #[test]
    fn coefficients_of_a_strided_access() {
        let (h, w) = (Var::index("h"), Var::index("w"));
        let b = Buffer::with_extents("B", &[3, 10, 7], DType::F32);
        let at = [Expr::i32(2), &h * 2 + 1, w.expr() - 3];
        let a = Affine::of_access(&b, &at).expect("affine");
        assert_eq!((a.constant, a.coefficient(&h), a.coefficient(&w)), (140 + 7 - 3, 14, 1));
        assert!(Affine::of(&h.expr().floordiv(2)).is_none());
        assert!(Affine::of(&(h.expr() * &w)).is_none());
    }
}

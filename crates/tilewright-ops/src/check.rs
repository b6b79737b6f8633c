//! Data that decide where something is read or by what is divided, checked: [`checked`] copies
//! them, and stops the run at the first element that is not what it must be.
//!
//! The check is a function of its own, so that its consumer stays in the canonical form, and costs
//! one comparison an element of these data, not of what is computed with them.

use std::fmt;

use tilewright_ir::visit::fold_func;
use tilewright_ir::visit::fold_stmt_children;
use tilewright_ir::{DType, Expr, Fold, Result, Stmt, StmtKind, Tensor, TensorFunc};

use crate::operand::{Operand, unsupported_type};
use crate::te;

/// What integers must be.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Need {
    /// Not zero.
    NonZero,
    /// Between two bounds, both included. One pair is for all elements; several are for the
    /// positions along the last axis, one each.
    Within(Vec<(i64, i64)>),
}

impl Need {
    /// Positions along an axis of this extent, where negative ones count from its end.
    pub fn position(extent: usize) -> Need {
        Need::Within(vec![positions(extent)])
    }

    /// Tuples in the last axis of positions along axes of these extents.
    pub fn positions(extents: &[usize]) -> Need {
        let mut bounds: Vec<_> = extents.iter().map(|&d| positions(d)).collect();
        if bounds.iter().all(|b| Some(b) == bounds.first()) {
            bounds.truncate(1);
        }
        Need::Within(bounds)
    }

    /// The bounds of the element at this position along the last axis.
    fn bounds(&self, last: usize) -> Option<(i64, i64)> {
        match self {
            Need::NonZero => None,
            Need::Within(bounds) => bounds.get(last).or(bounds.first()).copied(),
        }
    }

    /// Whether a number meets it, at this position along the last axis.
    fn met_by(&self, value: i128, last: usize) -> bool {
        match self.bounds(last) {
            None => value != 0,
            Some((low, high)) => (low.into()..=high.into()).contains(&value),
        }
    }

    /// The first element of a tensor of integers that does not meet it.
    pub fn violated_by(&self, t: &Tensor) -> Option<i128> {
        let along = t.shape().last().copied().unwrap_or(1).max(1);
        (0..t.len())
            .map(|i| (t.get_i128(i), i % along))
            .find(|&(value, last)| !self.met_by(value, last))
            .map(|(value, _)| value)
    }

    /// The condition on the element at `index`; the constant true where every number of the type
    /// meets it.
    fn condition(&self, value: &Expr, index: &[Expr]) -> Expr {
        let dtype = value.dtype();
        match self {
            Need::NonZero => value.clone().not_equal(Expr::int(0, dtype)),
            Need::Within(bounds) => {
                let last = index.last().cloned().unwrap_or_else(|| Expr::i32(0));
                let mut each = bounds.iter().map(|b| between(value, *b));
                let first = each.next().unwrap_or_else(|| Expr::bool(true));
                // At another position than the first, the bounds are others.
                each.zip(1i64..).fold(
                    match bounds.len() {
                        0 | 1 => first,
                        _ => last.clone().not_equal(0).or(first),
                    },
                    |all, (inside, k)| all.and(last.clone().not_equal(k).or(inside)),
                )
            }
        }
    }
}

/// What the message of a failed check says: `an index` is put before it.
impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Need::NonZero => f.write_str("is zero"),
            Need::Within(bounds) => {
                let list: Vec<String> =
                    bounds.iter().map(|(low, high)| format!("[{low}, {high}]")).collect();
                write!(f, "lies outside of {}", list.join(" x "))
            }
        }
    }
}

fn positions(extent: usize) -> (i64, i64) {
    let extent = i64::try_from(extent).unwrap_or(i64::MAX);
    (-extent, extent - 1)
}

/// Whether the value lies between two bounds, as far as its type does not say so.
fn between(value: &Expr, (low, high): (i64, i64)) -> Expr {
    let dtype = value.dtype();
    let (Some(least), Some(most)) = (dtype.min_int(), dtype.max_int()) else {
        return Expr::bool(true);
    };
    let (low, high) = (i128::from(low), i128::from(high));
    if high < least || low > most {
        return Expr::bool(false);
    }
    let bound = |v: i128| Expr::int(v as i64, dtype);
    let mut inside = Expr::bool(true);
    if low > least {
        inside = inside.and(value.clone().greater_equal(bound(low)));
    }
    if high < most {
        inside = inside.and(value.clone().less_equal(bound(high)));
    }
    inside
}

/// A copy of integers that stops the run with `message` where one does not meet the need; `None`
/// where all numbers of the type do. Where the need is bounds, `{}` in the message stands for the
/// number. Parameters: `x`, the result.
///
/// # Errors
/// [`Error::Unsupported`](tilewright_ir::Error::Unsupported) for types that are no integers, and
/// those of [`te::func`].
pub fn checked(x: &Operand, need: &Need, message: &str) -> Result<Option<TensorFunc>> {
    if !x.dtype.is_int() {
        return Err(unsupported_type("check", x.dtype, "integers"));
    }
    let vacuous = need.condition(&x.placeholder("x").at(vec![0i64; x.rank()]), &origin(x.rank()));
    if vacuous.is_true() {
        return Ok(None);
    }
    let t = x.placeholder("x");
    let out = te::compute("checked", &x.shape, |i| t.at(i));
    let func = te::func([&t], [&out])?;
    Ok(Some(fold_func(&mut Guard { need, message }, &func)))
}

/// The index of the first element.
fn origin(rank: usize) -> Vec<Expr> {
    vec![Expr::int(0, DType::I32); rank]
}

/// Puts the assertion before each store.
struct Guard<'a> {
    need: &'a Need,
    message: &'a str,
}

impl Fold for Guard<'_> {
    fn stmt(&mut self, s: &Stmt) -> Stmt {
        match s.kind() {
            StmtKind::Store { indices, value, .. } => {
                let cond = self.need.condition(value, indices);
                let values = match self.need {
                    Need::NonZero => Vec::new(),
                    Need::Within(_) => vec![value.clone().cast(DType::I64)],
                };
                let check = StmtKind::Assert { cond, message: self.message.into(), values };
                Stmt::seq([Stmt::new(check), s.clone()])
            }
            _ => fold_stmt_children(self, s),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_that_a_type_keeps_need_no_check() -> Result<()> {
        let of = |dtype| Operand::new(&[4], dtype);
        assert!(checked(&of(DType::U8), &Need::position(256), "m")?.is_none());
        assert!(checked(&of(DType::I8), &Need::position(128), "m")?.is_none());
        assert!(checked(&of(DType::U8), &Need::position(255), "m")?.is_some());
        assert!(checked(&of(DType::I8), &Need::position(127), "m")?.is_some());
        assert!(checked(&of(DType::U64), &Need::NonZero, "m")?.is_some());
        assert!(checked(&of(DType::F32), &Need::NonZero, "m").is_err());
        Ok(())
    }

    #[test]
    fn constants_are_checked_by_their_place_in_the_tuple() -> Result<()> {
        let need = Need::positions(&[2, 5]);
        let pairs = |v: &[i64]| Tensor::from_slice(&[v.len() / 2, 2], v);
        assert_eq!(need.violated_by(&pairs(&[-2, 4, 1, -5])?), None);
        assert_eq!(need.violated_by(&pairs(&[1, 4, 2, 0])?), Some(2));
        assert_eq!(need.violated_by(&pairs(&[1, -6])?), Some(-6));
        assert_eq!(need.to_string(), "lies outside of [-2, 1] x [-5, 4]");
        assert_eq!(Need::positions(&[3, 3]), Need::position(3));
        let huge = Tensor::from_slice(&[1], &[u64::MAX])?;
        assert_eq!(Need::position(3).violated_by(&huge), Some(u64::MAX.into()));
        assert_eq!(Need::NonZero.violated_by(&pairs(&[3, 0])?), Some(0));
        Ok(())
    }
}

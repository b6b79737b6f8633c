//! Extents: the sizes of loops, axes and buffers, and the type that holds them.
//!
//! Machine integers wrap, and a size that wrapped is another size. Code that computes a size or an
//! index uses the functions of this module: constants are exact, and the result has the
//! widest type of its operands, or `int64` where that type cannot hold it. What `int64` cannot
//! hold is refused.
//!
//! ```
//! use tilewright_ir::{DType, Expr, extent};
//! let n = Expr::i32(65536);
//! let size = extent::product(DType::I32, [&n, &n])?;
//! assert_eq!((size.as_int(), size.dtype()), (Some(1 << 32), DType::I64));
//! # Ok::<(), tilewright_ir::Error>(())
//! ```
//!
//! **Limits.** A product with a size that is no constant has the type of its operands: arithmetic
//! over open sizes is taken to stay in its type (`docs/semantics.md`, *Values*).

use crate::dtype::{DType, TypeKind};
use crate::error::{Error, Result};
use crate::expr::Expr;

/// Whether a type of integers holds a value.
pub fn holds(dtype: DType, value: i128) -> bool {
    match (dtype.min_int(), dtype.max_int()) {
        (Some(lo), Some(hi)) => (lo..=hi).contains(&value),
        _ => false,
    }
}

/// The type of indices that holds a value: `like` where it does, else `int64`.
///
/// # Errors
/// `Refused` where `int64` does not hold it.
pub fn index_type(like: DType, value: i128) -> Result<DType> {
    [like.scalar(), DType::I64].into_iter().find(|t| holds(*t, value)).ok_or_else(|| {
        Error::refused(format!("the size {value} is beyond the integers of 64 bits"))
    })
}

/// The wider of two types of indices.
pub fn wider(a: DType, b: DType) -> DType {
    if b.bits > a.bits { b } else { a }
}

/// A constant of type `like`, or of `int64` where `like` does not hold it.
///
/// # Errors
/// `Refused` where `int64` does not hold it.
pub fn constant(value: i128, like: DType) -> Result<Expr> {
    let dtype = index_type(like, value)?;
    let bits = match dtype.kind {
        TypeKind::UInt => u64::try_from(value).map(|v| v as i64).ok(),
        _ => i64::try_from(value).ok(),
    };
    bits.map(|v| Expr::int(v, dtype)).ok_or_else(|| Error::internal("a size beyond its type"))
}

/// The product of sizes, 1 of type `like` if there are none. Constants are multiplied first and
/// come last.
///
/// # Errors
/// `Refused` where the constants multiply to more than `int64` holds.
pub fn product<'a>(like: DType, sizes: impl IntoIterator<Item = &'a Expr>) -> Result<Expr> {
    let mut known = 1i128;
    let mut empty = false;
    let mut dtype = like;
    let mut open: Option<Expr> = None;
    for size in sizes {
        dtype = wider(dtype, size.dtype());
        match size.as_int() {
            Some(0) => empty = true,
            Some(n) => known = known.saturating_mul(i128::from(n)),
            None => open = Some(open.map_or_else(|| size.clone(), |all| all * size)),
        }
    }
    let known = constant(if empty { 0 } else { known }, dtype)?;
    Ok(match open {
        Some(open) if !empty => open.cast(known.dtype()) * known,
        _ => known,
    })
}

/// The product of two sizes, in this order.
///
/// # Errors
/// `Refused` where both are constants and `int64` does not hold the product.
pub fn times(a: &Expr, b: &Expr) -> Result<Expr> {
    match (a.as_int(), b.as_int()) {
        (Some(x), Some(y)) => constant(i128::from(x) * i128::from(y), wider(a.dtype(), b.dtype())),
        _ => Ok(a * b),
    }
}

/// The sum of two sizes.
///
/// # Errors
/// `Refused` where both are constants and `int64` does not hold the sum.
pub fn sum(a: &Expr, b: &Expr) -> Result<Expr> {
    match (a.as_int(), b.as_int()) {
        (Some(x), Some(y)) => constant(i128::from(x) + i128::from(y), wider(a.dtype(), b.dtype())),
        _ => Ok(a + b),
    }
}

/// The smallest `q` with `q * by >= size`, for a `by` that is positive.
///
/// # Errors
/// `Refused` where a constant is beyond `int64`, or `by` is a constant that is not positive.
pub fn ceil_div(size: &Expr, by: &Expr) -> Result<Expr> {
    match (size.as_int(), by.as_int()) {
        (_, Some(k)) if k <= 0 => Err(Error::refused(format!("{k} is not positive"))),
        (Some(n), Some(k)) => {
            let (n, k) = (i128::from(n), i128::from(k));
            constant(n.div_euclid(k) + i128::from(n.rem_euclid(k) != 0), size.dtype())
        }
        (_, Some(k)) => {
            let past = constant(i128::from(k) - 1, size.dtype())?;
            Ok(sum(size, &past)?.floordiv(by))
        }
        _ => Ok((size + &(by - 1)).floordiv(by)),
    }
}

/// The smallest multiple of a positive constant that is not below a size.
///
/// # Errors
/// `Refused` where `int64` does not hold it, or `multiple` is not positive.
pub fn round_up(size: &Expr, multiple: i64) -> Result<Expr> {
    let by = constant(i128::from(multiple), size.dtype())?;
    product(size.dtype(), [&ceil_div(size, &by)?, &by])
}

/// How many elements a box with strides spans, from its first to its last one; it has elements.
///
/// # Errors
/// `Refused` where that is beyond `int64`.
pub fn span(shape: &[Expr], strides: &[Expr]) -> Result<Expr> {
    let axes = shape.iter().zip(strides);
    axes.into_iter().try_fold(Expr::i32(1), |all, (d, s)| sum(&all, &times(&(d - 1), s)?))
}

/// The number of elements of a box of constant extents.
///
/// # Errors
/// `Refused` where an extent is negative or the number is beyond `int64`.
pub fn count(shape: &[i64]) -> Result<i64> {
    if shape.contains(&0) {
        return Ok(0);
    }
    shape.iter().try_fold(1i64, |n, d| n.checked_mul(*d).filter(|n| *n >= 0)).ok_or_else(|| {
        Error::refused(format!("a box of {shape:?} has more elements than 64 bits count"))
    })
}

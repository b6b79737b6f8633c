//! Accesses as affine functions of iteration variables.
//!
//! The flat offset of a load or store is `constant + sum(coefficient * variable)` for most
//! accesses of tensor programs. From the coefficients a schedule reads everything: zero means
//! that the access does not move along an axis, one that it moves to the neighbour.
//!
//! Parts that are not affine (`k % 2`, an index that is loaded from memory) are kept as *opaque*
//! terms; a variable inside such a term has no coefficient.

use crate::index::Linear;
use crate::{Buffer, DType, Dim, Expr, Var, dim};

/// `constant + sum(coefficient * variable) + sum(coefficient * opaque term)`.
#[derive(Clone, Debug)]
pub struct Affine(Linear);

/// Whether an access of a buffer is better written with one index: all distances of neighbours are
/// constants. Else that it is in range could not be proved, which takes sets that are linear. A buffer
/// with strides must have a constant shape as well, since that says how many elements it spans.
pub fn is_flat(buffer: &Buffer) -> bool {
    let of_compact = usize::from(buffer.strides.is_empty());
    buffer.shape.iter().skip(of_compact).all(|d| d.as_int().is_some())
}

impl Affine {
    /// The form of an integer expression; `None` where a number gets too large.
    pub fn from_expr(e: &Expr) -> Option<Affine> {
        Linear::from_expr(e).map(Affine)
    }

    /// The flat offset of `indices` in a buffer. What moves by an open number of cells is opaque.
    pub fn of_access(buffer: &Buffer, indices: &[Expr]) -> Option<Affine> {
        if buffer.elem_offset.is_some() {
            return None;
        }
        if !buffer.strides.is_empty() {
            return Self::of_strided(buffer, indices);
        }
        let shape = dim::of_shape(&buffer.shape)?;
        let mut stride = Dim::from(1);
        let mut sum = Linear::constant(0, DType::I32);
        for (index, extent) in indices.iter().zip(&shape).rev() {
            sum = moved(sum, index, stride)?;
            stride = stride * *extent;
        }
        // The offset is computed in 32 bits; no tensor of open size has more cells.
        stride.fits_int32().then_some(Affine(sum))
    }

    /// The flat offset in a buffer with strides, whose elements `int32` counts: as far as extents and strides are known.
    fn of_strided(buffer: &Buffer, indices: &[Expr]) -> Option<Affine> {
        let mut sum = Linear::constant(0, DType::I32);
        let mut last: i128 = 0;
        for ((index, stride), extent) in indices.iter().zip(&buffer.strides).zip(&buffer.shape) {
            sum = match stride.as_int().map(i128::from) {
                Some(by) => {
                    last = extent.as_int().map_or(last, |d| last + i128::from(d - 1) * by);
                    sum.plus(&Linear::from_expr(index)?, by)?
                }
                None => moved(sum, index, Dim::from_expr(stride)?)?,
            };
        }
        i32::try_from(last).is_ok().then_some(Affine(sum))
    }

    /// The part that does not depend on variables.
    pub fn constant(&self) -> i64 {
        self.0.constant as i64
    }

    /// The coefficient of a variable; `None` where it stands in an opaque term.
    pub fn coefficient(&self, v: &Var) -> Option<i64> {
        self.0.coefficient(v).map(|k| k as i64)
    }

    /// Variables with their coefficients, which are not zero.
    pub fn vars(&self) -> impl Iterator<Item = (&Var, i64)> {
        self.0.terms.iter().filter_map(|(e, k)| Some((e.as_var()?, *k as i64)))
    }

    /// Terms that are not affine, with their factors.
    pub fn opaque(&self) -> impl Iterator<Item = (&Expr, i64)> {
        self.0.terms.iter().filter(|(e, _)| e.as_var().is_none()).map(|(e, k)| (e, *k as i64))
    }
}

/// An offset with an index more, one step of which is so many cells.
fn moved(sum: Linear, index: &Expr, stride: Dim) -> Option<Linear> {
    let index = Linear::from_expr(index)?;
    if let Some(n) = stride.known() {
        return sum.plus(&index, i128::try_from(n).ok()?);
    }
    let by = stride.typed(DType::I32);
    let one = index.terms.iter().map(|(e, k)| (e.clone().cast(DType::I32) * &by, *k));
    let mut terms: Vec<(Expr, i128)> = one.collect();
    if index.constant != 0 {
        terms.push((by, index.constant));
    }
    sum.plus(&Linear { terms, constant: 0, dtype: DType::I32 }, 1)
}

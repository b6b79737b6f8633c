//! Shapes that a file states or a model computes, within what is supported.

use tilewright_ir::dim::{self, Integer};
use tilewright_ir::{Dim, Error, Result};

/// Axes of one tensor; more than this is refused, so that loop nests stay shallow.
pub(crate) const MAX_RANK: usize = 32;

/// Most elements of a tensor, where extents of zero count as ones: fewer where addresses have 32 bits.
const MAX_ELEMENTS: usize = usize::MAX >> if usize::BITS == 64 { 15 } else { 3 };

/// Refuses extents whose products might not fit a number.
pub(crate) fn check_extents(shape: &[Dim]) -> Result<()> {
    let mut known = shape.iter().filter_map(|d| d.known());
    let total = known.try_fold(1usize, |n, d| n.checked_mul(d.max(1)));
    if total.is_some_and(|n| n <= MAX_ELEMENTS) {
        Ok(())
    } else {
        Err(Error::unsupported(format!("a tensor of shape {shape:?} is too large")))
    }
}

/// Refuses a tensor of too many dimensions.
pub(crate) fn check_rank(rank: usize) -> Result<()> {
    if rank <= MAX_RANK {
        Ok(())
    } else {
        Err(Error::unsupported(format!(
            "a tensor of {rank} dimensions is not supported; at most {MAX_RANK} are"
        )))
    }
}

/// Extents that a model computes.
pub(crate) fn checked_shape(list: &[i64]) -> Result<Vec<usize>> {
    let list: Vec<Integer> = list.iter().map(|d| (*d).into()).collect();
    dim::fixed(&checked_dims(&list)?, "a shape")
}

/// Extents that a model computes, which may be open.
pub(crate) fn checked_dims(list: &[Integer]) -> Result<Vec<Dim>> {
    check_rank(list.len())?;
    let shape = list
        .iter()
        .map(|v| v.dim().ok_or_else(|| Error::model(format!("the extent {v} is negative"))))
        .collect::<Result<Vec<_>>>()?;
    check_extents(&shape)?;
    Ok(shape)
}

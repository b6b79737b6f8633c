//! Rows that are written into a cache of keys or values, from a position on that each example has of its
//! own.

use tilewright_ir::{DType, Dim, Error, Expr, Result, TensorFunc};

use crate::operand::{Operand, unequal_shapes};
use crate::te;

/// Along which axis rows are written, and what follows the end of the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Along {
    /// The axis; the first one counts examples.
    pub axis: usize,
    /// Whether rows behind the last one are those at the beginning.
    pub circular: bool,
}

/// A cache `[batch, .., length, ..]` in which new rows stand from a first position on, and everywhere else
/// what was there before, or zeros where it was shorter.
/// Parameters: the old cache, with `old` rows, unless `old` is zero; the new rows; the first positions
/// `int32 [batch]`; the result.
///
/// # Errors
/// `Unsupported` for operands of other ranks, `Input` for rows that do not fit the cache.
pub fn append_rows(old: &Operand, rows: &Operand, length: Dim, along: Along) -> Result<TensorFunc> {
    let (name, axis) = ("append_rows", along.axis);
    let (Some(&before), Some(&count), 1..) = (old.shape.get(axis), rows.shape.get(axis), axis)
    else {
        let what = format!("{name}: {rows} in {old} along axis {axis}");
        return Err(Error::unsupported(what).help("the first axis counts examples"));
    };
    let with = |extent: Dim| {
        let mut shape = rows.shape.clone();
        shape[axis] = extent;
        shape
    };
    if with(before) != old.shape || old.dtype != rows.dtype {
        let error = Error::input(format!("{name}: {rows} do not fit {old}"));
        return Err(if old.dtype == rows.dtype {
            unequal_shapes(error, &with(before), &old.shape)
        } else {
            error
        });
    }
    let kept = (before != 0).then(|| old.placeholder("old"));
    let new = rows.placeholder("rows");
    let starts = te::placeholder("starts", &rows.shape[..1], DType::I32);
    let out = te::compute(name, &with(length), |i| {
        let all = || i.to_vec();
        let at = i[axis].clone();
        let start = starts.at([i[0].clone()]);
        let zero = Expr::constant(0.0, rows.dtype);
        let old = match &kept {
            None => zero,
            Some(kept) if before == length => kept.at(all()),
            Some(kept) => {
                let there = at.clone().less(before.expr());
                Expr::if_then_else(there, kept.at(all()), zero)
            }
        };
        let row = |from: Expr| {
            let mut place = all();
            place[axis] = from;
            new.at(place)
        };
        if along.circular {
            let from = (at - start).floormod(length.expr());
            let is_new = from.clone().less(count.expr());
            Expr::if_then_else(is_new, row(from), old)
        } else {
            let from = at.clone() - start.clone();
            let is_new = from.clone().less(count.expr());
            let behind = Expr::if_then_else(is_new, row(from), old.clone());
            Expr::if_then_else(at.less(start), old, behind)
        }
    });
    te::func(kept.iter().chain([&new, &starts]), [&out])
}

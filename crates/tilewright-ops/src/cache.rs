//! Rows that are written into a cache of keys or values, from a position on that each example has of its
//! own.

use tilewright_ir::{DType, Dim, Error, Expr, Result, TensorFunc};

use crate::operand::Operand;
use crate::te;

/// A cache `[batch, heads, length, size]` in which rows follow those that count: what was there before a
/// first position, the new rows from there on, and zeros behind them.
/// Parameters: the old cache `[batch, heads, old, size]` unless `old` is zero, the new rows `[batch, heads,
/// count, size]`, the first positions `int32 [batch]`, the result.
///
/// # Errors
/// `Unsupported` for operands of other ranks, `Input` for rows and positions that do not fit the cache.
pub fn append_rows(old: &Operand, rows: &Operand, length: Dim) -> Result<TensorFunc> {
    let name = "append_rows";
    let (&[batch, heads, before, size], &[b, h, count, s]) = (&old.shape[..], &rows.shape[..])
    else {
        let what = format!("{name}: {rows} in {old}");
        return Err(Error::unsupported(what).help("both have four axes"));
    };
    if [b, h, s] != [batch, heads, size] || old.dtype != rows.dtype {
        return Err(Error::input(format!("{name}: {rows} do not fit {old}")));
    }
    let kept = (before != 0).then(|| old.placeholder("old"));
    let new = rows.placeholder("rows");
    let starts = te::placeholder("starts", &[batch], DType::I32);
    let out = te::compute(name, &[batch, heads, length, size], |i| {
        let [b, h, at, d] = [0, 1, 2, 3].map(|k| i[k].clone());
        let start = starts.at([b.clone()]);
        let from = at.clone() - start.clone();
        let zero = Expr::constant(0.0, rows.dtype);
        let old = kept.as_ref().map(|kept| {
            let there = at.clone().less(before.expr());
            let value = kept.at([b.clone(), h.clone(), at.clone(), d.clone()]);
            Expr::if_then_else(there, value, zero.clone())
        });
        let is_new = from.clone().less(count.expr());
        let new = Expr::if_then_else(is_new, new.at([b, h, from, d]), zero.clone());
        Expr::if_then_else(at.less(start), old.unwrap_or(zero), new)
    });
    te::func(kept.iter().chain([&new, &starts]), [&out])
}

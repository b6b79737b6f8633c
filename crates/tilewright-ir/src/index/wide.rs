//! Indices in 64 bits: sums that `int32` would let wrap, as exact ones.

use crate::index::{Interval, Linear, Ranges};
use crate::{DType, Expr, ExprKind};

/// The index of an axis in 64 bits, for an access that is not made where the index is out of range: what `int32` holds
/// is a number of `0..2^31` there. Where the exact sum of the terms lies from `-2^31` to below `2^32`, no other number
/// in there wraps to that one, and the sum of the terms in 64 bits is the same. It shows that neighbouring lanes and
/// iterations access neighbouring elements, as a sum that may wrap does not. Other indices are cast as they are.
pub fn in_64_bits(e: &Expr, ranges: &Ranges) -> Expr {
    below(e, ranges, u32::MAX.into())
}

/// The same, where an exact sum up to `most` is the only one.
fn below(e: &Expr, ranges: &Ranges, most: i128) -> Expr {
    let wide = DType::I64.with_lanes(e.dtype().lanes);
    let whole = || e.clone().cast(wide);
    if e.dtype().scalar() != DType::I32 || ranges.stays(e) {
        return whole();
    }
    if let ExprKind::Ramp(base, stride) = e.kind() {
        let last = stride.as_int().filter(|by| *by >= 0);
        let last = last.and_then(|by| by.checked_mul(i64::from(e.dtype().lanes) - 1));
        return match last {
            Some(last @ 0..=0x7fff_ffff) => Expr::ramp(
                below(base, ranges, most - i128::from(last)),
                stride.clone().cast(DType::I64),
                e.dtype().lanes,
            ),
            _ => whole(),
        };
    }
    let unique = Interval::new(i32::MIN.into(), most);
    let sums = Linear::from_expr(e).and_then(|sum| exact_sums(&sum, ranges, unique));
    let parts = sums.into_iter().flatten().map(|sum| Some(sum.to_expr()?.cast(wide)));
    let parts = parts.collect::<Option<Vec<Expr>>>();
    parts.and_then(|parts| parts.into_iter().reduce(|a, b| a + b)).unwrap_or_else(whole)
}

/// The terms of a sum in few sums that its type holds; `None` where the whole may be outside of `values`, or a term is
/// not known.
fn exact_sums(sum: &Linear, ranges: &Ranges, values: Interval) -> Option<Vec<Linear>> {
    let terms = sum.terms.iter().map(|(atom, by)| Linear::atom(atom.clone()).times(*by));
    let mut sums: Vec<Linear> = Vec::new();
    let mut all = Interval::point(0);
    for term in terms.chain([Some(Linear::constant(sum.constant, sum.dtype))]) {
        let term = term?;
        all = all.plus(term.clone().values(ranges)?)?;
        let with =
            |sum: &Linear| sum.clone().plus(&term, 1).filter(|sum| sum.fits(ranges).is_some());
        match sums.iter_mut().find_map(|sum| Some((with(sum)?, sum))) {
            Some((next, sum)) => *sum = next,
            None => sums.push(term),
        }
    }
    all.within(values).then_some(sums)
}

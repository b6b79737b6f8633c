//! What linear indices reach, as far as intervals and the extents of loops say.
//!
//! Sizes that are open leave quotients in indices and extents, whose bounds one by one say nothing:
//! `w // 4 * 2 - w // 12 * 6` is between 0 and 4, since `w // 12` is `w // 4 // 3`. Quotients of one
//! number, up to what is added to it, are taken together here.

use tilewright_ir::index;
use tilewright_ir::interval::{Interval, Ranges};
use tilewright_ir::linear::Linear;
use tilewright_ir::{BinOp, Expr, Range, Var};

/// The values of a form, where its terms have known bounds one by one, or as pairs of quotients.
/// Index arithmetic stays in its type, so what is divided is an integer.
pub(super) fn span(form: &Linear, ranges: &Ranges) -> Option<Interval> {
    let plain = by_pairs(form, ranges);
    // Remainders are quotients, too, and some of these have partners.
    match (plain, quotients_of_remainders(form).and_then(|form| by_pairs(&form, ranges))) {
        (Some(one), Some(other)) => Some(one.meet(other)),
        (one, other) => one.or(other),
    }
}

fn by_pairs(form: &Linear, ranges: &Ranges) -> Option<Interval> {
    let mut terms = form.terms.clone();
    let mut sum = Interval::point(form.constant);
    while let Some(Pair { coarse, fine, by, values }) = pair(&terms) {
        sum = sum.plus(values.times(by)?)?;
        terms[fine].1 -= by;
        terms.remove(coarse);
        terms.retain(|t| t.1 != 0);
    }
    terms.iter().try_fold(sum, |sum, (atom, by)| sum.plus(known(atom, ranges)?.times(*by)?))
}

/// The form with `x - x // m * m` in the place of each `x % m`; `None` where there is none.
fn quotients_of_remainders(form: &Linear) -> Option<Linear> {
    let mut out = Linear::constant(form.constant, form.dtype);
    let mut found = false;
    for (atom, by) in &form.terms {
        let Some((x, m)) = index::divided(atom, BinOp::FloorMod) else {
            out = out.plus(&Linear::atom(atom.clone()), *by)?;
            continue;
        };
        let by_m = Expr::int(i64::try_from(m).ok()?, x.dtype());
        let quotient = Linear::atom(Expr::binary(BinOp::FloorDiv, x.clone(), by_m));
        out = out.plus(&Linear::of(x)?, *by)?.plus(&quotient, by.checked_mul(-m)?)?;
        found = true;
    }
    found.then_some(out)
}

/// The values of a term, where not only its type bounds them.
fn known(atom: &Expr, ranges: &Ranges) -> Option<Interval> {
    let few = |i: &Interval| i.hi - i.lo < i128::from(i16::MAX);
    ranges.exact(atom).or_else(|| Some(ranges.of(atom)).filter(few))
}

/// Two terms of which one bounds the other.
struct Pair {
    /// The position of `-by * k * ((x + b) // (m * k))`.
    coarse: usize,
    /// That of `(by + more) * ((x + a) // m)`.
    fine: usize,
    by: i128,
    /// The values of `(x + a) // m - k * ((x + b) // (m * k))`.
    values: Interval,
}

/// The first such pair.
fn pair(terms: &[(Expr, i128)]) -> Option<Pair> {
    let quotients: Vec<(Linear, i128)> =
        terms.iter().map(|(atom, _)| quotient(atom)).collect::<Option<_>>()?;
    let all = || (0..terms.len()).flat_map(|i| (0..terms.len()).map(move |j| (i, j)));
    all().filter(|(coarse, fine)| coarse != fine).find_map(|(coarse, fine)| {
        let ((x, large), (y, small)) = (&quotients[coarse], &quotients[fine]);
        if large % small != 0 {
            return None;
        }
        let k = large / small;
        let (negative, most) = (terms[coarse].1, terms[fine].1);
        let by = -negative / k;
        if negative % k != 0 || by.signum() != most.signum() || by.abs() > most.abs() {
            return None;
        }
        // `(x + b) // m` is `(x + a) // m + d`.
        let more = x.clone().plus(y, -1)?.as_constant()?;
        let (low, high) = (more.div_euclid(*small), -(-more).div_euclid(*small));
        Some(Pair { coarse, fine, by, values: Interval::new(-high, k - 1 - low) })
    })
}

/// `x` and `m` of `x // m`; one for other terms.
fn quotient(atom: &Expr) -> Option<(Linear, i128)> {
    match index::divided(atom, BinOp::FloorDiv) {
        Some((x, m)) => Some((Linear::of(x)?, m)),
        None => Some((Linear::atom(atom.clone()), 1)),
    }
}

/// The least and the greatest value of an index over loops, outermost first, as forms of what is
/// known outside of these. They hold where every loop runs.
pub(super) fn ends(
    index: &Linear,
    loops: &[(Var, Range)],
    ranges: &Ranges,
) -> Option<(Linear, Linear)> {
    let (mut least, mut greatest) = (index.clone(), index.clone());
    for (var, range) in loops.iter().rev() {
        let first = index::linear(&range.min, ranges)?;
        let last = first.clone().plus(&index::linear(&range.extent, ranges)?, 1)?;
        let last = last.plus(&Linear::constant(1, index.dtype), -1)?;
        least = at_end(least, var, (&first, &last), ranges)?;
        greatest = at_end(greatest.times(-1)?, var, (&first, &last), ranges)?.times(-1)?;
    }
    Some((least, greatest))
}

/// The values of an index over loops, where they are known.
pub(super) fn between(index: &Linear, loops: &[(Var, Range)], ranges: &Ranges) -> Option<Interval> {
    let by_ends = || {
        let (least, greatest) = ends(index, loops, ranges)?;
        Some(Interval::new(span(&least, ranges)?.lo, span(&greatest, ranges)?.hi))
    };
    match (by_ends().filter(|i| !i.is_empty()), span(index, ranges)) {
        (Some(one), Some(other)) => Some(one.meet(other)),
        (one, other) => one.or(other),
    }
}

/// The least values of a form for a variable between two values.
fn at_end(
    form: Linear,
    var: &Var,
    (first, last): (&Linear, &Linear),
    ranges: &Ranges,
) -> Option<Linear> {
    let (inside, outside): (Vec<_>, Vec<_>) =
        form.terms.into_iter().partition(|(atom, _)| atom.mentions(var));
    let mut least = Linear { terms: outside, ..form };
    for (atom, by) in inside {
        least = match atom.as_var() {
            Some(_) => least.plus(if by > 0 { first } else { last }, by)?,
            None => {
                let low = known(&atom, ranges)?.times(by)?.lo;
                least.plus(&Linear::constant(low, first.dtype), 1)?
            }
        };
    }
    Some(least)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tilewright_ir::Fold;
    use tilewright_ir::visit::Subst;

    use super::*;

    fn of(e: &Expr) -> Linear {
        Linear::of(e).expect("small")
    }

    #[test]
    fn quotients_of_one_number_are_taken_together() {
        let w = Var::index("w");
        let span = |e: Expr| span(&of(&e), &Ranges::default()).map(|i| (i.lo, i.hi));
        let over = |n: i64| w.expr().floordiv(n);
        assert_eq!(span(over(4) * 2 - over(12) * 6), Some((0, 4)));
        assert_eq!(span(over(2) - (&w + 10).floordiv(12) * 6), Some((-5, 0)));
        assert_eq!(span((&w + 10).floordiv(12) - over(12)), Some((0, 1)));
        assert_eq!(span(&w - over(3) * 3), Some((0, 2)));
        assert_eq!(span(&w - over(6) * 6 - w.expr().floormod(2)), Some((0, 4)));
        assert_eq!(span(w.expr() * 2 - over(3) * 3), None, "one `w` is left");
        assert_eq!(span(over(5) - over(3)), None);
    }

    #[test]
    fn the_last_iteration_of_an_open_loop_is_an_end() {
        let [i, j, w] = ["i", "j", "w"].map(Var::index);
        let mut ranges = Ranges::default();
        ranges.bind_size(&w);
        let loops = [
            (i.clone(), Range::upto(w.expr().floordiv(6))),
            (j.clone(), Range::upto(Expr::i32(6))),
        ];
        let index = of(&(&i * 6 + &j));
        let (least, greatest) = ends(&index, &loops, &ranges).expect("linear");
        assert_eq!(least.as_constant(), Some(0));
        let left = of(&w.expr()).plus(&greatest, -1).expect("small");
        assert_eq!(span(&left, &ranges), Some(Interval::new(1, 6)));
    }

    proptest! {
        #[test]
        fn a_span_holds_every_value(
            parts in proptest::collection::vec((-9i64..9, 1i64..13, -6i64..7, any::<bool>()), 1..5),
            constant in -5i64..5,
        ) {
            let w = Var::index("w");
            let one = |(a, m, c, remainder): &(i64, i64, i64, bool)| match remainder {
                true => (&w + *a).floormod(*m) * *c,
                false => (&w + *a).floordiv(*m) * *c,
            };
            let e = parts.iter().map(one).fold(Expr::i32(constant as i32), |a, b| a + b);
            let found = span(&of(&e), &Ranges::default());
            for value in 0..300 {
                let at = Subst::vars([(w.clone(), Expr::i32(value))]).expr(&e);
                let at = index::simplify(&at, &Ranges::default()).as_int().expect("a number");
                prop_assert!(found.is_none_or(|i| i.contains(at.into())), "{e}: {at} {found:?}");
            }
        }
    }
}

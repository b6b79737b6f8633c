//! The values of linear forms, of which one loop or one quotient alone would know less.

use proptest::prelude::*;
use tilewright_ir::index::{Interval, Linear, Ranges};
use tilewright_ir::visit::Subst;
use tilewright_ir::{Expr, Fold, Range, Var, index};

fn span(e: Expr) -> Option<(i128, i128)> {
    let form = Linear::from_expr(&e).expect("small");
    form.span(&Ranges::default()).map(|i| (i.lo, i.hi))
}

#[test]
fn quotients_of_one_number_are_taken_together() {
    let w = Var::index("w");
    let over = |n: i64| w.expr().floordiv(n);
    assert_eq!(span(over(4) * 2 - over(12) * 6), Some((0, 4)));
    assert_eq!(span(over(2) - (&w + 10).floordiv(12) * 6), Some((-5, 0)));
    assert_eq!(span((&w + 10).floordiv(12) - over(12)), Some((0, 1)));
    assert_eq!(span((&w + 63).floordiv(64) - over(64)), Some((0, 1)));
    assert_eq!(span(&w - over(3) * 3), Some((0, 2)));
    assert_eq!(span(&w - over(6) * 6 - w.expr().floormod(2)), Some((0, 4)));
    assert_eq!(span(w.expr() * 2 - over(3) * 3), None, "one `w` is left");
    assert_eq!(span(over(5) - over(3)), None);
}

#[test]
fn quotients_of_quotients_and_of_remainders_are_those_of_one_number() {
    let w = Var::index("w");
    let half = || (&w + 1).floordiv(2);
    assert_eq!(span(half().floordiv(6) - (&w + 1).floordiv(12)), Some((0, 0)));
    assert_eq!(span(half() - half().floordiv(6) * 6), Some((0, 5)));
    assert_eq!(span((half() + 5).floordiv(6) - (&w + 1).floordiv(12)), Some((0, 1)));
    let few = (w.expr().floormod(32) + 7 - w.expr().floormod(8)).floordiv(8);
    assert_eq!(span(few - w.expr().floordiv(8) + w.expr().floordiv(32) * 4), Some((0, 0)));
    let part = (&w + 1).floormod(12).floordiv(2);
    assert_eq!(span(half() - (&w + 1).floordiv(12) * 6 - part), Some((0, 0)));
    // A remainder that is divided by what does not divide its divisor.
    let thirds = || w.expr().floordiv(3);
    assert_eq!(span(w.expr().floormod(3).floordiv(2)), Some((0, 1)));
    assert_eq!(span((w.expr() + thirds()).floordiv(2) - thirds() * 2), Some((0, 1)));
    let left = || w.expr() - w.expr().floordiv(8) * 8;
    assert_eq!(span((left() + 4).floordiv(3) * 3), Some((3, 9)));
    assert_eq!(span((left() + 4).floordiv(3) * 2 - left()), Some((-1, 2)));
    // A part of what tiles of six leave over.
    let left = || half() - (&w + 1).floordiv(12) * 6;
    assert_eq!(span(left().floordiv(4)), Some((0, 1)));
    assert_eq!(span(left() - left().floordiv(4) * 4), Some((0, 3)));
}

#[test]
fn a_dividend_that_may_wrap_is_not_taken_together() {
    let [w, n] = ["w", "n"].map(Var::index);
    let mut ranges = Ranges::default();
    ranges.bind(&n, Interval::new(0, 1 << 20));
    let one = |v: &Var| Linear::from_expr(&((v + 63).floordiv(64) - v.expr().floordiv(64)));
    assert_eq!(one(&n).and_then(|l| l.values(&ranges)), Some(Interval::new(0, 1)));
    let wide = one(&w).and_then(|l| l.values(&ranges)).expect("an interval");
    assert!(wide.hi > 1, "{wide:?}");
    // The loop that takes what is left over has one iteration at most.
    let i = Var::index("i");
    let extent = (&n + 63).floordiv(64) - n.expr().floordiv(64);
    ranges.bind_loop(&i, &Range::upto(extent));
    assert_eq!(ranges.interval(&i.expr()), Interval::new(0, 0));
}

proptest! {
    #[test]
    fn a_span_holds_every_value(
        parts in proptest::collection::vec(
            (-9i64..9, 1i64..13, 1i64..5, -6i64..7, 0u8..7), 1..5),
        constant in -5i64..5,
    ) {
        let w = Var::index("w");
        let one = |(a, m, n, c, kind): &(i64, i64, i64, i64, u8)| {
            let of = &w + *a;
            let term = match kind {
                0 => of.floormod(*m),
                1 => of.floordiv(*m),
                2 => (of.floordiv(*n) + *a).floordiv(*m),
                4 => (of.clone() + of.floordiv(*m) * *a).floordiv(*n),
                5 => of.floormod(*m).floordiv(*n),
                3 => (of.clone().floordiv(*n) - of.floordiv(*n * *m) * *m).floordiv(*n),
                _ => (of.clone().floormod(*m * *n) * 2 - of.floormod(*m) + *a).floordiv(*n),
            };
            term * *c
        };
        let e = parts.iter().map(one).fold(Expr::i32(constant as i32), |a, b| a + b);
        let form = Linear::from_expr(&e).expect("small");
        let mut ranges = Ranges::default();
        ranges.bind(&w, Interval::new(0, 299));
        let found = [form.span(&Ranges::default()), form.values(&ranges)];
        for value in 0..300 {
            let at = Subst::vars([(w.clone(), Expr::i32(value))]).expr(&e);
            let at = index::simplify(&at, &Ranges::default()).as_int().expect("a number");
            for found in found.into_iter().flatten() {
                prop_assert!(found.contains(at.into()), "{e}: {at} {found:?}");
            }
        }
    }
}

#[test]
fn a_form_fits_where_its_interval_does() {
    let i = Var::index("i");
    let mut ranges = Ranges::default();
    ranges.bind(&i, Interval::new(0, 65535));
    let far = Linear::from_expr(&(&i * 65536)).expect("small");
    assert_eq!(far.values(&ranges), Some(Interval::new(0, 65535 << 16)));
    assert_eq!(far.fits(&ranges), None);
    assert!(Linear::from_expr(&(&i * 32767)).and_then(|l| l.fits(&ranges)).is_some());
}

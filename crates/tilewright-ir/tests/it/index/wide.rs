//! Indices in 64 bits: which sums are exact.

use tilewright_ir::index::{Interval, Ranges, in_64_bits};
use tilewright_ir::{Expr, ExprKind, Var};

#[test]
fn sums_that_no_other_number_wraps_to_are_exact() {
    let [h, i] = ["h", "i"].map(Var::index);
    let mut ranges = Ranges::default();
    for v in [&h, &i] {
        ranges.bind(v, Interval::new(0, i32::MAX.into()));
    }
    let text = |e: Expr| in_64_bits(&e, &ranges).to_string();
    assert_eq!(text(&h + &i), "T.Cast(\"int64\", h) + T.Cast(\"int64\", i)");
    // Up to 3 * 2^31: two numbers wrap to one.
    assert_eq!(text(&h * 2 + &i), "T.Cast(\"int64\", h * 2 + i)");
    // All lanes have to be below 2^32, and the sum of two is up to 2^32 - 2.
    let lanes = |stride| Expr::ramp(&h + &i, Expr::i32(stride), 2);
    assert!(matches!(in_64_bits(&lanes(1), &ranges).kind(), ExprKind::Ramp(base, _)
        if base.to_string() == "T.Cast(\"int64\", h) + T.Cast(\"int64\", i)"));
    assert!(matches!(in_64_bits(&lanes(2), &ranges).kind(), ExprKind::Ramp(base, _)
        if base.to_string() == "T.Cast(\"int64\", h + i)"));
}

//! How indices and conditions are written, and what counts as simple.

use crate::common::is_seen;
use tilewright_ir::{DType, Expr, Var};
use tilewright_polyhedral::{Engine, cost};

/// How an index is written that is not written as simply as it could be, or a condition. What is written has the
/// same normal form.
fn shown(e: &Expr) -> String {
    let all = Engine::new().domain();
    if e.dtype().is_bool() {
        let set = all.with_guard(e).to_set().expect("affine");
        let written = set.condition(&all).expect("a closed form");
        assert!(is_seen(&all, &!(e.clone().and(!written.clone()))), "{e}: {written}");
        assert!(is_seen(&all, &!(written.clone().and(!e.clone()))), "{e}: {written}");
        written.to_string()
    } else {
        let written = all.simplify(e);
        assert!(is_seen(&all, &e.clone().equal(&written)), "{e}: {written}");
        written.to_string()
    }
}

#[test]
fn sums_have_one_form() {
    let (i, j, n, m) = (Var::index("i"), Var::index("j"), Var::index("n"), Var::index("m"));
    assert_eq!(shown(&(&j + 1 + &i * 4 - 1)), "i * 4 + j");
    assert_eq!(shown(&((&i * 4 + &j).floordiv(4))), "i + j // 4");
    assert_eq!(shown(&((&i * 4 + &j).floormod(4))), "j % 4");
    assert_eq!(shown(&(i.expr().floordiv(4).floordiv(8))), "i // 32");
    assert_eq!(shown(&((&i * 4 + 2).floordiv(8))), "i // 2");
    assert_eq!(shown(&((&n + 1) * &m - &n * &m)), "m");
    assert_eq!(shown(&(i.expr() - i.expr())), "0");
    assert_eq!(shown(&(Expr::i32(4) - &i - 1)), "3 - i");
}

#[test]
fn what_is_wider_than_the_result_is_narrowed_last() {
    let (a, b) = (Var::new("a", DType::I64), Var::new("b", DType::I64));
    let wide = Expr::int(1 << 40, DType::I64);
    let sum = (a.expr() * 4 + &b - &a).floormod(wide).floordiv(1 << 20);
    assert_eq!(
        shown(&sum.cast(DType::I32)),
        "T.Cast(\"int32\", (a * T.int64(3) + b) % T.int64(1099511627776) // T.int64(1048576))"
    );
}

#[test]
fn comparisons_read_well() {
    let (i, j, n) = (Var::index("i"), Var::index("j"), Var::index("n"));
    assert_eq!(shown(&(&i * 4 + &j).less(14)), "i * 4 + j < 14");
    assert_eq!(shown(&(&i * 4 + &j).greater(13)), "i * 4 + j >= 14");
    assert_eq!(shown(&i.expr().less(&n)), "i < n");
    assert_eq!(shown(&(&i + 3).less(&n)), "n >= i + 4");
    assert_eq!(shown(&(&i * 2).less(7)), "i < 4");
    assert_eq!(shown(&(&i * 2).equal(7)), "T.bool(False)");
    assert_eq!(shown(&!i.expr().equal(&j)), "i != j");
}

#[test]
fn the_measure_prefers_plain_comparisons() {
    let (io, ii) = (Var::index("io"), Var::index("ii"));
    let a = io.expr().equal(3).and(ii.expr().greater_equal(2));
    let b = (&io * 4 + &ii).greater_equal(14);
    assert_eq!((cost(&a), cost(&b)), (7, 10));
}

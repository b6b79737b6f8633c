//! Sizes that are computed: exact, or refused.

use tilewright_ir::extent::{ceil_div, constant, product, round_up};
use tilewright_ir::{DType, Expr, Range, Result, Var};

fn big(v: i64) -> Expr {
    Expr::int(v, DType::I64)
}

#[test]
fn products_are_exact_or_refused() {
    let of = |sizes: &[i64]| product_of(sizes).map(|e| (e.as_int(), e.dtype())).ok();
    assert_eq!(of(&[]), Some((Some(1), DType::I32)));
    assert_eq!(of(&[46341, 46340]), Some((Some(2_147_441_940), DType::I32)));
    assert_eq!(of(&[65536, 65536]), Some((Some(1 << 32), DType::I64)));
    assert_eq!(of(&[1 << 31, 1 << 31]), Some((Some(1 << 62), DType::I64)));
    assert_eq!(of(&[1 << 31, 1 << 31, 2]), None);
    assert_eq!(of(&[1 << 62, 1 << 62, 1 << 62, 0]), Some((Some(0), DType::I64)));
}

fn product_of(sizes: &[i64]) -> Result<Expr> {
    let sizes: Vec<Expr> =
        sizes.iter().map(|n| constant(i128::from(*n), DType::I32).unwrap()).collect();
    product(DType::I32, &sizes)
}

#[test]
fn constants_beside_an_open_size_widen_it() {
    let n = Var::index("n").expr();
    let e = product(DType::I32, [&n, &Expr::i32(65536), &Expr::i32(65536)]).unwrap();
    assert_eq!(e.to_string(), "T.Cast(\"int64\", n) * T.int64(4294967296)");
    assert_eq!(product(DType::I32, [&n, &Expr::i32(4)]).unwrap().to_string(), "n * 4");
}

#[test]
fn division_rounds_up() {
    assert_eq!(
        (ceil_of(0, 3), ceil_of(1, 3), ceil_of(3, 3), ceil_of(4, 3)),
        (Some(0), Some(1), Some(1), Some(2))
    );
    assert_eq!(ceil_of(i64::MAX, 2), Some(1 << 62));
    assert!(ceil_div(&big(4), &big(0)).is_err());
    let up = round_up(&Expr::i32(i32::MAX), 4).unwrap();
    assert_eq!((up.as_int(), up.dtype()), (Some(1 << 31), DType::I64));
    assert!(round_up(&big(i64::MAX), 2).is_err());
}

fn ceil_of(n: i64, k: i64) -> Option<i64> {
    ceil_div(&big(n), &big(k)).unwrap().as_int()
}

#[test]
fn a_range_is_one_that_its_type_holds() {
    let ends = |start, end, dtype| {
        Range::between(start, end, dtype).map(|r| (r.min.as_int(), r.extent.as_int()))
    };
    assert_eq!(ends(-3, 100, DType::I8), Some((Some(-3), Some(103))));
    assert_eq!(ends(-100, 100, DType::I8), None);
    assert_eq!(ends(-3, 4, DType::U8), None);
    assert_eq!(ends(i64::MIN, i64::MAX, DType::I64), None);
}

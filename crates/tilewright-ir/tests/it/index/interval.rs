//! The intervals of expressions, against their values.

use proptest::prelude::*;
use tilewright_ir::index::{Interval, Ranges};
use tilewright_ir::scalar::eval_int;
use tilewright_ir::{BinOp, DType, Expr, Range, Var};

#[test]
fn bounds_of_loops_and_casts() {
    let i = Var::index("i");
    let mut ranges = Ranges::default();
    ranges.bind_loop(&i, &Range { min: Expr::i32(3), extent: Expr::i32(10) });
    let of = |e: Expr| ranges.interval(&e);
    assert_eq!(of(&i * 2 - 6), Interval { lo: 0, hi: 18 });
    assert_eq!(of((&i - 5).floordiv(4)), Interval { lo: -1, hi: 1 });
    assert_eq!(of(i.expr().cast(DType::U8)), Interval { lo: 3, hi: 12 });
    // -5 is not in the type, so nothing is known.
    assert_eq!(of((&i - 8).cast(DType::U8)), Interval::all(DType::U8));
    // Neither is a sum that may wrap.
    let big = of(&i * i64::from(i32::MAX / 2));
    assert_eq!(big, Interval::all(DType::I32));
}

#[test]
fn what_leaves_its_type_is_known_to() {
    let [i, n] = ["i", "n"].map(Var::index);
    let mut ranges = Ranges::default();
    ranges.bind_size(&n);
    ranges.bind_loop(&i, &Range { min: Expr::i32(0), extent: Expr::i32(65536) });
    let far = &i * 65536;
    let reached = Interval { lo: 0, hi: 65535 << 16 };
    assert_eq!((ranges.leaves(&far), ranges.exact(&far)), (Some(reached), None));
    assert_eq!(ranges.leaves(&(&i * 32768)), None);
    // Only what is known is said: an open size may be small, and a sum of what wraps is that.
    assert_eq!(ranges.leaves(&(&i * &n)), None);
    assert_eq!((ranges.leaves(&(far.clone() + &i)), ranges.exact(&far)), (None, None));
    let wide = i.expr().cast(DType::I64) * 65536;
    assert_eq!(ranges.exact(&wide), Some(reached));
    // Nothing is known of `m`, and of its remainder all there is to know.
    let m = Var::index("m");
    assert_eq!(ranges.exact(&m.expr().floormod(6)), Some(Interval { lo: 0, hi: 5 }));
    assert_eq!(ranges.exact(&(m.expr() + 1).floormod(6)), None);
}

fn op() -> impl Strategy<Value = BinOp> {
    proptest::sample::select(vec![
        BinOp::Add,
        BinOp::Sub,
        BinOp::Mul,
        BinOp::Min,
        BinOp::Max,
        BinOp::FloorDiv,
        BinOp::FloorMod,
        BinOp::TruncDiv,
        BinOp::TruncMod,
    ])
}

proptest! {
    #[test]
    fn an_interval_holds_every_value(
        op in op(), lo in -20i64..20, len in 0i64..12, blo in -8i64..12, blen in 0i64..6,
        dtype in proptest::sample::select(vec![DType::I8, DType::I32, DType::U8, DType::U64]),
    ) {
        let signed = dtype.min_int() != Some(0);
        let shift = if signed { 0 } else { 20 };
        let (x, y) = (Var::new("x", dtype), Var::new("y", dtype));
        let (lo, blo) = (lo + shift, (blo + shift).max(1 - i64::from(signed) * 9));
        let mut ranges = Ranges::default();
        ranges.bind(&x, Interval { lo: lo.into(), hi: (lo + len).into() });
        ranges.bind(&y, Interval { lo: blo.into(), hi: (blo + blen).into() });
        let found = ranges.interval(&Expr::binary(op, x.expr(), y.expr()));
        for a in lo..=lo + len {
            for b in blo..=blo + blen {
                if let Some(v) = eval_int(op, a, b, dtype) {
                    let v = if signed { i128::from(v) } else { i128::from(v as u64) };
                    prop_assert!(found.contains(v), "{a} {op:?} {b} = {v} not in {found:?}");
                }
            }
        }
    }
}

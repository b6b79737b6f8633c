//! Integers that may be negative and depend on open sizes, against arithmetic on numbers.

use tilewright_ir::dim::Integer;
use tilewright_ir::{DType, Dim, Expr, Var};

#[test]
fn integers_may_be_negative() {
    let n = Dim::open(&Var::new("n", DType::I64));
    let (size, three) = (Integer::from(n), Integer::from(3));
    let less = three.minus(size).expect("in range");
    assert_eq!((less.number(), less.is_less(three), less.is_less(0)), (None, Some(true), None));
    assert_eq!(Integer::from(-1).plus(size), size.minus(1));
    assert_eq!(Integer::from(n).minus(n), Some(Integer::from(0)));
    assert_eq!(Integer::from(-1).dim(), None);
    assert_eq!(size.equals(-1), Some(false));
    assert_eq!((size.equals(1), size.is_less(1), size.is_less(2)), (None, Some(false), None));
    assert_eq!(size.max(-5), Some(size));
    assert_eq!(size.min(-5), Some(Integer::from(-5)));
    assert_eq!(size.times(2).and_then(|d| d.floordiv(2)), Some(size));
    assert_eq!(size.times(2).and_then(|d| d.floordiv(n - 1)), None);
    // Rounded down, a negative number is another one than rounded towards zero.
    for at in 1..9usize {
        // The values of sizes are not negative, so 100 is added first.
        let value = |i: Integer| {
            let size = i.plus(100).and_then(Integer::dim).and_then(|d| d.value(&|_| Some(at)));
            size.expect("it is known") as i128 - 100
        };
        let less = size.minus(4).expect("in range");
        let by = at as i128 - 4;
        assert_eq!(less.floordiv(3).map(value), Some(by.div_euclid(3)), "{at}");
        assert_eq!(less.truncdiv(3).map(value), Some(by / 3), "{at}");
        assert_eq!(less.max(-2).map(value), Some(by.max(-2)), "{at}");
        assert_eq!(less.min(2).map(value), Some(by.min(2)), "{at}");
    }
    assert_eq!(Integer::from_expr(&Expr::int(-7, DType::I64)), Some(Integer::from(-7)));
    assert_eq!(Integer::from(i64::MAX).plus(1), None);
    let error = less.fixed("a stride").expect_err("it is open").to_string();
    assert!(error.contains("a stride: the size"), "{error}");
}

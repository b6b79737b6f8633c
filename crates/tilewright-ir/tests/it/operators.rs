//! Operators on expressions: what is folded, and which type the result has.

use tilewright_ir::{BinOp, DType, Expr, ExprKind, Var};

#[test]
fn operators_fold_integers_and_leave_floats() {
    let i = Var::index("i");
    assert!(matches!((&i + 0).kind(), ExprKind::Var(_)));
    assert_eq!((Expr::i32(3) * 4).as_int(), Some(12));
    let x = Var::new("x", DType::F32);
    assert!(matches!((&x + 0.0).kind(), ExprKind::Binary(BinOp::Add, ..)));
    let wide = &Var::new("n", DType::I64) + &i;
    assert_eq!(wide.dtype(), DType::I64);
}

#[test]
fn a_constant_is_not_narrowed_to_another_number() {
    let i = Var::index("i");
    let far = Expr::int(1 << 32, DType::I64);
    assert_eq!((&i * &far).to_string(), "T.Cast(\"int64\", i) * T.int64(4294967296)");
    assert_eq!((far + &i).dtype(), DType::I64);
    assert_eq!((&i + (1i64 << 31)).dtype(), DType::I64);
    assert_eq!((&i + i64::from(i32::MAX)).dtype(), DType::I32);
    assert_eq!((&i + Expr::int(4, DType::I64)).dtype(), DType::I32);
    // Arithmetic of constants of one type is the program's, and wraps.
    assert_eq!((Expr::i32(65536) * 65536).as_int(), Some(0));
}

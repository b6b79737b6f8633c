//! Steps that leave index arithmetic beyond its type.

use tilewright_ir::{Buffer, DType, Expr, Param, Stmt, StmtKind, TensorFunc, Var};
use tilewright_schedule::widths::check;

/// `for i in range(n): B[i * 65536] = 0`
fn func(n: i32) -> TensorFunc {
    let (b, i) = (Buffer::with_extents("B", &[64], DType::I8), Var::index("i"));
    let store = Stmt::store(&b, vec![&i * 65536], Expr::int(0, DType::I8));
    TensorFunc::new(vec![Param::tensor(&b)], Stmt::serial(&i, Expr::i32(n), store))
}

#[test]
fn arithmetic_that_leaves_its_type_is_refused_where_it_is_new() {
    assert!(check(&func(4), &func(32768)).is_ok());
    let e = check(&func(4), &func(32769)).expect_err("2^31 is no int32");
    assert_eq!(e.to_string(), "the int32 arithmetic `i * 65536` would reach 2147483648");
    // The program's own arithmetic wraps, and keeps doing so.
    assert!(check(&func(32769), &func(32769)).is_ok());
}

#[test]
fn a_statement_that_is_left_is_looked_at_where_its_loop_has_other_bounds() {
    let near = func(4);
    let StmtKind::For { var, body, .. } = near.body.kind() else { panic!("a loop") };
    let longer = |n| {
        let body = Stmt::serial(var, Expr::i32(n), body.clone());
        TensorFunc { body, ..near.clone() }
    };
    assert!(check(&near, &longer(5)).is_ok());
    assert!(check(&near, &longer(32769)).is_err());
}

#[test]
fn so_are_loops_and_buffers() {
    let far = Expr::int(1 << 32, DType::I64);
    let i = Var::index("i");
    let body = Stmt::serial(&i, far.clone(), Stmt::nop());
    let e = check(&func(4), &TensorFunc::new(Vec::new(), body)).expect_err("too far");
    assert_eq!(e.to_string(), "`i`, which is int32, would go up to 4294967295");
    let b = Buffer::new("B", vec![far.clone(), far], DType::I8);
    let made = TensorFunc::new(vec![Param::tensor(&b)], Stmt::nop());
    assert!(check(&func(4), &made).is_err());
}

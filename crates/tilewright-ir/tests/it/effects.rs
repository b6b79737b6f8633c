//! What evaluating an expression, or running a statement, does besides giving a value.

use tilewright_ir::{BinOp, Buffer, CallTarget, DType, Effects, Expr, Intrin, Stmt, Var};

#[test]
fn a_node_has_what_its_parts_have() {
    let b = Buffer::with_extents("B", &[4], DType::I32);
    let (i, n) = (Var::index("i"), Var::index("n"));
    let load = b.load([i.expr()]);
    assert!(load.effects().loads && !load.effects().impure());
    assert!(!load.effects().constant() && !load.effects().partial);
    let sum = &load + i.expr().floordiv(&n);
    assert!(sum.effects().loads && sum.effects().partial);
    assert!(i.expr().floordiv(4).effects().constant());
    assert!(!i.expr().floordiv(4).effects().partial);
    let zero = Expr::binary(BinOp::FloorDiv, i.expr(), Expr::i32(0));
    assert!(zero.effects().partial);
    for f in [Intrin::Shl, Intrin::Shr, Intrin::Pow] {
        assert!(is_partial(f, i.expr(), n.expr()) && !is_partial(f, i.expr(), Expr::i32(3)));
        assert!(is_partial(f, i.expr(), Expr::i32(-1)));
    }
    let half = Expr::float(0.5, DType::F32);
    assert!(!is_partial(Intrin::Pow, half.clone(), half));
    let lazy = Expr::if_then_else(i.expr().less(2), load.clone(), Expr::i32(0));
    assert!(lazy.effects().lazy && !lazy.effects().free_order());
    let call = Expr::call(CallTarget::Extern("f".into()), vec![load], DType::I32);
    assert!((&call + 1).effects().impure() && (&call + 1).effects().loads);
    assert!(Expr::undef(DType::I32).effects().impure());
}

fn is_partial(f: Intrin, x: Expr, by: Expr) -> bool {
    let t = x.dtype();
    Expr::call(CallTarget::Intrin(f), vec![x, by], t).effects().partial
}

#[test]
fn a_statement_has_what_its_parts_have_and_its_own_are_apart() {
    let b = Buffer::with_extents("B", &[4], DType::F32);
    let i = Var::index("i");
    let value = b.load([i.expr()]) + 1.0;
    let store = Stmt::store(&b, vec![i.expr()], value);
    let nest = Stmt::serial(&i, Expr::i32(4), Stmt::guard(i.expr().less(3), store.clone()));
    for s in [&store, &nest] {
        assert!(s.effects().stores && s.effects().loads && s.effects().floats);
        assert!(!s.effects().asserts && !s.effects().impure());
    }
    assert!(store.own_effects().loads);
    assert_eq!(nest.own_effects(), Effects::default());
}

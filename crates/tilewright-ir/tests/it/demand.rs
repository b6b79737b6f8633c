//! What evaluating an expression demands, and which of its loads decide that.

use tilewright_ir::demand::{decisive_loads, demand, unmet};
use tilewright_ir::{BinOp, Buffer, CallTarget, DType, Expr, ExprKind, Intrin, Var};

fn decisive(e: &Expr) -> Vec<String> {
    decisive_loads(e).iter().map(Expr::to_string).collect()
}

#[test]
fn indices_divisors_shifts_calls_and_conditions_of_what_may_fail_decide() {
    let (a, b) =
        (Buffer::with_extents("A", &[8], DType::I32), Buffer::with_extents("B", &[8], DType::I32));
    let at = |k: i32| b.load([Expr::i32(k)]);
    let from = |e: Expr| a.load([e]);
    let cond = || at(1).greater(0);
    for (e, loads) in [
        (at(0) + at(1) * from(Expr::i32(2)), vec![]),
        (at(0) + from(at(1)), vec!["B[1]"]),
        (from(from(at(1))), vec!["A[B[1]]", "B[1]"]),
        (at(0).floordiv(at(1)), vec!["B[1]"]),
        (at(0).floordiv(3), vec![]),
        (Expr::binary(BinOp::TruncMod, Expr::i32(5), at(1)), vec!["B[1]"]),
        (call_of(Intrin::Shl, at(0), at(1)), vec!["B[1]"]),
        (call_of(Intrin::Shl, at(0), Expr::i32(3)), vec![]),
        (call_of(Intrin::Pow, at(0), at(1)), vec!["B[1]"]),
        (Expr::call(CallTarget::Extern("f".into()), vec![at(1)], DType::I32), vec!["B[1]"]),
        (Expr::if_then_else(cond(), Expr::i32(1), Expr::i32(2)), vec![]),
        (Expr::if_then_else(cond(), from(Expr::i32(1)), Expr::i32(2)), vec!["B[1]"]),
        (Expr::select(cond(), from(Expr::i32(1)), Expr::i32(2)), vec![]),
        (
            Expr::select(
                cond().and(Expr::i32(1).floordiv(at(2)).greater(0)),
                Expr::i32(1),
                Expr::i32(2),
            ),
            vec!["B[1]", "B[2]"],
        ),
    ] {
        assert_eq!(decisive(&e), loads, "{e}");
    }
}

fn call_of(f: Intrin, x: Expr, y: Expr) -> Expr {
    Expr::call(CallTarget::Intrin(f), vec![x, y], DType::I32)
}

#[test]
fn a_binding_decides_where_its_variable_does() {
    let b = Buffer::with_extents("B", &[8], DType::I32);
    let (x, y) = (Var::index("x"), Var::index("y"));
    let at = |k: i32| b.load([Expr::i32(k)]);
    let inner = Expr::let_in(y.clone(), x.expr() + 1, b.load([y.expr()]) + x.expr());
    assert_eq!(decisive(&Expr::let_in(x.clone(), at(1), inner)), ["B[1]"]);
    let value = Expr::let_in(x.clone(), at(1), x.expr() + 1);
    assert!(decisive(&value).is_empty());
    assert_eq!(decisive(&b.load([value])), ["B[1]"]);
}

#[test]
fn shared_terms_are_visited_once() {
    let b = Buffer::with_extents("B", &[8], DType::I32);
    let mut e = b.load([b.load([Expr::i32(1)])]);
    for _ in 0..60 {
        e = &e + &e;
    }
    assert_eq!(decisive(&e), ["B[1]"]);
    assert!(e.effects().loads && unmet(&e, |_| false).is_none());
}

#[test]
fn what_is_always_defined_demands_nothing() {
    let x = Var::index("x").expr();
    let wide = Expr::new(ExprKind::Broadcast(Expr::i32(4)), DType::I32.with_lanes(4));
    assert!(demand(&x.clone().floordiv(2)).is_none());
    assert!(demand(&Expr::binary(BinOp::FloorDiv, wide.clone(), wide)).is_none());
    let shift = |by: i32| {
        let args = vec![x.clone(), Expr::i32(by)];
        Expr::call(CallTarget::Intrin(Intrin::Shr), args, DType::I32)
    };
    assert!(demand(&shift(31)).is_none() && demand(&shift(32)).is_some());
    let by = Expr::i32(7).floordiv(&x);
    let text = demand(&by).map(|d| format!("{d}: {}", d.holds));
    assert_eq!(text.as_deref(), Some("divides by `x`, which may be zero: x != 0"));
}

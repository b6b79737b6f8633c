//! Divisions by what is not constant: common factors and remainders.

use tilewright_ir::{BinOp, Expr, Range, Var};
use tilewright_polyhedral::{Engine, evaluate};

fn op(op: BinOp, a: Expr, b: Expr) -> Expr {
    Expr::binary(op, a, b)
}

#[test]
fn common_factors_and_remainders_vanish() {
    let engine = Engine::new();
    let (x, y) = (Var::index("x"), Var::index("y"));
    let range = || Range { min: Expr::i32(-5), extent: Expr::i32(11) };
    let all = engine.domain_of(&[(x.clone(), range()), (y.clone(), range())], &[]);
    let domain = all.with_guard(&x.expr().not_equal(0)).with_guard(&y.expr().not_equal(0));
    let (x, y) = (x.expr(), y.expr());
    let xx = || &x * 32 * &x;
    use BinOp::{FloorDiv, FloorMod, TruncDiv, TruncMod};
    let equal = [
        (op(FloorMod, xx(), x.clone()), Expr::i32(0)),
        (op(TruncMod, xx(), x.clone()), Expr::i32(0)),
        (op(FloorDiv, &x * (&y * 2) * 3, &y * 3), &x * 2),
        (op(TruncDiv, &x * (&y * 2) * 3, &y * 3), &x * 2),
        (op(FloorDiv, &x * 2 * &x * &y, &x * 4 * &x * &x), op(FloorDiv, y.clone(), &x * 2)),
        (op(TruncDiv, &x * 2 * &x * &y, &x * 4 * &x * &x), op(TruncDiv, y.clone(), &x * 2)),
        (op(FloorMod, xx(), &x * &y), op(FloorMod, &x * 32, y.clone()) * &x),
        (op(TruncMod, xx(), &x * &y), op(TruncMod, &x * 32, y.clone()) * &x),
        (op(FloorMod, &x - op(FloorMod, x.clone(), y.clone()), y.clone()), Expr::i32(0)),
        (op(FloorMod, &x - op(FloorMod, x.clone(), &y * -1), y.clone()), Expr::i32(0)),
        (op(FloorMod, &x + op(FloorMod, &x * -1, y.clone()), y.clone()), Expr::i32(0)),
    ];
    let value = |e: &Expr, at: (i64, i64)| {
        evaluate(e, &|v| if &**v.name() == "x" { Some(at.0) } else { Some(at.1) })
    };
    for (a, b) in &equal {
        for at in (-5..6).flat_map(|x| (-5..6).map(move |y| (x, y))) {
            if at.0 != 0 && at.1 != 0 {
                assert_eq!(value(a, at), value(b, at), "{a} and {b} at {at:?}");
            }
        }
        assert!(domain.equal(a, b).is_yes(), "{a} and {b}: {}", domain.equal(a, b));
    }
    let product = (&x * &y).equal(0);
    assert!(all.equal(&product, &x.clone().equal(0).or(y.clone().equal(0))).is_yes());
    // A remainder by something else stays.
    let other = op(FloorMod, &x - op(FloorMod, x.clone(), &y * 2 + 1), y.clone());
    assert!(!domain.equal(&other, &Expr::i32(0)).is_yes());
}

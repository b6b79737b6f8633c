//! What conditions around a place decide there, against all points.

use proptest::prelude::*;
use tilewright_ir::hash::HashMap;
use tilewright_ir::index::{Interval, Ranges, simplify};
use tilewright_ir::scalar::eval_int;
use tilewright_ir::{BinOp, Expr, ExprKind, Range, Var};

fn open() -> (Expr, Expr, Expr, Ranges) {
    let [i, j, n] = ["i", "j", "n"].map(Var::index);
    let mut ranges = Ranges::default();
    ranges.bind(&n, Interval::new(0, 1 << 24));
    ranges.bind_loop(&i, &Range::upto((n.expr() + 15).floordiv(16)));
    ranges.bind_loop(&j, &Range::upto(Expr::i32(16)));
    (i.expr(), j.expr(), n.expr(), ranges)
}

#[test]
fn a_guard_decides_itself_and_what_follows() {
    let (i, j, n, ranges) = open();
    let at = i.clone() * 16 + j.clone();
    let guard = at.clone().less(n.clone());
    let text = |e: Expr, holds| ranges.under(&guard, holds, || simplify(&e, &ranges)).to_string();
    assert_eq!(text((at.clone() + 1).less(n.clone() + 1), true), "T.bool(True)");
    assert_eq!(text(at.clone().greater_equal(n.clone()), true), "T.bool(False)");
    assert_eq!(text((i.clone() * 16).less(n.clone()), true), "T.bool(True)");
    assert_eq!(text((at.clone() * 2).less(n.clone() * 2), true), "T.bool(True)");
    assert_eq!(text((at.clone() + 2).less(n.clone() + 1), true), "i * 16 + j + 1 < n");
    assert_eq!(text(at.clone().less(n.clone()), false), "T.bool(False)");
    assert_eq!(text((at.clone() + 3).greater_equal(n.clone()), false), "T.bool(True)");
    // Nothing is left of it.
    assert_eq!(simplify(&guard, &ranges).to_string(), "i * 16 + j < n");
}

#[test]
fn the_second_part_of_a_condition_is_asked_where_the_first_one_holds() {
    let (i, _, n, ranges) = open();
    let both = i.clone().less(n.clone()).and((i.clone() + 2).less(n.clone() + 3));
    assert_eq!(simplify(&both, &ranges).to_string(), "i < n");
    let either = i.clone().less(n.clone()).or(i.clone().greater_equal(n.clone()));
    assert_eq!(simplify(&either, &ranges).to_string(), "T.bool(True)");
    let choice = Expr::if_then_else(
        i.clone().less(n.clone()),
        Expr::if_then_else(i.clone().greater_equal(n.clone()), Expr::i32(1), Expr::i32(2)),
        Expr::if_then_else(i.clone().less(n + 5), i.clone(), Expr::i32(3)),
    );
    assert_eq!(
        simplify(&choice, &ranges).to_string(),
        "T.if_then_else(i < n, 2, T.if_then_else(i < n + 5, i, 3))"
    );
}

fn value(e: &Expr, env: &HashMap<Var, i64>) -> i64 {
    match e.kind() {
        ExprKind::Int(v) => *v,
        ExprKind::Var(v) => env[v],
        ExprKind::Not(a) => i64::from(value(a, env) == 0),
        ExprKind::Binary(op, a, b) => {
            eval_int(*op, value(a, env), value(b, env), a.dtype()).expect("by one")
        }
        _ => panic!("{e}"),
    }
}

const COMPARES: [BinOp; 6] = [BinOp::Eq, BinOp::Ne, BinOp::Lt, BinOp::Le, BinOp::Gt, BinOp::Ge];

fn condition(vars: [Var; 3]) -> impl Strategy<Value = Expr> {
    let sum = move |by: [i64; 4]| {
        let terms = vars.iter().zip(by).map(|(v, k)| v.expr() * k);
        terms.fold(Expr::i32(by[3] as i32), |sum, term| sum + term)
    };
    let sum = prop::array::uniform4(-3i64..=3).prop_map(sum);
    (0..COMPARES.len(), sum.clone(), sum).prop_map(|(op, a, b)| Expr::binary(COMPARES[op], a, b))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Under guards a condition keeps its value wherever they hold.
    #[test]
    fn keeps_conditions_where_guards_hold(
        (vars, guards, asked) in {
            let vars = ["i", "j", "k"].map(Var::index);
            let guards = prop::collection::vec((condition(vars.clone()), any::<bool>()), 1..=3);
            (Just(vars.clone()), guards, condition(vars))
        }
    ) {
        let mut ranges = Ranges::default();
        vars.iter().for_each(|v| ranges.bind(v, Interval::new(-2, 4)));
        for (g, holds) in &guards {
            ranges.enter_guard(g, *holds);
        }
        let new = simplify(&asked, &ranges);
        for at in 0..343 {
            let env = [at % 7, at / 7 % 7, at / 49].map(|v| v - 2);
            let env: HashMap<Var, i64> = vars.iter().cloned().zip(env).collect();
            if guards.iter().all(|(g, holds)| (value(g, &env) != 0) == *holds) {
                prop_assert_eq!(value(&new, &env) != 0, value(&asked, &env) != 0, "{} at {:?}", new, env);
            }
        }
    }
}

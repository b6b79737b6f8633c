//! Simpler index expressions, against the values of the original ones at every point.

mod affine;
mod bind;
mod guard;
mod interval;
mod linear;
mod values;
mod wide;

use proptest::prelude::*;
use tilewright_ir::hash::HashMap;
use tilewright_ir::index::{Interval, Ranges, simplify};
use tilewright_ir::scalar::{eval_int, wrap};
use tilewright_ir::{BinOp, DType, Expr, ExprKind, Var};

fn vars() -> (Vec<Expr>, Ranges) {
    let mut ranges = Ranges::default();
    let vars = [("i", 6), ("j", 4), ("k", 5)].map(|(name, extent)| {
        let v = Var::index(name);
        ranges.bind(&v, Interval::new(0, extent - 1));
        v.expr()
    });
    (vars.to_vec(), ranges)
}

#[track_caller]
fn check(build: impl Fn(&Expr, &Expr, &Expr) -> Expr, expected: &str) {
    let (v, ranges) = vars();
    assert_eq!(simplify(&build(&v[0], &v[1], &v[2]), &ranges).to_string(), expected);
}

#[test]
fn splits_quotients_and_remainders() {
    check(|i, j, k| (i * 20 + j * 5 + k).floordiv(5), "i * 4 + j");
    check(|i, j, k| (i * 20 + j * 5 + k).floormod(20), "j * 5 + k");
    check(|i, j, k| (i * 20 + j * 5 + k).floordiv(20).floormod(6), "i");
    check(|i, _, _| i.clone().floordiv(4) * 4 + i.clone().floormod(4), "i");
    check(|i, j, _| (i * 3 + j).floordiv(7) * 7 + moved(i, j), "i * 3 + j");
    check(|i, j, _| (i * 3 + j).floordiv(7) * 14 + moved(i, j) * 2, "i * 6 + j * 2");
    let other = "(i * 2 + j) // 7 * 7 + (j - i * 4) % 7";
    check(|i, j, _| (i * 2 + j).floordiv(7) * 7 + moved(i, j), other);
    check(|i, j, _| (i * 4 + j).floordiv(2).floordiv(3), "(i * 4 + j) // 6");
    check(|i, j, _| (i * 3 + j.clone().floordiv(2)).floordiv(4), "(i * 6 + j) // 8");
    check(|i, j, _| (i * 4 + j * 2 + 1).floordiv(8), "(i * 2 + j) // 4");
    check(|i, j, _| (i * 4 + j * 2 + 1).floormod(8), "(i * 2 + j) % 4 * 2 + 1");
    check(|i, j, _| (i * 4 + j).floordiv(8), "i // 2");
    check(|i, j, _| (i * 4 + j).floormod(8), "i % 2 * 4 + j");
    check(|i, _, _| (i - 6).floordiv(6), "-1");
    check(|i, _, _| (i - 6).floormod(6), "i");
}

fn moved(i: &Expr, j: &Expr) -> Expr {
    (j.clone() - i.clone() * 4).floormod(7)
}

#[test]
fn a_split_of_a_split_comes_back_together() {
    check(
        |i, j, k| {
            let flat = i * 20 + j * 5 + k;
            let (a, b) = (flat.clone().floordiv(12), flat.clone().floordiv(3).floormod(4));
            a * 12 + b * 3 + flat.floormod(3)
        },
        "i * 20 + j * 5 + k",
    );
    check(
        |i, j, k| {
            let flat = i * 20 + j * 5 + k;
            let (a, b) = (flat.clone().floordiv(12), flat.clone().floormod(12).floordiv(3));
            a * 24 + b * 6 + flat.floormod(3) * 2
        },
        "i * 40 + j * 10 + k * 2",
    );
}

#[test]
fn digits_that_are_widened_come_back_together() {
    let wide = |e: Expr| e.cast(DType::I64);
    check(
        |i, j, k| {
            let flat = i * 20 + j * 5 + k;
            wide(flat.clone().floordiv(12)) * 24 + wide(flat.floormod(12)) * 2
        },
        "T.Cast(\"int64\", i * 20 + j * 5 + k) * T.int64(2)",
    );
    // Also where a number was added to the first one.
    check(
        |i, j, k| {
            let flat = i * 20 + j * 5 + k;
            wide(flat.clone().floordiv(12) + 7) * 24 + wide(flat.floormod(12)) * 2
        },
        "T.Cast(\"int64\", i * 20 + j * 5 + k) * T.int64(2) + T.int64(168)",
    );
    // Two different digits do not.
    check(
        |i, _, _| wide(i.clone().floordiv(4)) * 8 + wide(i.clone().floormod(3)) * 2,
        "T.Cast(\"int64\", i // 4) * T.int64(8) + T.Cast(\"int64\", i % 3) * T.int64(2)",
    );
}

#[test]
fn decides_conditions_and_neutral_terms() {
    check(|i, _, _| i.clone().less(6), "T.bool(True)");
    check(|i, _, _| (i + 2).greater_equal(3), "i >= 1");
    check(|i, j, _| (i * 2 + j).less(i + 3), "i + j < 3");
    check(|i, j, _| i.clone().less(9).and(j.clone().less(3)), "j < 3");
    check(|i, j, _| (i - i) * 7 + j, "j");
    check(|i, _, _| Expr::i32(5) - i, "5 - i");
    check(|i, j, _| Expr::binary(BinOp::Min, i + 4, j.clone()), "j");
}

#[test]
fn a_sum_that_may_wrap_is_not_divided() {
    let (v, ranges) = vars();
    let big = &v[0] * i64::from(i32::MAX / 2);
    let e = (big + 7).floordiv(7);
    assert!(simplify(&e, &ranges).ptr_eq(&e) || simplify(&e, &ranges).to_string() == e.to_string());
    let free = Var::index("n").expr();
    let e = (free * 4).floordiv(4);
    assert_eq!(simplify(&e, &ranges).to_string(), "n * 4 // 4");
}

/// The value of an integer or `bool` expression; `None` where it divides by zero.
fn eval(e: &Expr, env: &HashMap<Var, i64>) -> Option<i64> {
    Some(match e.kind() {
        ExprKind::Int(v) => *v,
        ExprKind::Var(v) => env[v],
        ExprKind::Binary(op, a, b) => eval_int(*op, eval(a, env)?, eval(b, env)?, a.dtype())?,
        ExprKind::Not(a) => i64::from(eval(a, env)? == 0),
        ExprKind::Cast(a) => wrap(eval(a, env)?, e.dtype()),
        ExprKind::Select(c, t, f) | ExprKind::IfThenElse(c, t, f) => {
            if eval(c, env)? != 0 {
                eval(t, env)?
            } else {
                eval(f, env)?
            }
        }
        _ => panic!("{e}"),
    })
}

const OPS: [BinOp; 9] = [
    BinOp::Add,
    BinOp::Sub,
    BinOp::Mul,
    BinOp::FloorDiv,
    BinOp::FloorMod,
    BinOp::TruncDiv,
    BinOp::TruncMod,
    BinOp::Min,
    BinOp::Max,
];
const COMPARES: [BinOp; 6] = [BinOp::Eq, BinOp::Ne, BinOp::Lt, BinOp::Le, BinOp::Gt, BinOp::Ge];

/// Arithmetic over three variables; constants are likely, so that division is by one.
fn arithmetic(vars: [Var; 3], dtype: DType) -> impl Strategy<Value = Expr> {
    let leaf = prop_oneof![
        3 => (0usize..3).prop_map(move |v| vars[v].expr()),
        2 => (-3i64..=12).prop_map(move |c| Expr::int(c, dtype)),
    ];
    leaf.prop_recursive(5, 40, 3, move |inner| {
        let constant = (1i64..=12).prop_map(move |c| Expr::int(c, dtype));
        let pair = (0..OPS.len(), inner.clone(), inner.clone());
        let by = (0..7usize, inner.clone(), constant);
        let choice = (0..COMPARES.len(), inner.clone(), inner.clone(), inner);
        prop_oneof![
            2 => pair.prop_map(|(op, a, b)| Expr::binary(OPS[op], a, b)),
            4 => by.prop_map(|(op, a, b)| Expr::binary(OPS[op], a, b)),
            1 => choice.prop_map(|(op, a, b, c)| {
                Expr::if_then_else(Expr::binary(COMPARES[op], a.clone(), b), a, c)
            }),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Eight bits make wrap-around common; the machine's value must stay everywhere.
    #[test]
    fn keeps_the_value_at_every_point(
        (e, vars, mins, extents, compare) in (0..2usize).prop_flat_map(|wide| {
            let dtype = [DType::I8, DType::I32][wide];
            let vars = ["i", "j", "k"].map(|n| Var::new(n, dtype));
            let e = arithmetic(vars.clone(), dtype);
            let mins = [-3i64..=2, -3..=2, -3..=2];
            (e, Just(vars), mins, [1i64..=6, 1..=6, 1..=6], 0..COMPARES.len() + 3)
        })
    ) {
        let e = match COMPARES.get(compare) {
            Some(op) => Expr::binary(*op, e.clone(), Expr::int(compare as i64, e.dtype())),
            None => e,
        };
        let mut ranges = Ranges::default();
        for (n, v) in vars.iter().enumerate() {
            let (lo, n) = (i128::from(mins[n]), i128::from(extents[n]));
            ranges.bind(v, Interval::new(lo, lo + n - 1));
        }
        let s = simplify(&e, &ranges);
        prop_assert_eq!(s.dtype(), e.dtype());
        let spans: Vec<_> = (0..3).map(|n| mins[n]..mins[n] + extents[n]).collect();
        for i in spans[0].clone() {
            for j in spans[1].clone() {
                for k in spans[2].clone() {
                    let env: HashMap<Var, i64> = vars.iter().cloned().zip([i, j, k]).collect();
                    let Some(want) = eval(&e, &env) else { continue };
                    prop_assert_eq!(eval(&s, &env), Some(want), "{} -> {} at {:?}", e, s, env);
                }
            }
        }
    }

    /// Flattening an index and splitting it for another shape, again and again, keeps the
    /// position in row-major order.
    #[test]
    fn relabelling_keeps_the_flat_position(
        (factors, cuts) in (
            prop::collection::vec(1i64..=4, 1..=5),
            prop::collection::vec(prop::collection::vec(any::<bool>(), 5), 1..=3),
        )
    ) {
        let vars: Vec<Var> = factors.iter().map(|_| Var::index("v")).collect();
        let mut ranges = Ranges::default();
        vars.iter().zip(&factors).for_each(|(v, e)| ranges.bind(v, Interval::new(0, i128::from(e - 1))));
        let flatten = |at: &[Expr], shape: &[i64]| {
            at.iter().zip(shape).fold(Expr::i32(0), |sum, (i, e)| sum * *e + i)
        };
        let at: Vec<Expr> = vars.iter().map(Var::expr).collect();
        let first = flatten(&at, &factors);
        let mut flat = first.clone();
        for cut in cuts {
            // The next shape merges neighbouring factors, in another order.
            let mut shape = vec![1];
            for (f, cut) in factors.iter().rev().zip(cut) {
                if cut { shape.push(*f) } else { *shape.last_mut().expect("one") *= f }
            }
            let at: Vec<Expr> = (0..shape.len())
                .map(|n| {
                    let inner: i64 = shape[n + 1..].iter().product();
                    simplify(&flat.clone().floordiv(inner).floormod(shape[n]), &ranges)
                })
                .collect();
            flat = flatten(&at, &shape);
        }
        let difference = Expr::binary(BinOp::Sub, flat, first);
        prop_assert_eq!(simplify(&difference, &ranges).as_int(), Some(0), "{}", difference);
    }
}

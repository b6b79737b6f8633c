//! Unions of many parts: what would take long is declined with the reason, and the rest is exact.

use proptest::prelude::*;
use tilewright_ir::{Expr, Var};
use tilewright_polyhedral::{Engine, Reason, Set};

const SIDE: i64 = 40;

/// The union of boxes, each by its corner, in as many dimensions as the corners have.
fn boxes(engine: &Engine, vars: &[Var], corners: &[Vec<i64>], side: i64) -> Set {
    let all = engine.box_of(&vars.iter().map(|v| (v.clone(), SIDE)).collect::<Vec<_>>());
    let inside = |corner: &Vec<i64>| {
        let axes = vars.iter().zip(corner);
        axes.fold(Expr::bool(true), |cond, (v, c)| {
            cond.and(v.expr().greater_equal(*c)).and(v.expr().less(*c + side))
        })
    };
    let any = corners.iter().map(inside).reduce(|a, b| a.or(b)).expect("a corner");
    all.with_guard(&any).to_set().expect("it is affine")
}

fn vars(dims: usize) -> Vec<Var> {
    (0..dims).map(|k| Var::index(format!("x{k}"))).collect()
}

/// Corners of boxes that are far apart on the first axis, and never in line on the others.
fn scattered(parts: usize, dims: usize) -> Vec<Vec<i64>> {
    let corner = |k: usize| (0..dims).map(|d| ((k * (2 * d + 3) + d) % 37) as i64).collect();
    (0..parts).map(corner).collect()
}

#[test]
fn operations_on_very_many_parts_are_declined_with_the_reason() {
    let engine = Engine::new();
    let many = |dims: usize, parts: usize| {
        let vars = vars(dims);
        let shifted: Vec<Vec<i64>> =
            scattered(parts, dims).iter().map(|c| c.iter().map(|x| x / 2).collect()).collect();
        (boxes(&engine, &vars, &scattered(parts, dims), 2), boxes(&engine, &vars, &shifted, 3))
    };
    let declined = |(a, b): (Set, Set)| {
        let reasons = [a.intersect(&b).err(), a.subtract(&b).err()];
        reasons.map(|e| matches!(e.map(|e| e.reason().clone()), Some(Reason::ManyParts { .. })))
    };
    assert_eq!(declined(many(9, 60)), [true; 2]);
    assert_eq!(declined(many(2, 60)), [false; 2]);
    let (a, b) = many(9, 60);
    assert!(a.subtract(&b).err().is_some_and(|e| e.to_string().contains("in 9 dimensions")));
    // One that is declined proves nothing.
    assert!(!a.is_within(&b) && !a.is_disjoint(&b).is_yes());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn what_is_answered_is_right(
        a in proptest::collection::vec(proptest::collection::vec(0i64..36, 2), 1..24),
        b in proptest::collection::vec(proptest::collection::vec(0i64..36, 2), 1..24),
        points in proptest::collection::vec((0i64..SIDE, 0i64..SIDE), 32),
    ) {
        let engine = Engine::new();
        let vars = vars(2);
        let (x, y) = (boxes(&engine, &vars, &a, 4), boxes(&engine, &vars, &b, 5));
        let (both, rest) = (x.intersect(&y), x.subtract(&y));
        let (Ok(both), Ok(rest)) = (both, rest) else {
            return Err(TestCaseError::fail("few dimensions are not declined"));
        };
        for (p, q) in points {
            let has = |s: &Set| {
                let point = engine.domain_of(&[], &[]);
                let at = [(0, p), (1, q)];
                let point = at.iter().fold(point, |d, (k, v)| {
                    d.with_var(&vars[*k], &tilewright_ir::Range::point(Expr::i32(*v as i32)))
                });
                point.to_set().is_ok_and(|point| point.is_within(s))
            };
            let covers = |corners: &[Vec<i64>], side: i64| {
                corners.iter().any(|c| (c[0]..c[0] + side).contains(&p) && (c[1]..c[1] + side).contains(&q))
            };
            let (in_a, in_b) = (covers(&a, 4), covers(&b, 5));
            prop_assert_eq!(has(&both), in_a && in_b);
            prop_assert_eq!(has(&rest), in_a && !in_b);
        }
    }
}

//! Questions about domains against brute force, and what is not affine.

use crate::common::*;
use proptest::prelude::*;
use tilewright_ir::{Buffer, DType, Expr, Range, Var};
use tilewright_polyhedral::{Proof, Reason, Witness, cost};

fn point_of(w: &Witness, case: &Case) -> Vec<i64> {
    case.vars().iter().map(|v| w.get(v).expect("a value for every variable")).collect()
}

proptest! {
    #![proptest_config(config(400))]

    #[test]
    fn prove_agrees_with_brute_force((case, cond) in with(condition)) {
        let points = case.points();
        let holds = points.iter().all(|p| value(&cond, p) != 0);
        match case.domain().prove(&cond) {
            Proof::Yes => prop_assert!(holds),
            Proof::No { witness } => {
                let p = point_of(&witness, &case);
                prop_assert!(points.contains(&p) && value(&cond, &p) == 0, "{witness}");
            }
            Proof::Unknown(u) => prop_assert!(false, "{u}"),
        }
    }

    #[test]
    fn equal_agrees_with_brute_force((case, (a, b)) in with(|n| (index(n), index(n)).boxed())) {
        let same = case.points().iter().all(|p| value(&a, p) == value(&b, p));
        match case.domain().equal(&a, &b) {
            Proof::Yes => prop_assert!(same),
            Proof::No { witness } => {
                let p = point_of(&witness, &case);
                prop_assert!(value(&a, &p) != value(&b, &p));
            }
            Proof::Unknown(u) => prop_assert!(false, "{u}"),
        }
    }

    #[test]
    fn bounds_are_the_extremes((case, e) in with(index)) {
        let values: Vec<i64> = case.points().iter().map(|p| value(&e, p)).collect();
        let expected = (values.iter().min().copied(), values.iter().max().copied());
        match case.domain().bounds(&e) {
            Ok(bounds) => prop_assert_eq!(bounds, expected),
            Err(u) => {
                prop_assert_eq!(u.reason(), &Reason::Empty);
                prop_assert!(values.is_empty());
            }
        }
    }

    #[test]
    fn simplify_keeps_values_and_never_grows((case, e) in with(index)) {
        let s = case.domain().simplify(&e);
        prop_assert!(cost(&s) <= cost(&e), "{} became {}", e, s);
        prop_assert_eq!(s.dtype(), e.dtype());
        for p in case.points() {
            prop_assert_eq!(value(&e, &p), value(&s, &p), "{} became {} at {:?}", e, s, p);
        }
        let again = case.domain().simplify(&e);
        prop_assert_eq!(s.to_string(), again.to_string());
    }

    #[test]
    fn simplify_keeps_conditions((case, e) in with(condition)) {
        let s = case.domain().simplify(&e);
        prop_assert!(cost(&s) <= cost(&e), "{} became {}", e, s);
        let points = case.points();
        for p in &points {
            prop_assert_eq!(value(&e, p), value(&s, p), "{} became {} at {:?}", e, s, p);
        }
        if !points.is_empty() && points.iter().all(|p| value(&e, p) != 0) {
            prop_assert!(s.is_true(), "{}", s);
        }
        if points.iter().all(|p| value(&e, p) == 0) {
            prop_assert!(s.is_false(), "{}", s);
        }
    }

    #[test]
    fn empty_agrees_with_brute_force(
        (case, (a, b)) in with(|n| (condition(n), condition(n)).boxed())
    ) {
        let points = case.points();
        let apart = points.iter().all(|p| value(&a, p) == 0 || value(&b, p) == 0);
        prop_assert_eq!(case.domain().is_empty().is_yes(), points.is_empty());
        let inner = case.domain().with_guard(&a).with_guard(&b);
        prop_assert_eq!(inner.is_empty().is_yes(), apart);
    }
}

fn n_at_least_one(n: &Var) -> Expr {
    n.expr().greater_equal(1)
}

#[test]
fn simplification_reads_as_people_write() {
    let e = engine();
    let (i, j, k) = (Var::index("i"), Var::index("j"), Var::index("k"));
    let d = e.box_of(&[(i.clone(), 4), (j.clone(), 8), (k.clone(), 16)]);
    let flat = &i * 128 + &j * 16 + &k;
    let cases: Vec<(Expr, &str)> = vec![
        (flat.clone().floordiv(128), "i"),
        (flat.clone().floormod(128).floordiv(16), "j"),
        (flat.clone().floormod(16), "k"),
        (flat.clone().floordiv(16), "i * 8 + j"),
        (flat.clone().floordiv(32), "i * 4 + j // 2"),
        (flat.clone().floormod(32), "j % 2 * 16 + k"),
        (k.expr().floordiv(4) * 4 + k.expr().floormod(4), "k"),
        (&k - k.expr().floordiv(4) * 4, "k % 4"),
        ((&k - 1).floordiv(4) + 1, "(k + 3) // 4"),
        ((&k + 2).floordiv(8) * 8 + (&k + 2).floormod(8) - 2, "k"),
        (i.expr().min(10) + j.expr().max(-1), "i + j"),
        (Expr::select(i.expr().less(4), j.expr(), k.expr()), "j"),
        (i.expr().floordiv(4), "0"),
        (i.expr().floordiv(4).floordiv(2) + &j, "j"),
    ];
    for (before, after) in cases {
        assert_eq!(d.simplify(&before).to_string(), after, "{before}");
    }
    let narrowed = d.with_guard(&i.expr().greater_equal(3));
    assert_eq!(narrowed.simplify(&flat.floordiv(128)).to_string(), "3");
}

#[test]
fn conditions_take_their_shortest_form() {
    let e = engine();
    let (i, j) = (Var::index("i"), Var::index("j"));
    let d = e.box_of(&[(i.clone(), 4), (j.clone(), 4)]);
    let flat = &i * 4 + &j;
    let cases: Vec<(Expr, &str)> = vec![
        (flat.clone().less(14), "i < 3 or j < 2"),
        (flat.clone().greater_equal(14), "i == 3 and j >= 2"),
        (flat.clone().less(12), "i < 3"),
        (flat.clone().less(16), "T.bool(True)"),
        (flat.greater_equal(16), "T.bool(False)"),
        (i.expr().less(2).and(i.expr().less(3)), "i < 2"),
        (i.expr().less(2).or(i.expr().less(3)), "i < 3"),
        (i.expr().floordiv(2).equal(0), "i < 2"),
        (i.expr().greater_equal(1).and(i.expr().less_equal(1)), "i == 1"),
        (!i.expr().less(1), "i >= 1"),
    ];
    for (before, after) in cases {
        assert_eq!(d.simplify(&before).to_string(), after, "{before}");
    }
}

#[test]
fn symbolic_sizes_are_universal() {
    let e = engine();
    let (n, i) = (Var::index("n"), Var::index("i"));
    let d = e.domain_of(&[(i.clone(), Range::upto(n.expr()))], &[]);
    assert!(d.prove(&i.expr().less(&n)).is_yes());
    assert!(d.prove(&n.expr().greater(0)).is_yes());
    assert_eq!(d.prove(&i.expr().less(8)).to_string(), "no, at i=8, n=9");
    let assumed = e.domain().with_guard(&n.expr().greater_equal(0).and(n.expr().less(8)));
    assert_eq!(assumed.simplify(&n.expr().floordiv(8)).to_string(), "0");
    let split = e.domain_of(&[(i.clone(), Range::upto((&n + 3).floordiv(4)))], &[]);
    assert!(split.prove(&(&i * 4).less(&n)).is_yes());
    assert_eq!(split.prove(&(&i * 4 + 3).less(&n)).to_string(), "no, at i=0, n=1");
}

#[test]
fn products_of_variables_are_bounded() {
    let e = engine();
    let [n, m, i, j] = ["n", "m", "i", "j"].map(Var::index);
    let ranges = [(i.clone(), Range::upto(n.expr())), (j.clone(), Range::upto(m.expr()))];
    let d = e.domain_of(&ranges, &[]);
    let flat = i.expr() * &m + &j;
    assert!(d.prove(&flat.clone().less(n.expr() * &m)).is_yes());
    assert!(d.prove(&flat.clone().greater_equal(0)).is_yes());
    assert!(d.equal(&((&n + 1) * &m), &(n.expr() * &m + &m)).is_yes());
    assert_eq!(d.simplify(&flat.clone().floordiv(m.expr())).to_string(), "i");
    assert_eq!(d.simplify(&flat.clone().floormod(m.expr())).to_string(), "j");
    // A refutation is found by evaluation.
    let no = d.prove(&(n.expr() * &m).less(&n + &m));
    let w = no.witness().expect("3 * 3 >= 3 + 3");
    let (a, b) = (w.get(&n).unwrap_or(0), w.get(&m).unwrap_or(0));
    assert!(a * b >= a + b, "{w}");
}

#[test]
fn quotients_and_remainders_by_variables() {
    let e = engine();
    let (n, i) = (Var::index("n"), Var::index("i"));
    let d = e.domain().with_guard(&n_at_least_one(&n).and(i.expr().greater_equal(0)));
    let (q, r) = (i.expr().floordiv(n.expr()), i.expr().floormod(n.expr()));
    assert!(d.prove(&r.clone().less(&n)).is_yes());
    assert!(d.prove(&q.clone().less_equal(&i)).is_yes());
    assert!(d.equal(&(q * &n + r), &i.expr()).is_yes());
    // A flat index, taken apart.
    let m = Var::index("m");
    let sizes = n.expr().greater_equal(0).and(m.expr().greater_equal(0));
    let d = e.domain().with_guard(&sizes).with_var(&i, &Range::upto(n.expr() * &m));
    let row = i.expr().floordiv(m.expr());
    assert!(d.prove(&row.clone().less(&n)).is_yes() && d.proves(&row.clone().greater_equal(0)));
    assert!(d.prove(&i.expr().floormod(m.expr()).less(&m)).is_yes());
    let no = d.prove(&row.less(&n - 1));
    assert!(no.witness().is_some_and(|w| w.get(&i) >= Some(0)), "{no}");
}

#[test]
fn elements_of_buffers_are_unknowns() {
    let e = engine();
    let i = Var::index("i");
    let d = e.box_of(&[(i.clone(), 8)]);
    let a = Buffer::with_extents("A", &[8], DType::I32);
    let b = Buffer::with_extents("B", &[8], DType::U8);
    let (x, y) = (a.load([i.expr()]), b.load([i.expr()]).cast(DType::I32));
    // Whatever the value, and by type.
    assert!(d.equal(&(&x + &i - &x), &i.expr()).is_yes());
    assert!(d.prove(&y.clone().less(256).and(y.clone().greater_equal(0))).is_yes());
    // Facts about it, while they last.
    assert!(d.with_guard(&x.clone().less(5)).prove(&x.clone().less(6)).is_yes());
    // It depends.
    match d.prove(&x.clone().less(5)) {
        Proof::Unknown(u) => {
            assert_eq!(u.to_string(), "depends on `A[i]`, which is not affine");
        }
        other => panic!("{other}"),
    }
    // It does not depend: no value makes it true at i = 7.
    let cond = i.expr().less(7).and(y.clone().less(256));
    assert_eq!(d.prove(&cond).to_string(), "no, at i=7");
    let never = i.expr().less(7).or(y.greater(300));
    assert_eq!(d.prove(&never).to_string(), "no, at i=7");
}

#[test]
fn undef_is_equal_to_nothing() {
    let d = engine().domain();
    let (u, v) = (Expr::undef(DType::I32), Expr::undef(DType::I32));
    assert!(matches!(d.equal(&u, &v), Proof::Unknown(_)));
    assert!(matches!(d.prove(&(&u - &v).equal(0)), Proof::Unknown(_)));
    assert!(d.equal(&(Expr::i32(0) * u), &Expr::i32(0)).is_yes());
}

#[test]
fn narrow_and_unsigned_arithmetic_wraps() {
    let e = engine();
    let (a, b) = (Var::new("a", DType::U8), Var::new("b", DType::U8));
    let d = e.domain();
    let sum = (a.expr() + &b).cast(DType::I32);
    let wide = a.expr().cast(DType::I32) + b.expr().cast(DType::I32);
    assert_eq!(d.equal(&sum, &wide).to_string(), "no, at a=1, b=255");
    let small = d.with_guard(&a.expr().less(100)).with_guard(&b.expr().less(100));
    assert!(small.equal(&sum, &wide).is_yes());
    let n = Var::new("n", DType::I64);
    let back = n.expr().cast(DType::I32).cast(DType::I64);
    assert!(d.equal(&back, &n.expr()).is_no());
    let fits = d.with_guard(&n.expr().less(1000).and(n.expr().greater_equal(0)));
    assert_eq!(fits.simplify(&back).to_string(), "n");
}

#[test]
fn witnesses_are_values_of_their_types() {
    let x = Var::index("x");
    let d = engine().domain();
    // 2^31 would be a solution, and is no int32.
    assert!(d.prove(&(&x - i64::from(i32::MAX)).not_equal(1)).is_yes());
    let no = d.prove(&(&x - i64::from(i32::MAX)).not_equal(0));
    assert_eq!(no.to_string(), "no, at x=2147483647");
}

#[test]
fn vectors_are_asked_lane_by_lane() {
    let e = engine();
    let i = Var::index("i");
    let d = e.box_of(&[(i.clone(), 4)]);
    let v = Expr::ramp(&i * 4, Expr::i32(1), 4);
    assert!(d.equal(&v.clone().floordiv(4), &Expr::broadcast(i.expr(), 4)).is_yes());
    assert!(d.prove(&v.clone().less(16)).is_yes());
    assert_eq!(d.prove(&v.less(14)).to_string(), "no, at i=3, lane=2");
}

#[test]
fn exhausted_quota_is_unknown() {
    let e = engine();
    let vars: Vec<Var> = (0..6).map(|i| Var::index(format!("x{i}"))).collect();
    let d = e.box_of(&vars.iter().map(|v| (v.clone(), 97)).collect::<Vec<_>>());
    let sum = vars.iter().fold(Expr::i32(0), |s, v| (s * 7 + v.expr()).floormod(31));
    let cond = sum.less(30).or(vars[0].expr().floormod(5).equal(vars[1].expr().floormod(7)));
    match d.with_quota(50).prove(&cond) {
        Proof::Unknown(u) => {
            assert_eq!(u.reason(), &Reason::Quota { operations: 50 });
            assert_eq!(u.to_string(), "not decided within 50 operations");
        }
        other => panic!("{other}"),
    }
    // The engine goes on working.
    assert!(d.prove(&vars[0].expr().less(97)).is_yes());
}

#[test]
fn oversized_expressions_are_unknown() {
    let d = engine().domain();
    let x = Var::index("x");
    let mut deep = x.expr();
    for k in 0..2000 {
        deep = (deep + 1).floormod(1000 + k).max(-k);
    }
    assert!(matches!(d.prove(&deep.clone().less(5000)), Proof::Unknown(_)));
    assert_eq!(cost(&d.simplify(&deep)), cost(&deep));
    let huge = (0..8).fold(x.expr().cast(DType::I64), |e, _| e * i64::MAX);
    match d.prove(&huge.less(0)) {
        Proof::Unknown(u) => assert_eq!(u.reason(), &Reason::TooLarge),
        other => panic!("{other}"),
    }
}

#[test]
fn the_wrong_kind_of_expression_is_named() {
    let d = engine().domain();
    match d.prove(&Var::new("f", DType::F32).expr()) {
        Proof::Unknown(u) => assert_eq!(u.to_string(), "`f` is not a condition"),
        other => panic!("{other}"),
    }
    let empty = d.with_guard(&Expr::bool(false));
    assert_eq!(empty.bounds(&Var::index("i").expr()).unwrap_err().to_string(), "the set is empty");
}

#[test]
fn what_varies_with_a_variable_goes_with_it() {
    let (i, k) = (Var::index("i"), Var::index("k"));
    let d = engine().box_of(&[(i.clone(), 4), (k.clone(), 3)]);
    let quotient = Expr::i32(3).floordiv(&k);
    let set = d.with_guard(&i.expr().less(quotient)).to_set().expect("a set");
    let rows = set.project(std::slice::from_ref(&i)).expect("a projection");
    assert!(!rows.is_exact());
    let bounds = rows.domain().tight_range(&i, &[]).expect("bounds");
    assert!(bounds.min.as_int().is_some() && bounds.extent.as_int().is_some(), "{bounds:?}");
}

//! Answers that are remembered: which questions are one, and that nothing else depends on them.

use std::time::{Duration, Instant};

use tilewright_ir::{DType, Expr, Var};
use tilewright_polyhedral::{Domain, Engine, Questions, budget};

/// `0 <= i < n` and `0 <= j < m` with `4*i + j < 40`.
fn tiles(i: &Var, j: &Var) -> Domain {
    tiles_in(&Engine::new(), i, j)
}

fn tiles_in(engine: &Engine, i: &Var, j: &Var) -> Domain {
    let tiles = engine.box_of(&[(i.clone(), 12), (j.clone(), 4)]);
    tiles.with_guard(&(i.expr() * 4 + j).less(40))
}

/// `i + j + 20` as a domain writes it.
fn written(d: &Domain, i: Expr, j: Expr) -> String {
    d.simplify(&(i * 4 + j * 4 + 80).floordiv(4)).to_string()
}

/// Whether sets are made for the question that some work asks. Those that other threads make count too.
fn makes_sets(ask: impl Fn()) -> bool {
    let before = Questions::so_far().by_sets;
    ask();
    Questions::so_far().by_sets > before
}

#[test]
fn questions_that_differ_in_names_are_one() {
    let [i, j, k, l] = ["i", "j", "k", "l"].map(Var::index);
    assert_eq!(tiles(&i, &j).bounds(&(i.expr() + &j)), Ok((Some(0), Some(12))));
    // Asked until no other test makes sets at the same time.
    let start = Instant::now();
    while makes_sets(|| {
        let [k, l] = ["k", "l"].map(Var::index);
        assert_eq!(tiles(&k, &l).bounds(&(k.expr() + &l)), Ok((Some(0), Some(12))));
    }) {
        assert!(start.elapsed() < Duration::from_secs(60), "it is another question");
    }
    // Questions that are not one have answers of their own.
    assert_eq!(tiles(&k, &l).bounds(&(k.expr() - &l)), Ok((Some(-3), Some(9))));
    assert_eq!(written(&tiles(&i, &j), i.expr(), j.expr()), "i + j + 20");
    assert_eq!(written(&tiles(&k, &l), k.expr(), l.expr()), "k + l + 20");
    // What is written depends on the order of variables.
    assert_eq!(written(&tiles(&l, &k), l.expr(), k.expr()), "k + l + 20");
    let [v, w] = ["v", "w"].map(|name| Var::new(name, DType::I64));
    let narrow = |v: &Var| v.expr().cast(DType::I32);
    assert_eq!(
        written(&tiles(&i, &w), i.expr(), narrow(&w)),
        "T.Cast(\"int32\", T.Cast(\"int64\", i) + w + T.int64(20))"
    );
    let x = Var::index("x");
    assert_eq!(
        written(&tiles(&v, &x), narrow(&v), x.expr()),
        "T.Cast(\"int32\", v + T.Cast(\"int64\", x) + T.int64(20))"
    );
    // A sum of data might wrap, and is left as it is.
    let engine = Engine::new().with_data([j.clone()]);
    let data = tiles_in(&engine, &i, &j);
    assert_eq!(written(&data, i.expr(), j.expr()), "(i * 4 + j * 4 + 80) // 4");
    // Questions about sets of which no list of conditions is known are asked each time.
    let set = tiles(&i, &j).to_set().expect("exact").domain();
    for _ in 0..100 {
        assert!(makes_sets(|| assert_eq!(set.bounds(&i.expr()), Ok((Some(0), Some(9))))));
    }
}

#[test]
fn answers_come_in_the_names_of_who_asks_and_cost_the_same_again() {
    let answers = |i: &Var, j: &Var| {
        let flat = || i.expr() * 4 + j;
        let d = tiles(i, j);
        budget::within("asking", u64::MAX, || {
            let no = d.prove(&flat().less(39));
            let proof = no.witness().expect("39 is reached").values.clone();
            assert_eq!(proof, [(i.clone(), 9), (j.clone(), 3)]);
            assert!(d.proves(&(flat() * 3 - i).less(120)));
            assert_eq!(d.bounds(&(flat() - i)), Ok((Some(0), Some(30))));
            d.simplify(&(flat() + 80).floordiv(4)).to_string()
        })
    };
    let names = |a: &str, b: &str| [a, b].map(Var::index);
    let ([i, j], [k, l]) = (names("i", "j"), names("k", "l"));
    let (first, spent) = answers(&i, &j);
    assert_eq!(first, "i + 20");
    assert_eq!(answers(&k, &l), ("k + 20".to_owned(), spent));
}

#[test]
fn what_is_left_decides_as_if_nothing_were_remembered() {
    let (all, spent) = answered_within(u64::MAX);
    assert_eq!(all, [true; 20]);
    for part in 1..8 {
        let (some, used) = answered_within(spent.operations * part / 8);
        let count = some.iter().filter(|known| **known).count();
        assert!(count < 20 && used.operations <= spent.operations, "{part}: {some:?}");
        assert!(some[..count].iter().all(|known| *known), "{some:?}");
        assert_eq!(answered_within(spent.operations * part / 8), (some, used));
    }
}

fn answered_within(limit: u64) -> (Vec<bool>, budget::Spent) {
    let [i, j] = ["i", "j"].map(Var::index);
    let d = tiles(&i, &j);
    budget::within("asking", limit, || {
        (7..27).map(|k| d.bounds(&(i.expr() * k - j.expr() * 3)).is_ok()).collect::<Vec<bool>>()
    })
}

//! A fixed choice of the random questions about sets in small boxes; `examples/boxes.rs` asks more.

mod boxes;

use boxes::{Asker, Kind};

/// Sets of each kind of question.
const CASES: u32 = 40;
const SEED: u64 = 34;

fn check(kind: Kind) {
    let asker = Asker::default();
    if let Err(e) = kind.run(CASES, SEED, &asker) {
        panic!("{kind:?}, after {asker:?}: {e}");
    }
}

#[test]
fn points_are_those_of_the_formula() {
    check(Kind::Points);
}

#[test]
fn emptiness_has_a_point() {
    check(Kind::Emptiness);
}

#[test]
fn differences_unions_and_intersections() {
    check(Kind::Pairs);
}

#[test]
fn projections_are_exact() {
    check(Kind::Projections);
}

#[test]
fn gist_and_hull_and_equalities() {
    check(Kind::Simplifications);
}

#[test]
fn extremes() {
    check(Kind::Extremes);
}

#[test]
fn functions_by_pieces() {
    check(Kind::Functions);
}

#[test]
fn inverses() {
    check(Kind::Inverses);
}

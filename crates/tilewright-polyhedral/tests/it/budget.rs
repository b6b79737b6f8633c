//! Budgets: what a piece of work may ask, and where it stops.

use tilewright_ir::{Expr, Var};
use tilewright_polyhedral::budget::{Spent, charge, within};
use tilewright_polyhedral::{Engine, Proof, Reason};

/// Asks until the budget is spent, and then some more: how many were answered.
fn ask(limit: u64) -> (usize, Spent) {
    let engine = Engine::new();
    let (i, n) = (Var::index("i"), Var::index("n"));
    let domain = engine.box_of(&[(i.clone(), 16)]);
    within("asking", limit, || {
        (0..50)
            .filter(|k| {
                let answer = domain.prove(&(i.expr() * *k).less(n.expr().max(Expr::i32(3))));
                !is_declined(&answer)
            })
            .count()
    })
}

fn is_declined(p: &Proof) -> bool {
    matches!(p, Proof::Unknown(why) if matches!(why.reason(), Reason::Budget { .. }))
}

#[test]
fn a_spent_budget_declines_and_the_same_work_stops_at_the_same_place() {
    let (all, spent) = ask(u64::MAX);
    assert_eq!((all, spent.declined, spent.short.len()), (50, 0, 0));
    assert!(spent.questions == 50 && spent.operations > 50 * charge(0));
    let (some, half) = ask(spent.operations / 2);
    assert!(0 < some && some < 50, "{some}");
    assert_eq!(half.short, ["asking"]);
    assert_eq!(half.declined, 50 - some as u64);
    assert_eq!(ask(spent.operations / 2), (some, half));
    assert_eq!(ask(0).0, 0);
}

#[test]
fn work_inside_of_work_counts_for_both_and_has_no_more_than_what_is_left() {
    let (_, outer) = within("outer", 100_000, || {
        let (_, first) = ask(u64::MAX);
        let (_, second) = ask(10);
        assert!(first.declined == 0 && second.declined > 0);
    });
    assert_eq!(outer.short, ["asking"]);
    let ((_, inner), outer) = within("outer", 10, || ask(u64::MAX));
    assert!(inner.declined > 0 && outer.declined == inner.declined);
}

#[test]
fn the_reason_says_so() {
    let engine = Engine::new();
    let i = Var::index("i");
    let domain = engine.box_of(&[(i.clone(), 16)]);
    let (answer, _) = within("asking", 0, || domain.bounds(&i.expr()));
    let why = answer.expect_err("nothing is left");
    assert_eq!(why.reason(), &Reason::Budget { operations: 0 });
    assert!(domain.bounds(&i.expr()).is_ok());
}

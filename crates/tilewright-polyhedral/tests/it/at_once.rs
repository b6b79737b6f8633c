//! Whether the iterations of a loop may run at once, and how many questions that takes.

use tilewright_ir::{AtOnce, Buffer, DType, Expr, Stmt, StmtKind, Var};
use tilewright_polyhedral::at_once::check;
use tilewright_polyhedral::{Engine, budget};

/// `for i in range(2 * n)` with two parts, of which each has loops inside, and is there several times.
fn in_parts(a: &Buffer, row: &Expr, i: &Var, width: i32, times: usize) -> Stmt {
    let part = |first: i64, width: i32| {
        let [j, k] = ["j", "k"].map(Var::index);
        let cell = vec![row.clone(), j.expr() * 3, k.expr() + first];
        // Equal values might be written to one cell.
        let store = Stmt::store(a, cell, i.expr().cast(DType::F32));
        Stmt::serial(&j, Expr::i32(7), Stmt::serial(&k, Expr::i32(width), store))
    };
    let even = Stmt::seq((0..times).map(|_| part(0, width)));
    let odd = Stmt::seq((0..times).map(|_| part(48, 37)));
    let is_even = i.expr().floormod(2).less(1);
    let body = StmtKind::If { cond: is_even, then: even, otherwise: Some(odd) };
    Stmt::serial(i, Var::index("n").expr() * 2, Stmt::new(body))
}

#[test]
fn parts_that_share_a_loop_are_told_apart_by_what_is_around_their_loops() {
    let i = Var::index("i");
    let a = Buffer::with_extents("A", &[64, 64, 96], DType::F32);
    let may = |row: Expr, width: i32| {
        let l = in_parts(&a, &row, &i, width, 2);
        check(&l, &Engine::new().domain(), AtOnce::Threads).is_ok()
    };
    let row = || i.expr().floordiv(2);
    assert!(may(row(), 48));
    assert!(!may(row(), 49), "a column of both parts");
    assert!(!may(i.expr().floordiv(4), 48), "two iterations write a row");

    // What is found of one part holds for the others like it: one more of each takes the questions of its loops, two
    // each, and none about pairs.
    let spent = |times| {
        let l = in_parts(&a, &row(), &i, 48, times);
        let check = || check(&l, &Engine::new().domain(), AtOnce::Threads).is_ok();
        let (may, spent) = budget::within("asking", u64::MAX, check);
        assert!(may);
        (spent.questions, spent.operations)
    };
    let (two, three) = (spent(2), spent(3));
    assert_eq!((three.0 - two.0, three.1 - two.1), (4, 4 * budget::charge(0)));
}

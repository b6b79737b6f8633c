//! Which cells statements write and read.

use tilewright_analysis::footprint::{
    Footprint, cover, plainly_reads_own_writes, reads_own_writes, touches, within,
};
use tilewright_ir::{Buffer, DType, Expr, Range, Region, Stmt, Var};

#[test]
fn a_guarded_store_leaves_cells_out() {
    let a = Buffer::with_extents("A", &[14], DType::F32);
    let (i, j) = (Var::index("i"), Var::index("j"));
    let at = &i * 4 + &j;
    let store = |below: i64| {
        let s = Stmt::store(&a, vec![at.clone()], Expr::float(0.0, DType::F32));
        let s = Stmt::guard(at.clone().less(below), s);
        Stmt::serial(&i, Expr::i32(4), Stmt::serial(&j, Expr::i32(4), s))
    };
    let region = Region { buffer: a.clone(), ranges: vec![Range::upto(Expr::i32(14))] };
    let full = Footprint::collect(&store(14), &a);
    assert!(cover(&full.writes, &region, &[]).is_ok());
    assert!(within(&full.writes, &region, &[]));
    let part = Footprint::collect(&store(13), &a);
    let e = cover(&part.writes, &region, &[]).map_err(|e| e.to_string());
    assert_eq!(e, Err("`A[13]` is left out".to_owned()));
    let fewer = Region { buffer: a.clone(), ranges: vec![Range::upto(Expr::i32(13))] };
    assert!(within(&part.writes, &fewer, &[]));
    assert!(!within(&full.writes, &fewer, &[]));
    assert_eq!(touches(&store(1), &a), (false, true));
}

#[test]
fn what_a_tile_reads_it_wrote_itself() {
    let a = Buffer::new("A", vec![Expr::i32(64), Expr::i32(64)], DType::F32);
    let [o, i, j, k] = ["o", "i", "j", "k"].map(Var::index);
    let n = Var::index("n");
    // for i in range(rows): A[o * 4 + i, 0] = 0; then for k: for j in range(4): A[o * 4 + j, 0] += 1
    let tile = |rows: i32, first: &Expr, guard: Option<Expr>| {
        let at = |v: &Var| vec![o.expr() * 4 + v, first.clone()];
        let init = Stmt::store(&a, at(&i), Expr::float(0.0, DType::F32));
        let init = guard.map_or(init.clone(), |g| Stmt::guard(g, init));
        let at_j = vec![o.expr() * 4 + &j, Expr::i32(0)];
        let more = a.load(at_j.clone()) + Expr::float(1.0, DType::F32);
        let update = Stmt::serial(&j, Expr::i32(4), Stmt::store(&a, at_j, more));
        let update = Stmt::serial(&k, n.expr(), update);
        Stmt::seq([Stmt::serial(&i, Expr::i32(rows), init), update])
    };
    let plainly = |s: Stmt| plainly_reads_own_writes(&s, &a);
    assert!(plainly(tile(4, &Expr::i32(0), None)));
    assert!(plainly(tile(5, &Expr::i32(0), None)));
    assert!(!plainly(tile(3, &Expr::i32(0), None)), "a row is not written");
    assert!(!plainly(tile(4, &Expr::i32(1), None)), "another column");
    assert!(
        !plainly(tile(4, &Expr::i32(0), Some(i.expr().less(&n)))),
        "a guard of the write alone"
    );
    assert!(reads_own_writes(&tile(4, &Expr::i32(0), None), &a, &[]).is_ok());
    // One variable in two loops, of which the one around the write never meets the condition.
    let at = || vec![Expr::i32(0), Expr::i32(0)];
    let part = |extent: i32, value: Expr| {
        let store = Stmt::guard(Expr::i32(0).less(&i), Stmt::store(&a, at(), value));
        Stmt::serial(&i, Expr::i32(extent), store)
    };
    let zero = part(1, Expr::float(0.0, DType::F32));
    assert!(!plainly(Stmt::seq([zero, part(4, a.load(at()))])), "nothing is written");
}

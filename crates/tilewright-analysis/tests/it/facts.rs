//! What is known of memory after, and inside of, small programs.

use tilewright_analysis::facts::Facts;
use tilewright_ir::{
    Block, Buffer, CallTarget, DType, Expr, ForKind, IterKind, IterVar, MatchRegion, Param, Range,
    Region, Stmt, StmtKind, TensorFunc, Var,
};

fn ints(name: &str) -> Buffer {
    Buffer::with_extents(name, &[16], DType::I32)
}

fn set(b: &Buffer, at: impl Into<Expr>, value: impl Into<Expr>) -> Stmt {
    Stmt::store(b, vec![at.into()], value.into())
}

fn assume(cond: Expr) -> Stmt {
    Stmt::new(StmtKind::Assume(cond))
}

fn upto(v: &Var, extent: i32, body: Stmt) -> Stmt {
    Stmt::serial(v, Expr::i32(extent), body)
}

fn after(buffers: &[&Buffer], stmts: &[&Stmt]) -> Facts {
    let params = buffers.iter().map(|b| Param::tensor(b)).collect();
    let body = Stmt::seq(stmts.iter().map(|s| (*s).clone()));
    let mut facts = Facts::new(&TensorFunc::new(params, body.clone()));
    facts.run(&body);
    facts
}

/// What each cell holds: `?` where that is not known.
fn cells(facts: &Facts, b: &Buffer) -> String {
    let value = |k: i64| facts.value(b, &[Expr::i32(k as i32)]);
    let shown = |k| value(k).map_or("?".to_owned(), |e| folded(&e));
    (0..16).map(shown).collect::<Vec<_>>().join(" ")
}

fn folded(e: &Expr) -> String {
    let engine = tilewright_polyhedral::Engine::new();
    engine.domain().simplify(e).to_string()
}

#[test]
fn stores_in_loops_are_known_after_them_by_cell() {
    let (a, b) = (ints("A"), ints("B"));
    let [i, j, k] = ["i", "j", "k"].map(Var::index);
    let tiled = upto(&i, 4, upto(&j, 4, set(&a, &i * 4 + &j, &i + &j * 10)));
    let halves = upto(&k, 16, set(&b, k.expr().floordiv(2), k.expr()));
    let facts = after(&[&a, &b], &[&tiled, &halves]);
    assert_eq!(cells(&facts, &a), "0 10 20 30 1 11 21 31 2 12 22 32 3 13 23 33");
    // The later of two iterations counts.
    assert_eq!(cells(&facts, &b), "1 3 5 7 9 11 13 15 ? ? ? ? ? ? ? ?");
}

#[test]
fn guards_and_later_stores_leave_parts_of_a_fact() {
    let a = ints("A");
    let [i, j] = ["i", "j"].map(Var::index);
    let fill = upto(&i, 16, Stmt::guard(i.expr().less(14), set(&a, &i, Expr::i32(0))));
    let some = upto(&j, 3, set(&a, &j * 2, Expr::i32(7)));
    let facts = after(&[&a], &[&fill, &some]);
    assert_eq!(cells(&facts, &a), "7 0 7 0 7 0 0 0 0 0 0 0 0 0 ? ?");
}

#[test]
fn assumptions_under_loops_speak_of_every_iteration() {
    let a = ints("A");
    let [i, n] = ["i", "n"].map(Var::index);
    let zero = || a.load([i.expr()]).equal(0);
    let padded = upto(&i, 16, assume(i.expr().less(14).or(zero())));
    let facts = after(&[&a], &[&padded]);
    assert_eq!(cells(&facts, &a), "? ? ? ? ? ? ? ? ? ? ? ? ? ? 0 0");
    let guarded = upto(&i, 16, Stmt::guard(i.expr().floormod(4).equal(n.expr()), assume(zero())));
    let mut facts = after(&[&a], &[&guarded]);
    assert_eq!(facts.value(&a, &[Expr::i32(3)]).map(|e| e.to_string()), None);
    facts.enter_branch(&n.expr().equal(3), true);
    assert_eq!(cells(&facts, &a), "? ? ? 0 ? ? ? 0 ? ? ? 0 ? ? ? 0");
}

#[test]
fn inside_of_a_loop_earlier_iterations_have_written() {
    let a = ints("A");
    let [i, j] = ["i", "j"].map(Var::index);
    let zero = upto(&i, 16, set(&a, &i, Expr::i32(0)));
    let add = |to: Expr| set(&a, to, a.load([j.expr()]) + 1);
    for (body, here, next, last) in
        [(add(j.expr()), true, true, false), (add(Expr::i32(15) - j.expr()), false, false, false)]
    {
        let second = upto(&j, 16, body.clone());
        let mut facts = after(&[&a], &[&zero, &second]);
        assert_eq!(cells(&facts, &a).contains('0'), last);
        facts.run(&zero);
        facts.enter_loop(&j, &Range::upto(Expr::i32(16)), &ForKind::Serial);
        assert_eq!(facts.value(&a, &[j.expr()]).is_some(), here);
        facts.enter_branch(&j.expr().less(15), true);
        assert_eq!(facts.value(&a, &[&j + 1]).is_some(), next);
        facts.leave();
        facts.leave();
        assert_eq!(cells(&facts, &a).contains('0'), last);
    }
}

#[test]
fn what_depends_on_memory_ends_with_its_branch() {
    let (a, b, c) = (ints("A"), ints("B"), ints("C"));
    let cond = b.load([Expr::i32(0)]).equal(5);
    let mut facts = after(&[&a, &b, &c], &[&set(&a, Expr::i32(1), Expr::i32(1))]);
    facts.run(&set(&a, Expr::i32(2), Expr::i32(2)));
    facts.enter_branch(&cond, true);
    assert_eq!(facts.value(&b, &[Expr::i32(0)]).map(|e| e.to_string()).as_deref(), Some("5"));
    facts.run(&set(&a, Expr::i32(1), Expr::i32(8)));
    facts.run(&set(&c, Expr::i32(0), Expr::i32(9)));
    assert_eq!(cells(&facts, &a), "? 8 2 ? ? ? ? ? ? ? ? ? ? ? ? ?");
    facts.leave();
    assert_eq!(cells(&facts, &a), "? ? 2 ? ? ? ? ? ? ? ? ? ? ? ? ?");
    assert!(cells(&facts, &b).starts_with('?') && cells(&facts, &c).starts_with('?'));
    // A loop of unknown length may not run at all.
    let i = Var::index("i");
    let some = Stmt::serial(&i, b.load([Expr::i32(1)]), set(&a, Expr::i32(2), Expr::i32(3)));
    let facts = after(&[&a, &b], &[&set(&a, Expr::i32(2), Expr::i32(2)), &some]);
    assert_eq!(cells(&facts, &a), "? ? ? ? ? ? ? ? ? ? ? ? ? ? ? ?");
}

#[test]
fn a_value_that_reads_memory_ends_when_that_changes() {
    let (a, b) = (ints("A"), ints("B"));
    let i = Var::index("i");
    let copy = upto(&i, 16, set(&b, &i, a.load([i.expr()])));
    let mut facts = after(&[&a, &b], &[&copy]);
    assert!(cells(&facts, &b).starts_with("A[0] A[1] A[2]"));
    facts.run(&set(&a, Expr::i32(0), Expr::i32(0)));
    assert!(facts.value(&b, &[Expr::i32(5)]).is_none());
    // Stores of what was read from the same memory are not known, unless that was.
    let add = set(&a, Expr::i32(0), a.load([Expr::i32(0)]) + 1);
    facts.run(&add);
    assert!(cells(&facts, &a).starts_with("1 ?"));
    facts.run(&set(&a, Expr::i32(0), a.load([Expr::i32(1)])));
    assert!(cells(&facts, &a).starts_with("? ?"));
}

#[test]
fn calls_views_and_other_scopes_end_facts() {
    let (a, b) = (ints("A"), ints("B"));
    let known = set(&a, Expr::i32(1), Expr::i32(1));
    let call = Expr::call(CallTarget::Extern("anything".into()), vec![], DType::I32);
    let call = Stmt::new(StmtKind::Evaluate(call));
    let view = a.derive(|d| d.shape = vec![Expr::i32(8)]);
    let declared = Stmt::new(StmtKind::Declare {
        buffer: view.clone(),
        body: set(&view, Expr::i32(3), Expr::i32(0)),
    });
    let row = ints("row");
    let mut block = Block::new("view", set(&row, Expr::i32(0), Expr::i32(0)));
    let source = Region { buffer: a.clone(), ranges: vec![Range::upto(Expr::i32(16))] };
    block.matches = vec![MatchRegion { buffer: row, source }];
    let matched = Stmt::block(vec![], Expr::bool(true), block);
    let elsewhere = set(&b, Expr::i32(1), Expr::i32(0));
    let i = Var::index("i");
    for (s, kept) in [(call, false), (declared, false), (matched, false), (elsewhere, true)] {
        for s in [s.clone(), upto(&i, 4, s)] {
            let facts = after(&[&a, &b], &[&known, &s]);
            assert_eq!(facts.value(&a, &[Expr::i32(1)]).is_some(), kept, "{s:?}");
        }
    }
}

#[test]
fn blocks_are_seen_through_their_bindings() {
    let a = ints("A");
    let [i, v, k] = ["i", "v", "k"].map(Var::index);
    let body = Stmt::guard(v.expr().less(6), set(&a, &v, &v * 3));
    let mut block = Block::new("A", body);
    block.init = Some(set(&a, &v, Expr::i32(1)));
    let iter =
        |var: &Var, kind| IterVar { var: var.clone(), domain: Range::upto(Expr::i32(16)), kind };
    block.iters = vec![iter(&v, IterKind::Spatial), iter(&k, IterKind::Reduce)];
    let bindings = vec![Expr::i32(15) - i.expr(), Expr::i32(0)];
    let s = upto(&i, 16, Stmt::block(bindings, i.expr().greater_equal(8), block));
    let facts = after(&[&a], &[&s]);
    assert_eq!(cells(&facts, &a), "0 3 6 9 12 15 1 1 ? ? ? ? ? ? ? ?");
}

#[test]
fn vectors_are_seen_lane_by_lane() {
    let a = ints("A");
    let at = || Expr::ramp(Expr::i32(1), Expr::i32(2), 4);
    let ramp = Expr::ramp(Expr::i32(5), Expr::i32(1), 4);
    let facts = after(&[&a], &[&set(&a, at(), ramp)]);
    assert_eq!(cells(&facts, &a), "? 5 ? 6 ? 7 ? 8 ? ? ? ? ? ? ? ?");
    let facts = after(&[&a], &[&set(&a, at(), Expr::broadcast(Expr::i32(5), 4))]);
    let both = facts.value(&a, &[Expr::ramp(Expr::i32(3), Expr::i32(2), 2)]);
    assert_eq!(both.map(|e| e.to_string()).as_deref(), Some("T.Broadcast(5, 2)"));
    assert!(facts.value(&a, &[Expr::ramp(Expr::i32(3), Expr::i32(1), 2)]).is_none());
}

#[test]
fn what_adds_nothing_leaves_a_fact() {
    let (a, b, f) = (ints("A"), ints("B"), ints("F"));
    let [i, j, k] = ["i", "j", "k"].map(Var::index);
    // A is zero outside of 4..8; B[j] = sum over k of A[j - k] * F[k].
    let inside = j.expr().greater_equal(4).and(j.expr().less(8));
    let zero = a.load([j.expr()]).equal(0);
    let padded = upto(&j, 16, assume(inside.or(zero)));
    let moved = &i - k.expr();
    let term = a.load([moved.clone()]) * f.load([k.expr()]);
    let add = set(&b, &i, b.load([i.expr()]) + term);
    let add = upto(&k, 3, Stmt::guard(moved.greater_equal(0), add));
    let conv = upto(&i, 16, Stmt::seq([set(&b, &i, Expr::i32(0)), add]));
    let mut facts = after(&[&a, &b, &f], &[&padded, &conv]);
    assert_eq!(cells(&facts, &b), "0 0 0 0 ? ? ? ? ? ? 0 0 0 0 0 0");
    // Not where the padding has changed meanwhile.
    let again = after(&[&a, &b, &f], &[&padded, &set(&a, Expr::i32(12), Expr::i32(1)), &conv]);
    assert_eq!(cells(&again, &b), "0 0 0 0 ? ? ? ? ? ? 0 0 ? ? ? 0");
    facts.run(&set(&b, Expr::i32(0), b.load([Expr::i32(0)]) * f.load([Expr::i32(0)])));
    assert!(cells(&facts, &b).starts_with('0'), "zero times anything");
    facts.run(&set(&b, Expr::i32(0), b.load([Expr::i32(0)]) + f.load([Expr::i32(0)])));
    assert!(cells(&facts, &b).starts_with('?'));
}

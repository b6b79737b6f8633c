//! Functions as static control parts: places, accesses, and what writes what is read.

use tilewright_ir::{
    Block, Buffer, CallTarget, DType, Expr, ExprKind, IterKind, IterVar, Param, Range, Stmt,
    StmtKind, TensorFunc, Var,
};
use tilewright_polyhedral::scop::{Act, Scop, rewrite};
use tilewright_polyhedral::{Flow, Statement};

fn ints(name: &str) -> Buffer {
    Buffer::with_extents(name, &[16], DType::I32)
}

fn scop(params: &[&Buffer], body: Stmt) -> Scop {
    let params = params.iter().map(|b| Param::tensor(b)).collect();
    Scop::extract(&TensorFunc::new(params, body))
}

/// The last writers of what each statement reads of a memory, as `reader<-writer` by places;
/// the observer has no place.
fn sources(p: &Scop, b: &Buffer) -> Vec<String> {
    let mut list: Vec<(Option<usize>, Statement)> = Vec::new();
    for s in &p.stmts {
        list.extend(p.restricted(s, b).map(|(st, _)| (Some(s.place), st)));
    }
    list.extend(p.observer(b).map(|st| (None, st)));
    let all: Vec<Statement> = list.iter().map(|(_, s)| s.clone()).collect();
    let flow = Flow::compute(p.engine(), &all).expect("decided");
    flow.edges
        .iter()
        .map(|e| {
            let sure = if e.certain { "" } else { "?" };
            format!(
                "{}<-{}{sure}",
                place_name(e.reader.statement, &list),
                place_name(e.writer.statement, &list)
            )
        })
        .collect()
}

fn place_name(k: usize, list: &[(Option<usize>, Statement)]) -> String {
    list[k].0.map_or("end".to_owned(), |p| p.to_string())
}

#[test]
fn places_are_those_of_a_rewrite() {
    let b = ints("B");
    let i = Var::index("i");
    let set = |v: i32| Stmt::store(&b, vec![i.expr()], Expr::i32(v));
    let both = Stmt::if_else(i.expr().less(4), set(1), set(2));
    let body = Stmt::serial(&i, Expr::i32(16), Stmt::seq([both, set(3)]));
    let p = scop(&[&b], body.clone());
    let places: Vec<usize> = p.stmts.iter().map(|s| s.place).collect();
    let mut stores = Vec::new();
    rewrite(&body, &mut |place, s| {
        if matches!(s.kind(), StmtKind::Store { .. }) {
            stores.push(place);
        }
        None
    });
    assert_eq!((places, stores), (vec![3, 4, 5], vec![3, 4, 5]));
    assert_eq!(sources(&p, &b), ["end<-5"]);
}

#[test]
fn an_initialisation_runs_where_the_reduction_starts() {
    let (a, b) = (ints("A"), ints("B"));
    let (i, k, vi, vk) = (Var::index("i"), Var::index("k"), Var::index("vi"), Var::index("vk"));
    let at = || vec![vi.expr()];
    let sum = Stmt::store(&b, at(), b.load(at()) + a.load([vk.expr()]));
    let mut block = Block::new("sum", sum);
    block.init = Some(Stmt::store(&b, at(), Expr::i32(0)));
    for (var, kind) in [(&vi, IterKind::Spatial), (&vk, IterKind::Reduce)] {
        let domain = Range::upto(Expr::i32(4));
        block.iters.push(IterVar { var: var.clone(), domain, kind });
    }
    let block = Stmt::block(vec![i.expr(), k.expr()], Expr::bool(true), block);
    let body = Stmt::serial(&i, Expr::i32(4), Stmt::serial(&k, Expr::i32(4), block));
    let p = scop(&[&a, &b], body);
    assert_eq!(sources(&p, &b), ["4<-3", "4<-4", "end<-4"]);
}

#[test]
fn memory_inside_of_a_loop_is_new_each_time() {
    let (b, l) = (ints("B"), ints("L"));
    let i = Var::index("i");
    let use_it = Stmt::store(&b, vec![i.expr()], l.load(vec![Expr::i32(0)]));
    let fill = Stmt::guard(i.expr().equal(0), Stmt::store(&l, vec![Expr::i32(0)], Expr::i32(1)));
    let inner = Stmt::seq([fill, use_it]);
    let p = scop(&[&b], Stmt::serial(&i, Expr::i32(4), Stmt::allocate(&l, inner.clone())));
    let flow = |p: &Scop| {
        let stmts = p.stmts.iter().filter_map(|s| p.restricted(s, &l).map(|(s, _)| s));
        let stmts: Vec<Statement> = stmts.collect();
        let flow = Flow::compute(p.engine(), &stmts).expect("decided");
        flow.uninitialised
            .iter()
            .map(|u| {
                let first = u.instances.vars().next().expect("a loop").expr();
                let points = u.instances.domain();
                let ends = points.tight_bounds(&first, &[]).expect("decided");
                format!("{}..={}", ends.min, ends.max)
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(flow(&p), ["1..=3"]);
    let p = scop(&[&b], Stmt::allocate(&l, Stmt::serial(&i, Expr::i32(4), inner)));
    assert!(flow(&p).is_empty());
}

#[test]
fn what_was_read_before_a_write_is_not_what_is_read_after_it() {
    // if A[0] == 0: A[0] = 1      if A[0] == 0: B[0] = 1      B[0] = 2 if not (A[0] == 0)
    let (a, b) = (ints("A"), ints("B"));
    let zero = || a.load(vec![Expr::i32(0)]).equal(0);
    let set = |b: &Buffer, v: i32| Stmt::store(b, vec![Expr::i32(0)], Expr::i32(v));
    let body = Stmt::seq([
        set(&b, 9),
        Stmt::guard(zero(), set(&a, 1)),
        Stmt::guard(zero(), set(&b, 1)),
        Stmt::guard(!zero(), set(&b, 2)),
    ]);
    let p = scop(&[&a, &b], body);
    // Each store of `B` may be the last one.
    assert_eq!(sources(&p, &b), ["end<-1?", "end<-5?", "end<-7?"]);
}

#[test]
fn an_assumption_is_a_write_of_a_known_value_and_reads_what_was_there() {
    let b = ints("B");
    let i = Var::index("i");
    let here = || b.load([i.expr()]);
    let fact = i.expr().less(14).or(here().equal(0));
    let assume = Stmt::serial(&i, Expr::i32(16), Stmt::new(StmtKind::Assume(fact)));
    let set = Stmt::store(&b, vec![Expr::i32(15)], Expr::i32(0));
    let p = scop(&[&b], Stmt::seq([set.clone(), assume]));
    let value = p.stmts.iter().find_map(|s| match &s.act {
        Act::Fact(v) => v.as_int(),
        _ => None,
    });
    assert_eq!(value, Some(0));
    assert_eq!(sources(&p, &b), ["3<-1", "end<-3"]);
    let any = i.expr().less(14).or(here().equal(Expr::new(ExprKind::Undef, DType::I32)));
    let permit = Stmt::serial(&i, Expr::i32(16), Stmt::new(StmtKind::Assume(any)));
    let p = scop(&[&b], Stmt::seq([set, permit]));
    assert!(matches!(p.stmts.last().map(|s| &s.act), Some(Act::Permit)));
    assert_eq!(sources(&p, &b), ["end<-3"]);
}

#[test]
fn a_call_may_change_every_parameter_and_nothing_else() {
    let (b, l) = (ints("B"), ints("L"));
    let call = Expr::call(CallTarget::Extern("f".into()), vec![], DType::I32);
    let body = Stmt::seq([
        Stmt::store(&b, vec![Expr::i32(0)], Expr::i32(1)),
        Stmt::store(&l, vec![Expr::i32(0)], Expr::i32(1)),
        Stmt::store(&b, vec![Expr::i32(0)], call + l.load(vec![Expr::i32(0)])),
        Stmt::store(&b, vec![Expr::i32(0)], b.load(vec![Expr::i32(0)]) + 1),
    ]);
    let p = scop(&[&b], Stmt::allocate(&l, body));
    assert_eq!(sources(&p, &b), ["4<-2?", "end<-4?", "5<-4", "end<-5"]);
    assert_eq!(sources(&p, &l), ["4<-3"]);
}

#[test]
fn memory_with_two_faces_is_not_followed() {
    let b = ints("B");
    let view = b.derive(|d| d.shape = vec![Expr::i32(8)]);
    let inner = Stmt::new(StmtKind::Declare { buffer: view.clone(), body: set_first(&view) });
    let p = scop(&[&b], Stmt::seq([set_first(&b), inner]));
    assert!(!p.follows(&b) && p.memories().is_empty());
    assert!(p.stmts.iter().all(|s| s.accesses.is_empty()));
}

fn set_first(b: &Buffer) -> Stmt {
    Stmt::store(b, vec![Expr::i32(0)], Expr::i32(1))
}

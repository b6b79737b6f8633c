//! What simplification knows at a place, and what ends that knowledge.

use tilewright_ir::visit::Subst;
use tilewright_ir::{
    BinOp, Block, Buffer, CallTarget, DType, Error, Expr, ExprKind, Fold, IterKind, IterVar, Param,
    Range, Remarks, Stmt, StmtKind, TensorFunc, Var, equal,
};
use tilewright_polyhedral::budget;
use tilewright_transform::simplify::{SimplifyOptions, simplify};

fn run(params: &[&Buffer], body: Stmt) -> Stmt {
    let params = params.iter().map(|b| Param::tensor(b)).collect();
    let func = TensorFunc::new(params, body);
    let new = simplify(&func, SimplifyOptions::default(), &mut Remarks::new());
    new.expect("nothing is refused").body
}

fn ints(name: &str) -> Buffer {
    Buffer::with_extents(name, &[16], DType::I32)
}

fn set(b: &Buffer, at: i32, value: i32) -> Stmt {
    Stmt::store(b, vec![Expr::i32(at)], Expr::i32(value))
}

/// `T.assume(A[0] < 5)`, then `between`, then `if A[0] < 7: B[0] = 1`: whether the guard went.
fn guard_goes(a: &Buffer, b: &Buffer, between: Stmt) -> bool {
    let assume = Stmt::new(StmtKind::Assume(a.load([Expr::i32(0)]).less(5)));
    let guarded = Stmt::guard(a.load([Expr::i32(0)]).less(7), set(b, 0, 1));
    let out = run(&[a, b], Stmt::seq([assume, between, guarded]));
    let StmtKind::Seq(parts) = out.kind() else { panic!("{out:?}") };
    matches!(parts.last().map(Stmt::kind), Some(StmtKind::Store { .. }))
}

#[test]
fn facts_about_memory_end_with_writes_to_it() {
    let (a, b) = (ints("A"), ints("B"));
    assert!(guard_goes(&a, &b, set(&b, 3, 0)));
    let i = Var::index("i");
    for (first, goes) in [(0, false), (1, true)] {
        let some = Stmt::store(&a, vec![&i * 2 + first], b.load([Expr::i32(1)]));
        assert_eq!(guard_goes(&a, &b, Subst::vars([(i.clone(), Expr::i32(0))]).stmt(&some)), goes);
        assert_eq!(guard_goes(&a, &b, Stmt::serial(&i, Expr::i32(4), some)), goes);
    }
    let view = a.derive(|d| d.shape = vec![Expr::i32(8)]);
    let other = Stmt::new(StmtKind::Declare { buffer: view.clone(), body: set(&view, 3, 0) });
    assert!(!guard_goes(&a, &b, other));
    let call = Expr::call(CallTarget::Extern("anything".into()), vec![], DType::I32);
    assert!(!guard_goes(&a, &b, Stmt::new(StmtKind::Evaluate(call))));
}

#[test]
fn an_effect_inside_of_a_condition_is_neither_moved_nor_dropped() {
    let b = ints("B");
    let call = Expr::call(CallTarget::Extern("ask".into()), vec![], DType::BOOL);
    let cond = Expr::binary(BinOp::And, call, Expr::bool(false));
    let branch = Stmt::new(StmtKind::If { cond, then: Stmt::nop(), otherwise: None });
    let out = run(&[&b], branch.clone());
    let same = equal::stmts(&out, &branch, &equal::Equality::default());
    assert!(same.is_ok(), "{same:?}");
}

/// What is said about a function `f(A, B, n)`.
fn remarks(body: Stmt, params: Vec<Param>) -> Vec<String> {
    let mut why = Remarks::new();
    let func = TensorFunc::new(params, body);
    simplify(&func, SimplifyOptions::default(), &mut why).expect("nothing is refused");
    why.iter().map(Error::render).collect()
}

#[test]
fn what_stays_says_why() {
    let (a, b) = (ints("A"), ints("B"));
    let [i, n] = ["i", "n"].map(Var::index);
    let params = || vec![Param::tensor(&a), Param::tensor(&b), Param::Scalar(n.clone())];
    let at =
        |cond: Expr, to: &Buffer| Stmt::guard(cond, Stmt::store(to, vec![i.expr()], Expr::i32(1)));
    let over = |body: Stmt| Stmt::serial(&i, Expr::i32(16), body);
    let large = || a.load([i.expr()]).greater(3);

    // Now this, now that: nothing is missing.
    for cond in [i.expr().less(&n), (i.expr() * &n).less(60)] {
        let found = remarks(over(at(cond, &b)), params());
        assert!(found.is_empty(), "{found:?}");
    }

    let found = remarks(over(Stmt::seq([at(large(), &a), at(large(), &b)])), params());
    let [merge, first, second] = found.as_slice() else { panic!("{found:?}") };
    assert!(merge.contains("asks what the one before it asks, but is not merged"), "{merge}");
    assert!(merge.contains("may change `A`, which `A[i] > 3` reads"), "{merge}");
    for one in [first, second] {
        assert!(one.contains("no value of `A` is known that decides it"), "{one}");
    }
}

#[test]
fn data_may_wrap_where_bounds_do_not_rule_it_out() {
    let (a, b) = (ints("A"), ints("B"));
    let i = Var::index("i");
    let wide = a.load([i.expr()]);
    let small = Buffer::with_extents("S", &[16], DType::I8);
    let narrow = small.load([i.expr()]).cast(DType::I32);
    let halved = |value: Expr| {
        let value = Expr::binary(BinOp::FloorDiv, value * 2, Expr::i32(2));
        let body = Stmt::store(&b, vec![i.expr()], value);
        let out = run(&[&a, &b, &small], Stmt::serial(&i, Expr::i32(16), body));
        let StmtKind::For { body, .. } = out.kind() else { panic!("{out:?}") };
        let StmtKind::Store { value, .. } = body.kind() else { panic!("{body:?}") };
        matches!(value.kind(), ExprKind::Binary(BinOp::FloorDiv, ..))
    };
    assert!(halved(wide));
    assert!(!halved(narrow));
    // 15 * 2^30 is beyond int32.
    assert!(!halved(i.expr() * 5) && halved(i.expr() * (1 << 30)));
}

#[test]
fn a_chain_of_bindings_takes_no_more_than_its_length() {
    let (a, b) = (ints("A"), ints("B"));
    let i = Var::index("i");
    let spent = |length: usize| {
        let names: Vec<Var> = (0..=length).map(|k| Var::index(format!("t{k}"))).collect();
        let set = Stmt::store(&b, vec![i.expr()], names[length].expr());
        let even = Stmt::guard(names[1].expr().floormod(2).equal(0), set);
        let doubled = |body, pair: &[Var]| bind(&pair[1], pair[0].expr() + &pair[0], body);
        let doubled = names.windows(2).rev().fold(even, doubled);
        let body = Stmt::serial(&i, Expr::i32(16), bind(&names[0], a.load([i.expr()]), doubled));
        let (out, spent) = budget::within("a test", u64::MAX, || run(&[&a, &b], body));
        // The first ones are known: a double is even.
        out.for_each(|s| assert!(!matches!(s.kind(), StmtKind::If { .. }), "{out:?}"));
        spent.operations
    };
    let (short, long) = (spent(40), spent(80));
    assert!(long < 3 * short, "{short}, then {long}");
}

fn bind(var: &Var, value: Expr, body: Stmt) -> Stmt {
    Stmt::new(StmtKind::Let { var: var.clone(), value, body })
}

#[test]
fn a_block_does_not_lean_on_its_bindings() {
    let b = ints("B");
    let (i, v) = (Var::index("i"), Var::index("v"));
    let body = Stmt::guard(v.expr().less(4), Stmt::store(&b, vec![v.expr()], Expr::i32(1)));
    let mut block = Block::new("B", body);
    let domain = Range::upto(Expr::i32(16));
    block.iters.push(IterVar { var: v, domain, kind: IterKind::Spatial });
    let block = Stmt::block(vec![i.expr()], Expr::bool(true), block);
    let out = run(&[&b], Stmt::serial(&i, Expr::i32(4), block));
    let StmtKind::For { body, .. } = out.kind() else { panic!("{out:?}") };
    let StmtKind::Block { block, .. } = body.kind() else { panic!("{body:?}") };
    assert!(matches!(block.body.kind(), StmtKind::If { .. }));
}

#[test]
fn an_assumption_that_is_false_is_an_error_only_where_it_is_reached() {
    let b = ints("B");
    let n = Var::index("n");
    let assume = |low: i32| {
        let lies = Stmt::new(StmtKind::Assume(n.expr().less(3)));
        let body = Stmt::seq([lies, set(&b, 0, 1)]);
        let inner = Stmt::guard(n.expr().greater_equal(i64::from(low)), body);
        let params = vec![Param::tensor(&b), Param::Scalar(n.clone())];
        let func = TensorFunc::new(params, inner);
        simplify(&func, SimplifyOptions::default(), &mut Remarks::new())
    };
    let error = assume(5).expect_err("refused").render();
    assert!(error.contains("the assumption `n < 3` is false here"), "{error}");
    assert!(assume(2).is_ok());
}

#[test]
fn a_false_assumption_is_none_where_bindings_or_data_may_keep_control_out() {
    let b = ints("B");
    let (i, v) = (Var::index("i"), Var::index("v"));
    let refused = |guard: &Expr, assumed: Expr| {
        let assume = Stmt::new(StmtKind::Assume(assumed));
        let body = Stmt::guard(guard.clone(), Stmt::seq([assume, set(&b, 0, 1)]));
        let mut block = Block::new("B", body);
        let domain = Range::upto(Expr::i32(16));
        block.iters.push(IterVar { var: v.clone(), domain, kind: IterKind::Opaque });
        let block = Stmt::block(vec![i.expr() * 2], Expr::bool(true), block);
        let body = Stmt::serial(&i, Expr::i32(4), block);
        let func = TensorFunc::new(vec![Param::tensor(&b)], body);
        simplify(&func, SimplifyOptions::default(), &mut Remarks::new()).is_err()
    };
    let (even, odd) = [0, 1].map(|r| v.expr().floormod(2).equal(r)).into();
    assert!(!refused(&odd, even.clone()));
    assert!(refused(&even, odd));
    assert!(!refused(&b.load([Expr::i32(0)]).equal(1), v.expr().less(0)));
}

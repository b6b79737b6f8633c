//! Which functions, modules and expressions are equal, and the first difference of others.

use expect_test::{Expect, expect};
use tilewright_ir::equal::{
    Equality, Free, Regions, exprs, fingerprint, graph_funcs, modules, same_expr, stmts,
    tensor_funcs,
};
use tilewright_ir::visit::{Subst, fold_func};
use tilewright_ir::{
    Attr, Attrs, BinOp, Binding, BindingBlock, Block, Buffer, DType, Expr, Fold, GraphExpr,
    GraphFunc, GraphVar, IterKind, IterVar, MatchRegion, Module, Param, Range, Region, Span, Stmt,
    StmtKind, Tensor, TensorFunc, TensorType, Var,
};

/// A function with a symbolic shape, an allocation, two blocks and a view.
fn sample(edit: impl Fn(&mut Sample)) -> TensorFunc {
    let mut p = Sample { add: 1.0, ..Sample::default() };
    edit(&mut p);
    let n = Var::new("n", DType::I64);
    let a = Buffer::new("A", vec![n.expr(), Expr::i32(4)], DType::F32);
    let b = Buffer::new("B", vec![n.expr(), Expr::i32(4)], DType::F32);
    let t = Buffer::new("T", vec![n.expr(), Expr::i32(4)], DType::F32);
    let (i, v) = (Var::new("i", DType::I64), Var::new("v", DType::I64));
    let row = Buffer::new("row", vec![Expr::i32(4)], DType::F32);
    let source = Region {
        buffer: a.clone(),
        ranges: vec![Range::point(v.expr()), Range::upto(Expr::i32(4))],
    };
    let mut first = Block::new(
        "first",
        Stmt::store(
            &t,
            vec![v.expr(), Expr::i32(0)],
            row.load([Expr::i32(0)]) + Expr::float(p.add, DType::F32),
        ),
    );
    first.iters =
        vec![IterVar { var: v.clone(), domain: Range::upto(n.expr()), kind: IterKind::Spatial }];
    first.reads = p.reads.then(|| vec![source.clone()]);
    first.matches = vec![MatchRegion { buffer: row, source }];
    let first = Stmt::block(vec![i.expr()], Expr::bool(true), first);
    let j = Var::new("j", DType::I64);
    let from = if p.swap { &a } else { &t };
    let second = Stmt::store(&b, vec![j.expr(), Expr::i32(0)], from.load([j.expr(), Expr::i32(0)]));
    let body = Stmt::seq([Stmt::serial(&i, n.expr(), first), Stmt::serial(&j, n.expr(), second)]);
    let f = TensorFunc::new(vec![Param::tensor(&a), Param::tensor(&b)], Stmt::nop());
    f.with_root(vec![t], body)
}

#[derive(Default)]
struct Sample {
    add: f64,
    reads: bool,
    swap: bool,
}

fn check(a: &TensorFunc, b: &TensorFunc, expected: Expect) {
    for options in [Equality::default(), Equality::loose()] {
        let left = tensor_funcs(a, b, &options).map_err(|d| d.to_string());
        expected.assert_eq(&left.err().unwrap_or_else(|| "equal".into()));
    }
}

#[test]
fn renaming_everything_keeps_equality_and_fingerprint() {
    let a = sample(|_| {});
    let b = sample(|_| {});
    check(&a, &b, expect!["equal"]);
    assert_eq!(fingerprint(&a), fingerprint(&b));
    let c = fold_func(&mut Subst::refresh(), &a);
    check(&a, &c, expect!["equal"]);
    assert_eq!(fingerprint(&a), fingerprint(&c));
}

#[test]
fn the_first_difference_has_a_path_and_texts() {
    check(
        &sample(|_| {}),
        &sample(|p| p.add = 2.0),
        expect![
            "block `root`, loop `i`, block `first`, store to `T`, value: `row[0] + T.float32(1.0)` against `row[0] + T.float32(2.0)`"
        ],
    );
    check(
        &sample(|_| {}),
        &sample(|p| p.swap = true),
        expect!["block `root`, loop `j`, store to `B`, value: `T[j, 0]` against `A[j, 0]`"],
    );
    assert_ne!(fingerprint(&sample(|_| {})), fingerprint(&sample(|p| p.add = 2.0)));
}

#[test]
fn nan_equals_itself_and_zeros_differ_by_sign() {
    let nan = |bits| sample(|p| p.add = f64::from_bits(bits));
    let (a, b) = (nan(0x7ff8_0000_0000_0000), nan(0xfff8_0000_2000_0000));
    check(&a, &b, expect!["equal"]);
    assert_eq!(fingerprint(&a), fingerprint(&b));
    check(
        &sample(|p| p.add = 0.0),
        &sample(|p| p.add = -0.0),
        expect![
            "block `root`, loop `i`, block `first`, store to `T`, value: `row[0] + T.float32(0.0)` against `row[0] + T.float32(-0.0)`"
        ],
    );
}

#[test]
fn regions_count_as_the_options_say() {
    let (a, b) = (sample(|_| {}), sample(|p| p.reads = true));
    let with = |regions| tensor_funcs(&a, &b, &Equality { regions, ..Equality::default() }).err();
    expect!["block `root`, loop `i`, block `first`, reads: not declared against 1 regions"]
        .assert_eq(&with(Regions::Exact).map_or("equal".into(), |d| d.to_string()));
    assert_eq!(with(Regions::WhereBoth), None);
    assert_eq!(fingerprint(&a), fingerprint(&b));
}

fn check_exprs(a: &Expr, b: &Expr, expected: Expect) {
    let options = Equality { free: Free::Paired, ..Equality::default() };
    let got = exprs(a, b, &options).map_err(|d| d.to_string());
    expected.assert_eq(&got.err().unwrap_or_else(|| "equal".into()));
}

#[test]
fn the_pairing_is_one_to_one_both_ways() {
    let (i, j) = (Var::index("i"), Var::index("j"));
    check_exprs(&(&i + &j), &(&j + &i), expect!["equal"]);
    check_exprs(&(&i + &j), &(&i + &i), expect!["`i + j` against `i + i`"]);
    check_exprs(&(&i + &i), &(&i + &j), expect!["`i + i` against `i + j`"]);
    let k = i.fresh();
    check_exprs(&(&i + &i), &(&i + &k), expect!["one variable `i` against another variable `i`"]);
    assert!(exprs(&i.expr(), &j.expr(), &Equality::default()).is_err());
    assert!(same_expr(&(&i + 1), &(&i + 1)));
}

#[test]
fn types_kinds_and_operators_differ() {
    let (i, wide) = (Var::index("i"), Var::new("i", DType::I64));
    check_exprs(&i.expr(), &wide.expr(), expect!["`i` of int32 against `i` of int64"]);
    check_exprs(
        &i.expr().floordiv(2),
        &Expr::binary(BinOp::TruncDiv, i.expr(), Expr::i32(2)),
        expect!["`i // 2` against `T.truncdiv(i, 2)`"],
    );
    let a = Buffer::with_extents("A", &[4], DType::F32);
    let b = Buffer::with_extents("A", &[5], DType::F32);
    check_exprs(
        &a.load([Expr::i32(0)]),
        &b.load([Expr::i32(0)]),
        expect!["buffer `A`, shape: `4` against `5`"],
    );
}

#[test]
fn shared_parts_are_compared_once() {
    check_exprs(&tower(), &tower(), expect!["equal"]);
}

fn tower() -> Expr {
    let mut e = Var::index("i").expr();
    for _ in 0..60 {
        e = &e * &e;
    }
    e
}

#[test]
fn views_of_one_memory_differ_from_separate_memories() {
    check(
        &two_views(true),
        &two_views(false),
        expect!["buffer `A`, memory: a view of one memory against a view of another"],
    );
    check(&two_views(false), &two_views(false), expect!["equal"]);
}

fn two_views(shared: bool) -> TensorFunc {
    let a = Buffer::with_extents("A", &[4], DType::F32);
    let t = Buffer::with_extents("T", &[4], DType::F32);
    let of = if shared { &a } else { &t };
    let v = of.derive(|d| d.shape = vec![Expr::i32(2), Expr::i32(2)]);
    let zero = || Expr::i32(0);
    let body = Stmt::store(&v, vec![zero(), zero()], t.load([zero()]));
    let body = Stmt::new(StmtKind::Declare { buffer: v, body });
    TensorFunc::new(vec![Param::tensor(&a)], Stmt::allocate(&t, body))
}

#[test]
fn statements_that_are_missing_or_of_another_kind() {
    let b = Buffer::with_extents("B", &[4], DType::I32);
    let store = |v| Stmt::store(&b, vec![Expr::i32(0)], Expr::i32(v));
    let func = |body| TensorFunc::new(vec![Param::tensor(&b)], body);
    check(
        &func(store(1)),
        &func(Stmt::seq([store(1), store(2)])),
        expect!["nothing more against `B[0] = 2`"],
    );
    check(
        &func(store(1)),
        &func(Stmt::guard(Var::new("c", DType::BOOL).expr(), store(1))),
        expect!["`B[0] = 1` against `if c`"],
    );
}

fn call(func: &str, out: &str) -> GraphFunc {
    let ty = TensorType::fixed(&[4], DType::F32);
    let x = GraphVar::tensor("x", ty.clone());
    let y = GraphVar::tensor(out, ty.clone());
    let value = GraphExpr::call_tir(func, vec![x.expr()], vec![ty]);
    GraphFunc {
        params: vec![x],
        blocks: vec![BindingBlock {
            dataflow: true,
            bindings: vec![Binding { var: y.clone(), value, span: None }],
            outputs: vec![y.clone()],
        }],
        ret: y.expr(),
        ret_ty: None,
        attrs: Attrs::new(),
        private: false,
        span: None,
    }
}

fn module(func: &str, add: f64) -> Module {
    let mut m = Module::new();
    m.insert(func, sample(|p| p.add = add));
    m.insert("main", call(func, func));
    m
}

#[test]
fn modules_compare_by_name_or_by_order() {
    let (a, b) = (module("f", 1.0), module("g", 1.0));
    expect!["functions `f`, `main` against functions `g`, `main`"].assert_eq(&difference_of(
        &a,
        &b,
        &Equality::default(),
    ));
    expect!["equal"].assert_eq(&difference_of(&a, &b, &Equality::loose()));
    expect!["equal"].assert_eq(&difference_of(&a, &module("f", 1.0), &Equality::default()));
    expect!["function `f`, block `root`, loop `i`, block `first`, store to `T`, value: `row[0] + T.float32(1.0)` against `row[0] + T.float32(2.0)`"]
        .assert_eq(&difference_of(&a, &module("g", 2.0), &Equality::loose()));
}

fn difference_of(a: &Module, b: &Module, o: &Equality) -> String {
    modules(a, b, o).err().map_or("equal".into(), |d| d.to_string())
}

#[test]
fn graph_functions_compare_calls_types_and_constants() {
    expect!["equal"].assert_eq(&graph_difference(&call("f", "y"), &call("f", "z")));
    expect!["binding `y`: call_tir of `f` (1 arguments, 1 outputs) against call_tir of `g` (1 arguments, 1 outputs)"]
        .assert_eq(&graph_difference(&call("f", "y"), &call("g", "y")));
    expect!["result, constant, element 1: 2.0 against 3.0"]
        .assert_eq(&graph_difference(&with_constant(2.0), &with_constant(3.0)));
    expect!["equal"]
        .assert_eq(&graph_difference(&with_constant(f32::NAN), &with_constant(-f32::NAN)));
}

fn graph_difference(a: &GraphFunc, b: &GraphFunc) -> String {
    let d = graph_funcs(a, b, &Equality::default()).err();
    d.map_or("equal".into(), |d| d.to_string())
}

fn with_constant(v: f32) -> GraphFunc {
    let mut f = call("f", "y");
    let t = Tensor::from_slice(&[2], &[1.0, v]);
    f.ret = t.map_or(GraphExpr::Tuple(Vec::new()), GraphExpr::Const);
    f
}

#[test]
fn spans_of_the_innermost_statements() {
    let b = Buffer::with_extents("B", &[4], DType::I32);
    let kind =
        |v| StmtKind::Store { buffer: b.clone(), indices: vec![Expr::i32(0)], value: Expr::i32(v) };
    let i = Var::index("i");
    let at = |v, start| {
        let body = Stmt::spanned(kind(v), Some(Span::new(start, start + 1)));
        Stmt::serial(&i, Expr::i32(4), body)
    };
    let d = stmts(&at(1, 5), &at(2, 9), &Equality::default());
    let spans = d.err().map(|d| (d.left_span, d.right_span));
    assert_eq!(spans, Some((Some(Span::new(5, 6)), Some(Span::new(9, 10)))));
}

#[test]
fn attributes_and_annotations() {
    check(&with_attr("a", 1), &with_attr("a", 2), expect!["attribute `a`: 1 against 2"]);
    check(&with_attr("a", 1), &with_attr("b", 1), expect!["attribute `a`: 1 against nothing"]);
    let (x, y) = (with_attr("global_symbol", 1), with_attr("global_symbol", 2));
    assert!(tensor_funcs(&x, &y, &Equality::default()).is_err());
    assert!(tensor_funcs(&x, &y, &Equality::loose()).is_ok());
    assert_eq!(fingerprint(&x), fingerprint(&y));
}

fn with_attr(key: &str, v: i64) -> TensorFunc {
    let mut f = sample(|_| {});
    f.attrs.insert(key.into(), Attr::Int(v));
    f
}

#[test]
fn a_let_that_stands_twice_on_one_side() {
    let (x, i) = (Var::index("x"), Var::index("i"));
    let term = Expr::let_in(x.clone(), &i + 1, &x + &x);
    let shared = &term + &term;
    let apart = &term + &Subst::refresh().expr(&term);
    assert!(exprs(&shared, &apart, &Equality::default()).is_ok());
    assert!(exprs(&apart, &shared, &Equality::default()).is_ok());
}

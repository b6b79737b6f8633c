//! What the check of functions and modules refuses, and with which text.

use std::sync::Arc;

use expect_test::{Expect, expect};
use tilewright_ir::buffer::BufferData;
use tilewright_ir::well_formed::{
    EXPR_DEPTH, STMT_DEPTH, check_module, check_open_module, check_tensor,
};
use tilewright_ir::{
    Attr, Attrs, BinOp, Binding, BindingBlock, Block, Buffer, DType, Error, Expr, ExprKind,
    GraphExpr, GraphFunc, GraphType, GraphVar, Intrin, IterKind, IterVar, MatchRegion, Module,
    Param, Range, Region, Result, Source, Span, Stmt, StmtKind, Tensor, TensorFunc, TensorType,
    Var,
};

mod graph;

fn text(result: Result<()>) -> String {
    match result {
        Ok(()) => "ok".into(),
        Err(e) => {
            assert!(matches!(e, Error::Malformed(_)), "{e:?}");
            e.diagnostic().notes.iter().fold(e.to_string(), |t, n| format!("{t} ({n})"))
        }
    }
}

/// `A` and `B` are parameters of 4 by 4 `float32`; `i` and `j` are loop variables around `body`.
struct Names {
    a: Buffer,
    b: Buffer,
    i: Var,
    j: Var,
}

fn func(body: impl FnOnce(&Names) -> Stmt) -> TensorFunc {
    let n = Names {
        a: Buffer::with_extents("A", &[4, 4], DType::F32),
        b: Buffer::with_extents("B", &[4, 4], DType::F32),
        i: Var::index("i"),
        j: Var::index("j"),
    };
    let body = Stmt::serial(&n.j, Expr::i32(4), body(&n));
    let body = Stmt::serial(&n.i, Expr::i32(4), body);
    TensorFunc::new(vec![Param::tensor(&n.a), Param::tensor(&n.b)], body)
}

fn check(body: impl FnOnce(&Names) -> Stmt, expected: Expect) {
    expected.assert_eq(&text(check_tensor("f", &func(body))));
}

/// Checks `B[i, j] = value`.
fn check_value(value: impl FnOnce(&Names) -> Expr, expected: Expect) {
    check(|n| Stmt::store(&n.b, vec![n.i.expr(), n.j.expr()], value(n)), expected);
}

/// Checks an expression of any type.
fn check_expr(value: impl FnOnce(&Names) -> Expr, expected: Expect) {
    check(|n| Stmt::new(StmtKind::Evaluate(value(n))), expected);
}

fn zero() -> Expr {
    Expr::float(0.0, DType::F32)
}

#[test]
fn a_good_function() {
    check_value(|n| n.a.load([n.i.expr(), n.j.expr()]) + 1.0, expect!["ok"]);
}

#[test]
fn variables_are_in_scope() {
    let k = Var::index("k");
    check_value(
        |n| n.a.load([n.i.expr(), k.expr()]),
        expect!["function `f`: variable `k` is not defined (in `B[i, j] = A[i, k]`)"],
    );
    check(
        |n| {
            let s = || Stmt::store(&n.b, vec![k.expr(), n.j.expr()], zero());
            Stmt::seq([Stmt::serial(&k, Expr::i32(4), s()), s()])
        },
        expect![
            "function `f`: variable `k` is used outside of its scope (in `B[k, j] = T.float32(0.0)`)"
        ],
    );
}

#[test]
fn open_functions_use_integers_without_a_definition() {
    let (k, x) = (Var::index("k"), Var::new("x", DType::F32));
    expect!["ok"].assert_eq(&open_text(&|n| n.a.load([n.i.expr(), k.expr()])));
    expect!["function `f`: variable `x` is not defined (in `B[i, j] = x`)"]
        .assert_eq(&open_text(&|_| x.expr()));
}

fn open_text(value: &dyn Fn(&Names) -> Expr) -> String {
    let mut m = Module::new();
    m.insert("f", func(|n| Stmt::store(&n.b, vec![n.i.expr(), n.j.expr()], value(n))));
    text(check_open_module(&m))
}

#[test]
fn constants_fit_their_buffer_and_stay() {
    let table = Buffer::with_extents("table", &[2, 2], DType::F32);
    let at = || vec![Expr::i32(0), Expr::i32(1)];
    check(|n| constant_stmt(&table, Stmt::store(&n.b, at(), table.load(at()))), expect!["ok"]);
    check(
        |_| constant_stmt(&table, Stmt::store(&table, at(), zero())),
        expect![
            "function `f`: `table[0, 1]` is written, but its memory is a constant (in `table[0, 1] = T.float32(0.0)`)"
        ],
    );
    let view = table.derive(|d| d.name = "view".into());
    let through = Stmt::store(&view, at(), zero());
    let through = Stmt::new(StmtKind::Declare { buffer: view, body: through });
    check(
        |_| constant_stmt(&table, through),
        expect![
            "function `f`: `view[0, 1]` is written, but its memory is a constant (in `view[0, 1] = T.float32(0.0)`)"
        ],
    );
    for buffer in [
        Buffer::with_extents("table", &[4], DType::F32),
        Buffer::with_extents("table", &[2, 2], DType::I32),
        Buffer::new("table", vec![Expr::i32(2), Var::index("n").expr()], DType::F32),
    ] {
        check(
            |_| constant_stmt(&buffer, Stmt::nop()),
            expect![
                "function `f`: constant `table` is not of the type float32 and the shape [2, 2] of its value (in constant `table`)"
            ],
        );
    }
    let strided = table.derive(|d| d.strides = vec![Expr::i32(4), Expr::i32(1)]);
    check(
        |_| constant_stmt(&strided, Stmt::nop()),
        expect!["function `f`: constant `table` has strides or an offset (in constant `table`)"],
    );
}

fn constant_stmt(buffer: &Buffer, body: Stmt) -> Stmt {
    Stmt::new(StmtKind::Constant {
        buffer: buffer.clone(),
        value: Tensor::from_slice(&[2, 2], &[1.0f32, 2.0, 3.0, 4.0]).unwrap(),
        body,
    })
}

#[test]
fn variables_are_defined_once() {
    let k = Var::index("k");
    check(
        |n| {
            let s = || Stmt::store(&n.b, vec![k.expr(), n.j.expr()], zero());
            Stmt::seq([Stmt::serial(&k, Expr::i32(4), s()), Stmt::serial(&k, Expr::i32(4), s())])
        },
        expect!["function `f`: variable `k` is defined twice (in loop `k`)"],
    );
    check_expr(
        |n| {
            let inner = Expr::let_in(k.clone(), n.i.expr(), k.expr());
            Expr::let_in(k.clone(), n.j.expr(), inner)
        },
        expect![
            "function `f`: variable `k` is defined twice (in `T.evaluate(T.Let(T.Let(k, where={k: i}), where={k: j}))`)"
        ],
    );
    check_expr(
        |n| {
            let term = Expr::let_in(k.clone(), n.i.expr(), &k + 1);
            &term + &term
        },
        expect!["ok"],
    );
    check_expr(
        |n| Expr::let_in(k.clone(), n.i.expr(), &k + 1) + &k,
        expect![
            "function `f`: variable `k` is not defined (in `T.evaluate(T.Let(k + 1, where={k: i}) + k)`)"
        ],
    );
}

#[test]
fn buffers_are_in_scope_and_defined_once() {
    let t = Buffer::with_extents("T", &[4], DType::F32);
    check(
        |n| Stmt::store(&t, vec![n.i.expr()], zero()),
        expect!["function `f`: buffer `T` is not defined (in `T[i] = T.float32(0.0)`)"],
    );
    check(
        |n| {
            let s = || Stmt::store(&t, vec![n.i.expr()], zero());
            Stmt::seq([Stmt::allocate(&t, s()), s()])
        },
        expect![
            "function `f`: buffer `T` is used outside of its scope (in `T[i] = T.float32(0.0)`)"
        ],
    );
    check(
        |n| {
            let s = || Stmt::allocate(&t, Stmt::store(&t, vec![n.i.expr()], zero()));
            Stmt::seq([s(), s()])
        },
        expect!["function `f`: variable `T` is defined twice (in allocation of `T`)"],
    );
    check(
        |n| {
            let body = Stmt::store(&t, vec![n.i.expr()], zero());
            Stmt::new(StmtKind::Declare { buffer: t.clone(), body })
        },
        expect![
            "function `f`: buffer `T` is a view of memory that is not defined (in declaration of `T`)"
        ],
    );
}

#[test]
fn constants_fit_their_type() {
    check_expr(
        |_| Expr::new(ExprKind::Int(300), DType::I8),
        expect![
            "function `f`: constant 300 does not fit the type int8 (in `T.evaluate(T.int8(300))`)"
        ],
    );
    check_expr(
        |_| Expr::new(ExprKind::Float(0.1), DType::F32),
        expect![
            "function `f`: constant 0.1 does not fit the type float32 (in `T.evaluate(T.float32(0.1))`)"
        ],
    );
    check_expr(
        |_| Expr::str("x") + 0,
        expect![[
            r#"function `f`: text "x" stands outside of a call (in `T.evaluate("x" + T.handle(0))`)"#
        ]],
    );
}

#[test]
fn operands_have_one_type_of_the_right_kind() {
    let binary = |op, a: Expr, b: Expr| move |_: &Names| Expr::binary(op, a, b);
    check_expr(
        binary(BinOp::Add, Expr::i32(1), Expr::int(1, DType::I64)),
        expect![
            "function `f`: `T.int32(1) + T.int64(1)` has operands of types int32 and int64 (in `T.evaluate(T.int32(1) + T.int64(1))`)"
        ],
    );
    check_expr(
        binary(BinOp::Div, Expr::i32(1), Expr::i32(1)),
        expect![
            "function `f`: `T.int32(1) / 1` takes floating point, not int32 (in `T.evaluate(T.int32(1) / 1)`)"
        ],
    );
    check_expr(
        binary(BinOp::FloorMod, zero(), zero()),
        expect![
            "function `f`: `T.float32(0.0) % T.float32(0.0)` takes integers, not float32 (in `T.evaluate(T.float32(0.0) % T.float32(0.0))`)"
        ],
    );
    check_expr(
        binary(BinOp::And, Expr::i32(1), Expr::i32(1)),
        expect![
            "function `f`: `T.int32(1) and 1` takes bool, not int32 (in `T.evaluate(T.int32(1) and 1)`)"
        ],
    );
    check_expr(
        |n| Expr::new(ExprKind::Not(n.i.expr()), DType::I32),
        expect!["function `f`: `not i` takes bool, not int32 (in `T.evaluate(not i)`)"],
    );
    check_expr(
        |n| Expr::new(ExprKind::Binary(BinOp::Lt, n.i.expr(), n.j.expr()), DType::I32),
        expect![
            "function `f`: `i < j` is of type bool, but its node says int32 (in `T.evaluate(i < j)`)"
        ],
    );
    check_expr(
        |n| Expr::cast_node(n.i.expr(), DType::I64.with_lanes(4)),
        expect![[
            r#"function `f`: `T.Cast("int64x4", i)` converts from int32 (in `T.evaluate(T.Cast("int64x4", i))`)"#
        ]],
    );
}

#[test]
fn selections_have_a_condition_and_one_type() {
    check_expr(
        |n| Expr::select(n.i.expr(), zero(), zero()),
        expect![
            "function `f`: condition `i` of `T.Select(i, T.float32(0.0), T.float32(0.0))` is int32 (in `T.evaluate(T.Select(i, T.float32(0.0), T.float32(0.0)))`)"
        ],
    );
    check_expr(
        |n| Expr::if_then_else(n.i.expr().less(2), zero(), Expr::i32(0)),
        expect![
            "function `f`: `T.if_then_else(i < 2, T.float32(0.0), 0)` has values of types float32 and int32 (in `T.evaluate(T.if_then_else(i < 2, T.float32(0.0), 0))`)"
        ],
    );
    check_expr(
        |_| Expr::select(Expr::ramp(Expr::i32(0), Expr::i32(1), 4).less(2), zero(), zero()),
        expect![
            "function `f`: condition `T.Ramp(0, 1, 4) < T.Broadcast(2, 4)` of `T.Select(T.Ramp(0, 1, 4) < T.Broadcast(2, 4), T.float32(0.0), T.float32(0.0))` is boolx4 (in `T.evaluate(T.Select(T.Ramp(0, 1, 4) < T.Broadcast(2, 4), T.float32(0.0), T.float32(0.0)))`)"
        ],
    );
    check_expr(
        |_| {
            Expr::select(
                Expr::ramp(Expr::i32(0), Expr::i32(1), 4).less(2),
                Expr::broadcast(zero(), 4),
                Expr::broadcast(zero(), 4),
            )
        },
        expect!["ok"],
    );
}

#[test]
fn intrinsics_take_their_arguments() {
    check_expr(
        |_| Expr::intrin(Intrin::Pow, vec![zero()]),
        expect![
            "function `f`: `T.pow(T.float32(0.0))`: T.pow takes 2 arguments, not 1 (in `T.evaluate(T.pow(T.float32(0.0)))`)"
        ],
    );
    check_expr(
        |n| Expr::intrin(Intrin::Exp, vec![n.i.expr()]),
        expect![
            "function `f`: `T.exp(i)` takes floating point, not int32 (in `T.evaluate(T.exp(i))`)"
        ],
    );
    check_expr(
        |n| Expr::intrin(Intrin::Shl, vec![n.i.expr(), Expr::int(1, DType::I64)]),
        expect![
            "function `f`: `T.shift_left(i, T.int64(1))` has operands of types int32 and int64 (in `T.evaluate(T.shift_left(i, T.int64(1)))`)"
        ],
    );
}

#[test]
fn vectors_are_made_of_scalars() {
    check_expr(
        |_| Expr::broadcast(Expr::ramp(Expr::i32(0), Expr::i32(1), 4), 2),
        expect![
            "function `f`: `T.Broadcast(T.Ramp(0, 1, 4), 2)` takes scalars, not int32x4 (in `T.evaluate(T.Broadcast(T.Ramp(0, 1, 4), 2))`)"
        ],
    );
    check_expr(
        |n| Expr::ramp(zero(), zero(), 4) + Expr::broadcast(n.i.expr(), 4),
        expect![
            "function `f`: `T.Ramp(T.float32(0.0), T.float32(0.0), 4)` takes integers, not float32 (in `T.evaluate(T.Ramp(T.float32(0.0), T.float32(0.0), 4) + T.Cast(\"float32x4\", T.Broadcast(i, 4)))`)"
        ],
    );
    check_expr(
        |_| Expr::ramp(Expr::i32(0), Expr::i32(1), 1),
        expect![
            "function `f`: `T.Ramp(0, 1, 1)` makes fewer than 2 lanes (in `T.evaluate(T.Ramp(0, 1, 1))`)"
        ],
    );
}

#[test]
fn accesses_have_one_integer_index_an_axis() {
    check_value(
        |n| n.a.load([n.i.expr()]),
        expect!["function `f`: `A[i]` has 1 indices, but `A` has 2 axes (in `B[i, j] = A[i]`)"],
    );
    check_value(
        |n| n.a.load([n.i.expr(), zero()]),
        expect![
            "function `f`: index `T.float32(0.0)` is float32, not an integer (in `B[i, j] = A[i, T.float32(0.0)]`)"
        ],
    );
    let ramp = || Expr::ramp(Expr::i32(0), Expr::i32(1), 4);
    check_expr(
        |n| n.a.load([ramp(), n.i.expr()]),
        expect![
            "function `f`: index `T.Ramp(0, 1, 4)` has lanes and is not the last one (in `T.evaluate(A[T.Ramp(0, 1, 4), i])`)"
        ],
    );
    check_expr(
        |n| Expr::new(ExprKind::Load(n.a.clone(), vec![n.i.expr(), ramp()]), DType::F32),
        expect![
            "function `f`: `A[i, T.Ramp(0, 1, 4)]` is of type float32x4, but its node says float32 (in `T.evaluate(A[i, T.Ramp(0, 1, 4)])`)"
        ],
    );
    check(
        |n| Stmt::store(&n.b, vec![n.i.expr()], zero()),
        expect![
            "function `f`: `B[i]` has 1 indices, but `B` has 2 axes (in `B[i] = T.float32(0.0)`)"
        ],
    );
}

#[test]
fn stored_values_have_the_element_type() {
    check_value(
        |n| n.i.expr(),
        expect!["function `f`: value `i` is int32, but `B[i, j]` is float32 (in `B[i, j] = i`)"],
    );
    let ramp = || Expr::ramp(Expr::i32(0), Expr::i32(1), 4);
    check(
        |n| Stmt::store(&n.b, vec![n.i.expr(), ramp()], zero()),
        expect![
            "function `f`: value `T.float32(0.0)` is float32, but `B[i, T.Ramp(0, 1, 4)]` is float32x4 (in `B[i, T.Ramp(0, 1, 4)] = T.float32(0.0)`)"
        ],
    );
    check(
        |n| Stmt::store(&n.b, vec![n.i.expr(), ramp()], Expr::broadcast(zero(), 4)),
        expect!["ok"],
    );
}

#[test]
fn undef_is_never_an_index() {
    check_value(
        |n| n.a.load([n.i.expr(), Expr::undef(DType::I32)]),
        expect![[
            r#"function `f`: index `T.undef(dtype="int32")` contains T.undef() (in `B[i, j] = A[i, T.undef(dtype="int32")]`)"#
        ]],
    );
    let k = Var::index("k");
    check(
        |_| Stmt::serial(&k, Expr::undef(DType::I32), Stmt::nop()),
        expect![[
            r#"function `f`: bound `T.undef(dtype="int32")` contains T.undef() (in loop `k`)"#
        ]],
    );
    check_value(|n| n.a.load([n.i.expr(), n.j.expr()]) + Expr::undef(DType::F32), expect!["ok"]);
}

#[test]
fn bounds_and_conditions_have_their_types() {
    let k = Var::index("k");
    check(
        |_| Stmt::serial(&k, Expr::int(4, DType::I64), Stmt::nop()),
        expect![
            "function `f`: bound `T.int64(0)` of `k` is int64, but the variable is int32 (in loop `k`)"
        ],
    );
    let x = Var::new("x", DType::F32);
    check(
        |_| Stmt::serial(&x, zero(), Stmt::nop()),
        expect!["function `f`: loop variable `x` is float32, not an integer (in loop `x`)"],
    );
    check(
        |n| Stmt::guard(n.i.expr(), Stmt::nop()),
        expect!["function `f`: condition `i` is int32, not bool (in `if i`)"],
    );
    check(
        |n| Stmt::new(StmtKind::Assume(n.i.expr())),
        expect!["function `f`: assumption `i` is int32, not bool (in `T.assume(i)`)"],
    );
    check(
        |n| Stmt::assert(n.i.expr(), "m"),
        expect!["function `f`: assertion `i` is int32, not bool (in `assert i`)"],
    );
    check(
        |n| Stmt::let_in(&x, n.i.expr(), Stmt::nop()),
        expect!["function `f`: `x` is float32, but its value `i` is int32 (in `x = i`)"],
    );
    check_expr(
        |n| Expr::let_in(x.clone(), n.i.expr(), x.expr()),
        expect![
            "function `f`: variable `x` of `T.Let(x, where={x: i})` is bound to a value of type int32 (in `T.evaluate(T.Let(x, where={x: i}))`)"
        ],
    );
}

fn block(n: &Names, edit: impl FnOnce(&mut Block, &mut Vec<Expr>, &mut Expr)) -> Stmt {
    let v = Var::index("v");
    let mut b = Block::new("b", Stmt::store(&n.b, vec![v.expr(), Expr::i32(0)], zero()));
    b.iters = vec![IterVar { var: v, domain: Range::upto(Expr::i32(4)), kind: IterKind::Spatial }];
    let (mut bindings, mut predicate) = (vec![n.i.expr()], Expr::bool(true));
    edit(&mut b, &mut bindings, &mut predicate);
    Stmt::block(bindings, predicate, b)
}

#[test]
fn blocks_bind_their_variables() {
    check(|n| block(n, |_, _, _| {}), expect!["ok"]);
    check(
        |n| block(n, |_, i, _| i.clear()),
        expect!["function `f`: block `b` has 1 iteration variables and 0 bindings (in block `b`)"],
    );
    check(
        |n| block(n, |_, i, _| i[0] = Expr::int(0, DType::I64)),
        expect!["function `f`: `v` is int32, but its binding `T.int64(0)` is int64 (in block `b`)"],
    );
    check(
        |n| block(n, |b, _, _| b.iters[0].domain = Range::upto(Expr::int(4, DType::I64))),
        expect![
            "function `f`: bound `T.int64(0)` of `v` is int64, but the variable is int32 (in block `b`)"
        ],
    );
    check(
        |n| block(n, |_, _, p| *p = Expr::i32(1)),
        expect!["function `f`: predicate `1` is int32, not bool (in block `b`)"],
    );
    check(
        |n| block(n, |b, _, _| b.name = "".into()),
        expect!["function `f`: a block has no name (in block ``)"],
    );
    check(
        |n| {
            block(n, |b, _, _| {
                b.reads = Some(vec![Region {
                    buffer: n.a.clone(),
                    ranges: vec![Range::point(Expr::i32(0))],
                }]);
            })
        },
        expect![
            "function `f`: a region of `A` has 1 ranges, but the buffer has 2 axes (in block `b`)"
        ],
    );
}

#[test]
fn views_fit_their_region() {
    let view = |shape: &[i64], dtype, rows: i64| {
        let view = Buffer::with_extents("V", shape, dtype);
        move |n: &Names| {
            let source = Region {
                buffer: n.a.clone(),
                ranges: vec![
                    Range { min: n.i.expr(), extent: Expr::i32(rows as i32) },
                    Range::upto(Expr::i32(4)),
                ],
            };
            block(n, |b, _, _| b.matches = vec![MatchRegion { buffer: view, source }])
        }
    };
    check(view(&[4], DType::F32, 1), expect!["ok"]);
    check(view(&[2, 4], DType::F32, 2), expect!["ok"]);
    check(
        view(&[4], DType::F32, 2),
        expect![
            "function `f`: view `V` has shape (4), but the region of `A` has (2, 4) (in block `b`)"
        ],
    );
    check(
        view(&[1, 5], DType::F32, 1),
        expect![
            "function `f`: view `V` has shape (1, 5), but the region of `A` has (1, 4) (in block `b`)"
        ],
    );
    check(
        view(&[4], DType::I32, 1),
        expect!["function `f`: view `V` is int32, but `A` is float32 (in block `b`)"],
    );
}

#[test]
fn sequences_are_flat_and_long() {
    let nop = || Stmt::new(StmtKind::Evaluate(Expr::i32(0)));
    check(
        |_| Stmt::new(StmtKind::Seq(vec![nop()])),
        expect!["function `f`: a sequence has 1 statements (in a sequence of 1 statements)"],
    );
    check(
        |_| Stmt::new(StmtKind::Seq(vec![nop(), Stmt::new(StmtKind::Seq(vec![nop(), nop()]))])),
        expect!["function `f`: a sequence holds a sequence (in a sequence of 2 statements)"],
    );
}

#[test]
fn buffers_have_sane_shapes() {
    let with = |edit: fn(&mut BufferData)| {
        let t = Buffer::with_extents("T", &[4, 4], DType::F32).derive(edit);
        move |_: &Names| Stmt::allocate(&t, Stmt::nop())
    };
    check(
        with(|d| d.shape[0] = zero()),
        expect![
            "function `f`: extent of buffer `T` `T.float32(0.0)` is float32, not an integer (in allocation of `T`)"
        ],
    );
    check(
        with(|d| d.shape[0] = Expr::i32(-1)),
        expect!["function `f`: buffer `T` has the extent -1 (in allocation of `T`)"],
    );
    check(
        with(|d| d.strides = vec![Expr::i32(4)]),
        expect!["function `f`: buffer `T` has 1 strides and 2 axes (in allocation of `T`)"],
    );
    check(
        with(|d| d.axis_separators = vec![2, 1]),
        expect![
            "function `f`: axis separators [2, 1] of buffer `T` do not fit 2 axes (in allocation of `T`)"
        ],
    );
    check(
        with(|d| d.dtype = DType::VOID),
        expect!["function `f`: buffer `T` has elements of type void (in allocation of `T`)"],
    );
    check(
        with(|d| d.shape[0] = Var::index("n").expr()),
        expect!["function `f`: variable `n` is not defined (in allocation of `T`)"],
    );
}

#[test]
fn shapes_of_parameters_bind_variables() {
    let (n, m) = (Var::new("n", DType::I64), Var::new("m", DType::I64));
    let a = Buffer::new("A", vec![&n * 2], DType::F32);
    let b = Buffer::new("B", vec![n.expr()], DType::F32);
    let f = TensorFunc::new(vec![Param::tensor(&a), Param::tensor(&b)], Stmt::nop());
    expect!["ok"].assert_eq(&text(check_tensor("f", &f)));
    let c = Buffer::new("C", vec![&m * 2], DType::F32);
    let f = TensorFunc::new(vec![Param::tensor(&c)], Stmt::nop());
    expect!["function `f`: variable `m` is not defined"].assert_eq(&text(check_tensor("f", &f)));
    let f = TensorFunc::new(vec![Param::tensor(&b), Param::tensor(&b)], Stmt::nop());
    expect!["function `f`: variable `B` is defined twice"].assert_eq(&text(check_tensor("f", &f)));
}

#[test]
fn trees_are_not_too_deep() {
    let deep = |n: usize| move |i: &Names| (0..n).fold(i.i.expr(), |e, _| e + &i.i);
    check_expr(deep(EXPR_DEPTH - 1), expect!["ok"]);
    let e = text(check_tensor("f", &func(|n| Stmt::new(StmtKind::Evaluate(deep(EXPR_DEPTH)(n))))));
    assert!(e.starts_with("function `f`: an expression is nested deeper than 1500 levels"), "{e}");
    let nested = |n: &Names| {
        let store = Stmt::store(&n.b, vec![n.i.expr(), n.j.expr()], zero());
        (0..STMT_DEPTH).fold(store, |s, _| Stmt::guard(n.i.expr().less(2), s))
    };
    let e = text(check_tensor("f", &func(nested)));
    assert!(e.starts_with("function `f`: statements are nested deeper than 500 levels"), "{e}");
}

#[test]
fn errors_point_at_the_statement() -> Result<()> {
    let source = Source::new("f.py", "B[i] = k\n");
    let b = Buffer::with_extents("B", &[4], DType::I32);
    let kind = StmtKind::Store {
        buffer: b.clone(),
        indices: vec![Expr::i32(0)],
        value: Var::index("k").expr(),
    };
    let body = Stmt::spanned(kind, Some(Span::new(0, 8)));
    let mut m = Module::new();
    m.insert("f", TensorFunc::new(vec![Param::tensor(&b)], body));
    m.source = Some(source);
    let shown = check_module(&m).map_err(|e| e.render()).err().unwrap_or_default();
    expect![[r#"
        error: function `f`: variable `k` is not defined
          --> f.py:1:1
           1 | B[i] = k
             | ^^^^^^^^
        note: in `B[0] = k`
    "#]]
    .assert_eq(&shown);
    Ok(())
}

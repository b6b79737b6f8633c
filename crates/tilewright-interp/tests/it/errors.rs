//! Every illegal thing, with its message.

use std::sync::Arc;

use expect_test::{Expect, expect};
use tilewright_interp::{Arg, RunOptions, Scalar, run_func};
use tilewright_ir::{
    BinOp, Block, Buffer, CallTarget, DType, Expr, Intrin, IterKind, IterVar, Param, Source, Span,
    Stmt, StmtKind, TensorFunc, Var,
};

use crate::build::*;

/// `B[i] = value` for `i` in `0..4`, with an input `A` of 4 `float32`.
fn check(value: impl FnOnce(&Buffer, &Var) -> Expr, expected: Expect) {
    let a = buffer("A", &[4], DType::F32);
    let i = Var::index("i");
    let value = value(&a, &i);
    let b = buffer("B", &[4], value.dtype());
    let body = serial(&i, 4, Stmt::store(&b, vec![i.expr()], value));
    expected.assert_eq(&error(&func(&[&a, &b], body), &[iota(&[4])]));
}

#[test]
fn reads_of_what_was_never_written() {
    let (t, b) = (buffer("T", &[4, 3], DType::F32), buffer("B", &[4, 3], DType::F32));
    let (i, j) = (Var::index("i"), Var::index("j"));
    let at = || vec![i.expr(), j.expr()];
    let written = Stmt::guard(i.expr().less(3), Stmt::store(&t, at(), f32(1.0)));
    let block = Block::new("double", Stmt::store(&b, at(), t.load(at()) * 2.0));
    let copy = Stmt::block(Vec::new(), Expr::bool(true), block);
    let body = serial(&i, 4, serial(&j, 3, Stmt::seq([written, copy])));
    let f = func(&[&b], Stmt::nop()).with_root(vec![t], body);
    expect![[r#"
        execution: function `main`: read of uninitialised `T[3, 0]` in block `double`
        note: with i = 3, j = 0
    "#]]
    .assert_eq(&error(&f, &[]));
}

#[test]
fn an_error_points_at_the_statement() {
    let source = Source::new("f.py", "for i in range(4):\n    B[i] = B[i] + 1.0\n");
    let b = buffer("B", &[4], DType::F32);
    let i = Var::index("i");
    let store = StmtKind::Store {
        buffer: b.clone(),
        indices: vec![i.expr()],
        value: b.load([i.expr()]) + 1.0,
    };
    let store = Stmt::spanned(store, Some(Span::new(23, 40)));
    let e =
        run_func(&func(&[&b], serial(&i, 4, store)), &[Arg::Fresh(None)], &RunOptions::default());
    expect![[r#"
        error: function `main`: read of uninitialised `B[0]`
          --> f.py:2:5
           2 |     B[i] = B[i] + 1.0
             |     ^^^^^^^^^^^^^^^^^
        note: with i = 0
    "#]]
    .assert_eq(&e.map_err(|e| e.in_source(&source).render()).err().unwrap_or_default());
}

#[test]
fn indices_out_of_range() {
    check(
        |a, i| a.load([i + 1]),
        expect![[r#"
            execution: function `main`: `A[4]` is out of range: axis 0 has extent 4
            note: with i = 3
        "#]],
    );
    check(
        |a, i| a.load([i - 1]),
        expect![[r#"
            execution: function `main`: `A[-1]` is out of range: axis 0 has extent 4
            note: with i = 0
        "#]],
    );
    let (b, i) = (buffer("B", &[2, 3], DType::F32), Var::index("i"));
    // Inside of the memory, but not of the axis.
    let body = serial(&i, 4, Stmt::store(&b, vec![Expr::i32(0), i.expr()], f32(0.0)));
    expect![[r#"
        execution: function `main`: `B[0, 3]` is out of range: axis 1 has extent 3
        note: with i = 3
    "#]]
    .assert_eq(&error(&func(&[&b], body), &[]));
}

#[test]
fn integer_arithmetic_without_a_value() {
    check(
        |_, i| i.expr().floordiv(i - 2),
        expect![[r#"
            execution: function `main`: division by zero
            note: with i = 2
        "#]],
    );
    check(
        |_, i| Expr::binary(BinOp::TruncMod, i.expr(), i - 1),
        expect![[r#"
            execution: function `main`: division by zero
            note: with i = 1
        "#]],
    );
    check(
        |_, i| Expr::intrin(Intrin::Shl, vec![i.expr(), i + 29]),
        expect![[r#"
            execution: function `main`: shift by the width of the type or more
            note: with i = 3
        "#]],
    );
    check(
        |_, i| Expr::intrin(Intrin::Pow, vec![i.expr(), i - 1]),
        expect![[r#"
            execution: function `main`: integer to a negative power
            note: with i = 0
        "#]],
    );
}

#[test]
fn assumptions_and_assertions() {
    let (b, i) = (buffer("B", &[4], DType::F32), Var::index("i"));
    let check = |s: Stmt, expected: Expect| {
        let store = Stmt::store(&b, vec![i.expr()], f32(0.0));
        let f = func(&[&b], serial(&i, 4, Stmt::seq([s, store])));
        expected.assert_eq(&error(&f, &[]));
    };
    check(
        Stmt::new(StmtKind::Assume(i.expr().less(2))),
        expect![[r#"
            execution: function `main`: assumption `i < 2` does not hold
            note: with i = 2
        "#]],
    );
    check(
        Stmt::assert(i.expr().less(3), "i is small"),
        expect![[r#"
            execution: function `main`: assertion failed: i is small
            note: with i = 3
        "#]],
    );
    check(
        Stmt::new(StmtKind::Assume(b.load([i.expr()]).equal(0.0))),
        expect![[r#"
            execution: function `main`: read of uninitialised `B[0]`
            note: with i = 0
        "#]],
    );
}

#[test]
fn iteration_variables_stay_in_their_domain() {
    let (b, i, v) = (buffer("B", &[8], DType::F32), Var::index("i"), Var::index("v"));
    let mut block = Block::new("fill", Stmt::store(&b, vec![v.expr()], f32(0.0)));
    block.iters = vec![IterVar { var: v, domain: range(0, 7), kind: IterKind::Spatial }];
    let body = serial(&i, 4, Stmt::block(vec![&i * 2 + 1], Expr::bool(true), block));
    expect![[r#"
        execution: function `main`: iteration variable `v` is 7, outside of its domain of 7 from 0 in block `fill`
        note: with i = 3
    "#]]
    .assert_eq(&error(&func(&[&b], body), &[]));
}

#[test]
fn loop_variables_fit_their_type() {
    let (b, i) = (buffer("B", &[1], DType::I8), Var::new("i", DType::I8));
    let zero = vec![Expr::i32(0)];
    let body = Stmt::store(&b, zero, i.expr());
    let r =
        tilewright_ir::Range { min: Expr::int(100, DType::I8), extent: Expr::int(100, DType::I8) };
    let body = Stmt::for_loop(&i, r, tilewright_ir::ForKind::Serial, body);
    expect![[r#"
        execution: function `main`: loop variable `i` does not fit its type
    "#]]
    .assert_eq(&error(&func(&[&b], body), &[]));
}

#[test]
fn decisions_on_arbitrary_values() {
    let (b, t) = (buffer("B", &[4], DType::F32), buffer("T", &[1], DType::I32));
    let zero = || vec![Expr::i32(0)];
    let check = |s: Stmt, expected: Expect| {
        let undef = Stmt::store(&t, zero(), Expr::undef(DType::I32));
        let f = func(&[&b], Stmt::nop()).with_root(vec![t.clone()], Stmt::seq([undef, s]));
        expected.assert_eq(&error(&f, &[]));
    };
    let x = || t.load(zero());
    check(
        Stmt::store(&b, vec![x()], f32(0.0)),
        expect![[r#"
            execution: function `main`: an index, a bound or a condition depends on an arbitrary value
        "#]],
    );
    check(
        Stmt::guard(x().less(1), Stmt::store(&b, zero(), f32(0.0))),
        expect![[r#"
            execution: function `main`: an index, a bound or a condition depends on an arbitrary value
        "#]],
    );
    check(
        Stmt::new(StmtKind::Assume(x().equal(0))),
        expect![[r#"
            execution: function `main`: assumption `T[0] == 0` is about an arbitrary value
        "#]],
    );
    check(
        Stmt::store(&t, zero(), Expr::i32(7).floordiv(x())),
        expect![[r#"
            execution: function `main`: division by an arbitrary value
        "#]],
    );
    check(
        Stmt::serial(&Var::index("i"), x(), Stmt::store(&b, zero(), f32(0.0))),
        expect![[r#"
            execution: function `main`: an index, a bound or a condition depends on an arbitrary value
        "#]],
    );
}

#[test]
fn an_output_that_is_not_written() {
    let (b, i) = (buffer("B", &[2, 3], DType::F32), Var::index("i"));
    let body = serial(&i, 2, Stmt::store(&b, vec![Expr::i32(1), i.expr()], f32(0.0)));
    let e = run(&func(&[&b], body), &[]).map_err(|e| e.render());
    expect![[r#"
        error: output `B` is not written at [0, 0]
    "#]]
    .assert_eq(&e.err().unwrap_or_default());
}

#[test]
fn limits_stop_a_run() {
    let (b, i) = (buffer("B", &[1], DType::I64), Var::new("i", DType::I64));
    let big = Expr::int(1 << 60, DType::I64);
    let body = Stmt::serial(&i, big.clone(), Stmt::store(&b, vec![Expr::i32(0)], i.expr()));
    let options = RunOptions { steps: Some(1000), ..RunOptions::default() };
    expect![[r#"
        execution: function `main`: too many steps
    "#]]
    .assert_eq(&error_with(&func(&[&b], body), &[], &options));
    let t = Buffer::new("T", vec![big], DType::I64);
    let body = Stmt::store(&b, vec![Expr::i32(0)], Expr::int(0, DType::I64));
    expect![[r#"
        execution: function `main`: buffer `T` has no sane size
    "#]]
    .assert_eq(&error(&func(&[&b], Stmt::allocate(&t, body.clone())), &[]));
    let t = buffer("T", &[1 << 30], DType::I64);
    let options = RunOptions { memory: 1 << 20, ..RunOptions::default() };
    expect![[r#"
        execution: function `main`: allocation of 8589934592 bytes is over the memory limit
    "#]]
    .assert_eq(&error_with(&func(&[&b], Stmt::allocate(&t, body)), &[], &options));
}

#[test]
fn arguments_that_do_not_fit() {
    let n = Var::new("n", DType::I64);
    let a = Buffer::new("A", vec![n.expr(), Expr::i32(3)], DType::F32);
    let b = Buffer::new("B", vec![&n * 2], DType::F32);
    let f = func(&[&a, &b], Stmt::nop());
    let check = |args: &[Arg], expected: Expect| {
        let e = run_func(&f, args, &RunOptions::default()).map(|_| ());
        expected.assert_eq(&e.map_err(|e| format!("{}: {e}", kind(&e))).err().unwrap_or_default());
    };
    let t = |shape: &[usize]| Arg::Tensor(iota(shape));
    check(&[t(&[2, 3]), t(&[4])], expect![""]);
    check(&[t(&[2, 3])], expect!["input: function `main`: 1 arguments for 2 parameters"]);
    check(
        &[t(&[2, 3, 1]), t(&[4])],
        expect!["input: function `main`: argument `A` has shape [2, 3, 1], but (n, 3) is declared"],
    );
    check(
        &[t(&[2, 4]), t(&[4])],
        expect![
            "input: function `main`: argument `A` has shape [2, 4], but (n, 3) is declared, which is [2, 3] here"
        ],
    );
    check(
        &[t(&[2, 3]), t(&[5])],
        expect![
            "input: function `main`: argument `B` has shape [5], but (n * T.int64(2)) is declared, which is [4] here"
        ],
    );
    check(
        &[Arg::Tensor(tensor(&[1i32])), t(&[4])],
        expect!["input: function `main`: argument `A` is int32, but float32 is declared"],
    );
    check(
        &[Arg::Scalar(Scalar::from(1i32)), t(&[4])],
        expect!["input: function `main`: argument `A` is a scalar"],
    );
    check(
        &[Arg::Fresh(None), Arg::Fresh(None)],
        expect!["input: function `main`: no argument gives `n` a value that fits int64"],
    );
    check(
        &[Arg::Partial(iota(&[2, 3]), Vec::new()), t(&[4])],
        expect!["input: function `main`: argument `A` has 6 elements and 0 states"],
    );
    let s = Var::new("s", DType::F32);
    let f = TensorFunc::new(vec![Param::Scalar(s)], Stmt::nop());
    let e =
        |arg| run_func(&f, &[arg], &RunOptions::default()).map(|_| ()).map_err(|e| e.to_string());
    expect!["function `main`: argument `s` is int32, but float32 is declared"]
        .assert_eq(&e(Arg::Scalar(1i32.into())).err().unwrap_or_default());
    expect!["function `main`: argument `s` is a tensor"]
        .assert_eq(&e(t(&[1])).err().unwrap_or_default());
    assert!(e(Arg::Scalar(1f32.into())).is_ok());
}

#[test]
fn calls_that_the_interpreter_does_not_know() {
    check(
        |_, i| Expr::call(CallTarget::Extern("f".into()), vec![i.expr()], DType::I32),
        expect![[r#"
            unsupported: function `main`: the interpreter does not know the external function `f`
            help: give it one of this name among the options
        "#]],
    );
    check(
        |_, i| Expr::call(CallTarget::Opaque("sync".into()), vec![i.expr()], DType::I32),
        expect![[r#"
            unsupported: function `main`: the interpreter does not know what T.sync does
        "#]],
    );
    let call = |args: Vec<Expr>| Expr::call(CallTarget::Extern("f".into()), args, DType::I32);
    let run = |e: Expr| {
        let b = buffer("B", &[1], DType::I32);
        let f = func(&[&b], Stmt::store(&b, vec![Expr::i32(0)], e));
        let mut options = RunOptions::default();
        options.externs.insert(
            "f".into(),
            Arc::new(|args: &[Scalar]| match args {
                [x] if x.as_i128() < 0 => Err(tilewright_ir::Error::input("negative")),
                [x] => Ok(Scalar::int(x.as_i128() as i64 * 10, DType::I32)),
                _ => Ok(Scalar::from(1.5f32)),
            }),
        );
        match run_with(&f, &[], &options) {
            Ok(outputs) => outputs[0].tensor.get_i128(0).to_string(),
            Err(e) => format!("{}: {e}", kind(&e)),
        }
    };
    expect!["70"].assert_eq(&run(call(vec![Expr::i32(7)])));
    expect!["execution: function `main`: `f` failed: negative"]
        .assert_eq(&run(call(vec![Expr::i32(-7)])));
    expect!["execution: function `main`: `f` gave a float32, not a int32"]
        .assert_eq(&run(call(vec![])));
    expect!["unsupported: function `main`: a call of `f` with an argument that is no number"]
        .assert_eq(&run(call(vec![Expr::str("x")])));
    expect!["execution: function `main`: an argument of `f` is an arbitrary value"]
        .assert_eq(&run(call(vec![Expr::undef(DType::I32)])));
}

#[test]
fn pointers_of_unknown_extent_are_refused() {
    let p = Var::new("p", DType::HANDLE);
    let f = TensorFunc::new(vec![Param::Scalar(p)], Stmt::nop());
    let e = run_func(&f, &[Arg::Scalar(0i32.into())], &RunOptions::default()).map(|_| ());
    expect!["function `main`: parameter `p` is a pointer to memory of unknown size"]
        .assert_eq(&e.map_err(|e| e.to_string()).err().unwrap_or_default());
}

#[test]
fn malformed_functions_are_refused() {
    let b = buffer("B", &[1], DType::F32);
    let f = func(&[&b], Stmt::store(&b, vec![Expr::i32(0)], Expr::i32(0)));
    expect![[r#"
        malformed: function `main`: value `0` is int32, but `B[0]` is float32
        note: in `B[0] = 0`
    "#]]
    .assert_eq(&error(&f, &[]));
}

#[test]
fn the_first_thing_that_goes_wrong_is_reported() {
    // Both sides are illegal; the left one comes first.
    check(
        |a, i| a.load([i + 10]) + a.load([i + 20]),
        expect![[r#"
            execution: function `main`: `A[10]` is out of range: axis 0 has extent 4
            note: with i = 0
        "#]],
    );
}

//! Every error of code generation that a user can meet.

use crate::common::*;
use expect_test::{Expect, expect};
use tilewright_codegen::emit;
use tilewright_ir::{
    BinOp, Block, Buffer, CallTarget, DType, Expr, ExprKind, ForKind, Intrin, Param, Range, Source,
    Span, Stmt, StmtKind, TensorFunc, Var,
};

fn error(func: &TensorFunc) -> String {
    let error = ir(func, &baseline()).expect_err("code generation refuses");
    error.in_source(&Source::new("f.py", "A[i] = 1\n")).render()
}

#[track_caller]
fn check(buffers: &[&Buffer], body: Stmt, expected: Expect) {
    let spanned = Stmt::spanned(body.kind().clone(), Some(Span::new(0, 4)));
    expected.assert_eq(&error(&func(buffers, spanned)));
}

fn a() -> Buffer {
    buffer("A", &[8], DType::F32)
}

fn store(b: &Buffer, value: Expr) -> Stmt {
    Stmt::store(b, vec![Expr::i32(0)], value)
}

fn x() -> Expr {
    Expr::float(1.0, DType::F32)
}

#[test]
fn several_physical_axes() {
    let b = buffer("A", &[8, 4], DType::F32).derive(|d| d.axis_separators = vec![1]);
    check(
        &[&b],
        Stmt::store(&b, vec![Expr::i32(0), Expr::i32(0)], x()),
        expect![[r#"
            error: function `f`: buffer `A` has 2 physical axes, and `global` memory of this target takes 1
              --> f.py:1:1
               1 | A[i] = 1
                 | ^^^^
            help: remove the axis separators, or compile for a target with such memory
        "#]],
    );
}

#[test]
fn thread_axes() {
    let (b, i) = (a(), Var::index("i"));
    let body = Stmt::store(&b, vec![i.expr()], x());
    let kind = ForKind::ThreadBinding("threadIdx.x".into());
    check(
        &[&b],
        Stmt::for_loop(&i, Range::upto(Expr::i32(8)), kind, body),
        expect![[r#"
            error: function `f`: loop `i` is bound to `threadIdx.x`, and this target has no such threads
              --> f.py:1:1
               1 | A[i] = 1
                 | ^^^^
            help: use a parallel loop
        "#]],
    );
}

#[test]
fn memory_scopes_and_sizes() {
    let (b, n) = (a(), Var::index("n"));
    let in_scope = a().derive_storage(|d| d.scope = "shared".into());
    check(
        &[&b],
        Stmt::allocate(&in_scope, store(&b, x())),
        expect![[r#"
            error: function `f`: buffer `A` lives in `shared`, which this target does not have
            help: use one of its scopes: `global`, `local`
        "#]],
    );
    let open = Buffer::new("T", vec![n.expr()], DType::F32);
    check(
        &[&b],
        Stmt::allocate(&open, store(&b, x())),
        expect![[r#"
            error: function `f`: the size of buffer `T` is not a constant
              --> f.py:1:1
               1 | A[i] = 1
                 | ^^^^
        "#]],
    );
    let (big, other) = (buffer("T", &[10_000], DType::F32), buffer("U", &[10_000], DType::F32));
    check(
        &[&b],
        Stmt::allocate(&big, Stmt::allocate(&other, store(&b, x()))),
        expect![[r#"
            error: function `f`: buffer `U` of 40000 bytes: local memory of 80000 bytes in one function, at most 65536 are possible
              --> f.py:1:1
               1 | A[i] = 1
                 | ^^^^
            help: allocate large buffers outside the loops
        "#]],
    );
}

#[test]
fn what_is_not_lowered() {
    let b = a();
    check(
        &[&b],
        Stmt::block(Vec::new(), Expr::bool(true), Block::new("B", store(&b, x()))),
        expect![[r#"
            error: function `f`: the block `B` is left where code is generated
              --> f.py:1:1
               1 | A[i] = 1
                 | ^^^^
            help: lower the function first
        "#]],
    );
}

#[test]
fn calls() {
    let b = a();
    let call = |target, args| Expr::call(target, args, DType::F32);
    check(
        &[&b],
        store(&b, call(CallTarget::Opaque("tvm_thread_allreduce".into()), Vec::new())),
        expect![[r#"
            error: function `f`: native code cannot call `T.tvm_thread_allreduce`
              --> f.py:1:1
               1 | A[i] = 1
                 | ^^^^
        "#]],
    );
    check(
        &[&b],
        store(&b, call(CallTarget::Extern("llvm.trap".into()), Vec::new())),
        expect![[r#"
            error: function `f`: `llvm.trap` is called, but is not the name of a C function
              --> f.py:1:1
               1 | A[i] = 1
                 | ^^^^
        "#]],
    );
    check(
        &[&b],
        store(&b, call(CallTarget::Extern("g".into()), vec![Expr::float(1.0, DType::F16)])),
        expect![[r#"
            error: function `f`: a value of type float16 cannot go to or from the C function `g`
              --> f.py:1:1
               1 | A[i] = 1
                 | ^^^^
        "#]],
    );
    check(
        &[&b],
        store(&b, call(CallTarget::Opaque("address_of".into()), vec![x()])),
        expect![[r#"
            error: function `f`: `T.address_of` takes an element of a buffer
              --> f.py:1:1
               1 | A[i] = 1
                 | ^^^^
        "#]],
    );
    check(
        &[&b],
        store(&b, Expr::intrin(Intrin::Shl, vec![x(), x()])),
        expect![[r#"
            error: function `f`: `T.shift_left` does not take values of type float32
              --> f.py:1:1
               1 | A[i] = 1
                 | ^^^^
        "#]],
    );
    check(
        &[&b],
        store(&b, Expr::call(CallTarget::Intrin(Intrin::Exp), Vec::new(), DType::F32)),
        expect![[r#"
            error: function `f`: `T.exp` takes 1 arguments and is given 0
              --> f.py:1:1
               1 | A[i] = 1
                 | ^^^^
        "#]],
    );
}

#[test]
fn types_that_do_not_fit() {
    let b = a();
    check(
        &[&b],
        store(&b, Expr::binary(BinOp::FloorDiv, x(), x())),
        expect![[r#"
            error: function `f`: `T.float32(1.0) // T.float32(1.0)` is not defined for values of type float32
              --> f.py:1:1
               1 | A[i] = 1
                 | ^^^^
        "#]],
    );
    check(
        &[&b],
        store(&b, Expr::binary(BinOp::Add, x(), Expr::i32(1))),
        expect![[r#"
            error: function `f`: the operands of `T.float32(1.0) + 1` have the types float32 and int32
              --> f.py:1:1
               1 | A[i] = 1
                 | ^^^^
        "#]],
    );
    check(
        &[&b],
        store(&b, Expr::i32(1)),
        expect![[r#"
            error: function `f`: a value of type int32 is stored to buffer `A` of type float32
              --> f.py:1:1
               1 | A[i] = 1
                 | ^^^^
        "#]],
    );
    check(
        &[&b],
        store(&b, Expr::broadcast(x(), 4)),
        expect![[r#"
            error: function `f`: a value of 4 lanes is stored to 1 lanes of buffer `A`
              --> f.py:1:1
               1 | A[i] = 1
                 | ^^^^
        "#]],
    );
    check(
        &[&b],
        Stmt::store(&b, vec![x()], x()),
        expect![[r#"
            error: function `f`: the index `T.float32(1.0)` is not an integer
              --> f.py:1:1
               1 | A[i] = 1
                 | ^^^^
        "#]],
    );
    check(
        &[&b],
        Stmt::store(&b, vec![Expr::i32(0), Expr::i32(0)], x()),
        expect![[r#"
            error: function `f`: buffer `A` has 1 axes and is accessed with 2 indices
              --> f.py:1:1
               1 | A[i] = 1
                 | ^^^^
        "#]],
    );
    check(
        &[&b],
        store(&b, Expr::cast_node(x(), DType::F32.with_lanes(4))),
        expect![[r#"
            error: function `f`: there is no conversion from float32 to float32x4
              --> f.py:1:1
               1 | A[i] = 1
                 | ^^^^
        "#]],
    );
    check(
        &[&b],
        store(
            &b,
            Expr::new(
                ExprKind::Int(1),
                "int32".parse().map(|d: DType| DType { bits: 4, ..d }).expect("a type"),
            ),
        ),
        expect![[r#"
            error: function `f`: native code has no values of type int4
              --> f.py:1:1
               1 | A[i] = 1
                 | ^^^^
        "#]],
    );
}

#[test]
fn variables_and_buffers_that_are_not_there() {
    let (b, other, v) = (a(), buffer("Z", &[1], DType::F32), Var::new("v", DType::F32));
    check(
        &[&b],
        store(&b, v.expr()),
        expect![[r#"
            error: function `f`: variable `v` is used where it is not defined
              --> f.py:1:1
               1 | A[i] = 1
                 | ^^^^
        "#]],
    );
    check(
        &[&b],
        store(&b, other.load([Expr::i32(0)])),
        expect![[r#"
            error: function `f`: buffer `Z` is used where it has no memory
              --> f.py:1:1
               1 | A[i] = 1
                 | ^^^^
        "#]],
    );
    let i = Var::index("i");
    let body = Stmt::store(&b, vec![i.expr()], v.expr());
    check(
        &[&b],
        Stmt::for_loop(&i, Range::upto(Expr::i32(8)), ForKind::Parallel, body),
        expect![[r#"
            error: function `f`: `v` is used in a parallel loop where it is not defined
              --> f.py:1:1
               1 | A[i] = 1
                 | ^^^^
        "#]],
    );
}

#[test]
fn vector_conditions() {
    let b = a();
    let cond = Expr::broadcast(Expr::bool(true), 4);
    check(
        &[&b],
        Stmt::guard(cond, store(&b, x())),
        expect![[r#"
            error: function `f`: an access of 1 lanes cannot stand under a condition of 4 lanes
              --> f.py:1:1
               1 | A[i] = 1
                 | ^^^^
        "#]],
    );
}

#[test]
fn vectors_where_there_can_be_none() {
    let b = a();
    let four = |e: Expr| Expr::broadcast(e, 4);
    check(
        &[&b],
        store(&b, Expr::new(ExprKind::Broadcast(four(x())), DType::F32.with_lanes(8))),
        expect![[r#"
            error: function `f`: `T.Broadcast(T.float32(1.0), 4)` is a vector and cannot be broadcast
              --> f.py:1:1
               1 | A[i] = 1
                 | ^^^^
        "#]],
    );
    check(
        &[&b],
        store(&b, Expr::ramp(x(), x(), 4)),
        expect![[r#"
        error: function `f`: `T.Ramp(T.float32(1.0), T.float32(1.0), 4)` is not a ramp of integers
          --> f.py:1:1
           1 | A[i] = 1
             | ^^^^
    "#]],
    );
    let vectors = buffer("V", &[4], DType::F32.with_lanes(4));
    check(
        &[&b],
        store(&b, vectors.load([Expr::ramp(Expr::i32(0), Expr::i32(1), 4)])),
        expect![[r#"
        error: function `f`: buffer `V` of type float32x4 takes no vector index
          --> f.py:1:1
           1 | A[i] = 1
             | ^^^^
    "#]],
    );
    let ramp = Expr::ramp(Expr::i32(0), Expr::i32(1), 4);
    let scattered = Expr::binary(BinOp::FloorDiv, ramp, four(Expr::i32(2)));
    let address = CallTarget::Opaque("address_of".into());
    check(
        &[&b],
        Stmt::new(StmtKind::Evaluate(Expr::call(
            address,
            vec![b.load([scattered])],
            DType::HANDLE,
        ))),
        expect![[r#"
            error: function `f`: there is no single address of a vector of elements
              --> f.py:1:1
               1 | A[i] = 1
                 | ^^^^
        "#]],
    );
    let assert = Stmt::assert(Expr::broadcast(Expr::bool(false), 8), "no");
    let under = |lanes: u16, s: Stmt| Stmt::guard(Expr::broadcast(Expr::bool(true), lanes), s);
    check(
        &[&b],
        under(4, assert),
        expect![[r#"
        error: function `f`: an assertion cannot stand under a condition of other lanes
          --> f.py:1:1
           1 | A[i] = 1
             | ^^^^
    "#]],
    );
    check(
        &[&b],
        under(4, under(8, store(&b, x()))),
        expect![[r#"
        error: function `f`: a condition of 8 lanes cannot stand under one of 4
          --> f.py:1:1
           1 | A[i] = 1
             | ^^^^
    "#]],
    );
}

#[test]
fn conditions_and_bounds_of_wrong_types() {
    let (b, i) = (a(), Var::index("i"));
    check(
        &[&b],
        Stmt::guard(Expr::i32(1), store(&b, x())),
        expect![[r#"
        error: function `f`: the condition `1` is not a bool
          --> f.py:1:1
           1 | A[i] = 1
             | ^^^^
    "#]],
    );
    check(
        &[&b],
        store(&b, Expr::if_then_else(Expr::i32(1), x(), x())),
        expect![[r#"
        error: function `f`: the types in `T.if_then_else(1, T.float32(1.0), T.float32(1.0))` do not fit together
          --> f.py:1:1
           1 | A[i] = 1
             | ^^^^
    "#]],
    );
    let body = Stmt::store(&b, vec![i.expr()], x());
    let range = Range::upto(Expr::int(4, DType::I64));
    check(
        &[&b],
        Stmt::for_loop(&i, range, ForKind::Serial, body),
        expect![[r#"
        error: function `f`: loop `i` of type int32 has bounds of the types int64 and int64
          --> f.py:1:1
           1 | A[i] = 1
             | ^^^^
    "#]],
    );
    check(
        &[&b],
        store(&b, Expr::new(ExprKind::Int(1), DType::F32)),
        expect![[r#"
            error: function `f`: the integer constant `T.float32(1)` cannot have the type float32
              --> f.py:1:1
               1 | A[i] = 1
                 | ^^^^
        "#]],
    );
    check(
        &[&b],
        store(&b, Expr::new(ExprKind::Float(1.0), DType::I32)),
        expect![[r#"
            error: function `f`: the float constant `T.int32(1.0)` cannot have the type int32
              --> f.py:1:1
               1 | A[i] = 1
                 | ^^^^
        "#]],
    );
}

#[test]
fn deep_nesting_is_an_error_and_not_the_end_of_the_stack() {
    // Code is made on threads with much stack; frames of code that is not optimised are large.
    let thread = std::thread::Builder::new().stack_size(32 << 20);
    let done = thread.spawn(deep_nesting_is_an_error).expect("a thread").join();
    assert!(done.is_ok());
}

fn deep_nesting_is_an_error() {
    let b = a();
    let deep = (0..6_000).fold(x(), |e, _| Expr::binary(BinOp::Add, e, x()));
    let text = error(&func(&[&b], store(&b, deep.clone())));
    assert!(text.starts_with("error: function `f`: the code is nested deeper than"), "{text}");
    // Taking the tree apart is as deep as the tree.
    std::mem::forget(deep);
}

#[test]
fn a_tree_that_doubles_at_each_step_is_an_error_and_not_the_end_of_memory() {
    let (b, n) = (a(), Expr::i32(0));
    let choice = |e: &Expr, k: i64| {
        let cond = b.load([n.clone()]).less(k as f64);
        Expr::if_then_else(cond, Expr::intrin(Intrin::Exp, vec![e.clone()]), x())
    };
    let doubled = (0..40).fold(x(), |e, k| Expr::binary(BinOp::Add, choice(&e, k), choice(&e, -k)));
    let text = error(&func(&[&b], store(&b, doubled)));
    assert!(text.starts_with("error: function `f`: the code evaluates more than"), "{text}");
}

#[test]
fn signatures() {
    let b = a();
    let mut f = func(&[&b], store(&b, x()));
    f.ret = Some(DType::I32);
    expect![[r#"
        error: function `f`: in native code a tensor function cannot return a value
    "#]]
    .assert_eq(&error(&f));
    let mut f = func(&[&b], store(&b, x()));
    f.params.push(Param::Scalar(Var::new("v", DType::F32.with_lanes(4))));
    expect![[r#"
        error: function `f`: a parameter cannot have the type float32x4
    "#]]
    .assert_eq(&error(&f));
    let f = func(&[&b], store(&b, x()));
    let twice = emit::module(&[(name("f"), &f), (name("f"), &f)], &baseline());
    expect!["two functions are called `f`"]
        .assert_eq(&twice.expect_err("a name twice").to_string());
    let messages = (0..5000).map(|k| Stmt::assert(Expr::bool(false), format!("{k}")));
    let f = func(&[&b], Stmt::seq(messages));
    expect![[r#"
        error: function `f`: 5000 different assertion messages; 4095 are possible
    "#]]
    .assert_eq(&error(&f));
}

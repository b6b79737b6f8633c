//! Functions that differ in numbers alone share their code.

use std::sync::Arc;

use crate::common::*;
use tilewright_codegen::llvm::{Emit, Llvm, OptLevel};
use tilewright_ir::{BinOp, DType, Expr, ForKind, Range, Stmt, TensorFunc, Var};

/// `B[i] = sum over j of A[i, j] * A[i, (3 * width - 1) - j]`, rows in parallel, in rows of `3 * width` cells; an
/// assertion says that no row is `stop`.
fn sums(width: i64, stop: i64) -> TensorFunc {
    let (a, b) = (buffer("A", &[7, 3 * width], DType::F32), buffer("B", &[7], DType::F32));
    let (i, j) = (Var::index("i"), Var::index("j"));
    let (cells, last) = (Expr::int(3 * width, DType::I32), Expr::int(3 * width - 1, DType::I32));
    let product = a.load([i.expr(), j.expr()]) * a.load([i.expr(), last - &j]);
    let add = Stmt::store(&b, vec![i.expr()], b.load([i.expr()]) + product);
    let zero = Stmt::store(&b, vec![i.expr()], Expr::float(0.0, DType::F32));
    let check = Stmt::assert(
        Expr::binary(BinOp::Ne, i.expr(), Expr::int(stop, DType::I32)),
        "a row to stop at",
    );
    let row = Stmt::seq([check, zero, Stmt::serial(&j, cells, add)]);
    let rows = Range::upto(Expr::i32(7));
    func(&[&a, &b], Stmt::for_loop(&i, rows, ForKind::Parallel, row))
}

fn named(funcs: &[TensorFunc]) -> Vec<(Arc<str>, &TensorFunc)> {
    funcs.iter().enumerate().map(|(k, f)| (format!("f{k}").into(), f)).collect()
}

/// Runs each of the functions that were compiled together, and compares with the interpreter.
fn check(funcs: &[TensorFunc], implementations: usize) {
    let (text, natives) = compile_together(&named(funcs));
    let bodies = |text: &str| {
        text.lines().filter(|l| l.starts_with("define") && l.contains(".impl(")).count()
    };
    assert_eq!(bodies(&text), implementations, "{text}");
    // LLVM makes no copies of them.
    let llvm = Llvm::get().expect("an LLVM");
    let after =
        llvm.compile(&text, &llvm.host(), OptLevel::Full, Emit::OptimizedIr).expect("LLVM IR");
    let after = String::from_utf8(after).expect("a text");
    assert!(bodies(&after) <= implementations, "{after}");
    for (k, (f, native)) in funcs.iter().zip(&natives).enumerate() {
        let tensors = arguments(f, k as u64);
        let expected = compare(f, &tensors);
        for with_threads in [false, true] {
            let mut got = tensors.clone();
            let code =
                if with_threads { native.call_threads(&mut got) } else { native.call(&mut got) };
            assert_eq!(code, 0);
            assert_eq!(got[1].bytes(), expected[1].bytes(), "function {k}");
        }
    }
}

#[test]
fn rows_of_several_lengths_share_a_body() {
    check(&[sums(96, 9), sums(128, 9), sums(201, 9), sums(96, 9)], 1);
}

#[test]
fn short_loops_and_other_forms_have_their_own() {
    check(&[sums(7, 9), sums(8, 9), sums(96, 9), sums(96, 8)], 4);
}

#[test]
fn each_function_knows_its_own_assertion() {
    let funcs = [sums(96, 3), sums(128, 3)];
    let (_, natives) = compile_together(&named(&funcs));
    for (f, native) in funcs.iter().zip(&natives) {
        assert_eq!(native.call(&mut arguments(f, 1)), 1);
        assert_eq!(native.call_threads(&mut arguments(f, 1)), 1);
    }
}

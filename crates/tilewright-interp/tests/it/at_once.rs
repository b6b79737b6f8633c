//! Loops whose iterations run at once, and depend on one another or not.

use expect_test::{Expect, expect};
use tilewright_interp::RunOptions;
use tilewright_ir::{
    Buffer, CallTarget, DType, Expr, ForKind, Range, Stmt, StmtKind, TensorFunc, Var,
};

use crate::build::*;

fn at_once(v: &Var, n: i64, kind: ForKind, body: Stmt) -> Stmt {
    Stmt::for_loop(v, Range::upto(Expr::int(n, v.dtype())), kind, body)
}

/// What comes of a function of `A`, `B` (32 by 32 each, given) and `C` (an output): the same with
/// batches and without.
fn check(make: impl Fn(&Buffer, &Buffer, &Buffer) -> Stmt, expected: Expect) {
    let [a, b, c] = ["A", "B", "C"].map(|n| buffer(n, &[32, 32], DType::F32));
    let f: TensorFunc = func(&[&a, &b, &c], make(&a, &b, &c));
    let run = |batches| {
        let options = RunOptions { batches, ..RunOptions::default() };
        match run_with(&f, &[iota(&[32, 32]), iota(&[32, 32])], &options) {
            Ok(_) => "kept".to_owned(),
            Err(e) => e.diagnostic().message.clone(),
        }
    };
    let found = run(true);
    assert_eq!(found, run(false));
    expected.assert_eq(&found);
}

#[test]
fn a_promise_is_checked_at_every_cell() {
    let [i, j, k] = ["i", "j", "k"].map(Var::index);
    let ij = || vec![i.expr(), j.expr()];
    let grid = |kinds: [ForKind; 2], body: Stmt| {
        let [x, y] = kinds;
        at_once(&i, 32, x, at_once(&j, 32, y, body))
    };
    let (serial, parallel, lanes) = (ForKind::Serial, ForKind::Parallel, ForKind::Vectorized);
    let thread = ForKind::ThreadBinding("threadIdx.x".into());
    // Each iteration its own cells.
    for kinds in [[parallel.clone(), lanes.clone()], [serial.clone(), thread.clone()]] {
        check(
            |a, _, c| grid(kinds.clone(), Stmt::store(c, ij(), a.load(ij()) + 1.0)),
            expect!["kept"],
        );
    }
    // A column that every row updates.
    let column = |kinds: [ForKind; 2], expected: Expect| {
        let at = || vec![Expr::i32(0), j.expr()];
        let store = |a: &Buffer, b: &Buffer| Stmt::store(b, at(), b.load(at()) + a.load(ij()));
        check(|a, b, _| grid(kinds.clone(), store(a, b)), expected);
    };
    column([serial.clone(), parallel.clone()], expect!["kept"]);
    column([lanes.clone(), serial.clone()], expect!["kept"]);
    column(
        [parallel.clone(), serial.clone()],
        expect![
            "function `main`: the iterations i=0 and i=1 of a loop run on threads at the same time, and both access `B[0, 0]`, which one of them writes"
        ],
    );
    // An update that does not commute.
    check(
        |a, b, _| {
            let at = || vec![i.expr(), Expr::i32(0)];
            grid([serial.clone(), lanes.clone()], Stmt::store(b, at(), a.load(ij()) - b.load(at())))
        },
        expect![
            "function `main`: the iterations j=0 and j=1 of a loop run as lanes of vectors, and both access `B[0, 0]`, which one of them writes"
        ],
    );
    // What another iteration writes, read before and after.
    for step in [1i32, 31] {
        check(
            |_, b, _| {
                let next = vec![(i.expr() + i64::from(step)).floormod(32), j.expr()];
                grid([parallel.clone(), serial.clone()], Stmt::store(b, ij(), b.load(next) + 1.0))
            },
            match step {
                1 => expect![
                    "function `main`: the iterations i=0 and i=1 of a loop run on threads at the same time, and both access `B[1, 0]`, which one of them writes"
                ],
                _ => expect![
                    "function `main`: the iterations i=0 and i=1 of a loop run on threads at the same time, and both access `B[0, 0]`, which one of them writes"
                ],
            },
        );
    }
    // The loop inside of a parallel one runs in batches, and is watched.
    check(
        |a, b, c| {
            let row = || vec![Expr::i32(0), j.expr()];
            let first = at_once(&j, 32, serial.clone(), Stmt::store(c, row(), a.load(ij())));
            let second =
                at_once(&k, 32, serial.clone(), Stmt::store(b, vec![i.expr(), k.expr()], f32(0.0)));
            at_once(&i, 32, parallel.clone(), Stmt::seq([first, second]))
        },
        expect![
            "function `main`: the iterations i=0 and i=1 of a loop run on threads at the same time, and both access `C[0, 0]`, which one of them writes"
        ],
    );
    // Memory of an iteration, and the same work again.
    check(
        |a, _, c| {
            let t = buffer("t", &[32], DType::F32);
            let [l, m] = ["l", "m"].map(Var::index);
            let row = || vec![Expr::i32(0), l.expr()];
            let own = Stmt::store(&t, vec![j.expr()], a.load(ij()));
            let again = Stmt::store(c, row(), a.load(row()) * 2.0);
            let use_it = Stmt::store(c, vec![i.expr(), k.expr()], t.load([k.expr()]));
            let body = Stmt::seq([
                at_once(&j, 32, serial.clone(), own),
                Stmt::guard(i.expr().greater(0), at_once(&k, 32, serial.clone(), use_it)),
            ]);
            let all = at_once(&i, 32, parallel.clone(), Stmt::allocate(&t, body));
            let row = at_once(&m, 3, lanes.clone(), at_once(&l, 32, serial.clone(), again));
            Stmt::seq([all, row])
        },
        expect!["kept"],
    );
}

/// `C[0, t] = S[15 - t]` after `S[t] = A[0, t]`, with a barrier between them or none, and what another
/// statement of the thread does behind.
fn exchange(a: &Buffer, c: &Buffer, waits: bool, behind: impl Fn(&Buffer, &Var) -> Stmt) -> Stmt {
    let s = buffer("S", &[16], DType::F32).derive(|data| data.scope = "shared".into());
    let t = Var::index("t");
    let row = |column: Expr| vec![Expr::i32(0), column];
    let barrier = Expr::call(
        CallTarget::Opaque("tvm_storage_sync".into()),
        vec![Expr::str("shared")],
        DType::HANDLE,
    );
    let wait = if waits { Stmt::new(StmtKind::Evaluate(barrier)) } else { Stmt::nop() };
    let body = Stmt::seq([
        Stmt::store(&s, vec![t.expr()], a.load(row(t.expr()))),
        wait,
        Stmt::store(c, row(t.expr()), s.load([Expr::i32(15) - t.expr()])),
        behind(&s, &t),
    ]);
    let thread = ForKind::ThreadBinding("threadIdx.x".into());
    Stmt::allocate(&s, at_once(&t, 16, thread, body))
}

#[test]
fn a_barrier_ends_a_phase() {
    let nothing = |_: &Buffer, _: &Var| Stmt::nop();
    check(|a, _, c| exchange(a, c, true, nothing), expect!["kept"]);
    let zero = |s: &Buffer, t: &Var| Stmt::store(s, vec![t.expr()], f32(0.0));
    check(
        |a, _, c| exchange(a, c, true, zero),
        expect![
            "function `main`: the iterations t=7 and t=8 of a loop run on threads at the same time, and both access `S[7]`, which one of them writes"
        ],
    );
    let [a, c] = ["A", "C"].map(|n| buffer(n, &[1, 16], DType::F32));
    let outputs = values(&func(&[&a, &c], exchange(&a, &c, true, nothing)), &[iota(&[1, 16])]);
    assert_eq!(outputs, (0..16).rev().map(f64::from).collect::<Vec<_>>());
    let racing = func(&[&a, &c], exchange(&a, &c, false, nothing));
    assert!(run(&racing, &[iota(&[1, 16])]).is_err());
}

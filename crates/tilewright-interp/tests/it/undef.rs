//! Arbitrary values, and permission to read what was never written.

use tilewright_interp::{Arg, Fill, RunOptions, State, Uninitialised, run_func};
use tilewright_ir::{BinOp, Buffer, DType, Expr, Stmt, StmtKind, Tensor, TensorFunc, Var};

use crate::build::*;

const FILLS: [Fill; 3] = [Fill::Zero, Fill::Nan, Fill::Random(7)];

/// Stores values to `B[0]`, `B[1]`, ...; says which are arbitrary.
fn states(values: &[Expr]) -> Vec<bool> {
    let dtype = values[0].dtype();
    let b = buffer("B", &[values.len() as i64], dtype);
    let stores = values.iter().enumerate();
    let stores = stores.map(|(i, v)| Stmt::store(&b, vec![Expr::i32(i as i32)], v.clone()));
    let f = func(&[&b], Stmt::seq(stores));
    let mut found = Vec::new();
    for fill in FILLS {
        let options = RunOptions { fill, ..RunOptions::default() };
        let out = run_with(&f, &[], &options).unwrap_or_else(|e| panic!("{}", e.render()));
        let states = out[0].states.clone().unwrap_or_else(|| vec![State::Value; values.len()]);
        found.push(states.iter().map(|s| *s == State::Undef).collect::<Vec<_>>());
        // What is not arbitrary does not depend on what the arbitrary values are.
        let plain = run_with(&f, &[], &RunOptions::default()).unwrap_or_else(|e| panic!("{e}"));
        for (i, s) in states.iter().enumerate() {
            let same = plain[0].tensor.get_f64(i) == out[0].tensor.get_f64(i);
            assert!(same || *s == State::Undef, "{:?} {fill:?}", values[i]);
        }
    }
    assert!(found.windows(2).all(|w| w[0] == w[1]), "{found:?}");
    found.swap_remove(0)
}

#[test]
fn arbitrary_values_travel_through_expressions() {
    let u = || Expr::undef(DType::F32);
    let x = Var::new("x", DType::F32);
    let c = Expr::bool(true);
    let values = [
        u(),
        f32(1.0),
        u() + 1.0,
        u() - u(),
        f32(0.0) * u(),
        Expr::select(c.clone(), f32(1.0), u()),
        Expr::select(c.clone(), u(), f32(1.0)),
        Expr::if_then_else(c, f32(1.0), u()),
        Expr::let_in(x.clone(), u(), x.expr() * 2.0),
        Expr::let_in(x.clone(), u(), f32(2.0)),
        Expr::intrin(tilewright_ir::Intrin::Exp, vec![u()]),
        Expr::cast_node(Expr::undef(DType::F64), DType::F32),
        Expr::select(u().less(1.0), f32(1.0), f32(2.0)),
    ];
    let want = [true, false, true, true, true, false, true, false, true, false, true, true, true];
    assert_eq!(states(&values), want);
}

#[test]
fn what_every_value_decides_is_not_arbitrary() {
    let i = || Expr::undef(DType::I32);
    let zero = || Expr::i32(0);
    let mul = |a, b| Expr::binary(BinOp::Mul, a, b);
    assert_eq!(
        states(&[mul(zero(), i()), mul(i(), zero()), mul(i(), Expr::i32(2)), mul(i(), i())]),
        [false, false, true, true]
    );
    let b = || Expr::undef(DType::BOOL);
    let (t, f) = (Expr::bool(true), Expr::bool(false));
    let and = |a, b| Expr::binary(BinOp::And, a, b);
    let or = |a, b| Expr::binary(BinOp::Or, a, b);
    assert_eq!(
        states(&[
            and(b(), f.clone()),
            and(f.clone(), b()),
            and(b(), t.clone()),
            or(b(), t.clone()),
            or(t, b()),
            or(f, b()),
            Expr::not_node(b()),
        ]),
        [false, false, true, false, false, true, true]
    );
}

#[test]
fn cells_remember_that_they_are_arbitrary() {
    let (t, b) = (buffer("T", &[3], DType::F32), buffer("B", &[3], DType::F32));
    let i = Var::index("i");
    let at = || vec![i.expr()];
    let fill = Stmt::store(&t, at(), Expr::undef(DType::F32));
    let fix = Stmt::store(&t, vec![Expr::i32(1)], f32(5.0));
    let copy = Stmt::store(&b, at(), t.load(at()));
    let body = Stmt::seq([serial(&i, 3, fill), fix, serial(&i.fresh(), 3, Stmt::nop())]);
    let j = Var::index("j");
    let copy = tilewright_ir::Fold::stmt(
        &mut tilewright_ir::visit::Subst::vars([(i.clone(), j.expr())]),
        &copy,
    );
    let f = func(&[&b], Stmt::allocate(&t, Stmt::seq([body, serial(&j, 3, copy)])));
    let out =
        run_with(&f, &[], &RunOptions::default()).unwrap_or_else(|e| panic!("{}", e.render()));
    assert_eq!(out[0].states, Some(vec![State::Undef, State::Value, State::Undef]));
    assert_eq!(out[0].first_missing(), Some((vec![0], State::Undef)));
    // Arbitrary elements of an output are no error; they come as the fill.
    assert_eq!(values(&f, &[]), [0.0, 5.0, 0.0]);
}

#[test]
fn assuming_undef_permits_reading() {
    let (t, b, i) = (buffer("T", &[4], DType::F32), buffer("B", &[4], DType::F32), Var::index("i"));
    let at = || vec![i.expr()];
    let write = Stmt::guard(i.expr().less(2), Stmt::store(&t, at(), f32(1.0)));
    let undef = || Expr::undef(DType::F32);
    let is_undef = Expr::binary(BinOp::Eq, t.load(at()), undef());
    let permit = Stmt::new(StmtKind::Assume(i.expr().less(1).or(is_undef)));
    let copy = Stmt::store(&b, at(), t.load(at()) + 1.0);
    let with = Stmt::seq([write.clone(), permit, copy.clone()]);
    let f = func(&[&b], Stmt::allocate(&t, serial(&i, 4, with)));
    let out =
        run_with(&f, &[], &RunOptions::default()).unwrap_or_else(|e| panic!("{}", e.render()));
    // What was written keeps its value, even where the assumption permits anything.
    let want = vec![State::Value, State::Value, State::Undef, State::Undef];
    assert_eq!(out[0].states, Some(want));
    assert_eq!(out[0].tensor.get_f64(1), 2.0);
    let without = func(&[&b], Stmt::allocate(&t, serial(&i, 4, Stmt::seq([write, copy]))));
    assert!(error(&without, &[]).contains("read of uninitialised `T[2]`"));
}

#[test]
fn uninitialised_memory_may_count_as_arbitrary() {
    let (t, b, i) = (buffer("T", &[4], DType::F32), buffer("B", &[4], DType::F32), Var::index("i"));
    let at = || vec![i.expr()];
    let write = Stmt::guard(i.expr().less(2), Stmt::store(&t, at(), f32(1.0)));
    // A product with zero keeps what is arbitrary; code that needs the zero must say so.
    let product = Stmt::store(&b, at(), t.load(at()) * 0.0);
    let f = func(&[&b], Stmt::allocate(&t, serial(&i, 4, Stmt::seq([write, product]))));
    let options = RunOptions {
        uninitialised: Uninitialised::Undef,
        fill: Fill::Nan,
        ..RunOptions::default()
    };
    let out = run_with(&f, &[], &options).unwrap_or_else(|e| panic!("{}", e.render()));
    let want = vec![State::Value, State::Value, State::Undef, State::Undef];
    assert_eq!(out[0].states, Some(want));
    assert!(out[0].tensor.get_f64(3).is_nan());
    let empty = func(&[&b], Stmt::nop());
    let out = run_with(&empty, &[], &options).unwrap_or_else(|e| panic!("{}", e.render()));
    assert_eq!(out[0].states, Some(vec![State::Undef; 4]));
}

#[test]
fn arguments_may_be_arbitrary_in_part() {
    let (a, b, i) = (buffer("A", &[3], DType::F32), buffer("B", &[3], DType::F32), Var::index("i"));
    let at = || vec![i.expr()];
    let body = Stmt::store(&b, at(), a.load(at()) + 1.0);
    let f = func(&[&a, &b], serial(&i, 3, body));
    let run = |states: [State; 3]| {
        let args = [Arg::Partial(iota(&[3]), states.to_vec()), Arg::Fresh(None)];
        run_func(&f, &args, &RunOptions::default())
    };
    let out = run([State::Value, State::Undef, State::Value]).unwrap_or_else(|e| panic!("{e}"));
    let b = &out.outputs[out.outputs.len() - 1];
    assert_eq!(b.states, Some(vec![State::Value, State::Undef, State::Value]));
    let e = run([State::Value, State::Unwritten, State::Value]);
    assert!(e.is_err_and(|e| e.to_string().contains("read of uninitialised `A[1]`")));
}

#[test]
fn random_fills_differ_and_repeat() {
    let b = buffer("B", &[64], DType::I64);
    let i = Var::index("i");
    let f = func(&[&b], serial(&i, 64, Stmt::store(&b, vec![i.expr()], Expr::undef(DType::I64))));
    let run = |seed| {
        let options = RunOptions { fill: Fill::Random(seed), ..RunOptions::default() };
        let out = run_with(&f, &[], &options).unwrap_or_else(|e| panic!("{e}"));
        out[0].tensor.clone()
    };
    let (a, again, other): (Tensor, Tensor, Tensor) = (run(1), run(1), run(2));
    assert!(a.same(&again) && !a.same(&other));
    assert!((1..64).all(|i| a.get_i128(i) != a.get_i128(0)));
}

/// `M`, a local buffer of which the first six elements are written, copied into another one by
/// `copied`, of which `read` elements are then used.
fn through_a_copy(dtype: DType, copied: impl Fn(&Var, Expr) -> Expr, read: i64) -> TensorFunc {
    let (a, b) = (buffer("A", &[10], dtype), buffer("B", &[10], dtype));
    let (m, c) = (buffer("M", &[10], dtype), buffer("C", &[10], dtype));
    let each = |n: i64, to: &Buffer, value: &dyn Fn(&Var) -> Expr| {
        let i = Var::index("i");
        serial(&i, n, Stmt::store(to, vec![i.expr()], value(&i)))
    };
    let body = Stmt::seq([
        each(6, &m, &|i| a.load([i.expr()])),
        each(10, &c, &|i| copied(i, m.load([i.expr()]))),
        each(10, &b, &|_| Expr::int(0, DType::I32).cast(dtype)),
        each(read, &b, &|i| c.load([i.expr()]) + c.load([i.expr()])),
    ]);
    func(&[&a, &b], Stmt::allocate(&m, Stmt::allocate(&c, body)))
}

#[test]
fn unwritten_cells_may_be_copied_and_no_more() {
    let tensors = [
        Tensor::from_slice(&[10], &[0f32, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]),
        Tensor::from_slice(&[10], &[0i32, 1, 2, 3, 4, 5, 6, 7, 8, 9]),
        Tensor::from_slice(&[10], &[0u64, 1, 2, 3, 4, 5, 6, 7, 8, 9]),
    ];
    for given in tensors.map(|t| t.expect("ten elements")) {
        let dtype = given.dtype();
        let given = std::slice::from_ref(&given);
        let f = through_a_copy(dtype, |_, x| x, 6);
        assert_eq!(values(&f, given)[..7], [0.0, 2.0, 4.0, 6.0, 8.0, 10.0, 0.0]);
        let e = error(&through_a_copy(dtype, |_, x| x, 7), given);
        assert!(e.contains("read of uninitialised `C[6]`"), "{e}");
        // One side of a choice.
        let padded = |i: &Var, x: Expr| {
            Expr::if_then_else(i.expr().less(8), x, Expr::int(1, DType::I32).cast(dtype))
        };
        assert_eq!(values(&through_a_copy(dtype, padded, 6), given)[5], 10.0);
        let e = error(&through_a_copy(dtype, padded, 10), given);
        assert!(e.contains("read of uninitialised `C[6]`"), "{e}");
        // An operation is no copy.
        let twice = through_a_copy(dtype, |_, x| x.clone() + x, 6);
        let e = error(&twice, given);
        assert!(e.contains("read of uninitialised `M[6]`"), "{e}");
    }
}

#[test]
fn a_copy_of_nothing_leaves_nothing() {
    let (a, b) = (buffer("A", &[4], DType::I32), buffer("B", &[4], DType::I32));
    let m = buffer("M", &[4], DType::I32);
    let i = Var::index("i");
    let copy = serial(&i, 4, Stmt::store(&b, vec![i.expr()], m.load([i.expr()])));
    let first = Stmt::store(&m, vec![Expr::i32(0)], a.load([Expr::i32(0)]));
    let f = func(&[&a, &b], Stmt::allocate(&m, Stmt::seq([first, copy])));
    // `B` had values, of which one is left.
    let given = Tensor::from_slice(&[4], &[1i32, 2, 3, 4]).expect("four");
    let outputs = run_with(&f, &[given.clone(), given], &RunOptions::default()).expect("it runs");
    let states = outputs[0].states.as_ref().expect("not all are written");
    assert_eq!(states[..2], [State::Value, State::Unwritten]);
}

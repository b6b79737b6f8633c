//! Blocks: initialisation, predicates, domains, nesting, and the kinds of loops.

use tilewright_interp::{Arg, RunOptions, run_func};
use tilewright_ir::{
    Block, Buffer, DType, Expr, ForKind, IterKind, IterVar, Param, Range, Stmt, StmtKind,
    TensorFunc, Var,
};

use crate::build::*;

fn iter(v: &Var, n: i64, kind: IterKind) -> IterVar {
    IterVar { var: v.clone(), domain: range(0, n), kind }
}

/// `C = A @ B`, with the loops in the given order (0, 1, 2 for i, j, k).
fn matmul(order: [usize; 3], (n, m, l): (i64, i64, i64)) -> TensorFunc {
    let a = buffer("A", &[n, l], DType::F32);
    let b = buffer("B", &[l, m], DType::F32);
    let c = buffer("C", &[n, m], DType::F32);
    let loops = [("i", n), ("j", m), ("k", l)].map(|(name, n)| (Var::index(name), n));
    let (i, j, k) = (Var::index("vi"), Var::index("vj"), Var::index("vk"));
    let at = || vec![i.expr(), j.expr()];
    let product = a.load([i.expr(), k.expr()]) * b.load([k.expr(), j.expr()]);
    let mut block = Block::new("matmul", Stmt::store(&c, at(), c.load(at()) + product));
    block.iters = vec![
        iter(&i, n, IterKind::Spatial),
        iter(&j, m, IterKind::Spatial),
        iter(&k, l, IterKind::Reduce),
    ];
    block.init = Some(Stmt::store(&c, at(), f32(0.0)));
    let bindings = loops.iter().map(|(v, _)| v.expr()).collect();
    let mut body = Stmt::block(bindings, Expr::bool(true), block);
    for at in order.iter().rev() {
        let (v, n) = &loops[*at];
        body = serial(v, *n, body);
    }
    func(&[&a, &b, &c], body)
}

fn matmul_reference((n, m, l): (i64, i64, i64)) -> Vec<f64> {
    let mut c = Vec::new();
    for i in 0..n {
        for j in 0..m {
            let sum = (0..l).fold(0.0f32, |s, k| s + (i * l + k) as f32 * (k * m + j) as f32);
            c.push(f64::from(sum));
        }
    }
    c
}

#[test]
fn reductions_start_with_their_init() {
    for shape in [(3, 5, 7), (1, 1, 1), (2, 70, 3), (2, 3, 70), (70, 2, 3)] {
        for order in [[0, 1, 2], [2, 0, 1], [0, 2, 1], [1, 0, 2], [2, 1, 0], [1, 2, 0]] {
            let (n, m, l) = shape;
            let a = iota(&[n as usize, l as usize]);
            let b = iota(&[l as usize, m as usize]);
            let got = values(&matmul(order, shape), &[a, b]);
            assert_eq!(got, matmul_reference(shape), "{shape:?} {order:?}");
        }
    }
}

#[test]
fn init_needs_every_reduction_variable_at_its_start() {
    // Sums over k and l at once: the init runs where both are at their first values.
    let (a, b) = (buffer("A", &[3, 4, 5], DType::F32), buffer("B", &[3], DType::F32));
    let loops = [("i", 3), ("k", 4), ("l", 5)].map(|(name, n)| (Var::index(name), n));
    let v = ["vi", "vk", "vl"].map(Var::index);
    let at = || vec![v[0].expr()];
    let term = a.load(v.iter().map(Var::expr));
    let mut block = Block::new("sum", Stmt::store(&b, at(), b.load(at()) + term));
    block.iters = vec![
        iter(&v[0], 3, IterKind::Spatial),
        iter(&v[1], 4, IterKind::Reduce),
        iter(&v[2], 5, IterKind::Reduce),
    ];
    block.init = Some(Stmt::store(&b, at(), f32(100.0)));
    let bindings = loops.iter().map(|(v, _)| v.expr()).collect();
    let block = Stmt::block(bindings, Expr::bool(true), block);
    let body = loops.iter().rev().fold(block, |body, (v, n)| serial(v, *n, body));
    let f = func(&[&a, &b], body);
    assert_eq!(values(&f, &[iota(&[3, 4, 5])]), [290.0, 690.0, 1090.0]);
}

#[test]
fn predicates_guard_the_whole_block() {
    // Four tiles of four cover fourteen elements.
    let (a, b) = (buffer("A", &[14], DType::F32), buffer("B", &[14], DType::F32));
    let (o, i, v) = (Var::index("o"), Var::index("i"), Var::index("v"));
    let value = a.load([v.expr()]) + 1.0;
    let mut block = Block::new("copy", Stmt::store(&b, vec![v.expr()], value));
    block.iters = vec![iter(&v, 14, IterKind::Spatial)];
    let index = || &o * 4 + &i;
    let body = Stmt::block(vec![index()], index().less(14), block);
    let f = func(&[&a, &b], serial(&o, 4, serial(&i, 4, body)));
    let want: Vec<f64> = (1..15).map(f64::from).collect();
    assert_eq!(values(&f, &[iota(&[14])]), want);
}

#[test]
fn blocks_nest_and_allocate() {
    // An outer block owns a row; inner blocks fill and use it.
    let (a, b) = (buffer("A", &[3, 4], DType::F32), buffer("B", &[3, 4], DType::F32));
    let row = buffer("row", &[4], DType::F32);
    let (i, v) = (Var::index("i"), Var::index("v"));
    let inner = |name: &str, body: &dyn Fn(&Var) -> Stmt| {
        let (j, w) = (Var::index("j"), Var::index("w"));
        let mut block = Block::new(name, body(&w));
        block.iters = vec![iter(&w, 4, IterKind::Spatial)];
        serial(&j, 4, Stmt::block(vec![j.expr()], Expr::bool(true), block))
    };
    let fill = inner("fill", &|w| {
        Stmt::store(&row, vec![w.expr()], a.load([v.expr(), Expr::i32(3) - w.expr()]))
    });
    let copy = inner("use", &|w| {
        let at = vec![v.expr(), w.expr()];
        Stmt::store(&b, at, row.load([w.expr()]) * 2.0)
    });
    let mut outer = Block::new("outer", Stmt::seq([fill, copy]));
    outer.iters = vec![iter(&v, 3, IterKind::Spatial)];
    outer.allocs = vec![row.clone()];
    let outer = Stmt::block(vec![i.expr()], Expr::bool(true), outer);
    let f = func(&[&a, &b], serial(&i, 3, outer));
    let want = [6.0, 4.0, 2.0, 0.0, 14.0, 12.0, 10.0, 8.0, 22.0, 20.0, 18.0, 16.0];
    assert_eq!(values(&f, &[iota(&[3, 4])]), want);
}

#[test]
fn every_kind_of_loop_runs() {
    let kinds = [
        ForKind::Serial,
        ForKind::Parallel,
        ForKind::Vectorized,
        ForKind::Unrolled,
        ForKind::ThreadBinding("threadIdx.x".into()),
    ];
    for kind in kinds {
        let (a, b, i) =
            (buffer("A", &[6], DType::F32), buffer("B", &[6], DType::F32), Var::index("i"));
        let body = Stmt::store(&b, vec![i.expr()], a.load([i.expr()]) * 3.0);
        let body = Stmt::for_loop(&i, range(0, 6), kind, body);
        assert_eq!(values(&func(&[&a, &b], body), &[iota(&[6])]), [0.0, 3.0, 6.0, 9.0, 12.0, 15.0]);
    }
}

#[test]
fn loops_may_start_anywhere_and_be_empty() {
    let (b, i) = (buffer("B", &[10], DType::I32), Var::index("i"));
    let loop_of = |min: i64, n: i64, body: Stmt| {
        Stmt::for_loop(&i.fresh(), range(min, n), ForKind::Serial, body)
    };
    let j = Var::index("j");
    let shifted =
        Stmt::for_loop(&j, range(-5, 10), ForKind::Serial, Stmt::store(&b, vec![&j + 5], &j * &j));
    let never = loop_of(0, 0, Stmt::store(&b, vec![Expr::i32(99)], Expr::i32(0)));
    let negative = loop_of(3, -2, Stmt::store(&b, vec![Expr::i32(99)], Expr::i32(0)));
    let f = func(&[&b], Stmt::seq([shifted, never, negative]));
    assert_eq!(values(&f, &[]), [25.0, 16.0, 9.0, 4.0, 1.0, 0.0, 1.0, 4.0, 9.0, 16.0]);
}

#[test]
fn conditions_and_bindings() {
    let (b, i, x) = (buffer("B", &[5], DType::F32), Var::index("i"), Var::new("x", DType::F32));
    let at = || vec![i.expr()];
    let value = Expr::cast_node(&i * 10, DType::F32);
    let body = Stmt::if_else(
        i.expr().floormod(2).equal(0),
        Stmt::let_in(&x, value, Stmt::store(&b, at(), &x + &x)),
        Stmt::store(&b, at(), f32(-1.0)),
    );
    assert_eq!(values(&func(&[&b], serial(&i, 5, body)), &[]), [0.0, -1.0, 40.0, -1.0, 80.0]);
}

#[test]
fn lazy_sides_are_not_evaluated_and_eager_ones_are() {
    let (a, b, i) = (buffer("A", &[4], DType::F32), buffer("B", &[6], DType::F32), Var::index("i"));
    let run_of =
        |value: Expr| func(&[&a, &b], serial(&i, 6, Stmt::store(&b, vec![i.expr()], value)));
    let inside = || i.expr().less(4);
    let lazy = Expr::if_then_else(inside(), a.load([i.expr()]), f32(9.0));
    assert_eq!(values(&run_of(lazy), &[iota(&[4])]), [0.0, 1.0, 2.0, 3.0, 9.0, 9.0]);
    let eager = Expr::select(inside(), a.load([i.expr()]), f32(9.0));
    assert!(error(&run_of(eager), &[iota(&[4])]).contains("`A[4]` is out of range"));
    let both = inside().and(a.load([i.expr()]).less(2.0));
    let lazy = Expr::cast_node(both, DType::F32);
    assert_eq!(values(&run_of(lazy), &[iota(&[4])]), [1.0, 1.0, 0.0, 0.0, 0.0, 0.0]);
    let either = (!inside()).or(a.load([i.expr()]).less(2.0));
    let lazy = Expr::cast_node(either, DType::F32);
    assert_eq!(values(&run_of(lazy), &[iota(&[4])]), [1.0, 1.0, 0.0, 0.0, 1.0, 1.0]);
}

#[test]
fn shapes_and_scalars_are_bound_by_the_arguments() {
    let (n, m, s) = (Var::new("n", DType::I64), Var::index("m"), Var::new("s", DType::F32));
    let a = Buffer::new("A", vec![n.expr(), m.expr()], DType::F32);
    let b = Buffer::new("B", vec![n.expr()], DType::F32);
    let (i, j) = (Var::new("i", DType::I64), Var::index("j"));
    let (vi, vj) = (Var::new("vi", DType::I64), Var::index("vj"));
    let at = || vec![vi.expr()];
    let term = a.load([vi.expr(), vj.expr()]) * &s;
    let mut block = Block::new("sum", Stmt::store(&b, at(), b.load(at()) + term));
    block.iters = vec![
        IterVar { var: vi.clone(), domain: Range::upto(n.expr()), kind: IterKind::Spatial },
        IterVar { var: vj.clone(), domain: Range::upto(m.expr()), kind: IterKind::Reduce },
    ];
    block.init = Some(Stmt::store(&b, at(), f32(0.0)));
    let block = Stmt::block(vec![i.expr(), j.expr()], Expr::bool(true), block);
    let body = Stmt::serial(&i, n.expr(), Stmt::serial(&j, m.expr(), block));
    let params = vec![Param::tensor(&a), Param::tensor(&b), Param::Scalar(s)];
    let f = TensorFunc::new(params, body);
    for (rows, columns) in [(2usize, 3usize), (1, 1), (5, 2), (0, 4)] {
        let args =
            [Arg::Tensor(iota(&[rows, columns])), Arg::Fresh(None), Arg::Scalar(2f32.into())];
        let out = run_func(&f, &args, &RunOptions::default()).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(out.outputs.len(), 1);
        assert_eq!(out.outputs[0].tensor.shape(), [rows]);
        for i in 0..rows {
            let want: usize = (0..columns).map(|j| 2 * (i * columns + j)).sum();
            assert_eq!(out.outputs[0].tensor.get_f64(i), want as f64);
        }
    }
}

#[test]
fn a_function_may_return_a_scalar() {
    let a = buffer("A", &[2], DType::F32);
    let ret = |e: Expr| {
        let call = tilewright_ir::CallTarget::Opaque("ret".into());
        Stmt::new(StmtKind::Evaluate(Expr::call(call, vec![e], DType::F32)))
    };
    let first = Stmt::guard(a.load([Expr::i32(0)]).greater(5.0), ret(f32(-1.0)));
    let mut f = func(&[&a], Stmt::seq([first, ret(a.load([Expr::i32(1)]) + 1.0)]));
    f.ret = Some(DType::F32);
    let run = |x: &[f32]| {
        let args = [Arg::Tensor(tensor(x))];
        let out = run_func(&f, &args, &RunOptions::default()).unwrap_or_else(|e| panic!("{e}"));
        out.ret.map(|r| r.as_f64())
    };
    assert_eq!(run(&[1.0, 2.0]), Some(3.0));
    assert_eq!(run(&[6.0, 2.0]), Some(-1.0));
}

#[test]
fn a_parameter_that_is_updated_is_input_and_output() {
    let (b, i) = (buffer("B", &[3], DType::F32), Var::index("i"));
    let body = serial(&i, 3, Stmt::store(&b, vec![i.expr()], b.load([i.expr()]) * 2.0));
    assert_eq!(values(&func(&[&b], body), &[iota(&[3])]), [0.0, 2.0, 4.0]);
}

#[test]
fn steps_are_counted() {
    let (b, i) = (buffer("B", &[3], DType::F32), Var::index("i"));
    let f = func(&[&b], serial(&i, 3, Stmt::store(&b, vec![i.expr()], f32(0.0))));
    let out = run_func(&f, &[Arg::Fresh(None)], &RunOptions::default());
    assert_eq!(out.map(|o| o.steps).ok(), Some(6));
}

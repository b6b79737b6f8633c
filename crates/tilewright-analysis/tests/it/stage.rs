//! Canonical stages, and what is none.

use tilewright_analysis::stage::{is_shifted, tells_apart};
use tilewright_analysis::{Stage, stage, stages};
use tilewright_ir::{
    BinOp, Block, Buffer, DType, Dim, Expr, ForKind, IterKind, Param, Range, Stmt, StmtKind,
    TensorFunc, Var,
};

#[test]
fn a_variable_behind_an_open_offset_is_told_without_sets() {
    let [i, j, n, m] = ["i", "j", "n", "m"].map(Var::index);
    let vars = [(i.clone(), Range::upto(n.expr())), (j.clone(), Range::upto(m.expr()))];
    let far = n.expr() * &m.expr().max(&n) + &j;
    assert!(is_shifted(&far, &j, &vars) && !is_shifted(&far, &i, &vars));
    assert!(tells_apart(&[i.expr(), far.clone()], &vars));
    assert!(!is_shifted(&(far.clone() + &i), &j, &vars));
    assert!(!tells_apart(&[i.expr() + &j, n.expr()], &vars));
}

fn matmul() -> (TensorFunc, Stage) {
    let a = Buffer::with_extents("A", &[4, 6], DType::F32);
    let b = Buffer::with_extents("B", &[6, 5], DType::F32);
    let c = Buffer::with_extents("C", &[4, 5], DType::F32);
    let [i, j, k] = ["i", "j", "k"].map(Var::index);
    let at = vec![i.expr(), j.expr()];
    let value = c.load(at.clone()) + a.load([i.expr(), k.expr()]) * b.load([k.expr(), j.expr()]);
    let iters: [(Var, i64, IterKind); 3] =
        [(i, 4, IterKind::Spatial), (j, 5, IterKind::Spatial), (k, 6, IterKind::Reduce)];
    let zero = Expr::float(0.0, DType::F32);
    let s = Stage::build("C", &iters, &c, at, value, Some(zero));
    (TensorFunc::new([a, b, c].iter().map(Param::tensor).collect(), s.stmt.clone()), s)
}

#[test]
fn a_matmul_is_one_reduction_stage() {
    let (f, built) = matmul();
    let found = stages(&f).expect("canonical");
    let [s] = &found[..] else { panic!("{found:?}") };
    assert!(s.stmt.ptr_eq(&built.stmt));
    assert_eq!(s.loops.iter().map(|l| l.1).collect::<Vec<_>>(), [4, 5, 6]);
    assert_eq!(s.spatial().map(|s| s.1).collect::<Vec<_>>(), [4, 5]);
    assert_eq!(s.reduction().map(|r| r.op), Some(BinOp::Add));
    assert_eq!(s.loads().len(), 3);
    let vars: Vec<Var> = s.spatial().map(|s| s.0.clone()).collect();
    assert_eq!(s.covers_buffer(), Some(vars.into_iter().map(Some).collect()));
}

#[test]
fn other_structures_are_not_stages() {
    let (_, s) = matmul();
    let (var, extent) = (Var::index("x"), Expr::i32(2));
    // A loop that no iteration variable follows.
    assert!(stage(&Stmt::serial(&var, extent.clone(), s.stmt.clone())).is_none());
    // Not a serial loop.
    let StmtKind::For { var: i, range, body, .. } = s.stmt.kind() else { panic!() };
    let parallel = Stmt::for_loop(i, range.clone(), ForKind::Parallel, body.clone());
    assert!(stage(&parallel).is_none());
    // A store without a block.
    let store = s.block.body.clone();
    assert!(stage(&store).is_none());
    // A predicate.
    let guarded = Stmt::block(vec![], var.expr().less(1), Block::new("b", store));
    assert!(stage(&guarded).is_none());
}

#[test]
fn a_reduction_that_reads_its_result_twice_is_not_an_update() {
    let (_, s) = matmul();
    let twice = s.value.clone() + s.buffer.load(s.indices.clone());
    let s = s.with_value(twice);
    assert!(stage(&s.stmt).is_some_and(|s| s.reduction().is_none()));
}

#[test]
fn a_rank_zero_stage_has_no_loops() {
    let a = Buffer::with_extents("A", &[], DType::F32);
    let b = Buffer::with_extents("B", &[], DType::F32);
    let s = Stage::build("B", &[] as &[(Var, Dim, IterKind)], &b, vec![], a.load([]) * 2.0, None);
    let found = stage(&s.stmt).expect("canonical");
    assert_eq!(found.covers_buffer(), Some(vec![]));
    assert!(found.loops.is_empty());
}

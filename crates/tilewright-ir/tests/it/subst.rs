//! Substitution of variables and buffers, and copies with identities of their own.

use tilewright_ir::visit::{Subst, accessed, fold_func};
use tilewright_ir::{Buffer, DType, Expr, Fold, Param, Stmt, StmtKind, TensorFunc, Var};

fn sample() -> (Var, Buffer, Stmt) {
    let (i, b) = (Var::index("i"), Buffer::with_extents("B", &[16], DType::F32));
    let body = Stmt::store(&b, vec![i.expr()], b.load([i.expr()]) + 1.0);
    (i.clone(), b, Stmt::serial(&i, Expr::i32(16), body))
}

#[test]
fn a_fold_that_changes_nothing_returns_the_same_node() {
    let (_, _, s) = sample();
    assert!(Subst::default().stmt(&s).ptr_eq(&s));
}

#[test]
fn refresh_gives_every_definition_a_new_identity() {
    let (i, b, s) = sample();
    let t = Subst::refresh().stmt(&s);
    let StmtKind::For { var, .. } = t.kind() else { panic!("{t:?}") };
    assert_ne!(*var, i);
    assert_eq!(accessed(&t), (vec![b.clone()], vec![b]));
}

#[test]
fn a_scalar_parameter_is_renewed_in_shapes_before_it() {
    let n = Var::index("n");
    let a = Buffer::new("A", vec![n.expr()], DType::F32);
    let params = vec![Param::tensor(&a), Param::Scalar(n.clone())];
    let f = fold_func(&mut Subst::refresh(), &TensorFunc::new(params, Stmt::nop()));
    let [Param::Buffer { buffer, .. }, Param::Scalar(m)] = f.params.as_slice() else {
        panic!("{f:?}")
    };
    assert!(*m != n && buffer.shape[0].as_var() == Some(m));
}

#[test]
fn substitution_reaches_shapes_of_inner_buffers() {
    let n = Var::index("n");
    let b = Buffer::new("B", vec![n.expr()], DType::F32);
    let s = Stmt::allocate(&b, Stmt::store(&b, vec![Expr::i32(0)], Expr::float(0.0, b.dtype())));
    let t = Subst::vars([(n, Expr::i32(7))]).stmt(&s);
    let StmtKind::Allocate { buffer, body, .. } = t.kind() else { panic!("{t:?}") };
    assert_eq!(buffer.const_shape(), Some(vec![7]));
    assert_eq!(accessed(body).1, vec![buffer.clone()]);
}

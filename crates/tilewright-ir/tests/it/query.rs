//! Questions about what an expression is made of, also where its nodes are shared.

use tilewright_ir::{Buffer, DType, Expr, ExprKind, Stmt, StmtKind, Var};

/// `x + x`, of that the same, and so on: 2^n leaves as text.
fn doubled(x: Expr, n: usize) -> Expr {
    (0..n).fold(x, |e, _| &e + &e)
}

#[test]
fn shared_nodes_are_met_once() {
    let (i, j) = (Var::index("i"), Var::index("j"));
    let e = doubled(i.expr(), 64);
    let mut nodes = 0;
    e.for_each(|_| {
        nodes += 1;
        true
    });
    // Leaves are not remembered: the innermost sum has two.
    assert_eq!(nodes, 66);
    assert!(e.mentions(&i) && !e.mentions(&j));
    assert!(!e.any(|x| matches!(x.kind(), ExprKind::Load(..))));
    assert_eq!(e.size(), u32::MAX);
    assert_eq!(doubled(i.expr(), 3).size(), 15);
}

#[test]
fn variables_whose_bits_agree_are_told_apart() {
    let first = Var::index("a");
    // An expression keeps one of 64 bits for each of its variables, so that some of these have that of the first.
    for other in std::iter::repeat_with(|| Var::index("b")).take(1000) {
        assert!(!first.expr().mentions(&other) && other.expr().mentions(&other));
        assert!((&first + 1).mentions_any([&other, &first]));
    }
}

#[test]
fn loads_come_in_the_order_of_the_text() {
    let [a, b] = ["A", "B"].map(|n| Buffer::with_extents(n, &[4], DType::I32));
    let i = Var::index("i");
    let e = a.load([b.load([i.expr()])]) + a.load([i.expr()]) + i.expr();
    let mut names = Vec::new();
    e.for_each_load(|b, _| names.push(b.name.to_string()));
    assert_eq!(names, ["A", "B", "A"]);
    assert_eq!(e.loaded_buffers(), [a.clone(), b.clone()]);
    assert!(e.loads_from(|x| *x == b) && !i.expr().loads_from(|_| true));
    let store = Stmt::store(&a, vec![i.expr()], e);
    assert!(store.any_expr(|e| e.as_var() == Some(&i)));
    let nest = Stmt::serial(&i, Expr::i32(4), Stmt::seq([store.clone(), store]));
    let mut stores = 0;
    nest.for_each(|s| stores += usize::from(matches!(s.kind(), StmtKind::Store { .. })));
    assert_eq!(stores, 2);
}

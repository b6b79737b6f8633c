//! Which variables of a function hold data.

use tilewright_ir::data::variables;
use tilewright_ir::{Buffer, DType, Expr, Param, Stmt, StmtKind, TensorFunc, Var};

#[test]
fn sizes_and_loops_are_no_data() {
    let [n, m, x, i] = ["n", "m", "x", "i"].map(Var::index);
    let [t, u] = ["t", "u"].map(Var::index);
    let a = Buffer::new("A", vec![n.expr()], DType::I32);
    let store = Stmt::store(&a, vec![i.expr()], t.expr() + &u);
    // `t` is a size plus one, `u` what was read.
    let body = let_stmt(&t, &n + 1, let_stmt(&u, a.load([i.expr()]), store));
    let body = Stmt::serial(&i, m.expr(), body);
    let mut params = vec![Param::tensor(&a)];
    params.extend([&n, &m, &x].map(|v| Param::Scalar(v.clone())));
    let func = TensorFunc::new(params, body);
    assert_eq!(variables(&func), [x, u]);
}

fn let_stmt(var: &Var, value: Expr, body: Stmt) -> Stmt {
    Stmt::new(StmtKind::Let { var: var.clone(), value, body })
}

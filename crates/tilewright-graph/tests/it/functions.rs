//! Functions that a pass makes and shares.

use tilewright_graph::functions::Functions;
use tilewright_ir::{Buffer, DType, Dim, Module, Param, Stmt, TensorFunc, Var};

/// A copy of `(n + 3) // 4` elements, which takes `n` as a number.
fn quarter(n: &Var) -> TensorFunc {
    let extent = (Dim::open(n) + Dim::from(3)).floordiv(4).expr();
    let [a, b] = ["A", "B"].map(|name| Buffer::new(name, vec![extent.clone()], DType::F32));
    let i = Var::index("i");
    let body = Stmt::serial(&i, extent, Stmt::store(&b, vec![i.expr()], a.load([i.expr()])));
    let mut func = TensorFunc::new([&a, &b].map(Param::tensor).to_vec(), body);
    func.pass_sizes([n.clone()]);
    func
}

#[test]
fn functions_of_two_sizes_of_the_graph_are_two() {
    let [n, m] = ["n", "m"].map(|name| Var::new(name, DType::I64));
    let module = Module::default();
    let mut functions = Functions::new(&module);
    let [first, second, again] =
        [&n, &m, &n].map(|v| functions.add(quarter(v), "quarter").to_string());
    assert_eq!([&*first, &*second, &*again], ["quarter", "quarter_1", "quarter"]);
}

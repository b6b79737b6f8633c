//! Modules: graph functions and their calls.

use expect_test::{Expect, expect};
use tilewright_interp::{Arg, Interpreter, RunOptions, State, run_module, written_params};
use tilewright_ir::{
    Attr, Attrs, Binding, BindingBlock, Buffer, DType, Expr, GraphExpr, GraphFunc, GraphType,
    GraphVar, Module, Param, Stmt, Tensor, TensorFunc, TensorType, Var,
};

use crate::build::*;

/// `B[i] = A[i] * factor`, for any length.
fn scale(factor: f64) -> TensorFunc {
    let n = Var::new("n", DType::I64);
    let (a, b) = (
        Buffer::new("A", vec![n.expr()], DType::F32),
        Buffer::new("B", vec![n.expr()], DType::F32),
    );
    let i = Var::new("i", DType::I64);
    let store = Stmt::store(&b, vec![i.expr()], a.load([i.expr()]) * factor);
    func(&[&a, &b], Stmt::serial(&i, n.expr(), store))
}

/// `C[i] = A[i] + B[i]` and `D[i] = A[i] * s`, for length 3.
fn both() -> TensorFunc {
    let [a, b, c, d] = ["A", "B", "C", "D"].map(|n| buffer(n, &[3], DType::F32));
    let (i, s) = (Var::index("i"), Var::new("s", DType::F32));
    let at = || vec![i.expr()];
    let body = Stmt::seq([
        Stmt::store(&c, at(), a.load(at()) + b.load(at())),
        Stmt::store(&d, at(), a.load(at()) * &s),
    ]);
    let mut params: Vec<Param> = [&a, &b, &c, &d].map(Param::tensor).to_vec();
    params.push(Param::Scalar(s));
    TensorFunc::new(params, serial(&i, 3, body))
}

fn graph(params: Vec<GraphVar>, bindings: Vec<(GraphVar, GraphExpr)>, ret: GraphExpr) -> GraphFunc {
    let bindings = bindings.into_iter().map(|(var, value)| Binding { var, value, span: None });
    GraphFunc {
        params,
        blocks: vec![BindingBlock {
            dataflow: false,
            bindings: bindings.collect(),
            outputs: Vec::new(),
        }],
        ret,
        ret_ty: None,
        attrs: Attrs::new(),
        private: false,
        span: None,
    }
}

fn sized(n: &Var) -> TensorType {
    TensorType { shape: vec![n.expr()], dtype: DType::F32 }
}

/// `main(x: [k])`: doubles twice, through another graph function.
fn module() -> Module {
    let mut m = Module::new();
    m.insert("double", scale(2.0));
    m.insert("both", both());
    let k = Var::new("k", DType::I64);
    let (x, y) = (GraphVar::tensor("x", sized(&k)), GraphVar::tensor("y", sized(&k)));
    let call = GraphExpr::call_tir("double", vec![x.expr()], vec![sized(&k)]);
    m.insert("twice", graph(vec![x], vec![(y.clone(), call)], y.expr()));
    let (k, op) = (Var::new("k", DType::I64), "cls.twice".into());
    let (x, y) = (GraphVar::tensor("x", sized(&k)), GraphVar::tensor("y", sized(&k)));
    let sub = GraphExpr::Call { op, args: vec![x.expr()], attrs: Attrs::new() };
    let z = GraphExpr::call_tir("double", vec![y.expr()], vec![sized(&k)]);
    let ret = GraphExpr::Tuple(vec![y.expr(), z, x.expr()]);
    let mut main = graph(vec![x], vec![(y, sub)], ret);
    let names = ["y", "z", "x"].map(|n| Attr::Str(n.into())).to_vec();
    main.attrs.insert("output_names".into(), Attr::List(names));
    m.insert("main", main);
    m
}

fn list(t: &Tensor) -> Vec<f64> {
    (0..t.len()).map(|i| t.get_f64(i)).collect()
}

#[test]
fn a_graph_calls_tensor_functions_and_graph_functions() {
    for n in [1usize, 3] {
        let out = run_module(&module(), "main", &[iota(&[n])]).unwrap_or_else(|e| panic!("{e}"));
        let times = |f: f64| (0..n).map(|i| i as f64 * f).collect::<Vec<_>>();
        let got: Vec<Vec<f64>> = out.iter().map(list).collect();
        assert_eq!(got, [times(2.0), times(4.0), times(1.0)]);
    }
    let m = module();
    let mut i = Interpreter::new(&m, RunOptions::default()).unwrap_or_else(|e| panic!("{e}"));
    let out = i.run("main", &[iota(&[2])]).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(out.iter().map(|o| &*o.name).collect::<Vec<_>>(), ["y", "z", "x"]);
}

#[test]
fn several_outputs_make_a_tuple() {
    let mut m = module();
    let t3 = || TensorType::fixed(&[3], DType::F32);
    let x = GraphVar::tensor("x", t3());
    let pair = GraphType::Tuple(vec![GraphType::Tensor(t3()), GraphType::Tensor(t3())]);
    let p = GraphVar::new("p", pair);
    let call = GraphExpr::CallTir {
        func: "both".into(),
        args: vec![x.expr(), GraphExpr::Const(tensor(&[10.0f32, 20.0, 30.0]))],
        outs: vec![t3(), t3()],
        scalars: vec![Expr::float(-1.0, DType::F32)],
    };
    let item = |i| GraphExpr::Item(Box::new(p.expr()), i);
    let ret = GraphExpr::Tuple(vec![item(1), item(0)]);
    m.insert("main", graph(vec![x], vec![(p.clone(), call)], ret));
    let out = run_module(&m, "main", &[iota(&[3])]).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(list(&out[0]), [0.0, -1.0, -2.0]);
    assert_eq!(list(&out[1]), [10.0, 21.0, 32.0]);
}

#[test]
fn a_tuple_parameter_takes_its_parts() {
    let mut m = module();
    let t1 = || GraphType::Tensor(TensorType::fixed(&[1], DType::F32));
    let p = GraphVar::new("p", GraphType::Tuple(vec![t1(), t1()]));
    m.insert("main", graph(vec![p.clone()], Vec::new(), GraphExpr::Item(Box::new(p.expr()), 1)));
    let out = run_module(&m, "main", &[tensor(&[1.0f32]), tensor(&[2.0f32])]);
    assert_eq!(out.map(|o| list(&o[0])).ok(), Some(vec![2.0]));
}

#[test]
fn a_tensor_function_is_an_entry_too() {
    let mut m = module();
    let out = run_module(&m, "double", &[iota(&[2])]).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(list(&out[0]), [0.0, 2.0]);
    // Scalars come as tensors of one element, in the place of their parameter.
    let args = [iota(&[3]), iota(&[3]), tensor(&[3.0f32])];
    let out = run_module(&m, "both", &args).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(list(&out[1]), [0.0, 3.0, 6.0]);
    assert_eq!(written_params(&both()), [false, false, true, true, false]);
    // One that updates its parameter takes all.
    let (b, i) = (buffer("B", &[2], DType::F32), Var::index("i"));
    let update = Stmt::store(&b, vec![i.expr()], b.load([i.expr()]) + 1.0);
    m.insert("update", func(&[&b], serial(&i, 2, update)));
    let out = run_module(&m, "update", &[iota(&[2])]).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(list(&out[0]), [1.0, 2.0]);
}

#[test]
fn arbitrary_elements_travel_between_functions() {
    let mut m = module();
    let (b, i) = (buffer("B", &[3], DType::F32), Var::index("i"));
    let value = Expr::if_then_else(i.expr().less(1), f32(4.0), Expr::undef(DType::F32));
    m.insert("make", func(&[&b], serial(&i, 3, Stmt::store(&b, vec![i.expr()], value))));
    let t3 = || vec![TensorType::fixed(&[3], DType::F32)];
    let make = GraphExpr::call_tir("make", Vec::new(), t3());
    let double = GraphExpr::call_tir("double", vec![make], t3());
    m.insert("main", graph(Vec::new(), Vec::new(), double));
    let mut interpreter =
        Interpreter::new(&m, RunOptions::default()).unwrap_or_else(|e| panic!("{e}"));
    let out = interpreter.run("main", &[]).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(out[0].states, Some(vec![State::Value, State::Undef, State::Undef]));
    assert_eq!(out[0].tensor.get_f64(0), 8.0);
    let args = [Arg::Tensor(iota(&[3])), Arg::Fresh(None)];
    let out = interpreter.call("double", &args).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(list(&out.outputs[0].tensor), [0.0, 2.0, 4.0]);
}

fn check(m: &Module, inputs: &[Tensor], expected: Expect) {
    let e = run_module(m, "main", inputs).map(|_| ());
    expected.assert_eq(
        &e.map_err(|e| format!("{}: {}", kind(&e), e.render())).err().unwrap_or_default(),
    );
}

#[test]
fn errors_of_graphs() {
    let m = module();
    check(
        &m,
        &[],
        expect![[r#"
        input: error: function `main` takes 1 inputs, not 0
    "#]],
    );
    check(
        &m,
        &[iota(&[2, 2])],
        expect![[r#"
        input: error: function `main`: argument `x`: has shape [2, 2], but [k] is declared
    "#]],
    );
    check(
        &m,
        &[tensor(&[1i64])],
        expect![[r#"
        input: error: function `main`: argument `x`: is int64, but float32 is declared
    "#]],
    );
    let with = |main: GraphFunc| {
        let mut m = module();
        m.insert("main", main);
        m
    };
    let x = GraphVar::tensor("x", TensorType::fixed(&[2], DType::F32));
    let identity = graph(vec![x.clone()], Vec::new(), x.expr());
    check(
        &with(identity),
        &[iota(&[3])],
        expect![[r#"
        input: error: function `main`: argument `x`: has shape [3], but [2] is declared
    "#]],
    );
    let call = GraphExpr::Call { op: "R.add".into(), args: vec![x.expr()], attrs: Attrs::new() };
    check(
        &with(graph(vec![x.clone()], Vec::new(), call)),
        &[iota(&[2])],
        expect![[r#"
        unsupported: error: the interpreter does not know the operator `R.add`
    "#]],
    );
    let wrong = GraphExpr::call_tir("nothing", vec![x.expr()], vec![]);
    check(
        &with(graph(vec![x.clone()], Vec::new(), wrong)),
        &[iota(&[2])],
        expect![[r#"
        malformed: error: function `main`: the result: call_tir of `nothing`, which is not defined
    "#]],
    );
    // The callee's own errors name it.
    let (b, i) = (buffer("B", &[2], DType::F32), Var::index("i"));
    let mut m = with(graph(
        Vec::new(),
        Vec::new(),
        GraphExpr::call_tir("bad", Vec::new(), vec![TensorType::fixed(&[2], DType::F32)]),
    ));
    m.insert("bad", func(&[&b], serial(&i, 2, Stmt::store(&b, vec![&i + 1], f32(0.0)))));
    check(
        &m,
        &[],
        expect![[r#"
        execution: error: function `bad`: `B[2]` is out of range: axis 0 has extent 2
        note: with i = 1
    "#]],
    );
    // Extents that turn out not to fit.
    let (k, y) = (Var::new("k", DType::I64), Var::new("k2", DType::I64));
    let (p, q) = (GraphVar::tensor("p", sized(&k)), GraphVar::tensor("q", sized(&y)));
    let call = GraphExpr::call_tir("double", vec![p.expr()], vec![sized(&y)]);
    let m = with(graph(vec![p, q], Vec::new(), call));
    check(
        &m,
        &[iota(&[2]), iota(&[3])],
        expect![[r#"
        input: error: function `double`: argument `B` has shape [3], but (n) is declared, which is [2] here
    "#]],
    );
    check(&m, &[iota(&[2]), iota(&[2])], expect![""]);
}

#[test]
fn unwritten_outputs_of_a_graph_are_errors() {
    let b = buffer("B", &[2], DType::F32);
    let mut m = Module::new();
    m.insert("none", func(&[&b], Stmt::store(&b, vec![Expr::i32(0)], f32(0.0))));
    let call = GraphExpr::call_tir("none", Vec::new(), vec![TensorType::fixed(&[2], DType::F32)]);
    m.insert("main", graph(Vec::new(), Vec::new(), call));
    check(
        &m,
        &[],
        expect![[r#"
        execution: error: output `0` is not written at [1]
    "#]],
    );
}

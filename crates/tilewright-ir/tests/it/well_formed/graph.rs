//! What the check refuses in graph functions.

use super::*;

/// `f(A, B)` copies `A` of shape (n, 4) to `B`.
fn copy(scalar: bool) -> TensorFunc {
    let n = Var::new("n", DType::I64);
    let shape = || vec![n.expr(), Expr::int(4, DType::I64)];
    let a = Buffer::new("A", shape(), DType::F32);
    let b = Buffer::new("B", shape(), DType::F32);
    let (i, j) = (Var::new("i", DType::I64), Var::new("j", DType::I64));
    let at = || vec![i.expr(), j.expr()];
    let body = Stmt::serial(&j, Expr::int(4, DType::I64), Stmt::store(&b, at(), a.load(at())));
    let mut params = vec![Param::tensor(&a), Param::tensor(&b)];
    if scalar {
        params.push(Param::Scalar(Var::new("s", DType::F32)));
    }
    TensorFunc::new(params, Stmt::serial(&i, n.expr(), body))
}

fn tensor(shape: &[usize]) -> TensorType {
    TensorType::fixed(shape, DType::F32)
}

fn graph(params: Vec<GraphVar>, bindings: Vec<(GraphVar, GraphExpr)>, ret: GraphExpr) -> GraphFunc {
    let outputs = bindings.last().map(|(v, _)| v.clone()).into_iter().collect();
    let bindings = bindings.into_iter().map(|(var, value)| Binding { var, value, span: None });
    GraphFunc {
        params,
        blocks: vec![BindingBlock { dataflow: true, bindings: bindings.collect(), outputs }],
        ret,
        ret_ty: None,
        attrs: Attrs::new(),
        private: false,
        span: None,
    }
}

fn check_main(main: GraphFunc, expected: Expect) {
    let mut m = Module::new();
    m.insert("copy", copy(false));
    m.insert("scaled", copy(true));
    m.insert("main", main);
    expected.assert_eq(&text(check_module(&m)));
}

/// `y = value(x)` for an `x` of shape (3, 4), with `y` declared like `x`.
fn check_call(value: impl FnOnce(&GraphVar) -> GraphExpr, expected: Expect) {
    let x = GraphVar::tensor("x", tensor(&[3, 4]));
    let y = GraphVar::tensor("y", tensor(&[3, 4]));
    let value = value(&x);
    check_main(graph(vec![x], vec![(y.clone(), value)], y.expr()), expected);
}

#[test]
fn a_good_graph() {
    check_call(
        |x| GraphExpr::call_tir("copy", vec![x.expr()], vec![tensor(&[3, 4])]),
        expect!["ok"],
    );
    let (n, ty) = (Var::new("k", DType::I64), |n: &Var| TensorType {
        shape: vec![n.expr(), Expr::int(4, DType::I64)],
        dtype: DType::F32,
    });
    let x = GraphVar::tensor("x", ty(&n));
    let y = GraphVar::tensor("y", ty(&n));
    let call = GraphExpr::call_tir("copy", vec![x.expr()], vec![ty(&n)]);
    check_main(graph(vec![x], vec![(y.clone(), call)], y.expr()), expect!["ok"]);
}

#[test]
fn graph_variables_are_defined_once_and_before_use() {
    let z = GraphVar::tensor("z", tensor(&[3, 4]));
    check_call(|_| z.expr(), expect!["function `main`: binding `y`: variable `z` is not defined"]);
    let x = GraphVar::tensor("x", tensor(&[3, 4]));
    check_main(
        graph(vec![x.clone()], vec![(x.clone(), x.expr())], x.expr()),
        expect!["function `main`: binding `x`: variable `x` is defined twice"],
    );
    let (a, b) = (GraphVar::tensor("a", tensor(&[3, 4])), GraphVar::tensor("b", tensor(&[3, 4])));
    check_main(
        graph(vec![x.clone()], vec![(a.clone(), x.expr()), (b, x.expr())], a.expr()),
        expect![
            "function `main`: the result: `a` is used after its dataflow region, of which it is no output"
        ],
    );
}

#[test]
fn call_tir_passes_what_the_callee_takes() {
    let call = |name: &'static str, outs: Vec<TensorType>| {
        move |x: &GraphVar| GraphExpr::call_tir(name, vec![x.expr()], outs)
    };
    check_call(
        call("nothing", vec![tensor(&[3, 4])]),
        expect!["function `main`: binding `y`: call_tir of `nothing`, which is not defined"],
    );
    check_call(
        call("main", vec![tensor(&[3, 4])]),
        expect!["function `main`: binding `y`: call_tir of `main`, a graph function"],
    );
    check_call(
        call("copy", vec![tensor(&[3, 4]), tensor(&[3, 4])]),
        expect![
            "function `main`: binding `y`: call_tir of `copy`: 2 parameters, but 1 arguments, 2 outputs and 0 scalars"
        ],
    );
    check_call(
        call("copy", vec![TensorType::fixed(&[3, 4], DType::I32)]),
        expect![
            "function `main`: binding `y`: call_tir of `copy`: `B` is float32[3, 4], but int32[3, 4] is passed"
        ],
    );
    check_call(
        call("copy", vec![tensor(&[5, 4])]),
        expect![
            "function `main`: binding `y`: call_tir of `copy`: `B` is float32[3, 4], but float32[5, 4] is passed"
        ],
    );
    check_call(
        call("copy", vec![tensor(&[3])]),
        expect![
            "function `main`: binding `y`: call_tir of `copy`: `B` is float32[3, 4], but float32[3] is passed"
        ],
    );
    let k = Var::new("k", DType::I64);
    let open = TensorType { shape: vec![k.expr(), Expr::int(4, DType::I64)], dtype: DType::F32 };
    check_call(
        call("copy", vec![open]),
        expect!["function `main`: binding `y`: output: extent `k` uses `k`, which is not defined"],
    );
    let scaled = |scalars: Vec<Expr>| {
        move |x: &GraphVar| GraphExpr::CallTir {
            func: "scaled".into(),
            args: vec![x.expr()],
            outs: vec![tensor(&[3, 4])],
            scalars,
        }
    };
    check_call(scaled(vec![zero()]), expect!["ok"]);
    check_call(
        scaled(vec![Expr::i32(1)]),
        expect![
            "function `main`: binding `y`: call_tir of `scaled`: `s` is float32, but the argument is int32"
        ],
    );
}

#[test]
fn call_tir_leaves_its_arguments_alone() {
    let mut f = copy(false);
    f.params.reverse();
    let x = GraphVar::tensor("x", tensor(&[3, 4]));
    let call = GraphExpr::call_tir("copy", vec![x.expr()], vec![tensor(&[3, 4])]);
    let mut m = Module::new();
    m.insert("copy", f);
    m.insert("main", graph(vec![x], Vec::new(), call));
    expect!["function `main`: the result: call_tir of `copy`: the callee writes its argument `B`"]
        .assert_eq(&text(check_module(&m)));
}

#[test]
fn types_are_those_of_the_values() {
    let call = |shape: &'static [usize]| {
        move |x: &GraphVar| {
            let c = Tensor::zeros(DType::F32, shape).map_or(x.expr(), GraphExpr::Const);
            GraphExpr::Item(Box::new(GraphExpr::Tuple(vec![x.expr(), c])), 1)
        }
    };
    check_call(call(&[3, 4]), expect!["ok"]);
    check_call(
        call(&[3]),
        expect![
            "function `main`: binding `y`: declared as float32[3, 4], but the value is float32[3]"
        ],
    );
    check_call(
        |x| GraphExpr::Item(Box::new(x.expr()), 0),
        expect!["function `main`: binding `y`: item 0 of a tensor"],
    );
    check_call(
        |x| GraphExpr::Item(Box::new(GraphExpr::Tuple(vec![x.expr()])), 3),
        expect!["function `main`: binding `y`: item 3 of a tuple of 1"],
    );
    let x = GraphVar::tensor("x", tensor(&[3]));
    let mut f = graph(vec![x.clone()], Vec::new(), x.expr());
    f.blocks.clear();
    f.ret_ty = Some(GraphType::Tensor(tensor(&[4])));
    check_main(
        f,
        expect!["function `main`: the result: declared as float32[4], but the value is float32[3]"],
    );
    let v = GraphVar::tensor("v", TensorType { shape: vec![], dtype: DType::HANDLE });
    check_main(
        graph(vec![v.clone()], Vec::new(), v.expr()),
        expect!["function `main`: parameter `v`: a tensor of handle"],
    );
}

fn sub_call(name: &str, args: Vec<GraphExpr>) -> GraphExpr {
    GraphExpr::Call { op: format!("cls.{name}").into(), args, attrs: Attrs::new() }
}

#[test]
fn graph_functions_call_each_other_without_recursion() {
    let x = || GraphVar::tensor("x", tensor(&[3, 4]));
    let sub = |callee: &str| {
        let x = x();
        let call = sub_call(callee, vec![x.expr()]);
        let mut f = graph(vec![x], Vec::new(), call);
        f.blocks.clear();
        f
    };
    let leaf = || {
        let x = x();
        graph(vec![x.clone()], Vec::new(), x.expr())
    };
    expect!["ok"].assert_eq(&module_text(vec![("main", sub("g")), ("g", leaf())]));
    expect!["graph function `main` calls itself"]
        .assert_eq(&module_text(vec![("main", sub("g")), ("g", sub("main"))]));
    expect!["function `main`: the result: call of `g`, which is not defined"]
        .assert_eq(&module_text(vec![("main", sub("g"))]));
    expect!["function `main`: the result: `copy` is a tensor function"]
        .assert_eq(&module_text(vec![("main", sub("copy"))]));
    let mut two = sub("g");
    two.ret = sub_call("g", Vec::new());
    expect!["function `main`: the result: `g` takes 1 arguments, not 0"]
        .assert_eq(&module_text(vec![("main", two), ("g", leaf())]));
    let mut wrong = leaf();
    wrong.params = vec![GraphVar::tensor("w", tensor(&[7]))];
    wrong.ret = GraphExpr::Tuple(Vec::new());
    expect!["function `main`: the result: argument `w` of `g`: declared as float32[7], but the value is float32[3, 4]"]
        .assert_eq(&module_text(vec![("main", sub("g")), ("g", wrong)]));
}

fn module_text(pairs: Vec<(&str, GraphFunc)>) -> String {
    let mut m = Module::new();
    m.insert("copy", copy(false));
    pairs.into_iter().for_each(|(n, f)| m.insert(n, f));
    text(check_module(&m))
}

#[test]
fn output_names_name_each_output() {
    let x = GraphVar::tensor("x", tensor(&[3]));
    let mut f = graph(vec![x.clone()], Vec::new(), x.expr());
    f.attrs.insert("output_names".into(), names_attr(&["y"]));
    check_main(f.clone(), expect!["ok"]);
    f.attrs.insert("output_names".into(), names_attr(&["y", "z"]));
    check_main(
        f.clone(),
        expect!["function `main`: attribute `output_names` has 2 names, but there are 1 outputs"],
    );
    f.attrs.insert("output_names".into(), Attr::Int(1));
    check_main(f, expect!["function `main`: attribute `output_names` is no list of texts"]);
}

fn names_attr(names: &[&str]) -> Attr {
    Attr::List(names.iter().map(|&n| Attr::Str(Arc::from(n))).collect())
}

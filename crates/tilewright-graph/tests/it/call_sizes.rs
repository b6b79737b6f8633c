//! Functions whose sizes are the graph's own variables.

use tilewright_graph::call_sizes::unify_sizes;
use tilewright_ir::{
    Attrs, Binding, BindingBlock, Buffer, DType, Dim, Function, GraphExpr, GraphFunc, GraphVar,
    Module, Param, Stmt, TensorFunc, TensorType, Var,
};

/// A copy of a vector of `size` elements, which is the graph's own variable inside of it.
fn copy(size: &Var) -> TensorFunc {
    let extent = Dim::open(size).expr();
    let [a, b] = ["A", "B"].map(|name| Buffer::new(name, vec![extent.clone()], DType::F32));
    let i = Var::index("i");
    let body = Stmt::serial(&i, extent, Stmt::store(&b, vec![i.expr()], a.load([i.expr()])));
    TensorFunc::new([&a, &b].map(Param::tensor).to_vec(), body)
}

/// The extent of the function that each binding calls, in order.
fn called(module: &Module) -> Vec<Dim> {
    let (_, main) = module.graphs().next().expect("there is a graph function");
    main.bindings()
        .map(|b| {
            let GraphExpr::CallTir { func, .. } = &b.value else { panic!("not a call") };
            let Some(Function::Tensor(f)) = module.functions.get(func) else { panic!("no {func}") };
            let first = f.buffers().next().expect("there is a parameter");
            Dim::from_expr(&first.shape[0]).expect("it is a size")
        })
        .collect()
}

#[test]
fn a_function_that_has_the_variables_of_one_call_is_not_changed_by_another() {
    let [n, m] = ["n", "m"].map(|name| Var::new(name, DType::I64));
    for order in [[&n, &m, &n], [&m, &n, &m]] {
        let params: Vec<GraphVar> =
            order.iter().map(|v| GraphVar::tensor("x", vector_of(v))).collect();
        let bindings = params.iter().zip(order).map(|(x, v)| Binding {
            var: GraphVar::tensor("y", vector_of(v)),
            value: GraphExpr::CallTir {
                func: "copy".into(),
                args: vec![GraphExpr::Var(x.clone())],
                outs: vec![vector_of(v)],
                scalars: Vec::new(),
            },
            span: None,
        });
        let bindings: Vec<Binding> = bindings.collect();
        let outputs: Vec<GraphVar> = bindings.iter().map(|b| b.var.clone()).collect();
        let ret = GraphExpr::Tuple(outputs.iter().cloned().map(GraphExpr::Var).collect());
        let block = BindingBlock { dataflow: true, bindings, outputs };
        let mut module = Module::default();
        module.insert("copy", copy(&n));
        let main = GraphFunc {
            params,
            blocks: vec![block],
            ret,
            ret_ty: None,
            attrs: Attrs::new(),
            private: false,
            span: None,
        };
        module.insert("main", main);
        let unified = unify_sizes(&module).expect("all sizes are said");
        assert_eq!(called(&unified), order.map(|v| Dim::open(v).inside()));
        assert_eq!(unified.functions.len(), 3);
    }
}

fn vector_of(v: &Var) -> TensorType {
    TensorType { shape: vec![v.expr()], dtype: DType::F32 }
}

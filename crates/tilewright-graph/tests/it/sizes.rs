//! Sizes that are given, in shapes, loops, scalars and callees.

use tilewright_graph::sizes::{Sizes, fill, open};
use tilewright_ir::{
    Binding, BindingBlock, Buffer, DType, Error, Expr, ForKind, GraphExpr, GraphFunc, GraphType,
    GraphVar, Module, Param, Range, Stmt, StmtKind, TensorFunc, TensorType, Var,
};

/// `B[i] = A[i] + k` over `n` elements of `A`, of `2 * n` in all.
fn symbolic() -> TensorFunc {
    let n = Var::index("n");
    let k = Var::index("k");
    let a = Buffer::new("A", vec![n.expr() * 2], DType::I32);
    let b = Buffer::new("B", vec![n.expr()], DType::I32);
    let i = Var::index("i");
    let body = Stmt::store(&b, vec![i.expr()], a.load([i.expr()]) + k.expr());
    let body = Stmt::for_loop(&i, Range::upto(n.expr()), ForKind::Serial, body);
    TensorFunc::new(vec![Param::tensor(&a), Param::tensor(&b), Param::Scalar(k)], body)
}

fn module() -> Module {
    let mut module = Module::new();
    module.insert("f", symbolic());
    module
}

fn shapes(f: &TensorFunc) -> Vec<Option<Vec<i64>>> {
    f.buffers().map(Buffer::const_shape).collect()
}

#[test]
fn sizes_reach_shapes_loops_and_scalars() {
    assert_eq!(open(&module()), ["k".into(), "n".into()]);
    for sizes in [
        Sizes::new().dim("n", 5).dim("k", 7),
        Sizes::new().shape("B", &[5]).dim("k", 7),
        Sizes::new().shape("B", &[5]).shape("A", &[10]).dim("n", 5).dim("k", 7),
        Sizes::new().dim("B.0", 5).dim("A.0", 10).dim("k", 7),
    ] {
        let filled = fill(&module(), &sizes).expect("sizes that fit");
        assert!(open(&filled).is_empty());
        let f = filled.tensor("f").expect("it is there");
        assert_eq!(shapes(f), [Some(vec![10]), Some(vec![5])]);
        assert_eq!(f.params.len(), 2);
        let StmtKind::For { range, body, .. } = f.body.kind() else { panic!("{:?}", f.body) };
        assert_eq!(range.extent.as_int(), Some(5));
        let StmtKind::Store { buffer, value, .. } = body.kind() else { panic!("{body:?}") };
        assert_eq!(Some(buffer), f.buffers().nth(1));
        assert_eq!(value.to_string(), "A[i] + 7");
    }
}

#[test]
fn without_sizes_nothing_changes() {
    let filled = fill(&module(), &Sizes::new()).expect("nothing to do");
    assert_eq!(open(&filled), ["k".into(), "n".into()]);
    assert!(fill(&Module::new(), &Sizes::new()).is_ok());
}

#[test]
fn sizes_that_do_not_fit_are_errors() {
    for (sizes, message) in [
        (Sizes::new().dim("m", 1), "there is no size `m` to be given"),
        (Sizes::new().dim("A.1", 1), "there is no size `A.1` to be given"),
        (Sizes::new().shape("C", &[1]), "there is no input `C`"),
        (Sizes::new().shape("A", &[1, 2]), "`A` has 1 dimensions, and was given the shape [1, 2]"),
        (Sizes::new().dim("n", 3).dim("B.0", 4), "two sizes for `n`: n=3 and B.0=4"),
        (
            Sizes::new().dim("n", 3).shape("A", &[7]),
            "dimension 0 of `A` is 6, but the shape [7] of `A` was given",
        ),
        (
            Sizes::new().dim("A.0", 6),
            "dimension 0 of `A` is `n * 2`, which A.0=6 does not determine",
        ),
        (Sizes::new().dim("n", usize::MAX), "the size 18446744073709551615 is too large"),
    ] {
        let error = fill(&module(), &sizes).expect_err(message);
        assert_eq!(error.to_string(), message);
        assert!(matches!(error, Error::Input(_)));
    }
    let error = fill(&module(), &Sizes::new().dim("m", 1)).expect_err("no such size");
    assert_eq!(error.diagnostic().notes, ["open sizes: `k`, `n`"]);
}

#[test]
fn callees_are_specialised_for_each_size() {
    let mut module = module();
    let m = Var::new("m", DType::I64);
    let x = GraphVar::tensor("x", vector_type(m.expr() * 4));
    let y = GraphVar::tensor("y", vector_type(m.expr() * 2));
    let z = GraphVar::tensor("z", vector_type(m.expr()));
    let bindings = vec![call_binding(&x, &y), call_binding(&y, &z)];
    module.insert(
        "main",
        GraphFunc {
            params: vec![x],
            blocks: vec![BindingBlock { dataflow: true, bindings, outputs: vec![z.clone()] }],
            ret: z.expr(),
            ret_ty: Some(z.ty().clone()),
            attrs: Default::default(),
            private: false,
            span: None,
        },
    );
    assert_eq!(open(&module), ["m".into()]);
    let filled = fill(&module, &Sizes::new().dim("m", 3)).expect("sizes that fit");
    let names: Vec<&str> = filled.functions.keys().map(|k| &**k).collect();
    assert_eq!(names, ["f", "main", "f_1"]);
    let of = |name| shapes(filled.tensor(name).expect("it is there"));
    assert_eq!(of("f"), [Some(vec![12]), Some(vec![6])]);
    assert_eq!(of("f_1"), [Some(vec![6]), Some(vec![3])]);
    let main = filled.graph("main").expect("it is there");
    let called: Vec<_> = main
        .bindings()
        .map(|b| match &b.value {
            GraphExpr::CallTir { func, scalars, .. } => {
                assert!(scalars.is_empty());
                func.to_string()
            }
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(called, ["f", "f_1"]);
    let ret = main.ret_ty.as_ref().and_then(GraphType::as_tensor).expect("a tensor");
    assert_eq!(ret.const_shape(), Some(vec![3]));
}

fn vector_type(e: Expr) -> TensorType {
    TensorType { shape: vec![e], dtype: DType::I32 }
}

fn call_binding(arg: &GraphVar, out: &GraphVar) -> Binding {
    Binding {
        var: out.clone(),
        value: GraphExpr::CallTir {
            func: "f".into(),
            args: vec![arg.expr()],
            outs: vec![out.ty().as_tensor().expect("a tensor").clone()],
            scalars: vec![Expr::i32(1)],
        },
        span: None,
    }
}

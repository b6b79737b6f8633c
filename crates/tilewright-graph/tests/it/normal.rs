//! The normal form of graph functions, and what has none.

use crate::common::{Graph, calls, operand};
use tilewright_graph::normal::{normalize, output_names};
use tilewright_graph::{fuse, legalize};
use tilewright_ir::{
    Attr, Attrs, Buffer, DType, Error, Expr, GraphExpr, GraphType, GraphVar, Lowered, Module,
    Param, Result, Stmt, TensorFunc, TensorType, Var, well_formed,
};
use tilewright_layout::plan_memory;
use tilewright_ops::Operand;
use tilewright_ops::elementwise::{Binary, Unary, binary, unary};
use tilewright_runtime::SizedPlan;

fn exp_of(arg: GraphExpr) -> GraphExpr {
    GraphExpr::call_tir("exp", vec![arg], vec![TensorType::fixed(&[4], DType::F32)])
}

fn with_exp(g: &mut Graph) {
    g.module.insert("exp", unary(Unary::Exp, &Operand::f32(&[4])).expect("valid"));
}

fn normal(module: &Module) -> Result<Module, Error> {
    let main = module.graph("main")?;
    let mut out = module.clone();
    out.insert("main", normalize(module, "main", main)?);
    Ok(out)
}

#[test]
fn nested_calls_aliases_and_tuples_are_taken_apart() {
    let mut g = Graph::default();
    let x = g.input("x", &[4]);
    with_exp(&mut g);
    let ty = TensorType::fixed(&[4], DType::F32);
    let twice = g.bind("twice", ty.clone(), exp_of(exp_of(x.expr())));
    let alias = g.bind("alias", ty.clone(), twice.expr());
    let pair_type = GraphType::Tuple(vec![GraphType::Tensor(ty.clone()); 2]);
    let pair = GraphVar::new("pair", pair_type);
    g.bind_var(&pair, GraphExpr::Tuple(vec![alias.expr(), x.expr()]));
    let item = GraphExpr::Item(Box::new(pair.expr()), 0);
    let unused = exp_of(x.expr());
    g.bind("unused", ty, unused);
    let f = binary(Binary::Add, &operand(&x), &operand(&x)).expect("valid");
    let sum = g.call_with("add", f, vec![item, GraphExpr::Item(Box::new(pair.expr()), 1)]);
    let m = normal(&g.returns(&[&sum])).expect("normal");
    assert_eq!(calls(&m), ["exp = exp(x)", "twice = exp(exp)", "add = add(twice, x)"]);
    well_formed::check_module(&m).expect("well-formed");
    let again = normal(&m).expect("normal");
    assert_eq!(calls(&again), calls(&m));
}

#[test]
fn a_constant_keeps_its_variable() {
    let mut g = Graph::default();
    let x = g.input("x", &[]);
    let c = g.constant(3.0);
    let f = binary(Binary::Add, &operand(&x), &operand(&c)).expect("valid");
    let y = g.call("add", f, &[&x, &c]);
    let m = normal(&g.returns(&[&y])).expect("normal");
    assert_eq!(calls(&m), ["add = add(x, three)"]);
}

#[test]
fn an_operator_that_may_have_effects_stays() {
    let mut g = Graph::default();
    let x = g.input("x", &[4]);
    let op = GraphExpr::Call { op: "R.print".into(), args: vec![x.expr()], attrs: Attrs::new() };
    g.bind("unused", TensorType::fixed(&[4], DType::F32), op);
    let f = unary(Unary::Exp, &operand(&x)).expect("valid");
    let y = g.call("exp", f, &[&x]);
    let mut m = g.returns(&[&y]);
    let bindings = |m: &Module| m.graph("main").expect("main").bindings().count();
    // Inside of a dataflow region nothing has effects.
    assert_eq!(bindings(&normal(&m).expect("normal")), 1);
    let mut main = (**m.graph("main").expect("main")).clone();
    main.blocks[0].dataflow = false;
    main.blocks[0].outputs.clear();
    m.insert("main", main);
    m = fuse(&m).expect("fuses");
    m = legalize(&fuse(&m).expect("fuses")).expect("legalizes");
    assert_eq!(bindings(&m), 2);
    assert!(!m.graph("main").expect("main").blocks[0].dataflow);
}

#[test]
fn names_of_results_differ() {
    let mut g = Graph::default();
    let x = g.input("x", &[4]);
    let m = g.returns(&[&x, &x, &x]);
    let main = m.graph("main").expect("main");
    let text = |names: Vec<std::sync::Arc<str>>| names.join(" ");
    assert_eq!(text(output_names(main, 3)), "x x_1 x_2");
    let mut named = (**main).clone();
    let names = ["a/b", "x_1", "x_1"].map(|n| Attr::Str(n.into())).to_vec();
    named.attrs.insert("output_names".into(), Attr::List(names));
    assert_eq!(text(output_names(&named, 4)), "a/b x_1 x_1_1 output");
}

fn planned(module: &Module) -> Result<SizedPlan> {
    plan_memory(&Lowered::new(module.clone())?, "main")?.at(&[])
}

/// The message of what a module without a normal form is refused with.
fn refused(module: &Module) -> String {
    let e = normal(module).expect_err("has no normal form");
    let mut others = vec![fuse(module).err(), legalize(module).err()];
    // Memory planning takes lowered functions only.
    if Lowered::new(module.clone()).is_ok() {
        others.push(planned(module).err());
    }
    for other in others {
        assert_eq!(other.map(|e| e.to_string()), Some(e.to_string()));
    }
    e.to_string()
}

#[test]
fn what_has_no_normal_form_is_refused() {
    let item = |of: GraphExpr, k| GraphExpr::Item(Box::new(of), k);
    let call = |args| GraphExpr::Call { op: "cls.g".into(), args, attrs: Default::default() };

    let mut g = Graph::default();
    let x = g.input("x", &[4]);
    let m = g.returns_expr(item(x.expr(), 0));
    assert_eq!(refused(&m), "`x` is no tuple and has no items");

    let mut g = Graph::default();
    let x = g.input("x", &[4]);
    let m = g.returns_expr(item(GraphExpr::Tuple(vec![x.expr()]), 3));
    assert_eq!(refused(&m), "item 3 of a tuple of 1");

    let mut g = Graph::default();
    let c = tilewright_ir::Tensor::zeros(DType::F32, &[4]).expect("small");
    let x = g.input("x", &[4]);
    g.bind("y", TensorType::fixed(&[4], DType::F32), item(GraphExpr::Const(c), 0));
    assert_eq!(refused(&g.returns(&[&x])), "item of a value that is not a tuple");

    let mut g = Graph::default();
    let x = g.input("x", &[4]);
    let m = g.returns_expr(call(vec![x.expr()]));
    assert_eq!(refused(&m), "the module has no function `g`");

    let mut m = m;
    let inner = m.graph("main").expect("main").clone();
    m.functions.insert("g".into(), tilewright_ir::Function::Graph(inner));
    assert!(refused(&m).starts_with("the graph function `g` calls itself"));

    let mut g = Graph::default();
    let x = g.input("x", &[4]);
    let mut m = g.returns_expr(call(vec![x.expr(), x.expr()]));
    let mut g = Graph::default();
    let y = g.input("y", &[4]);
    let inner = g.returns(&[&y]);
    m.insert("g", (**inner.graph("main").expect("main")).clone());
    assert_eq!(refused(&m), "`g` takes 1 arguments and is given 2");

    let mut g = Graph::default();
    let x = g.input("x", &[4]);
    with_exp(&mut g);
    let deep = (0..100).fold(x.expr(), |e, _| exp_of(e));
    assert_eq!(refused(&g.returns_expr(deep)), "graph expressions nested deeper than 64");
}

#[test]
fn a_result_of_open_size_is_copied_and_what_cannot_be_is_refused() {
    let mut g = Graph::default();
    let n = Var::new("n", DType::I64);
    let open = TensorType { shape: vec![n.expr()], dtype: DType::F32 };
    let x = g.input_var(GraphVar::tensor("x", open));
    let legal = legalize(&g.returns(&[&x])).expect("it is copied");
    assert!(legal.tensor("copy").is_ok());

    let mut g = Graph::default();
    let x = g.input_var(GraphVar::new("x", GraphType::Opaque("R.Object".into())));
    let e = legalize(&g.returns(&[&x])).expect_err("refuses");
    assert_eq!(e.to_string(), "`x` is returned and is not a tensor");

    let mut g = Graph::default();
    let x = g.input("x", &[usize::MAX / 2]);
    let e = legalize(&g.returns(&[&x])).expect_err("refuses");
    assert!(e.to_string().contains("is too large to copy"), "{e}");
}

#[test]
fn sizes_that_do_not_fit_are_refused() {
    let mut g = Graph::default();
    let x = g.input("x", &[usize::MAX / 2, 8]);
    let e = planned(&g.returns(&[&x])).expect_err("refuses");
    assert_eq!(e.to_string(), "`x` does not fit in memory");

    // Each of the three results fits by itself.
    let many = 1usize << 60;
    let big = TensorType::fixed(&[many], DType::F32);
    let params = [4, many as i64, many as i64, many as i64]
        .map(|n| Param::tensor(&Buffer::new("b", vec![Expr::int(n, DType::I64)], DType::F32)));
    let returning = |count: usize| {
        let mut g = Graph::default();
        let x = g.input("x", &[4]);
        g.module.insert("f", TensorFunc::new(params.to_vec(), Stmt::nop()));
        let types = vec![GraphType::Tensor(big.clone()); 3];
        let all = GraphVar::new("all", GraphType::Tuple(types));
        g.bind_var(&all, GraphExpr::call_tir("f", vec![x.expr()], vec![big.clone(); 3]));
        let items = (0..count).map(|k| GraphExpr::Item(Box::new(all.expr()), k));
        planned(&g.returns_expr(GraphExpr::Tuple(items.collect())))
    };
    assert_eq!(returning(2).map(|p| p.arena_bytes).ok(), Some(4 * many));
    let e = returning(1).expect_err("refuses");
    assert_eq!(e.to_string(), "the intermediate results do not fit in memory");
}

//! From a graph to slots: views, copies, lifetimes, errors.

use crate::common::{Graph, calls, extents, operand};
use proptest::prelude::*;
use tilewright_analysis::Stage;
use tilewright_graph::view::relabels;
use tilewright_graph::{fuse, legalize};
use tilewright_ir::{
    Block, Buffer, DType, Expr, GraphExpr, GraphVar, IterKind, IterVar, Lowered, Module, Param,
    Range, Result, Stmt, Tensor, TensorFunc, TensorType, Var,
};
use tilewright_layout::plan_memory;
use tilewright_ops::contraction::{Conv, conv};
use tilewright_ops::elementwise::{Binary, Unary, binary, unary};
use tilewright_ops::movement::{concat, expand, reshape, slice, split, transpose};
use tilewright_ops::{Operand, results};
use tilewright_runtime::plan::arena;
use tilewright_runtime::{SizedPlan, Slot};
use tilewright_transform::lower;

/// The module as it is when memory is planned.
fn lowered(module: &Module) -> Lowered {
    all_lowered(&legalize(module).expect("legalizes"))
}

fn all_lowered(module: &Module) -> Lowered {
    let mut out = module.clone();
    for (name, func) in crate::common::functions(module) {
        out.insert(name, lower(&func).expect("lowers"));
    }
    Lowered::new(out).expect("is lowered")
}

/// The plan of a function of a module that was not legalized.
fn planned(module: &Module, entry: &str) -> Result<SizedPlan> {
    plan_memory(&all_lowered(module), entry)?.at(&[])
}

fn plan(module: &Module) -> SizedPlan {
    plan_memory(&lowered(module), "main").and_then(|plan| plan.at(&[])).expect("plans")
}

/// The steps, each as `function(slots)`: inputs `i0`, outputs `o0`, parts of them `o0@4`, constants
/// `c0`, arena `@64`.
fn steps(plan: &SizedPlan) -> Vec<String> {
    let slot = |s: &Slot| match s {
        Slot::Input(k) => format!("i{k}"),
        Slot::Output(k) => format!("o{k}"),
        Slot::InputAt(k, at) => format!("i{k}@{at}"),
        Slot::OutputAt(k, at) => format!("o{k}@{at}"),
        Slot::Constant(k) => format!("c{k}"),
        Slot::Arena(at) => format!("@{at}"),
        Slot::Number(n) => n.to_string(),
    };
    let text = |s: &tilewright_runtime::Step| {
        format!("{}({})", s.func, s.args.iter().map(slot).collect::<Vec<_>>().join(", "))
    };
    plan.steps.iter().map(text).collect()
}

fn un(g: &mut Graph, name: &str, op: Unary, x: &GraphVar) -> GraphVar {
    let f = unary(op, &operand(x)).expect("valid");
    g.call(name, f, &[x])
}

fn reshaped(g: &mut Graph, x: &GraphVar, shape: &[usize]) -> GraphVar {
    let f = reshape(&operand(x), shape).expect("valid");
    g.call("reshape", f, &[x])
}

#[test]
fn a_chain_alternates_between_two_places() {
    let mut g = Graph::default();
    let x = g.input("x", &[100]);
    let mut v = x.clone();
    for name in ["a", "b", "c", "d"] {
        v = un(&mut g, name, Unary::Exp, &v);
    }
    let plan = plan(&g.returns(&[&v]));
    assert_eq!(steps(&plan), ["a(i0, @0)", "b(@0, @448)", "c(@448, @0)", "d(@0, o0)"]);
    assert_eq!(plan.arena_bytes, 896);
    assert_eq!((&*plan.inputs[0].name, &*plan.outputs[0].name), ("x", "d"));
    assert_eq!(plan.outputs[0].shape, [100]);
}

#[test]
fn views_take_no_step_and_no_memory() {
    let mut g = Graph::default();
    let x = g.input("x", &[4, 6]);
    let a = un(&mut g, "a", Unary::Exp, &x);
    let r = reshaped(&mut g, &a, &[3, 8]);
    let b = un(&mut g, "b", Unary::Exp, &r);
    let s = reshaped(&mut g, &b, &[24]);
    let plan = plan(&g.returns(&[&s]));
    // The result is a view of what `b` computes, so `b` computes it where the result is wanted.
    assert_eq!(steps(&plan), ["a(i0, @0)", "b(@0, o0)"]);
    assert_eq!(plan.outputs[0].shape, [24]);
}

#[test]
fn the_lifetime_of_a_view_is_that_of_its_memory() {
    let mut g = Graph::default();
    let x = g.input("x", &[64]);
    let a = un(&mut g, "a", Unary::Exp, &x);
    let r = reshaped(&mut g, &a, &[8, 8]);
    let b = un(&mut g, "b", Unary::Tanh, &x);
    let c = un(&mut g, "c", Unary::Tanh, &b);
    let f = binary(Binary::Add, &operand(&r), &Operand::f32(&[8, 8])).expect("valid");
    let c = reshaped(&mut g, &c, &[8, 8]);
    let d = g.call("d", f, &[&r, &c]);
    let plan = plan(&g.returns(&[&d]));
    assert_eq!(steps(&plan), ["a(i0, @0)", "b(i0, @256)", "c(@256, @512)", "d(@0, @512, o0)"]);
}

#[test]
fn results_that_nothing_computes_are_copied() {
    let mut g = Graph::default();
    let x = g.input("x", &[4]);
    let a = un(&mut g, "a", Unary::Exp, &x);
    let view = reshaped(&mut g, &a, &[2, 2]);
    let of_input = reshaped(&mut g, &x, &[2, 2]);
    let c = Tensor::from_slice(&[4], &[1f32, 2.0, 3.0, 4.0]).expect("small");
    let k = g.bind("k", TensorType::fixed(&[4], DType::F32), GraphExpr::Const(c.clone()));
    let ret = [x.expr(), k.expr(), GraphExpr::Const(c), a.expr(), a.expr(), view.expr()];
    let ret = ret.into_iter().chain([of_input.expr()]).collect();
    let plan = plan(&g.returns_expr(GraphExpr::Tuple(ret)));
    assert_eq!(
        steps(&plan),
        [
            "a(i0, o3)",
            "copy(i0, o0)",
            "copy(c0, o1)",
            "copy(c0, o2)",
            "copy(o3, o4)",
            "copy_1(o3, o5)",
            "copy_1(i0, o6)"
        ]
    );
    let names: Vec<&str> = plan.outputs.iter().map(|o| &*o.name).collect();
    assert_eq!(names, ["x", "k", "output", "a", "a_1", "reshape", "reshape_1"]);
    assert_eq!((plan.constants.len(), plan.arena_bytes), (1, 0));
}

#[test]
fn legalizing_twice_changes_nothing() {
    let mut g = Graph::default();
    let x = g.input("x", &[4]);
    let m = legalize(&g.returns(&[&x, &x])).expect("legalizes");
    let n = legalize(&fuse(&m).expect("fuses")).expect("legalizes");
    assert_eq!(calls(&m), ["x = copy(x)", "x = copy(x)"]);
    assert_eq!(calls(&n), calls(&m));
    assert_eq!(steps(&plan(&n)), ["copy(i0, o0)", "copy(i0, o1)"]);
}

#[test]
fn equal_constants_are_kept_once() {
    let mut g = Graph::default();
    let x = g.input("x", &[2]);
    let (a, b) = (g.constant(1.5), g.constant(1.5));
    let f =
        || binary(Binary::Mul, &Operand::f32(&[2]), &Operand::f32::<usize>(&[])).expect("valid");
    let y = g.call("mul", f(), &[&x, &a]);
    let z = g.call("mul", f(), &[&y, &b]);
    let plan = plan(&g.returns(&[&z]));
    assert_eq!(steps(&plan), ["mul(i0, c0, @0)", "mul_1(@0, c0, o0)"]);
    assert_eq!(plan.constants.len(), 1);
}

#[test]
fn constants_that_differ_far_from_their_ends_are_two() {
    let shape = [5000];
    let mut g = Graph::default();
    let x = g.input("x", &shape);
    let of = |at: usize| {
        let values: Vec<f32> = (0..shape[0]).map(|k| if k == at { 2.0 } else { 1.0 }).collect();
        Tensor::from_slice(&shape, &values).expect("small")
    };
    let constants = [2500, 2501, 2500].map(|at| {
        let t = of(at);
        g.bind("c", TensorType::fixed(&shape, t.dtype()), GraphExpr::Const(t))
    });
    let mut y = x;
    for c in &constants {
        let f = binary(Binary::Mul, &Operand::f32(&shape), &Operand::f32(&shape)).expect("valid");
        y = g.call("mul", f, &[&y, c]);
    }
    let plan = plan(&g.returns(&[&y]));
    assert_eq!(plan.constants.len(), 2);
    assert!(plan.constants[0].same(&of(2500)) && plan.constants[1].same(&of(2501)));
}

#[test]
fn several_results_of_one_call_have_places_of_their_own() {
    let mut g = Graph::default();
    let x = g.input("x", &[6, 4]);
    let f = split(&operand(&x), 0, &[1, 2, 3]).expect("valid");
    let outs = results(&f, 3);
    let types: Vec<TensorType> =
        outs.iter().map(|o| TensorType::fixed(&extents(o), o.dtype)).collect();
    g.module.insert("split", f);
    let all = GraphVar::new(
        "parts",
        tilewright_ir::GraphType::Tuple(
            types.iter().cloned().map(tilewright_ir::GraphType::Tensor).collect(),
        ),
    );
    let call = GraphExpr::call_tir("split", vec![x.expr()], types.clone());
    g.bind_var(&all, call);
    let first = GraphExpr::Item(Box::new(all.expr()), 0);
    let first = g.bind("first", types[0].clone(), first);
    let y = un(&mut g, "y", Unary::Exp, &first);
    let last = GraphExpr::Item(Box::new(all.expr()), 2);
    let plan = plan(&g.returns_expr(GraphExpr::Tuple(vec![y.expr(), last])));
    // The second part is never read: it still needs a place while `split` runs.
    assert_eq!(steps(&plan), ["split(i0, @64, @0, o1)", "y(@64, o0)"]);
}

#[test]
fn graph_functions_are_expanded() {
    let mut inner = Graph::default();
    let x = inner.input("x", &[4]);
    let y = un(&mut inner, "exp", Unary::Exp, &x);
    let inner = inner.returns(&[&y]);
    let mut g = Graph::default();
    let x = g.input("x", &[4]);
    for (name, func) in &inner.functions {
        let name = if &**name == "main" { "twice".into() } else { name.clone() };
        g.module.functions.insert(name, func.clone());
    }
    let call = |arg: GraphExpr| GraphExpr::Call {
        op: "cls.twice".into(),
        args: vec![arg],
        attrs: Default::default(),
    };
    let m = g.returns_expr(call(call(x.expr())));
    assert_eq!(steps(&plan(&m)), ["exp(i0, @0)", "exp(@0, o0)"]);
    let fused = fuse(&m).expect("fuses");
    assert_eq!(steps(&plan(&fused)), ["exp_exp(i0, o0)"]);
}

#[test]
fn scratch_memory_lives_during_its_step() {
    let mut g = Graph::default();
    let (x, w) = (g.input("x", &[1, 3, 9, 9]), g.input("w", &[3, 3, 3, 3]));
    let mut p = Conv::new(operand(&x), operand(&w));
    (p.pads_begin, p.pads_end) = (vec![1, 1], vec![1, 1]);
    let mut v = x;
    for _ in 0..3 {
        v = g.call("conv", conv(&p).expect("valid"), &[&v, &w]);
    }
    let m = g.returns(&[&v]);
    let plan = plan(&m);
    // Two images of 3*9*9 and one padded image of 3*11*11 numbers at a time.
    assert_eq!(plan.arena_bytes, 2 * 1024 + 1472);
    assert_eq!(plan.steps[1].args.len(), 4);
}

fn error(module: &Module) -> String {
    planned(module, "main").expect_err("refuses").render()
}

#[test]
fn what_cannot_be_planned_is_refused_with_its_reason() {
    let mut g = Graph::default();
    let x = g.input("x", &[4]);
    let m = g.returns(&[&x]);
    assert!(error(&m).contains("the result `x` has no memory of its own"));

    let mut g = Graph::default();
    let x = g.input("x", &[4]);
    let ty = TensorType::fixed(&[4], DType::F32);
    let op =
        GraphExpr::Call { op: "R.add".into(), args: vec![x.expr()], attrs: Default::default() };
    let y = g.bind("y", ty.clone(), op);
    assert!(error(&g.returns(&[&y])).contains("`R.add` has no tensor function"));

    let mut g = Graph::default();
    let n = Var::new("n", DType::I64);
    let open = TensorType { shape: vec![n.expr()], dtype: DType::F32 };
    let x = g.input("x", &[4]);
    g.module.insert("fill", TensorFunc::new(fill_params(), Stmt::nop()));
    let call = GraphExpr::call_tir("fill", vec![x.expr()], vec![open.clone()]);
    let y = g.bind("y", open, call);
    let e = error(&g.returns(&[&y]));
    assert!(e.contains("no input says how large `n` is") && e.contains("--dim n=SIZE"), "{e}");

    let mut g = Graph::default();
    let x = g.input("x", &[4]);
    g.module.insert("exp", unary(Unary::Exp, &Operand::f32(&[8])).expect("valid"));
    let call = GraphExpr::call_tir("exp", vec![x.expr()], vec![ty.clone()]);
    let y = g.bind("y", ty.clone(), call);
    assert!(error(&g.returns(&[&y])).contains("takes another type than it is given"));

    let mut g = Graph::default();
    let x = g.input("x", &[4]);
    g.module.insert("exp", unary(Unary::Exp, &Operand::f32(&[4])).expect("valid"));
    let call = GraphExpr::call_tir("exp", vec![x.expr(), x.expr()], vec![ty.clone()]);
    let y = g.bind("y", ty.clone(), call);
    assert!(
        error(&g.returns(&[&y])).contains("takes 2 tensors and 0 numbers, and is given 3 and 0")
    );

    let mut g = Graph::default();
    let x = g.input("x", &[4]);
    let call = GraphExpr::CallTir {
        func: "exp".into(),
        args: vec![x.expr()],
        outs: vec![ty.clone()],
        scalars: vec![Expr::i32(3)],
    };
    g.module.insert("exp", unary(Unary::Exp, &Operand::f32(&[4])).expect("valid"));
    let y = g.bind("y", ty, call);
    assert!(error(&g.returns(&[&y])).contains("and 0 numbers, and is given 2 and 1"));

    let mut g = Graph::default();
    let x = g.input("x", &[4]);
    let call =
        GraphExpr::Call { op: "cls.main".into(), args: vec![x.expr()], attrs: Default::default() };
    assert!(error(&g.returns_expr(call)).contains("`main` calls itself"));

    let m = Graph::default().module;
    assert!(error(&m).contains("the module has no function `main`"));

    let mut g = Graph::default();
    let object = || tilewright_ir::GraphType::Opaque("R.Object".into());
    let x = g.input_var(GraphVar::new("x", object()));
    assert!(error(&g.returns(&[&x])).contains("`x` is not a tensor of known rank"));

    let mut g = Graph::default();
    g.input("x", &[4]);
    let free = GraphVar::new("free", object());
    let first = GraphExpr::Item(Box::new(free.expr()), 0);
    let m = g.returns_expr(GraphExpr::Tuple(vec![first]));
    assert!(error(&m).contains("`free_0` is an item of what no call computes"));

    let mut g = Graph::default();
    g.input("x", &[4]);
    assert!(error(&g.returns(&[&free])).contains("`free` is used as a tensor and is not a tensor"));

    let mut g = Graph::default();
    let (x, ty) = (g.input("x", &[4]), TensorType::fixed(&[4], DType::F32));
    let b = Buffer::new("b", vec![Var::index("n").expr()], DType::F32);
    let params = vec![Param::tensor(&b), Param::tensor(&b)];
    g.module.insert("f", TensorFunc::new(params, Stmt::nop()));
    let y = g.bind("y", ty.clone(), GraphExpr::call_tir("f", vec![x.expr()], vec![ty]));
    // The argument says how large it is.
    assert_eq!(steps(&plan(&g.returns(&[&y]))), ["f(i0, o0, 4)"]);
}

/// `y[i] = f(i)` over four elements, for tests of single tensor functions.
fn map_func(x: &Buffer, y: &Buffer, value: impl Fn(Expr) -> Expr) -> TensorFunc {
    let i = Var::index("i");
    let at = i.expr();
    let iters = [(i, 4, IterKind::Spatial)];
    let stage = Stage::build("y", &iters, y, vec![at.clone()], value(at), None);
    TensorFunc::new(vec![Param::tensor(x), Param::tensor(y)], stage.stmt)
}

#[test]
fn a_tensor_function_is_one_step() {
    let [x, y] = ["x", "y"].map(|n| Buffer::with_extents(n, &[4], DType::F32));
    let mut m = Module::new();
    m.insert("f", lower(&map_func(&x, &y, |i| x.load([i]) + 1.0)).expect("lowers"));
    let plan = planned(&m, "f").expect("plans");
    assert_eq!(steps(&plan), ["f(i0, o0)"]);
    assert_eq!((&*plan.inputs[0].name, &*plan.outputs[0].name), ("x", "y"));

    // A reduction reads what it has initialised.
    let p = Conv::new(Operand::f32(&[1, 2, 3, 3]), Operand::f32(&[2, 2, 3, 3]));
    m.insert("conv", lower(&conv(&p).expect("valid")).expect("lowers"));
    assert_eq!(steps(&planned(&m, "conv").expect("plans")), ["conv(i0, i1, o0)"]);

    m.insert("g", lower(&map_func(&x, &y, |i| y.load([i]) + 1.0)).expect("lowers"));
    let e = planned(&m, "g").expect_err("refuses").render();
    assert!(e.contains("`g` reads its parameter `y` before it writes it"), "{e}");

    let n = Var::index("n");
    let mut f = map_func(&x, &y, |i| x.load([i]));
    f.params.push(Param::Scalar(n));
    m.insert("h", f);
    let e = planned(&m, "h").expect_err("refuses").render();
    assert!(e.contains("`h` has the scalar parameter `n`"), "{e}");

    let strided = y.derive_storage(|b| b.strides = vec![Expr::i32(2)]);
    m.insert("s", map_func(&x, &strided, |i| x.load([i])));
    let e = planned(&m, "s").expect_err("refuses").render();
    assert!(e.contains("`y` has strides or an offset"), "{e}");

    let empty = TensorFunc::new(vec![Param::tensor(&x)], Stmt::nop());
    m.insert("e", empty);
    assert_eq!(steps(&planned(&m, "e").expect("plans")), ["e(i0)"]);
}

/// A sum that runs along an axis of a box: `y[i, j] = (j > 0 ? y[i, j - 1] : 0) + x[i, j]`, or
/// `y[i, j + 1] = y[i, j] + x[i, j]`, which starts from cells that nothing has written.
fn running_sum(shape: &[i64], axis: usize, starts: bool, in_block: bool) -> TensorFunc {
    let mut longer = shape.to_vec();
    longer[axis] += i64::from(!starts);
    let x = Buffer::with_extents("x", shape, DType::F32);
    let y = Buffer::with_extents("y", &longer, DType::F32);
    let store = |at: Vec<Expr>| {
        let beside = |by: i64| {
            let mut beside = at.clone();
            beside[axis] = beside[axis].clone() + by;
            beside
        };
        if !starts {
            return Stmt::store(&y, beside(1), y.load(at.clone()) + x.load(at.clone()));
        }
        let carried = Expr::int(0, DType::I32).less(at[axis].clone());
        let carried = Expr::if_then_else(carried, y.load(beside(-1)), Expr::float(0.0, DType::F32));
        Stmt::store(&y, at.clone(), carried + x.load(at.clone()))
    };
    let at = |vars: &[Var]| vars.iter().map(Var::expr).collect::<Vec<_>>();
    let loops: Vec<Var> = (0..shape.len()).map(|k| Var::index(format!("i{k}"))).collect();
    let inside = if in_block {
        let vars: Vec<Var> = loops.iter().map(Var::fresh).collect();
        let mut block = Block::new("sum", store(at(&vars)));
        for (var, n) in vars.into_iter().zip(shape) {
            let domain = Range::upto(Expr::int(*n, DType::I32));
            block.iters.push(IterVar { var, domain, kind: IterKind::Opaque });
        }
        Stmt::block(at(&loops), Expr::bool(true), block)
    } else {
        store(at(&loops))
    };
    let nest = loops.iter().zip(shape).rev();
    let body = nest.fold(inside, |s, (v, n)| Stmt::serial(v, Expr::int(*n, DType::I32), s));
    TensorFunc::new(vec![Param::tensor(&x), Param::tensor(&y)], body)
}

#[test]
fn a_sum_that_runs_along_an_axis_writes_each_cell_before_it_reads_it() {
    let shapes: [&[i64]; 7] =
        [&[9], &[7, 5], &[1, 3], &[3, 1], &[2, 3, 4], &[5, 1, 7], &[2, 3, 2, 3]];
    for shape in shapes {
        for (axis, in_block) in (0..shape.len()).flat_map(|a| [(a, false), (a, true)]) {
            let text = format!("{shape:?} along {axis}, in a block: {in_block}");
            let mut m = Module::new();
            m.insert("f", running_sum(shape, axis, true, in_block));
            let plan = planned(&m, "f").unwrap_or_else(|e| panic!("{text}: {}", e.render()));
            assert_eq!(steps(&plan), ["f(i0, o0)"], "{text}");
            m.insert("f", running_sum(shape, axis, false, in_block));
            let e = planned(&m, "f").expect_err(&text).render();
            assert!(e.contains("`f` reads its parameter `y` before it writes it"), "{e}");
        }
    }
}

#[test]
fn only_what_keeps_the_order_is_a_view() {
    let x = Operand::f32(&[2, 3, 4]);
    let view = |f: tilewright_ir::Result<TensorFunc>| relabels(&f.expect("valid"));
    assert!(view(reshape(&x, &[4, 6])));
    assert!(view(reshape(&x, &[2, 1, 12])));
    assert!(view(transpose(&Operand::f32(&[1, 3, 4]), &[1, 0, 2])), "an axis of one moves freely");
    assert!(view(unary(Unary::Identity, &x)));
    assert!(view(expand(&Operand::f32(&[3]), &[1, 3])));
    assert!(view(slice(&x, &[0], &[2], &[0], &[1])), "all of it");
    assert!(!view(transpose(&x, &[1, 0, 2])));
    assert!(!view(expand(&Operand::f32(&[1, 4]), &[3, 4])));
    assert!(!view(slice(&x, &[0], &[1], &[0], &[1])));
    assert!(!view(slice(&x, &[1], &[-5], &[0], &[-1])));
    assert!(!view(unary(Unary::Relu, &x)));
    assert!(!view(tilewright_ops::elementwise::cast(&x, DType::F64)));
    assert!(!view(concat(&[x.clone(), x.clone()], 0)));
}

proptest! {
    /// Shapes of the same size are always proven to be views of each other.
    #[test]
    fn every_reshape_is_a_view(
        factors in prop::collection::vec(1usize..=5, 1..=6),
        cuts in (prop::collection::vec(any::<bool>(), 6), prop::collection::vec(any::<bool>(), 6)),
        reversed in any::<bool>(),
    ) {
        let shape = |factors: &[usize], cut: &[bool]| {
            let mut shape = vec![1];
            for (f, cut) in factors.iter().zip(cut) {
                if *cut { shape.push(*f) } else { *shape.last_mut().expect("one") *= f }
            }
            shape
        };
        let from = shape(&factors, &cuts.0);
        let mut other = factors.clone();
        if reversed {
            other.reverse();
        }
        let to = shape(&other, &cuts.1);
        let f = reshape(&Operand::f32(&from), &to).expect("valid");
        prop_assert!(relabels(&f), "{:?} to {:?}", from, to);
    }

    /// A permutation is a view exactly where brute force says so.
    #[test]
    fn a_permutation_is_judged_as_by_brute_force(
        shape in prop::collection::vec(1usize..=3, 1..=4),
        seed in any::<u64>(),
    ) {
        let mut perm: Vec<usize> = (0..shape.len()).collect();
        perm.sort_by_key(|k| (seed >> (8 * k)) as u8);
        let f = transpose(&Operand::f32(&shape), &perm).expect("valid");
        let strides: Vec<usize> =
            (0..shape.len()).map(|k| shape[k + 1..].iter().product()).collect();
        let mut at = vec![0; shape.len()];
        let mut keeps = true;
        for flat in 0..shape.iter().product::<usize>() {
            let mut left = flat;
            for k in (0..shape.len()).rev() {
                at[k] = left % shape[perm[k]];
                left /= shape[perm[k]];
            }
            let from: usize = (0..shape.len()).map(|k| at[k] * strides[perm[k]]).sum();
            keeps &= from == flat;
        }
        prop_assert_eq!(relabels(&f), keeps, "{:?} by {:?}", shape, perm);
    }
}

/// Checks a plan on its own: values are written before they are read, and no step writes over
/// what a later one still reads. Returns the arena's size and the least possible one.
fn check(module: &Module, plan: &SizedPlan) -> (usize, usize) {
    // Who wrote each byte of the arena, and what each step reads there.
    let mut writer: Vec<Option<usize>> = vec![None; plan.arena_bytes];
    let mut last_read: Vec<(usize, usize, usize, usize)> = Vec::new();
    for (n, step) in plan.steps.iter().enumerate() {
        let func = module.tensor(&step.func).expect("exists");
        let scratch = func.scratch_count();
        let (_, writes) = tilewright_ir::visit::accessed(&func.body);
        for (k, (slot, buffer)) in step.args.iter().zip(func.buffers()).enumerate() {
            let Slot::Arena(at) = *slot else { continue };
            let bytes = buffer.const_shape().expect("constant").iter().product::<i64>() as usize
                * buffer.dtype().bytes();
            assert_eq!(at % 64, 0);
            assert!(at + bytes <= plan.arena_bytes);
            let written =
                writes.iter().any(|w| w.data == buffer.data) || k >= func.params.len() - scratch;
            if written {
                writer[at..at + bytes].fill(Some(n));
                last_read.push((n, n, at, bytes));
            } else if bytes > 0 {
                let by = writer[at].expect("written before");
                assert!(writer[at..at + bytes].iter().all(|w| *w == Some(by)), "overwritten");
                let entry = last_read
                    .iter_mut()
                    .find(|r| r.0 == by && r.2 == at)
                    .expect("the writer is known");
                entry.1 = n;
            }
        }
        // Arguments of one step never overlap.
        let mut spans: Vec<(usize, usize)> = step
            .args
            .iter()
            .zip(func.buffers())
            .filter_map(|(slot, b)| match slot {
                Slot::Arena(at) => {
                    let n = b.const_shape().expect("constant").iter().product::<i64>() as usize;
                    Some((*at, at + n * b.dtype().bytes()))
                }
                _ => None,
            })
            .filter(|s| s.0 < s.1)
            .collect();
        spans.sort_unstable();
        spans.dedup();
        assert!(spans.windows(2).all(|w| w[0].1 <= w[1].0), "{spans:?}");
    }
    let blocks: Vec<arena::Block> = last_read
        .iter()
        .map(|(first, last, _, bytes)| arena::Block { bytes: *bytes, first: *first, last: *last })
        .collect();
    (plan.arena_bytes, arena::lower_bound(&blocks))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn random_graphs_never_overwrite_what_is_needed(
        picks in prop::collection::vec((0usize..6, any::<prop::sample::Index>(), any::<prop::sample::Index>()), 1..25),
        outs in prop::collection::vec(any::<prop::sample::Index>(), 1..4),
        fused in any::<bool>(),
    ) {
        let mut g = Graph::default();
        let mut values = vec![g.input("x", &[6, 8]), g.input("y", &[48])];
        for (kind, a, b) in picks {
            let (a, b) = (a.get(&values).clone(), b.get(&values).clone());
            let (x, y) = (operand(&a), operand(&b));
            let v = match kind {
                0 => reshaped(&mut g, &a, &if x.rank() == 2 { vec![48] } else { vec![6, 8] }),
                1 if x.rank() == 2 => {
                    let f = transpose(&x, &[1, 0]).expect("valid");
                    let t = g.call("transpose", f, &[&a]);
                    reshaped(&mut g, &t, &[6, 8])
                }
                2 | 3 if x.shape == y.shape => {
                    let f = binary(Binary::Add, &x, &y).expect("valid");
                    g.call("add", f, &[&a, &b])
                }
                4 => {
                    let f = tilewright_ops::norm::softmax(&x, -1).expect("valid");
                    g.call("softmax", f, &[&a])
                }
                _ => un(&mut g, "exp", Unary::Exp, &a),
            };
            values.push(v);
        }
        let outs: Vec<&GraphVar> = outs.iter().map(|o| o.get(&values)).collect();
        let mut m = g.returns(&outs);
        if fused {
            m = fuse(&m).expect("fuses");
        }
        let m = lowered(&m);
        let plan = plan_memory(&m, "main").and_then(|plan| plan.at(&[])).expect("plans");
        let (arena, least) = check(&m, &plan);
        prop_assert!(arena >= least);
        prop_assert_eq!(plan.outputs.len(), outs.len());
    }
}

/// A residual network of `blocks` blocks that halves the image now and then.
fn residual(blocks: usize) -> Module {
    let mut g = Graph::default();
    let mut v = g.input("x", &[1, 16, 32, 32]);
    for n in 0..blocks {
        let x = operand(&v);
        let stride = if n % 3 == 2 && extents(&x)[2] > 4 { 2 } else { 1 };
        let channels = extents(&x)[1] * stride;
        let branch = |g: &mut Graph, from: &GraphVar, kernel: usize, stride: usize| {
            let from_type = operand(from);
            let w_type = Operand::f32(&[channels, extents(&from_type)[1], kernel, kernel]);
            let mut p = Conv::new(from_type, w_type.clone());
            p.strides = vec![stride; 2];
            (p.pads_begin, p.pads_end) = (vec![kernel / 2; 2], vec![kernel / 2; 2]);
            let zeros = Tensor::zeros(DType::F32, &extents(&w_type)).expect("small");
            let ty = TensorType::fixed(&extents(&w_type), DType::F32);
            let w = g.bind("w", ty, GraphExpr::Const(zeros));
            g.call("conv", conv(&p).expect("valid"), &[from, &w])
        };
        let a = branch(&mut g, &v, 3, stride);
        let a = un(&mut g, "relu", Unary::Relu, &a);
        let b = branch(&mut g, &a, 3, 1);
        let short = if stride == 2 { branch(&mut g, &v, 1, 2) } else { v };
        let f = binary(Binary::Add, &operand(&b), &operand(&short)).expect("valid");
        let s = g.call("add", f, &[&b, &short]);
        v = un(&mut g, "relu", Unary::Relu, &s);
    }
    g.returns(&[&v])
}

#[test]
fn the_arena_of_a_network_is_close_to_what_must_live_at_once() {
    for blocks in [1, 4, 9, 16] {
        let m = lowered(&fuse(&residual(blocks)).expect("fuses"));
        let plan = plan_memory(&m, "main").and_then(|plan| plan.at(&[])).expect("plans");
        let (arena, least) = check(&m, &plan);
        let ratio = arena as f64 / least.max(1) as f64;
        eprintln!("{blocks} blocks: {arena} bytes, {ratio:.3} times the least possible");
        assert!(ratio < 1.1, "{blocks} blocks: {arena} against {least}");
    }
}

/// A tensor, and a result of open size.
fn fill_params() -> Vec<Param> {
    let open = Buffer::new("y", vec![Var::index("n").expr()], DType::F32);
    [Buffer::with_extents("x", &[4], DType::F32), open].iter().map(Param::tensor).collect()
}

//! Which calls are fused, and what comes out.

use crate::common::{Graph, calls, extents, operand, stage_texts};
use tilewright_graph::fuse;
use tilewright_ir::{GraphExpr, GraphVar, Module, Tensor, TensorType};
use tilewright_ops::contraction::{Conv, Gemm, conv, gemm, matmul};
use tilewright_ops::elementwise::{Binary, Unary, binary, cast, unary};
use tilewright_ops::movement::{concat, expand, reshape, slice, transpose};
use tilewright_ops::norm::softmax;
use tilewright_ops::reduce::{Reduction, reduce};
use tilewright_ops::{Operand, Scalar};

fn un(g: &mut Graph, name: &str, op: Unary, x: &GraphVar) -> GraphVar {
    let f = unary(op, &operand(x)).expect("valid");
    g.call(name, f, &[x])
}

fn bin(g: &mut Graph, name: &str, op: Binary, a: &GraphVar, b: &GraphVar) -> GraphVar {
    let f = binary(op, &operand(a), &operand(b)).expect("valid");
    g.call(name, f, &[a, b])
}

fn conv_of(g: &mut Graph, x: &GraphVar, w: &GraphVar, bias: Option<&GraphVar>) -> GraphVar {
    let mut p = Conv::new(operand(x), operand(w));
    p.bias = bias.is_some();
    p.pads_begin = vec![1, 1];
    p.pads_end = vec![1, 1];
    let f = conv(&p).expect("valid");
    let args: Vec<&GraphVar> = [x, w].into_iter().chain(bias).collect();
    g.call("conv", f, &args)
}

fn fused(m: &Module) -> Module {
    fuse(m).expect("fuses")
}

#[test]
fn a_convolution_takes_what_follows_it() {
    let mut g = Graph::default();
    let x = g.input("x", &[1, 3, 7, 5]);
    let (w, b, r) = (g.input("w", &[4, 3, 3, 3]), g.input("b", &[4]), g.input("r", &[1, 4, 7, 5]));
    let c = conv_of(&mut g, &x, &w, Some(&b));
    let s = bin(&mut g, "add", Binary::Add, &c, &r);
    let y = un(&mut g, "relu", Unary::Relu, &s);
    let m = fused(&g.returns(&[&y]));
    assert_eq!(calls(&m), ["relu = conv_add_relu(x, w, b, r)"]);
    let text = stage_texts(&m, "conv_add_relu");
    // Padding, the contraction, and one stage behind it.
    assert_eq!(text.len(), 3, "{text:#?}");
}

/// `x * clip(x + 3, 0, 6) / 6`, in four calls.
fn hard_swish(g: &mut Graph, x: &GraphVar) -> GraphVar {
    let (three, six) = (g.constant(3.0), g.constant(6.0));
    let a = bin(g, "add", Binary::Add, x, &three);
    let clip = Unary::Clip { low: Some(Scalar::Float(0.0)), high: Some(Scalar::Float(6.0)) };
    let c = un(g, "clip", clip, &a);
    let p = bin(g, "mul", Binary::Mul, x, &c);
    bin(g, "div", Binary::Div, &p, &six)
}

#[test]
fn a_diamond_behind_a_contraction_is_one_epilogue() {
    let mut g = Graph::default();
    let (x, w) = (g.input("x", &[5, 7]), g.input("w", &[7, 9]));
    let f = matmul(&operand(&x), &operand(&w)).expect("valid");
    let m = g.call("matmul", f, &[&x, &w]);
    let y = hard_swish(&mut g, &m);
    let m = fused(&g.returns(&[&y]));
    let text = calls(&m);
    assert_eq!(text, ["div = matmul_add_clip_mul_div(x, w, three, six)"]);
    assert_eq!(stage_texts(&m, "matmul_add_clip_mul_div").len(), 2);
}

#[test]
fn a_second_contraction_stays_apart() {
    let mut g = Graph::default();
    let (x, w) = (g.input("x", &[5, 7]), g.input("w", &[7, 7]));
    let f = || matmul(&Operand::f32(&[5, 7]), &Operand::f32(&[7, 7])).expect("valid");
    let a = g.call("matmul", f(), &[&x, &w]);
    let b = g.call("matmul", f(), &[&a, &w]);
    let s = bin(&mut g, "add", Binary::Add, &a, &b);
    let y = un(&mut g, "relu", Unary::Relu, &s);
    let m = fused(&g.returns(&[&y]));
    assert_eq!(
        calls(&m),
        ["matmul = matmul(x, w)", "relu = matmul_add_relu(matmul, w)"],
        "the second product takes the sum; the first is read twice"
    );
}

#[test]
fn results_of_the_graph_stay_available() {
    let mut g = Graph::default();
    let x = g.input("x", &[4, 4]);
    let a = un(&mut g, "exp", Unary::Exp, &x);
    let b = un(&mut g, "relu", Unary::Relu, &a);
    let m = fused(&g.returns(&[&a, &b]));
    assert_eq!(calls(&m), ["exp = exp(x)", "relu = relu(exp)"]);
}

#[test]
fn a_value_that_someone_else_reads_is_not_computed_twice() {
    let mut g = Graph::default();
    let (x, w) = (g.input("x", &[4, 4]), g.input("w", &[4, 4]));
    let a = un(&mut g, "exp", Unary::Exp, &x);
    let f = matmul(&operand(&a), &operand(&w)).expect("valid");
    let p = g.call("matmul", f, &[&a, &w]);
    let y = bin(&mut g, "add", Binary::Add, &a, &p);
    let m = fused(&g.returns(&[&y]));
    assert_eq!(calls(&m), ["exp = exp(x)", "add = matmul_add(exp, w)"]);
}

#[test]
fn no_group_reaches_around_a_call_outside() {
    // relu(a) feeds softmax and the sum behind it: taking relu into the sum would be a cycle.
    let mut g = Graph::default();
    let x = g.input("x", &[4, 4]);
    let a = un(&mut g, "relu", Unary::Relu, &x);
    let f = softmax(&operand(&a), 1).expect("valid");
    let s = g.call("softmax", f, &[&a]);
    let y = bin(&mut g, "add", Binary::Add, &s, &a);
    let m = fused(&g.returns(&[&y]));
    assert_eq!(calls(&m), ["relu = relu(x)", "add = softmax_add(relu)"]);
    let text = stage_texts(&m, "softmax_add");
    assert!(text.last().is_some_and(|t| t.starts_with("add[")), "{text:#?}");
}

#[test]
fn movement_joins_the_map_that_reads_it() {
    let mut g = Graph::default();
    let (x, y) = (g.input("x", &[6, 4]), g.input("y", &[3, 5]));
    let f = transpose(&operand(&x), &[1, 0]).expect("valid");
    let t = g.call("transpose", f, &[&x]);
    let f = slice(&operand(&t), &[0], &[3], &[0], &[1]).expect("valid");
    let s = g.call("slice", f, &[&t]);
    let f = slice(&operand(&s), &[1], &[6], &[1], &[1]).expect("valid");
    let s = g.call("slice", f, &[&s]);
    let z = bin(&mut g, "mul", Binary::Mul, &s, &y);
    let m = fused(&g.returns(&[&z]));
    assert_eq!(calls(&m), ["mul = transpose_slice_slice_mul(x, y)"]);
    assert_eq!(stage_texts(&m, "transpose_slice_slice_mul").len(), 1);
}

#[test]
fn a_broadcast_joins_but_not_arithmetic_behind_it() {
    let mut g = Graph::default();
    let (v, y) = (g.input("v", &[1, 4]), g.input("y", &[6, 4]));
    let e = un(&mut g, "exp", Unary::Exp, &v);
    let f = expand(&operand(&e), &[6, 4]).expect("valid");
    let b = g.call("expand", f, &[&e]);
    let z = bin(&mut g, "mul", Binary::Mul, &b, &y);
    let m = fused(&g.returns(&[&z]));
    assert_eq!(calls(&m), ["exp = exp(v)", "mul = expand_mul(exp, y)"]);
}

#[test]
fn maps_stay_with_the_contraction_before_them() {
    let mut g = Graph::default();
    let (x, w) = (g.input("x", &[5, 7]), g.input("w", &[7, 9]));
    let f = matmul(&operand(&x), &operand(&w)).expect("valid");
    let m = g.call("matmul", f, &[&x, &w]);
    let r = un(&mut g, "relu", Unary::Relu, &m);
    let f = transpose(&operand(&r), &[1, 0]).expect("valid");
    let t = g.call("transpose", f, &[&r]);
    let m = fused(&g.returns(&[&t]));
    assert_eq!(calls(&m), ["relu = matmul_relu(x, w)", "transpose = transpose(relu)"]);
}

#[test]
fn a_transposition_takes_the_map_before_it() {
    let mut g = Graph::default();
    let x = g.input("x", &[5, 7]);
    let s = hard_swish(&mut g, &x);
    let f = transpose(&operand(&s), &[1, 0]).expect("valid");
    let t = g.call("transpose", f, &[&s]);
    let m = fused(&g.returns(&[&t]));
    assert_eq!(calls(&m), ["transpose = add_clip_mul_div_transpose(x, three, six)"]);
    assert_eq!(stage_texts(&m, "add_clip_mul_div_transpose").len(), 1);
}

#[test]
fn a_view_stays_one_unless_it_parts_two_maps() {
    let mut g = Graph::default();
    let (x, y) = (g.input("x", &[6, 4]), g.input("y", &[24]));
    let f = reshape(&operand(&x), &[24]).expect("valid");
    let flat = g.call("reshape", f, &[&x]);
    let z = bin(&mut g, "add", Binary::Add, &flat, &y);
    let m = fused(&g.returns(&[&z]));
    assert_eq!(calls(&m), ["reshape = reshape(x)", "add = add(reshape, y)"]);

    let mut g = Graph::default();
    let (x, y) = (g.input("x", &[24]), g.input("y", &[6, 4]));
    let e = un(&mut g, "exp", Unary::Exp, &x);
    let f = reshape(&operand(&e), &[6, 4]).expect("valid");
    let r = g.call("reshape", f, &[&e]);
    let z = bin(&mut g, "add", Binary::Add, &r, &y);
    let m = fused(&g.returns(&[&z]));
    assert_eq!(calls(&m), ["add = exp_reshape_add(x, y)"]);
}

#[test]
fn concatenation_stays_alone() {
    let mut g = Graph::default();
    let x = g.input("x", &[2, 3]);
    let a = un(&mut g, "exp", Unary::Exp, &x);
    let b = un(&mut g, "relu", Unary::Relu, &x);
    let f = concat(&[operand(&a), operand(&b)], 0).expect("valid");
    let c = g.call("concat", f, &[&a, &b]);
    let y = un(&mut g, "tanh", Unary::Tanh, &c);
    let m = fused(&g.returns(&[&y]));
    assert_eq!(
        calls(&m),
        ["exp = exp(x)", "relu = relu(x)", "concat = concat(exp, relu)", "tanh = tanh(concat)"]
    );
}

#[test]
fn equal_groups_share_one_function_and_unused_functions_go() {
    let mut g = Graph::default();
    let mut x = g.input("x", &[5, 7]);
    let w = g.input("w", &[7, 7]);
    for _ in 0..3 {
        let f = gemm(&Gemm::new(operand(&x), operand(&w))).expect("valid");
        let p = g.call("gemm", f, &[&x, &w]);
        x = un(&mut g, "relu", Unary::Relu, &p);
    }
    let m = fused(&g.returns(&[&x]));
    let text = calls(&m);
    assert_eq!(text.len(), 3);
    assert!(text.iter().all(|c| c.contains("gemm_relu(")), "{text:?}");
    assert_eq!(crate::common::functions(&m).len(), 1);
}

/// `tanh(x * scale)` for each constant, by the same two functions.
fn scaled(scales: &[Tensor]) -> Module {
    let mut g = Graph::default();
    let x = g.input("x", &[5, 7]);
    let ty = TensorType::fixed(scales[0].shape(), scales[0].dtype());
    let scale = operand(&GraphVar::tensor("scale", ty));
    g.module.insert("mul", binary(Binary::Mul, &operand(&x), &scale).expect("valid"));
    g.module.insert("tanh", unary(Unary::Tanh, &operand(&x)).expect("valid"));
    let ty = TensorType::fixed(&[5, 7], operand(&x).dtype);
    let mut all = Vec::new();
    for scale in scales {
        let args = vec![x.expr(), GraphExpr::Const(scale.clone())];
        let p = g.bind("p", ty.clone(), GraphExpr::call_tir("mul", args, vec![ty.clone()]));
        let tanh = GraphExpr::call_tir("tanh", vec![p.expr()], vec![ty.clone()]);
        all.push(g.bind("y", ty.clone(), tanh));
    }
    g.returns(&all.iter().collect::<Vec<_>>())
}

/// The calls of fused functions, after a look at what they compute.
fn scaled_calls(scales: &[Tensor]) -> Vec<String> {
    let m = scaled(scales);
    let values: Vec<f32> = (0..35).map(|n| n as f32 / 8.0 - 2.0).collect();
    let x = [Tensor::from_slice(&[5, 7], &values).expect("small")];
    let run = |m: &Module| tilewright_interp::run_module(m, "main", &x).expect("runs");
    let fused = fused(&m);
    let (want, got) = (run(&m), run(&fused));
    assert!(want.iter().zip(&got).all(|(w, g)| w.same(g)), "{want:?} against {got:?}");
    calls(&fused).into_iter().filter(|c| c.contains("mul_tanh")).collect()
}

#[test]
fn a_constant_of_one_number_is_a_literal_where_all_that_share_the_function_have_it() {
    let of = |shape: &[usize], v: f32| Tensor::from_slice(shape, &[v]).expect("small");
    assert_eq!(scaled_calls(&[of(&[], 0.1), of(&[], 0.1)]).concat().matches("const").count(), 0);
    assert_eq!(scaled_calls(&[of(&[1, 1], -0.1)]).concat().matches("const").count(), 0);
    let two = scaled_calls(&[of(&[], 0.1), of(&[], 0.2)]);
    assert_eq!(two.len(), 2);
    assert!(two.iter().all(|c| c.contains("mul_tanh(") && c.contains(", const[])")), "{two:?}");
    // What has no number in the text of a program stays an argument.
    assert!(scaled_calls(&[of(&[], f32::INFINITY)]).concat().contains("const[]"));
}

#[test]
fn a_long_chain_is_cut_into_bounded_functions_in_good_time() {
    let mut g = Graph::default();
    let mut x = g.input("x", &[64]);
    let funcs = [Unary::Relu, Unary::Neg, Unary::Tanh];
    for n in 0..2000 {
        x = un(&mut g, "step", funcs[n % 3], &x);
    }
    let m = g.returns(&[&x]);
    let start = std::time::Instant::now();
    let m = fused(&m);
    let time = start.elapsed();
    eprintln!("{time:?}");
    let count = calls(&m).len();
    assert!((2000 / 48..=80).contains(&count), "{count}");
    assert!(time.as_secs() < 5, "{time:?}");
    assert!(crate::common::functions(&m).iter().all(|f| f.0.len() < 80));
}

#[test]
fn names_are_joined_and_bounded() {
    let mut g = Graph::default();
    let mut x = g.input("x", &[4]);
    for _ in 0..9 {
        x = un(&mut g, "a_rather_long_name", Unary::Tanh, &x);
    }
    let m = fused(&g.returns(&[&x]));
    let text = calls(&m);
    assert_eq!(text, ["a_rather_long_name = a_rather_long_name_a_rather_long_name_and_7_more(x)"]);
}

#[test]
fn a_cast_between_maps_keeps_its_rounding() {
    let mut g = Graph::default();
    let x = g.input("x", &[4]);
    let f = cast(&operand(&x), tilewright_ir::DType::I32).expect("valid");
    let i = g.call("cast", f, &[&x]);
    let f = cast(&operand(&i), tilewright_ir::DType::F32).expect("valid");
    let y = g.call("cast", f, &[&i]);
    let m = fused(&g.returns(&[&y]));
    assert_eq!(calls(&m), ["cast = cast_cast(x)"]);
    let text = stage_texts(&m, "cast_cast");
    assert!(text[0].ends_with(r#"T.Cast("float32", T.Cast("int32", x[vi0]))"#), "{text:?}");
}

/// Blocks in which every layer reads all layers before it: normalisation, relu, convolution, and a
/// concatenation that grows.
fn dense(layers: usize) -> Module {
    let mut g = Graph::default();
    let mut v = g.input("x", &[1, 8, 6, 6]);
    for n in 0..layers {
        let x = operand(&v);
        let channels = extents(&x)[1];
        let scale = g.input("s", &[1, channels, 1, 1]);
        let a = bin(&mut g, "mul", Binary::Mul, &v, &scale);
        let a = bin(&mut g, "add", Binary::Add, &a, &scale);
        let a = un(&mut g, "relu", Unary::Relu, &a);
        let w = g.input("w", &[8, channels, 3, 3]);
        let b = g.input("b", &[8]);
        let c = conv_of(&mut g, &a, &w, Some(&b));
        let c = un(&mut g, "relu", Unary::Relu, &c);
        let f = if n % 24 == 23 { None } else { concat(&[x, operand(&c)], 1).ok() };
        v = match f {
            Some(f) => g.call("concat", f, &[&v, &c]),
            None => c,
        };
    }
    g.returns(&[&v])
}

#[test]
fn a_network_of_nine_hundred_calls_fuses_in_good_time() {
    let m = dense(150);
    assert!(calls(&m).len() >= 890);
    let start = std::time::Instant::now();
    let m = fused(&m);
    let time = start.elapsed();
    eprintln!("{time:?}");
    // A map, a convolution with what follows, and mostly a concatenation.
    assert_eq!(calls(&m).len(), 150 * 3 - 6);
    assert!(time.as_secs() < 5, "{time:?}");
}

#[test]
fn a_map_joins_the_reduction_that_reads_each_cell_once() {
    let mut g = Graph::default();
    let (x, y) = (g.input("x", &[6, 4]), g.input("y", &[6, 4]));
    let p = bin(&mut g, "sub", Binary::Sub, &x, &y);
    let p = bin(&mut g, "mul", Binary::Mul, &p, &p);
    let f = reduce(Reduction::Sum, &operand(&p), &[1], false).expect("valid");
    let s = g.call("sum", f, &[&p]);
    let r = un(&mut g, "sqrt", Unary::Sqrt, &s);
    let m = fused(&g.returns(&[&r]));
    assert_eq!(calls(&m), ["sqrt = sub_mul_sum_sqrt(x, y)"]);
    let text = stage_texts(&m, "sub_mul_sum_sqrt");
    assert_eq!(text.len(), 2, "{text:#?}");
    assert!(text[0].contains("a[vi0, vk1] - b[vi0, vk1]"), "{text:#?}");
    // A product reads a row again for every column: the map stays outside.
    let mut g = Graph::default();
    let (x, w) = (g.input("x", &[5, 7]), g.input("w", &[7, 9]));
    let e = un(&mut g, "exp", Unary::Exp, &x);
    let f = matmul(&operand(&e), &operand(&w)).expect("valid");
    let p = g.call("matmul", f, &[&e, &w]);
    let m = fused(&g.returns(&[&p]));
    assert_eq!(calls(&m), ["exp = exp(x)", "matmul = matmul(exp, w)"]);
    // What follows a contraction stays with it.
    let mut g = Graph::default();
    let (x, w) = (g.input("x", &[5, 7]), g.input("w", &[7, 9]));
    let f = matmul(&operand(&x), &operand(&w)).expect("valid");
    let p = g.call("matmul", f, &[&x, &w]);
    let e = un(&mut g, "exp", Unary::Exp, &p);
    let f = reduce(Reduction::Max, &operand(&e), &[0], false).expect("valid");
    let s = g.call("max", f, &[&e]);
    let m = fused(&g.returns(&[&s]));
    assert_eq!(calls(&m), ["exp = matmul_exp(x, w)", "max = max(exp)"]);
}

#[test]
fn a_diamond_stays_with_its_contraction_rather_than_join_what_follows() {
    let mut g = Graph::default();
    let (x, w) = (g.input("x", &[5, 7]), g.input("w", &[7, 9]));
    let f = matmul(&operand(&x), &operand(&w)).expect("valid");
    let p = g.call("matmul", f, &[&x, &w]);
    let s = hard_swish(&mut g, &p);
    let f = transpose(&operand(&s), &[1, 0]).expect("valid");
    let t = g.call("transpose", f, &[&s]);
    let m = fused(&g.returns(&[&t]));
    assert_eq!(
        calls(&m),
        ["div = matmul_add_clip_mul_div(x, w, three, six)", "transpose = transpose(div)"]
    );
    // Where the product is needed as well, the maps are free to go on.
    let mut g = Graph::default();
    let (x, w) = (g.input("x", &[5, 7]), g.input("w", &[7, 9]));
    let f = matmul(&operand(&x), &operand(&w)).expect("valid");
    let p = g.call("matmul", f, &[&x, &w]);
    let r = un(&mut g, "relu", Unary::Relu, &p);
    let f = transpose(&operand(&r), &[1, 0]).expect("valid");
    let t = g.call("transpose", f, &[&r]);
    let m = fused(&g.returns(&[&p, &t]));
    assert_eq!(calls(&m), ["matmul = matmul(x, w)", "transpose = relu_transpose(matmul)"]);
}

#[test]
fn a_contraction_is_not_computed_at_other_indices() {
    let product = |g: &mut Graph| {
        let (x, w) = (g.input("x", &[5, 7]), g.input("w", &[7, 9]));
        let f = matmul(&operand(&x), &operand(&w)).expect("valid");
        g.call("matmul", f, &[&x, &w])
    };
    let mut g = Graph::default();
    let p = product(&mut g);
    let f = transpose(&operand(&p), &[1, 0]).expect("valid");
    let t = g.call("transpose", f, &[&p]);
    let m = fused(&g.returns(&[&t]));
    assert_eq!(calls(&m), ["matmul = matmul(x, w)", "transpose = transpose(matmul)"]);

    let mut g = Graph::default();
    let p = product(&mut g);
    let row = g.input("row", &[5, 1]);
    let f = slice(&operand(&p), &[0], &[1], &[1], &[1]).expect("valid");
    let s = g.call("slice", f, &[&p]);
    let z = bin(&mut g, "mul", Binary::Mul, &s, &row);
    let m = fused(&g.returns(&[&z]));
    assert_eq!(calls(&m), ["matmul = matmul(x, w)", "mul = slice_mul(matmul, row)"]);
}

//! A module with another size is the one that would have been written.

use tilewright_graph::resize::resize;
use tilewright_ir::equal::{Equality, tensor_funcs};
use tilewright_ir::{DType, Expr, GraphVar, Module, TensorFunc, well_formed};
use tilewright_ops::Operand;
use tilewright_ops::te::{self, Reducer};

use crate::common::Graph;

/// A convolution of windows of `k` by `k` with a border of `pad` zeros, in steps of `step`.
fn convolution(shape: &[usize], m: usize, k: usize, step: usize, pad: usize) -> TensorFunc {
    let x = te::placeholder("x", shape, DType::F32);
    let w = te::placeholder("w", &[m, shape[1], k, k], DType::F32);
    let out = |n: usize| (n + 2 * pad - k) / step + 1;
    let used = |n: usize| (out(n) - 1) * step + k;
    let (h, l) = (shape[2] as i64, shape[3] as i64);
    let p = pad as i64;
    let inner = [shape[0], shape[1], used(shape[2]), used(shape[3])];
    let padded = te::compute("padded", &inner, |i| {
        let inside = |e: &Expr, n: i64| e.clone().greater_equal(p).and(e.clone().less(n + p));
        let at = [i[0].clone(), i[1].clone(), i[2].clone() - p, i[3].clone() - p];
        let zero = Expr::constant(0.0, DType::F32);
        Expr::if_then_else(inside(&i[2], h).and(inside(&i[3], l)), x.at(at), zero)
    });
    let [c, p, q] = [(shape[1], "c"), (k, "p"), (k, "q")].map(|(n, name)| te::reduce_axis(n, name));
    let y = te::compute("y", &[shape[0], m, out(shape[2]), out(shape[3])], |i| {
        let s = step as i64;
        let at = [i[0].clone(), c.expr(), i[2].clone() * s + p.expr(), i[3].clone() * s + q.expr()];
        let weights = w.at([i[1].clone(), c.expr(), p.expr(), q.expr()]);
        te::reduce(Reducer::Sum, padded.at(at) * weights, [&c, &p, &q])
    });
    te::func([&x, &w], [&y]).expect("a function")
}

fn concat(a: &[usize], b: &[usize]) -> TensorFunc {
    let (x, y) = (te::placeholder("x", a, DType::F32), te::placeholder("y", b, DType::F32));
    let first = a[1] as i64;
    let z = te::compute("z", &[a[0], a[1] + b[1], a[2], a[3]], |i| {
        let second = [i[0].clone(), i[1].clone() - first, i[2].clone(), i[3].clone()];
        Expr::if_then_else(i[1].clone().less(first), x.at(i), y.at(second))
    });
    te::func([&x, &y], [&z]).expect("a function")
}

fn flatten(shape: &[usize]) -> TensorFunc {
    let x = te::placeholder("x", shape, DType::F32);
    let (h, w) = (shape[2] as i64, shape[3] as i64);
    let y = te::compute("y", &[shape[0], shape[1] * shape[2] * shape[3]], |i| {
        let at = |k: i64| i[1].clone().floordiv(k);
        x.at([i[0].clone(), at(h * w), at(w).floormod(h), i[1].clone().floormod(w)])
    });
    te::func([&x], [&y]).expect("a function")
}

fn product(shape: &[usize], m: usize) -> TensorFunc {
    let x = te::placeholder("x", shape, DType::F32);
    let w = te::placeholder("w", &[shape[1], m], DType::F32);
    let k = te::reduce_axis(shape[1], "k");
    let y = te::compute("y", &[shape[0], m], |i| {
        te::reduce(Reducer::Sum, x.at([&i[0], &k.expr()]) * w.at([&k.expr(), &i[1]]), [&k])
    });
    te::func([&x, &w], [&y]).expect("a function")
}

fn relu(shape: &[usize]) -> TensorFunc {
    let x = te::placeholder("x", shape, DType::F32);
    let y = te::compute("y", shape, |i| x.at(i).max(Expr::constant(0.0, DType::F32)));
    te::func([&x], [&y]).expect("a function")
}

/// Two convolutions side by side, their results one behind the other, a third, and a product.
fn model(batch: usize, channels: [usize; 4], size: usize, classes: usize) -> Module {
    let mut g = Graph::default();
    let f32 = |shape: &[usize]| Operand::new(shape, DType::F32);
    let [c, a, b, d] = channels;
    let x = g.input_of("x", &f32(&[batch, c, size, size]));
    let half = (size + 2 - 3) / 2 + 1;
    let weights =
        |g: &mut Graph, m: usize, c: usize, k: usize| g.input_of("w", &f32(&[m, c, k, k]));
    let conv = |g: &mut Graph, name: &str, x: &GraphVar, shape: &[usize], m: usize, k, s, p| {
        let w = weights(g, m, shape[1], k);
        g.call(name, convolution(shape, m, k, s, p), &[x, &w])
    };
    let input = [batch, c, size, size];
    let left = conv(&mut g, "one", &x, &input, a, 3, 2, 1);
    let right = conv(&mut g, "two", &x, &input, b, 3, 2, 1);
    let (l, r) = ([batch, a, half, half], [batch, b, half, half]);
    let left = g.call("relu", relu(&l), &[&left]);
    let both = g.call("concat", concat(&l, &r), &[&left, &right]);
    let y = conv(&mut g, "three", &both, &[batch, a + b, half, half], d, 1, 1, 0);
    let last = [batch, d, half, half];
    let y = g.call("flat", flatten(&last), &[&y]);
    let w = g.input_of("v", &f32(&[d * half * half, classes]));
    let y = g.call("product", product(&[batch, d * half * half], classes), &[&y, &w]);
    g.returns(&[&y])
}

/// The functions that the main function calls, in order.
fn called(module: &Module) -> Vec<TensorFunc> {
    let main = module.graph("main").expect("it is there");
    main.bindings()
        .filter_map(|b| match &b.value {
            tilewright_ir::GraphExpr::CallTir { func, .. } => {
                Some((**module.tensor(func).expect("it is there")).clone())
            }
            _ => None,
        })
        .collect()
}

/// The name of the value that the n-th call makes.
fn made(module: &Module, n: usize) -> String {
    let main = module.graph("main").expect("it is there");
    main.bindings().nth(n).expect("as many calls").var.name().to_string()
}

fn same(a: &Module, b: &Module) {
    well_formed::check_module(a).expect("it is well-formed");
    let (a, b) = (called(a), called(b));
    assert_eq!(a.len(), b.len());
    for (k, (a, b)) in a.iter().zip(&b).enumerate() {
        if let Err(e) = tensor_funcs(a, b, &Equality::loose()) {
            panic!("call {k}: {e:?}\n{}", tilewright_tvmscript::print_func("f", a));
        }
    }
}

#[test]
fn channels_of_one_convolution_change_what_reads_them() {
    let old = model(2, [3, 5, 6, 9], 14, 10);
    for (call, channels) in
        [(0, [3, 8, 6, 9]), (0, [3, 4, 6, 9]), (1, [3, 5, 16, 9]), (4, [3, 5, 6, 8])]
    {
        let axis = 1;
        let to = [channels[1], channels[2], 0, 0, channels[3]][call] as i64;
        let new = resize(&old, &made(&old, call), axis, to).expect("it can be followed");
        same(&new.module, &model(2, channels, 14, 10));
        // Weights are inputs here.
        assert!(new.ends.iter().all(|name| &**name != "x"), "{:?}", new.ends);
    }
}

#[test]
fn inputs_change_what_follows_from_them() {
    let old = model(2, [3, 5, 6, 9], 14, 10);
    let at = |value: &str, axis, to| resize(&old, value, axis, to).expect("it can be followed");
    same(&at("x", 0, 3).module, &model(3, [3, 5, 6, 9], 14, 10));
    same(&at("x", 1, 4).module, &model(2, [4, 5, 6, 9], 14, 10));
    let product = made(&old, 6);
    same(&at(&product, 1, 16).module, &model(2, [3, 5, 6, 9], 14, 16));
}

#[test]
fn sizes_of_pictures_go_through_windows_by_whole_steps() {
    // Without the product, whose operand has the pixels as lower digits.
    let build = |size: usize| {
        let mut g = Graph::default();
        let shape = [1, 3, size, 12];
        let x = g.input_of("x", &Operand::new(&shape, DType::F32));
        let w = g.input_of("w", &Operand::new(&[4, 3, 3, 3], DType::F32));
        let y = g.call("conv", convolution(&shape, 4, 3, 2, 1), &[&x, &w]);
        let y = g.call("relu", relu(&[1, 4, (size - 1) / 2 + 1, 6]), &[&y]);
        g.returns(&[&y])
    };
    for (from, to) in [(14, 16), (13, 15), (14, 8), (15, 21)] {
        let new = resize(&build(from), "x", 2, to as i64).expect("it can be followed");
        same(&new.module, &build(to));
        assert_eq!(new.ends.len(), 2);
    }
    assert!(resize(&build(14), "x", 2, 15).is_err());
    let error = resize(&model(2, [3, 5, 6, 9], 14, 10), "x", 2, 16);
    let error = error.err().expect("lower digits").to_string();
    assert!(error.contains("another digit"), "{error}");
}

#[test]
fn what_cannot_be_followed_is_refused() {
    let old = model(2, [3, 5, 6, 9], 14, 10);
    for (value, axis, to) in [("none", 0, 3), ("x", 7, 3), ("x", 0, 0), ("w", 0, 3)] {
        assert!(resize(&old, value, axis, to).is_err(), "{value} {axis} {to}");
    }
    // What a window makes does not say what it reads.
    assert!(resize(&old, &made(&old, 0), 2, 8).is_err());
}

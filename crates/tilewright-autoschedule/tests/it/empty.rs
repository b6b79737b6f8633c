//! Reductions over sizes that may be zero: they get tiles and vectors, and are what they begin with over nothing.

use std::sync::Arc;

use tilewright_autoschedule::{TileCheck, contractions, others};
use tilewright_interp::run_module;
use tilewright_ir::{ForKind, Module, Remarks, Source, StmtKind, Tensor, TensorFunc};
use tilewright_target::Target;
use tilewright_transform::lower;
use tilewright_tvmscript::parse_module;

fn run(func: &TensorFunc, inputs: &[Tensor]) -> Tensor {
    let mut module = Module::new();
    module.insert("main", func.clone());
    run_module(&module, "main", inputs).unwrap_or_else(|e| panic!("{}", e.render())).swap_remove(0)
}

fn ones(shape: &[usize]) -> Tensor {
    Tensor::from_slice(shape, &vec![1.0f32; shape.iter().product()]).expect("a tensor")
}

/// Whether any loop runs as lanes of vectors.
fn has_lanes(func: &TensorFunc) -> bool {
    let mut found = false;
    func.body.for_each(|s| {
        found |= matches!(s.kind(), StmtKind::For { kind: ForKind::Vectorized, .. });
    });
    found
}

/// A function of `float32` with a parameter `k` that data decide, scheduled for all machines: each result is `k`.
fn check(text: &str, shapes: &dyn Fn(usize) -> Vec<Vec<usize>>) {
    let text = format!("@T.prim_func\n{text}");
    let module =
        parse_module(&Source::new("test.py", text)).unwrap_or_else(|e| panic!("{}", e.render()));
    for cpu in ["x86-64-v4", "x86-64-v3", "x86-64"] {
        let target = Target::new("x86_64-unknown-linux-gnu", cpu, "");
        let mut why = Remarks::new();
        let (tiled, _) =
            contractions(&module, &target, TileCheck::ByCaller, &mut why).expect("tiles");
        let (_, tiled): (_, &Arc<TensorFunc>) = tiled.tensors().next().expect("a function");
        let made = others(tiled, &target, &mut why).expect("loops");
        assert!(has_lanes(&made), "{}", why.iter().map(|e| e.render()).collect::<String>());
        let lowered = lower(&made).expect("lowers");
        for k in [0, 1, 5, 70] {
            let inputs: Vec<Tensor> = shapes(k).iter().map(|shape| ones(shape)).collect();
            for func in [&made, &lowered] {
                let out = run(func, &inputs);
                assert!((0..out.len()).all(|i| out.get_f64(i) == k as f64), "{cpu}: {k}");
            }
        }
    }
}

#[test]
fn products_over_nothing_are_zero() {
    let text = r#"def f(a: T.handle, b: T.handle, C: T.Buffer((37, 48), "float32")):
    T.func_attr({"tilewright.takes_empty": 1, "tir_var_lower_bound": {"k": 0}})
    k = T.int32()
    A = T.match_buffer(a, (37, k), "float32")
    B = T.match_buffer(b, (k, 48), "float32")
    for i, j, l in T.grid(37, 48, k):
        with T.block("C"):
            vi, vj, vl = T.axis.remap("SSR", [i, j, l])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vl] * B[vl, vj]
"#;
    check(text, &|k| vec![vec![37, k], vec![k, 48]]);
}

#[test]
fn sums_over_nothing_are_zero() {
    for [shape, index] in [["(k, 60)", "vl, vi"], ["(60, k)", "vi, vl"]] {
        let text = format!(
            r#"def f(a: T.handle, C: T.Buffer((60,), "float32")):
    T.func_attr({{"tilewright.takes_empty": 1, "tir_var_lower_bound": {{"k": 0}}}})
    k = T.int32()
    A = T.match_buffer(a, {shape}, "float32")
    for i, l in T.grid(60, k):
        with T.block("C"):
            vi, vl = T.axis.remap("SR", [i, l])
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = C[vi] + A[{index}]
"#
        );
        let rows_first = shape.starts_with("(k");
        check(&text, &|k| vec![if rows_first { vec![k, 60] } else { vec![60, k] }]);
    }
}

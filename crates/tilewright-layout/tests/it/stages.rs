//! Functions that primitives let work in other layouts inside, and that keep their interface.

use expect_test::{Expect, expect};
use tilewright_ir::{Attr, DType, Expr, Function, Module, Result, Source, TensorFunc, Var};
use tilewright_layout::IndexMap;
use tilewright_layout::lift::{POST, PRE};
use tilewright_layout::{Leave, cancel_layout, lift_layout};
use tilewright_schedule::value::Value;
use tilewright_schedule::{BlockRef, BufferArg, Permissions, Schedule};
use tilewright_tvmscript::{parse_module, print_module};

fn func(text: &str) -> TensorFunc {
    let module =
        parse_module(&Source::new("f.py", text)).unwrap_or_else(|e| panic!("{}", e.render()));
    (**module.tensors().next().expect("a function").1).clone()
}

fn map<const N: usize>(build: impl Fn([Expr; N]) -> Vec<Expr>) -> IndexMap {
    let params: [Var; N] = std::array::from_fn(|k| Var::index(format!("i{k}")));
    let indices = build(params.clone().map(|v| v.expr()));
    IndexMap { params: params.to_vec(), indices, separators: Vec::new() }
}

/// Lets the block `compute` read an argument, or write a result, in another layout.
fn converted(sch: &mut Schedule, buffer: &str, map: &IndexMap, pad: &Value) -> Result<()> {
    let block = BlockRef { func: "main".into(), name: "compute".into() };
    let which = BufferArg::Name(buffer.into());
    let (copy, side, mark) = match buffer {
        "C" => (sch.cache_write(&block, which, "global", &[])?, BufferArg::Read(0), POST),
        _ => (sch.cache_read(&block, which, "global", &[])?, BufferArg::Write(0), PRE),
    };
    sch.transform_layout(&copy, side, &map.to_lambda(), pad, false)?;
    sch.annotate(&copy, mark, Attr::Str("layout".into()))
}

fn staged(func: &TensorFunc, layouts: &[(&str, IndexMap, Value)]) -> TensorFunc {
    let mut module = Module::new();
    module.insert("main", func.clone());
    let mut sch = Schedule::new(module, Permissions::default());
    for (buffer, map, pad) in layouts {
        converted(&mut sch, buffer, map, pad).unwrap_or_else(|e| panic!("{}", e.render()));
    }
    (**sch.func("main").expect("it is there")).clone()
}

fn check(func: &TensorFunc, layouts: &[(&str, IndexMap, Value)], expected: Expect) {
    let mut module = Module::new();
    module.insert("main", Function::from(staged(func, layouts)));
    let text = print_module(&module);
    let body = text.split_once("def main").map_or("", |(_, body)| body);
    expected.assert_eq(&format!("def main{body}"));
}

const MATMUL: &str = "
@T.prim_func
def f(A: T.Buffer((16, 16), \"float32\"), B: T.Buffer((16, 16), \"float32\"), C: T.Buffer((16, 16), \"float32\")):
    for i, j, k in T.grid(16, 16, 16):
        with T.block(\"compute\"):
            vi, vj, vk = T.axis.remap(\"SSR\", [i, j, k])
            with T.init():
                C[vi, vj] = 0.0
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
";

const MULTIPLY: &str = "
@T.prim_func
def f(A: T.Buffer((4, 7), \"float32\"), B: T.Buffer((4, 7), \"float32\"), C: T.Buffer((4, 7), \"float32\")):
    for i, j in T.grid(4, 7):
        with T.block(\"compute\"):
            vi, vj = T.axis.remap(\"SS\", [i, j])
            C[vi, vj] = A[vi, vj] * B[vi, vj]
";

fn blocked() -> IndexMap {
    map(|[i, j]| vec![i.clone().floordiv(8), j, i.floormod(8)])
}

#[test]
fn a_product_works_in_a_blocked_layout() {
    check(
        &func(MATMUL),
        &[("A", blocked(), Value::None), ("C", blocked(), Value::None)],
        expect![[r#"
            def main(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16, 16), "float32"), C: T.Buffer((16, 16), "float32")):
                    A_global = T.alloc_buffer((2, 16, 8), "float32")
                    C_global = T.alloc_buffer((2, 16, 8), "float32")
                    for ax0, ax1 in T.grid(16, 16):
                        with T.block("A_global"):
                            v0, v1 = T.axis.remap("SS", [ax0, ax1])
                            T.reads(A[v0, v1])
                            T.writes(A_global[v0 // 8, v1, v0 % 8])
                            T.block_attr({"preproc": "layout"})
                            A_global[v0 // 8, v1, v0 % 8] = A[v0, v1]
                    for i, j, k in T.grid(16, 16, 16):
                        with T.block("compute"):
                            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                            with T.init():
                                C_global[vi // 8, vj, vi % 8] = T.float32(0.0)
                            C_global[vi // 8, vj, vi % 8] = C_global[vi // 8, vj, vi % 8] + A_global[vi // 8, vk, vi % 8] * B[vk, vj]
                    for ax0, ax1 in T.grid(16, 16):
                        with T.block("C_global"):
                            v0, v1 = T.axis.remap("SS", [ax0, ax1])
                            T.reads(C_global[v0 // 8, v1, v0 % 8])
                            T.writes(C[v0, v1])
                            T.block_attr({"postproc": "layout"})
                            C[v0, v1] = C_global[v0 // 8, v1, v0 % 8]
        "#]],
    );
}

#[test]
fn padding_is_one_store_that_selects() {
    let zero = || Value::Expr(Expr::float(0.0, DType::F32));
    let undef = Value::Expr(Expr::undef(DType::F32));
    let padded = || map(|[i, j]| vec![i, j.clone().floordiv(4), j.floormod(4)]);
    let layouts = [("A", padded(), zero()), ("B", padded(), undef), ("C", padded(), zero())];
    check(
        &func(MULTIPLY),
        &layouts,
        expect![[r#"
            def main(A: T.Buffer((4, 7), "float32"), B: T.Buffer((4, 7), "float32"), C: T.Buffer((4, 7), "float32")):
                    A_global = T.alloc_buffer((4, 2, 4), "float32")
                    B_global = T.alloc_buffer((4, 2, 4), "float32")
                    C_global = T.alloc_buffer((4, 2, 4), "float32")
                    for ax0, ax1 in T.grid(4, 7):
                        with T.block("B_global"):
                            v0, v1 = T.axis.remap("SS", [ax0, ax1])
                            T.reads(B[v0, v1])
                            T.writes(B_global[v0, v1 // 4, v1 % 4])
                            T.block_attr({"preproc": "layout"})
                            B_global[v0, v1 // 4, v1 % 4] = B[v0, v1]
                    for i0, i1_0, i1_1 in T.grid(4, 2, 4):
                        with T.block("buffer_B_global_padding"):
                            v_i0, v_i1_0, v_i1_1 = T.axis.remap("SSS", [i0, i1_0, i1_1])
                            T.where(i1_0 == 1 and i1_1 == 3)
                            B_global[v_i0, v_i1_0, v_i1_1] = T.undef(dtype="float32")
                    for i0, i1_0, i1_1 in T.grid(4, 2, 4):
                        with T.block("A_global"):
                            v_i0, v_i1_0, v_i1_1 = T.axis.remap("SSS", [i0, i1_0, i1_1])
                            T.reads(A[v_i0, v_i1_0 * 4 + v_i1_1])
                            T.writes(A_global[v_i0, v_i1_0, v_i1_1])
                            T.block_attr({"preproc": "layout"})
                            A_global[v_i0, v_i1_0, v_i1_1] = T.if_then_else(v_i1_0 == 1 and v_i1_1 == 3, T.float32(0.0), A[v_i0, v_i1_0 * 4 + v_i1_1])
                    for i0, i1_0, i1_1 in T.grid(4, 2, 4):
                        with T.block("compute"):
                            v_i0, v_i1_0, v_i1_1 = T.axis.remap("SSS", [i0, i1_0, i1_1])
                            C_global[v_i0, v_i1_0, v_i1_1] = T.if_then_else(v_i1_0 == 1 and v_i1_1 == 3, T.float32(0.0), A_global[v_i0, v_i1_0, v_i1_1] * B_global[v_i0, v_i1_0, v_i1_1])
                    for ax0, ax1 in T.grid(4, 7):
                        with T.block("C_global"):
                            v0, v1 = T.axis.remap("SS", [ax0, ax1])
                            T.reads(C_global[v0, v1 // 4, v1 % 4])
                            T.writes(C[v0, v1])
                            T.block_attr({"postproc": "layout"})
                            C[v0, v1] = C_global[v0, v1 // 4, v1 % 4]
        "#]],
    );
}

#[test]
fn the_stages_of_a_chain_move_into_the_graph_and_vanish() {
    let graph = "
@I.ir_module
class Module:
    @T.prim_func
    def matmul(A: T.Buffer((16, 16), \"float32\"), B: T.Buffer((16, 16), \"float32\"), C: T.Buffer((16, 16), \"float32\")):
        C[0, 0] = A[0, 0] + B[0, 0]

    @R.function
    def main(x: R.Tensor((16, 16), \"float32\"), w: R.Tensor((16, 16), \"float32\")) -> R.Tensor((16, 16), \"float32\"):
        cls = Module
        with R.dataflow():
            lv0 = R.call_tir(cls.matmul, (x, w), out_sinfo=R.Tensor((16, 16), \"float32\"))
            lv1 = R.call_tir(cls.matmul, (lv0, w), out_sinfo=R.Tensor((16, 16), \"float32\"))
            lv2 = R.call_tir(cls.matmul, (lv1, w), out_sinfo=R.Tensor((16, 16), \"float32\"))
            R.output(lv2)
        return lv2
";
    let mut module =
        parse_module(&Source::new("f.py", graph)).unwrap_or_else(|e| panic!("{}", e.render()));
    let layouts = [("A", blocked(), Value::None), ("C", blocked(), Value::None)];
    module.insert("matmul", Function::from(staged(&func(MATMUL), &layouts)));
    let mut why = Vec::new();
    let lifted = lift_layout(&module, Leave::Value, &mut why).expect("lifts");
    let done = cancel_layout(&lifted, &mut why).expect("cancels");
    assert!(why.is_empty(), "{why:?}");
    let text = print_module(&done);
    let main = text.split("with R.dataflow():").nth(1).and_then(|t| t.split("R.output").next());
    let lines: Vec<&str> = main.unwrap_or_default().lines().map(str::trim).collect();
    expect![[r#"
        x_physical = R.call_tir(cls.A_global, (x,), out_sinfo=R.Tensor((2, 16, 8), dtype="float32"))
        lv0_physical = R.call_tir(cls.matmul_physical, (x_physical, w), out_sinfo=R.Tensor((2, 16, 8), dtype="float32"))
        lv1_physical = R.call_tir(cls.matmul_physical, (lv0_physical, w), out_sinfo=R.Tensor((2, 16, 8), dtype="float32"))
        lv2_physical = R.call_tir(cls.matmul_physical, (lv1_physical, w), out_sinfo=R.Tensor((2, 16, 8), dtype="float32"))
        lv2 = R.call_tir(cls.C_global, (lv2_physical,), out_sinfo=R.Tensor((16, 16), dtype="float32"))"#]].assert_eq(lines.join("\n").trim());
}

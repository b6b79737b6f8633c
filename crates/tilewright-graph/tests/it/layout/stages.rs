//! Functions that work in other layouts inside and keep their interface.

use expect_test::{Expect, expect};
use tilewright_graph::layout::{Leave, Pad, cancel_layout, lift_layout, with_layouts};
use tilewright_ir::{DType, Expr, Function, Module, Source, TensorFunc, Var};
use tilewright_schedule::index_map::IndexMap;
use tilewright_script::{parse_module, print_module};

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

fn check(func: &TensorFunc, layouts: &[(usize, IndexMap, Pad)], expected: Expect) {
    let new = with_layouts(func, layouts).unwrap_or_else(|e| panic!("{}", e.render()));
    let mut module = Module::new();
    module.insert("main", Function::from(new));
    let text = print_module(&module);
    let body = text.split_once("def main").map_or("", |(_, body)| body);
    expected.assert_eq(&format!("def main{body}"));
}

fn refused(func: &TensorFunc, layouts: &[(usize, IndexMap, Pad)], expected: Expect) {
    expected.assert_eq(&with_layouts(func, layouts).expect_err("refused").render());
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
        &[(0, blocked(), Pad::None), (2, blocked(), Pad::None)],
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
                for vi_0, vj, vi_1, vk in T.grid(2, 16, 8, 16):
                    with T.block("compute"):
                        v_vi_0, v_vj, v_vi_1, v_vk = T.axis.remap("SSSR", [vi_0, vj, vi_1, vk])
                        with T.init():
                            C_global[v_vi_0, v_vj, v_vi_1] = T.float32(0.0)
                        C_global[v_vi_0, v_vj, v_vi_1] = C_global[v_vi_0, v_vj, v_vi_1] + A_global[v_vi_0, v_vk, v_vi_1] * B[v_vk, v_vj]
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
    let zero = || Pad::Value(Expr::float(0.0, DType::F32));
    let padded = || map(|[i, j]| vec![i, j.clone().floordiv(4), j.floormod(4)]);
    let layouts = [(0, padded(), zero()), (1, padded(), Pad::Undef), (2, padded(), zero())];
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
                for v_i0, v_i1_0, v_i1_1 in T.grid(4, 2, 4):
                    with T.block("compute"):
                        v_v_i0, v_v_i1_0, v_v_i1_1 = T.axis.remap("SSS", [v_i0, v_i1_0, v_i1_1])
                        C_global[v_v_i0, v_v_i1_0, v_v_i1_1] = T.if_then_else(v_v_i1_0 + v_v_i1_1 >= 4, T.float32(0.0), A_global[v_v_i0, v_v_i1_0, v_v_i1_1] * B_global[v_v_i0, v_v_i1_0, v_v_i1_1])
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
fn what_has_no_layout_inside_is_refused() {
    let same = || map(|[i, j]| vec![j, i]);
    refused(
        &func(MULTIPLY),
        &[(3, same(), Pad::None)],
        expect![[r#"
        error: the function has no tensor parameter of number 3
    "#]],
    );
    let twice = map(|[i, j]| vec![i.floordiv(2), j]);
    refused(
        &func(MULTIPLY),
        &[(0, twice, Pad::None)],
        expect![[r#"
        error: `transform_layout`: the index map is not injective
        note: the logical indices [0, 0] and [1, 0] have one physical index
    "#]],
    );
    let in_place = "
@T.prim_func
def f(A: T.Buffer((4, 4), \"float32\")):
    for i, j in T.grid(4, 4):
        with T.block(\"b\"):
            vi, vj = T.axis.remap(\"SS\", [i, j])
            A[vi, vj] = A[vi, vj] + 1.0
";
    refused(
        &func(in_place),
        &[(0, same(), Pad::None)],
        expect![[r#"
            error: `cache_write`: the block `b` needs what was in `A` before: `A` is read before all that is read is written
            help: use cache_inplace, which fills the cache first
        "#]],
    );
    let bare = "
@T.prim_func
def f(A: T.Buffer((4, 4), \"float32\"), B: T.Buffer((4, 4), \"float32\")):
    for i, j in T.grid(4, 4):
        B[i, j] = A[i, j]
";
    refused(
        &func(bare),
        &[(0, same(), Pad::None)],
        expect![[r#"
        error: no block accesses `A`
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
    let layouts = [(0, blocked(), Pad::None), (2, blocked(), Pad::None)];
    let staged = with_layouts(&func(MATMUL), &layouts).expect("has layouts");
    module.insert("matmul", Function::from(staged));
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

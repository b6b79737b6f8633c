//! Fusion as text: a module in, a module out.

use expect_test::{Expect, expect};
use tilewright_graph::{fuse, legalize};
use tilewright_ir::{Source, well_formed};
use tilewright_tvmscript::{parse_module, print_module};

fn check(input: &str, expected: &Expect) {
    let module =
        parse_module(&Source::new("in.py", input)).unwrap_or_else(|e| panic!("{}", e.render()));
    let out = legalize(&fuse(&module).expect("fuses")).expect("legalizes");
    well_formed::check_module(&out).unwrap_or_else(|e| panic!("{}", e.render()));
    expected.assert_eq(&print_module(&out));
}

#[test]
fn a_product_a_bias_and_a_view() {
    check(
        r#"
@I.ir_module
class Module:
    @T.prim_func
    def matmul(A: T.Buffer((4, 8), "float32"), B: T.Buffer((8, 6), "float32"), C: T.Buffer((4, 6), "float32")):
        for i, j, k in T.grid(4, 6, 8):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]

    @T.prim_func
    def add(A: T.Buffer((4, 6), "float32"), b: T.Buffer((6,), "float32"), C: T.Buffer((4, 6), "float32")):
        for i, j in T.grid(4, 6):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = A[vi, vj] + b[vj]

    @T.prim_func
    def relu(A: T.Buffer((4, 6), "float32"), C: T.Buffer((4, 6), "float32")):
        for i, j in T.grid(4, 6):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = T.max(A[vi, vj], T.float32(0))

    @T.prim_func
    def flatten(A: T.Buffer((4, 6), "float32"), C: T.Buffer((24,), "float32")):
        for i in range(24):
            with T.block("C"):
                vi = T.axis.spatial(24, i)
                C[vi] = A[vi // 6, vi % 6]

    @R.function
    def main(x: R.Tensor((4, 8), "float32"), w: R.Tensor((8, 6), "float32"), b: R.Tensor((6,), "float32")):
        cls = Module
        with R.dataflow():
            p = R.call_tir(cls.matmul, (x, w), out_sinfo=R.Tensor((4, 6), "float32"))
            s = R.call_tir(cls.add, (p, b), out_sinfo=R.Tensor((4, 6), "float32"))
            r = R.call_tir(cls.relu, (s,), out_sinfo=R.Tensor((4, 6), "float32"))
            f = R.call_tir(cls.flatten, (r,), out_sinfo=R.Tensor((24,), "float32"))
            R.output(f)
        return (f, x)
"#,
        &expect![[r#"
            from tvm.script import ir as I
            from tvm.script import tir as T
            from tvm.script import relax as R


            @I.ir_module
            class Module:
                @T.prim_func
                def flatten(A: T.Buffer((4, 6), "float32"), C: T.Buffer((24,), "float32")):
                    T.func_attr({"tilewright.view": 1})
                    for i in range(24):
                        with T.block("C"):
                            vi = T.axis.spatial(24, i)
                            C[vi] = A[vi // 6, vi % 6]

                @R.function
                def main(x: R.Tensor((4, 8), dtype="float32"), w: R.Tensor((8, 6), dtype="float32"), b: R.Tensor((6,), dtype="float32")):
                    R.func_attr({"output_names": ["f", "x"]})
                    cls = Module
                    with R.dataflow():
                        r = R.call_tir(cls.matmul_add_relu, (x, w, b), out_sinfo=R.Tensor((4, 6), dtype="float32"))
                        f = R.call_tir(cls.flatten, (r,), out_sinfo=R.Tensor((24,), dtype="float32"))
                        R.output(f)
                    with R.dataflow():
                        x_1 = R.call_tir(cls.copy, (x,), out_sinfo=R.Tensor((4, 8), dtype="float32"))
                        R.output(x_1)
                    return (f, x_1)

                @T.prim_func
                def matmul_add_relu(A: T.Buffer((4, 8), "float32"), B: T.Buffer((8, 6), "float32"), b: T.Buffer((6,), "float32"), C_2: T.Buffer((4, 6), "float32")):
                    C = T.alloc_buffer((4, 6), "float32")
                    for i, j, k in T.grid(4, 6, 8):
                        with T.block("C"):
                            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                            with T.init():
                                C[vi, vj] = T.float32(0.0)
                            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
                    for i, j in T.grid(4, 6):
                        with T.block("C_1"):
                            vi, vj = T.axis.remap("SS", [i, j])
                            C_2[vi, vj] = T.max(C[vi, vj] + b[vj], T.float32(0.0))

                @T.prim_func
                def copy(x: T.Buffer((4, 8), "float32"), copy: T.Buffer((4, 8), "float32")):
                    T.func_attr({"tilewright.copy": 1})
                    for i0, i1 in T.grid(4, 8):
                        with T.block("copy"):
                            vi0, vi1 = T.axis.remap("SS", [i0, i1])
                            copy[vi0, vi1] = x[vi0, vi1]
        "#]],
    );
}

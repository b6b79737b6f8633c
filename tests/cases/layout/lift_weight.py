# run: opt --pass lift_layout,fold_constant
# A weight that is packed at the start of the function, as tuners leave it: the packing moves into
# the graph and happens now, once for both calls.


@I.ir_module
class Module:
    @T.prim_func
    def add(
        X: T.Buffer((4, 4), "float32"), W: T.Buffer((4, 4), "float32"), Y: T.Buffer((4, 4), "float32")
    ):
        T.func_attr({"layout_free_buffers": [1], "tir.noalias": True})
        W_rewrite = T.alloc_buffer((2, 2, 2, 2))
        for i, j in T.grid(4, 4):
            with T.block("W_rewrite"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.block_attr({"meta_schedule.layout_rewrite_preproc": True})
                W_rewrite[vi // 2, vj // 2, vi % 2, vj % 2] = W[vi, vj]
        for i0, j0, i1, j1 in T.grid(2, 2, 2, 2):
            with T.block("Y"):
                vi = T.axis.spatial(4, i0 * 2 + i1)
                vj = T.axis.spatial(4, j0 * 2 + j1)
                Y[vi, vj] = X[vi, vj] + W_rewrite[vi // 2, vj // 2, vi % 2, vj % 2]

    @R.function
    def main(x: R.Tensor((4, 4), "float32")) -> R.Tensor((4, 4), "float32"):
        cls = Module
        with R.dataflow():
            w = R.const(
                [
                    [1.0, 2.0, 3.0, 4.0],
                    [5.0, 6.0, 7.0, 8.0],
                    [9.0, 10.0, 11.0, 12.0],
                    [13.0, 14.0, 15.0, 16.0],
                ],
                "float32",
            )
            y = R.call_tir(cls.add, (x, w), out_sinfo=R.Tensor((4, 4), "float32"))
            z = R.call_tir(cls.add, (y, w), out_sinfo=R.Tensor((4, 4), "float32"))
            R.output(z)
        return z

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T
from tvm.script import relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((4, 4), dtype="float32")) -> R.Tensor((4, 4), dtype="float32"):
        cls = Module
        with R.dataflow():
            w_physical = R.const([[[[1.0, 2.0], [5.0, 6.0]], [[3.0, 4.0], [7.0, 8.0]]], [[[9.0, 10.0], [13.0, 14.0]], [[11.0, 12.0], [15.0, 16.0]]]], "float32")
            y = R.call_tir(cls.add_physical, (x, w_physical), out_sinfo=R.Tensor((4, 4), dtype="float32"))
            z = R.call_tir(cls.add_physical, (y, w_physical), out_sinfo=R.Tensor((4, 4), dtype="float32"))
            R.output(z)
        return z

    @T.prim_func
    def add_physical(X: T.Buffer((4, 4), "float32"), W_rewrite: T.Buffer((2, 2, 2, 2), "float32"), Y: T.Buffer((4, 4), "float32")):
        T.func_attr({"tir.noalias": True})
        for i0, j0, i1, j1 in T.grid(2, 2, 2, 2):
            with T.block("Y"):
                vi = T.axis.spatial(4, i0 * 2 + i1)
                vj = T.axis.spatial(4, j0 * 2 + j1)
                Y[vi, vj] = X[vi, vj] + W_rewrite[vi // 2, vj // 2, vi % 2, vj % 2]

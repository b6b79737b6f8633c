# run: opt --pass lift_layout,cancel_layout --print-after-all
# A product that works in a blocked layout and keeps its interface, called twice with different
# surroundings: its conversions move into the graph, and those between the two products vanish.


@I.ir_module
class Module:
    @T.prim_func
    def matmul(
        A: T.Buffer((16, 16), "float32"),
        B: T.Buffer((16, 16), "float32"),
        C: T.Buffer((16, 16), "float32"),
    ):
        Aphysical = T.alloc_buffer((2, 16, 8))
        Cphysical = T.alloc_buffer((2, 16, 8))
        for i0, j, i1 in T.grid(2, 16, 8):
            with T.block("pre_layout_convert"):
                v0, vj, v1 = T.axis.remap("SSS", [i0, j, i1])
                T.block_attr({"preproc": "layout"})
                Aphysical[v0, vj, v1] = A[v0 * 8 + v1, vj]
        for i0, j, i1, k in T.grid(2, 16, 8, 16):
            with T.block("compute"):
                v0, vj, v1, vk = T.axis.remap("SSSR", [i0, j, i1, k])
                with T.init():
                    Cphysical[v0, vj, v1] = 0.0
                Cphysical[v0, vj, v1] = Cphysical[v0, vj, v1] + Aphysical[v0, vk, v1] * B[vk, vj]
        for i, j in T.grid(16, 16):
            with T.block("post_layout_convert"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.block_attr({"postproc": "layout"})
                C[vi, vj] = Cphysical[vi // 8, vj, vi % 8]

    @R.function
    def main(
        x: R.Tensor((16, 16), "float32"),
        w0: R.Tensor((16, 16), "float32"),
        w1: R.Tensor((16, 16), "float32"),
    ) -> R.Tensor((16, 16), "float32"):
        cls = Module
        with R.dataflow():
            lv0 = R.call_tir(cls.matmul, (x, w0), out_sinfo=R.Tensor((16, 16), "float32"))
            lv1 = R.call_tir(cls.matmul, (lv0, w1), out_sinfo=R.Tensor((16, 16), "float32"))
            R.output(lv1)
        return lv1

# ---- expected
# after lift_layout
from tvm.script import ir as I
from tvm.script import tir as T
from tvm.script import relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((16, 16), dtype="float32"), w0: R.Tensor((16, 16), dtype="float32"), w1: R.Tensor((16, 16), dtype="float32")) -> R.Tensor((16, 16), dtype="float32"):
        cls = Module
        with R.dataflow():
            x_physical = R.call_tir(cls.pre_layout_convert, (x,), out_sinfo=R.Tensor((2, 16, 8), dtype="float32"))
            lv0_physical = R.call_tir(cls.matmul_physical, (x_physical, w0), out_sinfo=R.Tensor((2, 16, 8), dtype="float32"))
            lv0 = R.call_tir(cls.post_layout_convert, (lv0_physical,), out_sinfo=R.Tensor((16, 16), dtype="float32"))
            lv0_physical_1 = R.call_tir(cls.pre_layout_convert, (lv0,), out_sinfo=R.Tensor((2, 16, 8), dtype="float32"))
            lv1_physical = R.call_tir(cls.matmul_physical, (lv0_physical_1, w1), out_sinfo=R.Tensor((2, 16, 8), dtype="float32"))
            lv1 = R.call_tir(cls.post_layout_convert, (lv1_physical,), out_sinfo=R.Tensor((16, 16), dtype="float32"))
            R.output(lv1)
        return lv1

    @T.prim_func
    def pre_layout_convert(A: T.Buffer((16, 16), "float32"), Aphysical: T.Buffer((2, 16, 8), "float32")):
        for i0, j, i1 in T.grid(2, 16, 8):
            with T.block("pre_layout_convert"):
                v0, vj, v1 = T.axis.remap("SSS", [i0, j, i1])
                Aphysical[v0, vj, v1] = A[v0 * 8 + v1, vj]

    @T.prim_func
    def post_layout_convert(Cphysical: T.Buffer((2, 16, 8), "float32"), C: T.Buffer((16, 16), "float32")):
        for i, j in T.grid(16, 16):
            with T.block("post_layout_convert"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = Cphysical[vi // 8, vj, vi % 8]

    @T.prim_func
    def matmul_physical(Aphysical: T.Buffer((2, 16, 8), "float32"), B: T.Buffer((16, 16), "float32"), Cphysical: T.Buffer((2, 16, 8), "float32")):
        for i0, j, i1, k in T.grid(2, 16, 8, 16):
            with T.block("compute"):
                v0, vj, v1, vk = T.axis.remap("SSSR", [i0, j, i1, k])
                with T.init():
                    Cphysical[v0, vj, v1] = T.float32(0.0)
                Cphysical[v0, vj, v1] = Cphysical[v0, vj, v1] + Aphysical[v0, vk, v1] * B[vk, vj]
# after cancel_layout
from tvm.script import ir as I
from tvm.script import tir as T
from tvm.script import relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((16, 16), dtype="float32"), w0: R.Tensor((16, 16), dtype="float32"), w1: R.Tensor((16, 16), dtype="float32")) -> R.Tensor((16, 16), dtype="float32"):
        cls = Module
        with R.dataflow():
            x_physical = R.call_tir(cls.pre_layout_convert, (x,), out_sinfo=R.Tensor((2, 16, 8), dtype="float32"))
            lv0_physical = R.call_tir(cls.matmul_physical, (x_physical, w0), out_sinfo=R.Tensor((2, 16, 8), dtype="float32"))
            lv1_physical = R.call_tir(cls.matmul_physical, (lv0_physical, w1), out_sinfo=R.Tensor((2, 16, 8), dtype="float32"))
            lv1 = R.call_tir(cls.post_layout_convert, (lv1_physical,), out_sinfo=R.Tensor((16, 16), dtype="float32"))
            R.output(lv1)
        return lv1

    @T.prim_func
    def pre_layout_convert(A: T.Buffer((16, 16), "float32"), Aphysical: T.Buffer((2, 16, 8), "float32")):
        for i0, j, i1 in T.grid(2, 16, 8):
            with T.block("pre_layout_convert"):
                v0, vj, v1 = T.axis.remap("SSS", [i0, j, i1])
                Aphysical[v0, vj, v1] = A[v0 * 8 + v1, vj]

    @T.prim_func
    def post_layout_convert(Cphysical: T.Buffer((2, 16, 8), "float32"), C: T.Buffer((16, 16), "float32")):
        for i, j in T.grid(16, 16):
            with T.block("post_layout_convert"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = Cphysical[vi // 8, vj, vi % 8]

    @T.prim_func
    def matmul_physical(Aphysical: T.Buffer((2, 16, 8), "float32"), B: T.Buffer((16, 16), "float32"), Cphysical: T.Buffer((2, 16, 8), "float32")):
        for i0, j, i1, k in T.grid(2, 16, 8, 16):
            with T.block("compute"):
                v0, vj, v1, vk = T.axis.remap("SSSR", [i0, j, i1, k])
                with T.init():
                    Cphysical[v0, vj, v1] = T.float32(0.0)
                Cphysical[v0, vj, v1] = Cphysical[v0, vj, v1] + Aphysical[v0, vk, v1] * B[vk, vj]

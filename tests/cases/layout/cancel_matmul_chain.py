# run: opt --pass cancel_layout
# Two products in a blocked layout, as lift_layout leaves them: the crop between them and its pad
# undo each other, and the second product takes what the first one gives.


@I.ir_module
class Module:
    @T.prim_func
    def pre(A: T.Buffer((16, 16), "float32"), P: T.Buffer((2, 16, 8), "float32")):
        for i0, j, i1 in T.grid(2, 16, 8):
            P[i0, j, i1] = A[i0 * 8 + i1, j]

    @T.prim_func
    def post(P: T.Buffer((2, 16, 8), "float32"), C: T.Buffer((16, 16), "float32")):
        for i, j in T.grid(16, 16):
            C[i, j] = P[i // 8, j, i % 8]

    @T.prim_func
    def matmul(
        A: T.Buffer((2, 16, 8), "float32"),
        B: T.Buffer((16, 16), "float32"),
        C: T.Buffer((2, 16, 8), "float32"),
    ):
        for i0, j, i1, k in T.grid(2, 16, 8, 16):
            with T.block("compute"):
                v0, vj, v1, vk = T.axis.remap("SSSR", [i0, j, i1, k])
                with T.init():
                    C[v0, vj, v1] = 0.0
                C[v0, vj, v1] = C[v0, vj, v1] + A[v0, vk, v1] * B[vk, vj]

    @R.function
    def main(
        x: R.Tensor((16, 16), "float32"),
        w0: R.Tensor((16, 16), "float32"),
        w1: R.Tensor((16, 16), "float32"),
    ) -> R.Tensor((16, 16), "float32"):
        cls = Module
        with R.dataflow():
            lv0 = R.call_tir(cls.pre, (x,), out_sinfo=R.Tensor((2, 16, 8), "float32"))
            lv1 = R.call_tir(cls.matmul, (lv0, w0), out_sinfo=R.Tensor((2, 16, 8), "float32"))
            lv2 = R.call_tir(cls.post, (lv1,), out_sinfo=R.Tensor((16, 16), "float32"))
            lv3 = R.call_tir(cls.pre, (lv2,), out_sinfo=R.Tensor((2, 16, 8), "float32"))
            lv4 = R.call_tir(cls.matmul, (lv3, w1), out_sinfo=R.Tensor((2, 16, 8), "float32"))
            lv5 = R.call_tir(cls.post, (lv4,), out_sinfo=R.Tensor((16, 16), "float32"))
            R.output(lv5)
        return lv5

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T
from tvm.script import relax as R


@I.ir_module
class Module:
    @T.prim_func
    def pre(A: T.Buffer((16, 16), "float32"), P: T.Buffer((2, 16, 8), "float32")):
        for i0, j, i1 in T.grid(2, 16, 8):
            P[i0, j, i1] = A[i0 * 8 + i1, j]

    @T.prim_func
    def post(P: T.Buffer((2, 16, 8), "float32"), C: T.Buffer((16, 16), "float32")):
        for i, j in T.grid(16, 16):
            C[i, j] = P[i // 8, j, i % 8]

    @T.prim_func
    def matmul(A: T.Buffer((2, 16, 8), "float32"), B: T.Buffer((16, 16), "float32"), C: T.Buffer((2, 16, 8), "float32")):
        for i0, j, i1, k in T.grid(2, 16, 8, 16):
            with T.block("compute"):
                v0, vj, v1, vk = T.axis.remap("SSSR", [i0, j, i1, k])
                with T.init():
                    C[v0, vj, v1] = T.float32(0.0)
                C[v0, vj, v1] = C[v0, vj, v1] + A[v0, vk, v1] * B[vk, vj]

    @R.function
    def main(x: R.Tensor((16, 16), dtype="float32"), w0: R.Tensor((16, 16), dtype="float32"), w1: R.Tensor((16, 16), dtype="float32")) -> R.Tensor((16, 16), dtype="float32"):
        cls = Module
        with R.dataflow():
            lv0 = R.call_tir(cls.pre, (x,), out_sinfo=R.Tensor((2, 16, 8), dtype="float32"))
            lv1 = R.call_tir(cls.matmul, (lv0, w0), out_sinfo=R.Tensor((2, 16, 8), dtype="float32"))
            lv4 = R.call_tir(cls.matmul, (lv1, w1), out_sinfo=R.Tensor((2, 16, 8), dtype="float32"))
            lv5 = R.call_tir(cls.post, (lv4,), out_sinfo=R.Tensor((16, 16), dtype="float32"))
            R.output(lv5)
        return lv5

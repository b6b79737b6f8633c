# run: opt --pass fuse
# A matrix product keeps its own stage; bias and relu follow in one.


@I.ir_module
class Module:
    @T.prim_func
    def matmul(
        A: T.Buffer((3, 6), "float32"),
        B: T.Buffer((6, 5), "float32"),
        C: T.Buffer((3, 5), "float32"),
    ):
        for i, j, k in T.grid(3, 5, 6):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = 0.0
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]

    @T.prim_func
    def bias(
        A: T.Buffer((3, 5), "float32"), B: T.Buffer((5,), "float32"), C: T.Buffer((3, 5), "float32")
    ):
        for i, j in T.grid(3, 5):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = A[vi, vj] + B[vj]

    @T.prim_func
    def relu(A: T.Buffer((3, 5), "float32"), B: T.Buffer((3, 5), "float32")):
        for i, j in T.grid(3, 5):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = T.max(A[vi, vj], 0.0)

    @R.function
    def main(
        x: R.Tensor((3, 6), "float32"), w: R.Tensor((6, 5), "float32"), b: R.Tensor((5,), "float32")
    ) -> R.Tensor((3, 5), "float32"):
        cls = Module
        with R.dataflow():
            y = R.call_tir(cls.matmul, (x, w), out_sinfo=R.Tensor((3, 5), "float32"))
            z = R.call_tir(cls.bias, (y, b), out_sinfo=R.Tensor((3, 5), "float32"))
            gv = R.call_tir(cls.relu, (z,), out_sinfo=R.Tensor((3, 5), "float32"))
            R.output(gv)
        return gv

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T
from tvm.script import relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((3, 6), dtype="float32"), w: R.Tensor((6, 5), dtype="float32"), b: R.Tensor((5,), dtype="float32")) -> R.Tensor((3, 5), dtype="float32"):
        cls = Module
        with R.dataflow():
            gv = R.call_tir(cls.matmul_bias_relu, (x, w, b), out_sinfo=R.Tensor((3, 5), dtype="float32"))
            R.output(gv)
        return gv

    @T.prim_func
    def matmul_bias_relu(A: T.Buffer((3, 6), "float32"), B: T.Buffer((6, 5), "float32"), B_1: T.Buffer((5,), "float32"), B_2: T.Buffer((3, 5), "float32")):
        C = T.alloc_buffer((3, 5), "float32")
        for i, j, k in T.grid(3, 5, 6):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = T.float32(0.0)
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
        for i, j in T.grid(3, 5):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B_2[vi, vj] = T.max(C[vi, vj] + B_1[vj], T.float32(0.0))

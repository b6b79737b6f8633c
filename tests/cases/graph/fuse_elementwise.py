# run: opt --pass fuse
@I.ir_module
class Module:
    @T.prim_func
    def add_one(A: T.Buffer((5, 7), "float32"), B: T.Buffer((5, 7), "float32")):
        for i, j in T.grid(5, 7):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] + 1.0

    @T.prim_func
    def relu(A: T.Buffer((5, 7), "float32"), B: T.Buffer((5, 7), "float32")):
        for i, j in T.grid(5, 7):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = T.max(A[vi, vj], 0.0)

    @R.function
    def main(x: R.Tensor((5, 7), "float32")) -> R.Tensor((5, 7), "float32"):
        cls = Module
        with R.dataflow():
            a = R.call_tir(cls.add_one, (x,), out_sinfo=R.Tensor((5, 7), "float32"))
            b = R.call_tir(cls.relu, (a,), out_sinfo=R.Tensor((5, 7), "float32"))
            gv = R.call_tir(cls.add_one, (b,), out_sinfo=R.Tensor((5, 7), "float32"))
            R.output(gv)
        return gv

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T
from tvm.script import relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((5, 7), dtype="float32")) -> R.Tensor((5, 7), dtype="float32"):
        cls = Module
        with R.dataflow():
            gv = R.call_tir(cls.add_one_relu_add_one, (x,), out_sinfo=R.Tensor((5, 7), dtype="float32"))
            R.output(gv)
        return gv

    @T.prim_func
    def add_one_relu_add_one(A: T.Buffer((5, 7), "float32"), B_2: T.Buffer((5, 7), "float32")):
        for i, j in T.grid(5, 7):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B_2[vi, vj] = T.max(A[vi, vj] + T.float32(1.0), T.float32(0.0)) + T.float32(1.0)

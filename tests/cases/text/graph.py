# run: opt
@I.ir_module
class Module:
    @T.prim_func
    def add(
        A: T.Buffer((2, 3), "float32"),
        B: T.Buffer((2, 3), "float32"),
        C: T.Buffer((2, 3), "float32"),
    ):
        for i, j in T.grid(2, 3):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = A[vi, vj] + B[vi, vj]

    @R.function
    def main(x: R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32"):
        cls = Module
        with R.dataflow():
            lv = R.call_tir(
                cls.add,
                (x, R.const([[1.0, 2.0, 3.0], [-0.5, 0.0, 1e30]], "float32")),
                out_sinfo=R.Tensor((2, 3), "float32"),
            )
            gv = R.call_tir(cls.add, (lv, x), out_sinfo=R.Tensor((2, 3), "float32"))
            R.output(gv)
        return gv

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T
from tvm.script import relax as R


@I.ir_module
class Module:
    @T.prim_func
    def add(A: T.Buffer((2, 3), "float32"), B: T.Buffer((2, 3), "float32"), C: T.Buffer((2, 3), "float32")):
        for i, j in T.grid(2, 3):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = A[vi, vj] + B[vi, vj]

    @R.function
    def main(x: R.Tensor((2, 3), dtype="float32")) -> R.Tensor((2, 3), dtype="float32"):
        cls = Module
        with R.dataflow():
            lv = R.call_tir(cls.add, (x, R.const([[1.0, 2.0, 3.0], [-0.5, 0.0, 1e30]], "float32")), out_sinfo=R.Tensor((2, 3), dtype="float32"))
            gv = R.call_tir(cls.add, (lv, x), out_sinfo=R.Tensor((2, 3), dtype="float32"))
            R.output(gv)
        return gv

# run: opt --pass fold_constant
# What depends on constants only is run now, through several functions and several results; what an
# argument has part in is not.


@I.ir_module
class Module:
    @T.prim_func
    def transpose(A: T.Buffer((2, 3), "float32"), B: T.Buffer((3, 2), "float32")):
        for i, j in T.grid(3, 2):
            B[i, j] = A[j, i]

    @T.prim_func
    def halves(
        A: T.Buffer((3, 2), "float32"), B: T.Buffer((3,), "float32"), C: T.Buffer((3,), "float32")
    ):
        for i in range(3):
            B[i] = A[i, 0] * T.float32(0.5)
            C[i] = A[i, 1] * T.float32(0.5)

    @T.prim_func
    def add(
        A: T.Buffer((3,), "float32"), B: T.Buffer((3,), "float32"), C: T.Buffer((3,), "float32")
    ):
        for i in range(3):
            C[i] = A[i] + B[i]

    @R.function
    def main(x: R.Tensor((3,), "float32")):
        cls = Module
        with R.dataflow():
            w = R.const([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], "float32")
            t = R.call_tir(cls.transpose, (w,), out_sinfo=R.Tensor((3, 2), "float32"))
            h = R.call_tir(
                cls.halves, (t,), out_sinfo=[R.Tensor((3,), "float32"), R.Tensor((3,), "float32")]
            )
            a = h[0]
            b = h[1]
            c = R.call_tir(cls.add, (a, b), out_sinfo=R.Tensor((3,), "float32"))
            y = R.call_tir(cls.add, (x, c), out_sinfo=R.Tensor((3,), "float32"))
            R.output(y, b)
        return (y, b)

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T
from tvm.script import relax as R


@I.ir_module
class Module:
    @T.prim_func
    def add(A: T.Buffer((3,), "float32"), B: T.Buffer((3,), "float32"), C: T.Buffer((3,), "float32")):
        for i in range(3):
            C[i] = A[i] + B[i]

    @R.function
    def main(x: R.Tensor((3,), dtype="float32")):
        cls = Module
        with R.dataflow():
            b = R.const([2.0, 2.5, 3.0], "float32")
            c = R.const([2.5, 3.5, 4.5], "float32")
            y = R.call_tir(cls.add, (x, c), out_sinfo=R.Tensor((3,), dtype="float32"))
            R.output(y, b)
        return (y, b)

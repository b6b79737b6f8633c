# run: opt --pass legalize
# What a graph function returns lies in memory of its own: an input is copied.


@I.ir_module
class Module:
    @T.prim_func
    def neg(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                B[vi] = A[vi] * -1.0

    @R.function
    def main(x: R.Tensor((4,), "float32")):
        cls = Module
        with R.dataflow():
            y = R.call_tir(cls.neg, (x,), out_sinfo=R.Tensor((4,), "float32"))
            R.output(y)
        return (x, y, y)

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T
from tvm.script import relax as R


@I.ir_module
class Module:
    @T.prim_func
    def neg(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                B[vi] = A[vi] * T.float32(-1.0)

    @R.function
    def main(x: R.Tensor((4,), dtype="float32")):
        R.func_attr({"output_names": ["x", "y", "y_1"]})
        cls = Module
        with R.dataflow():
            y = R.call_tir(cls.neg, (x,), out_sinfo=R.Tensor((4,), dtype="float32"))
            R.output(y)
        with R.dataflow():
            x_1 = R.call_tir(cls.copy, (x,), out_sinfo=R.Tensor((4,), dtype="float32"))
            y_1 = R.call_tir(cls.copy, (y,), out_sinfo=R.Tensor((4,), dtype="float32"))
            R.output(x_1, y_1)
        return (x_1, y, y_1)

    @T.prim_func
    def copy(x: T.Buffer((4,), "float32"), copy: T.Buffer((4,), "float32")):
        T.func_attr({"tilewright.copy": 1})
        for i0 in range(4):
            with T.block("copy"):
                vi0 = T.axis.spatial(4, i0)
                copy[vi0] = x[vi0]

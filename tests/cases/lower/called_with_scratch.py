# run: opt --pass lower
# A function that is lowered may take scratch memory, which its caller does not pass: the module keeps
# the rules, and computes the same.
@I.ir_module
class Module:
    @T.prim_func
    def mean_square(x: T.Buffer((4, 6), "float32"), y: T.Buffer((4,), "float32")):
        square = T.alloc_buffer((4, 6), "float32")
        for i, j in T.grid(4, 6):
            with T.block("square"):
                vi, vj = T.axis.remap("SS", [i, j])
                square[vi, vj] = x[vi, vj] * x[vi, vj]
        for i, j in T.grid(4, 6):
            with T.block("y"):
                vi, vj = T.axis.remap("SR", [i, j])
                with T.init():
                    y[vi] = T.float32(0)
                y[vi] = y[vi] + square[vi, vj]

    @R.function
    def main(x: R.Tensor((4, 6), "float32")) -> R.Tensor((4,), "float32"):
        with R.dataflow():
            y = R.call_tir(Module.mean_square, (x,), out_sinfo=R.Tensor((4,), "float32"))
            R.output(y)
        return y

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T
from tvm.script import relax as R


@I.ir_module
class Module:
    @T.prim_func
    def mean_square(x: T.Buffer((4, 6), "float32"), y: T.Buffer((4,), "float32"), square: T.Buffer((24,), "float32")):
        T.func_attr({"tilewright.workspace": 1})
        x_1 = T.decl_buffer((24,), "float32", data=x.data)
        for i in range(24):
            square[i] = x_1[i] * x_1[i]
        for i, j in T.grid(4, 6):
            if j == 0:
                y[i] = T.float32(0.0)
            y[i] = y[i] + square[i * 6 + j]

    @R.function
    def main(x: R.Tensor((4, 6), dtype="float32")) -> R.Tensor((4,), dtype="float32"):
        cls = Module
        with R.dataflow():
            y = R.call_tir(cls.mean_square, (x,), out_sinfo=R.Tensor((4,), dtype="float32"))
            R.output(y)
        return y

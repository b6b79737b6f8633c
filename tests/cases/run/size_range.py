# run: run --open --dim n=9
# What a size may be is among the attributes of the function, as Relax writes it; another size is
# refused.
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def half(A: T.Buffer(("m",), "int32"), B: T.Buffer(("m",), "int32")):
        m = T.int64()
        for i in range(m):
            with T.block("B"):
                vi = T.axis.spatial(m, i)
                B[vi] = A[vi] // 2

    @R.function
    def main(x: R.Tensor(("n",), "int32")) -> R.Tensor(("n",), "int32"):
        n = T.int64()
        R.func_attr({"tir_var_lower_bound": {"n": 2}, "tir_var_upper_bound": {"n": 8}})
        cls = Module
        with R.dataflow():
            y = R.call_tir(cls.half, (x,), out_sinfo=R.Tensor((n,), "int32"))
            R.output(y)
        return y
# error: input `x` has the shape [n], and was given [9]
# note: `n`, dimension 0 of `x`, is 9; it must be at least 2 and at most 8

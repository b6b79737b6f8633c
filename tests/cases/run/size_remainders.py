# run: run --open --dim n=12
# Which remainders a size may leave is among the attributes of the function; another size is refused.
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
        R.func_attr({"tir_var_remainders": {"n": [8, 3, 4]}})
        cls = Module
        with R.dataflow():
            y = R.call_tir(cls.half, (x,), out_sinfo=R.Tensor((n,), "int32"))
            R.output(y)
        return y
# error: input `x` has the shape [n], and was given [12]
# note: `n`, dimension 0 of `x`, is 12; it must be at least 1 and at most 2^31 - 2^16, and a multiple of 8 or at most 3 less

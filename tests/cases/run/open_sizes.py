# run: run --open --dim n=5
# Sizes stay open when the module is compiled: the functions have variables of their own for them,
# of either type; the graph says which they are, also where a size is an expression.
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def iota(a: T.handle, b: T.handle):
        m = T.int64()
        A = T.match_buffer(a, (m,), "int32")
        B = T.match_buffer(b, (m,), "int32")
        for i in range(m):
            with T.block("B"):
                vi = T.axis.spatial(m, i)
                B[vi] = A[vi] * 0 + T.Cast("int32", vi)

    @T.prim_func
    def twice(a: T.handle, b: T.handle):
        m = T.int32()
        A = T.match_buffer(a, (m,), "int32")
        B = T.match_buffer(b, (m * 2,), "int32")
        for i in range(m * 2):
            with T.block("B"):
                vi = T.axis.spatial(m * 2, i)
                B[vi] = A[vi // 2]

    @R.function
    def main(x: R.Tensor(("n",), "int32")) -> R.Tensor(("n * 2",), "int32"):
        n = T.int64()
        cls = Module
        with R.dataflow():
            y = R.call_tir(cls.iota, (x,), out_sinfo=R.Tensor((n,), "int32"))
            z = R.call_tir(cls.twice, (y,), out_sinfo=R.Tensor((n * 2,), "int32"))
            R.output(z)
        return z

# ---- expected
# z: int32 [10] 0 0 1 1 2 2 3 3 ...

# run: run --open --dim n=3
# One of two branches runs, and what it gives has the size that it has there.
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def double(a: T.handle, b: T.handle):
        n = T.int64()
        A = T.match_buffer(a, (n,), "int32")
        B = T.match_buffer(b, (n,), "int32")
        for i in range(n):
            with T.block("B"):
                vi = T.axis.spatial(n, i)
                B[vi] = A[vi] * 2

    @T.prim_func
    def twice(a: T.handle, b: T.handle):
        n = T.int64()
        A = T.match_buffer(a, (n,), "int32")
        B = T.match_buffer(b, (n * T.int64(2),), "int32")
        for i in range(n * T.int64(2)):
            with T.block("B"):
                vi = T.axis.spatial(n * T.int64(2), i)
                B[vi] = A[vi // T.int64(2)]

    @T.prim_func
    def large(a: T.handle, B: T.Buffer((), "bool")):
        n = T.int64()
        A = T.match_buffer(a, (n,), "int32")
        with T.block("B"):
            B[()] = A[0] > 20

    @R.function
    def main(x: R.Tensor(("n",), "int32")) -> R.Tensor(("m",), "int32"):
        n = T.int64()
        m = T.int64()
        cls = Module
        d = R.call_tir(cls.double, (x,), out_sinfo=R.Tensor((n,), "int32"))
        c = R.call_tir(cls.large, (d,), out_sinfo=R.Tensor((), "bool"))
        if c:
            y: R.Tensor((m,), "int32") = d
        else:
            e = R.call_tir(cls.twice, (d,), out_sinfo=R.Tensor((n * 2,), "int32"))
            y: R.Tensor((m,), "int32") = e
        z = R.call_tir(cls.double, (y,), out_sinfo=R.Tensor((m,), "int32"))
        return z

# ---- expected
# z: int32 [6] 32 32 20 20 32 32

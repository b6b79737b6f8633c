# run: run --open --dim n=2
# What is carried grows from one iteration to the next; its first element ends the loop.
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

    @T.prim_func
    def not_(A: T.Buffer((), "bool"), B: T.Buffer((), "bool")):
        with T.block("B"):
            B[()] = not A[()]

    @R.function
    def main(x: R.Tensor(("n",), "int32")):
        n = T.int64()
        p = T.int64()
        m = T.int64()
        k = T.int64()
        cls = Module
        @R.function
        def body(i: R.Tensor((), "int64"), h: R.Tensor((p,), "int32")):
            d = R.call_tir(cls.double, (h,), out_sinfo=R.Tensor((p,), "int32"))
            e = R.call_tir(cls.twice, (d,), out_sinfo=R.Tensor((p * 2,), "int32"))
            c = R.call_tir(cls.large, (e,), out_sinfo=R.Tensor((), "bool"))
            go = R.call_tir(cls.not_, (c,), out_sinfo=R.Tensor((), "bool"))
            return (go, e, x)
        out: R.Tuple(R.Tensor((m,), "int32"), R.Tensor((k, n), "int32")) = R.loop(body, R.const(4, "int64"), None, (x,))
        return out

# ---- expected
# out: int32 [8] 32 32 32 32 20 20 20 20
# output: int32 [2, 2] 8 5 8 5

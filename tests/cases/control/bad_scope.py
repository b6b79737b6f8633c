# run: opt
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
    def large(a: T.handle, B: T.Buffer((), "bool")):
        n = T.int64()
        A = T.match_buffer(a, (n,), "int32")
        with T.block("B"):
            B[()] = A[0] > 20

    @R.function
    def main(x: R.Tensor((4,), "int32")):
        cls = Module
        c = R.call_tir(cls.large, (x,), out_sinfo=R.Tensor((), "bool"))
        if c:
            d = R.call_tir(cls.double, (x,), out_sinfo=R.Tensor((4,), "int32"))
            y = d
        else:
            y = x
        return d
               # error: unknown name `d`

# run: opt --pass fuse,legalize
# Passes over graphs leave a function with control flow as it is.
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
            e = R.call_tir(cls.double, (d,), out_sinfo=R.Tensor((4,), "int32"))
            y = e
        else:
            y = x
        return y

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T
from tvm.script import relax as R


@I.ir_module
class Module:
    @T.prim_func
    def double(A: T.Buffer((T.int64(4),), "int32"), B: T.Buffer((T.int64(4),), "int32")):
        for i in range(T.int64(4)):
            with T.block("B"):
                vi = T.axis.spatial(T.int64(4), i)
                B[vi] = A[vi] * 2

    @T.prim_func
    def large(A: T.Buffer((T.int64(4),), "int32"), B: T.Buffer((), "bool")):
        with T.block("B"):
            B[()] = A[0] > 20

    @R.function
    def main(x: R.Tensor((4,), dtype="int32")):
        cls = Module
        c = R.call_tir(cls.large, (x,), out_sinfo=R.Tensor((), dtype="bool"))
        if c:
            d = R.call_tir(cls.double, (x,), out_sinfo=R.Tensor((4,), dtype="int32"))
            e = R.call_tir(cls.double, (d,), out_sinfo=R.Tensor((4,), dtype="int32"))
            y: R.Tensor((4,), dtype="int32") = e
        else:
            y: R.Tensor((4,), dtype="int32") = x
        return y

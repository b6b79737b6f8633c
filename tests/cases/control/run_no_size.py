# run: run --open --dim n=9
# exit: 1
# What data say is no size: the message has the reason why it must be one.
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def missing(a: T.handle, B: T.Buffer((1,), "int64")):
        n = T.int64()
        A = T.match_buffer(a, (n,), "int32")
        with T.block("missing"):
            B[0] = T.int64(0)
            for i in range(n):
                B[0] = B[0] - T.int64(1)

    @T.prim_func
    def ones(b: T.handle):
        k = T.int64()
        B = T.match_buffer(b, (k,), "int32")
        for i in range(k):
            with T.block("ones"):
                vi = T.axis.spatial(k, i)
                B[vi] = 1

    @R.function
    def main(x: R.Tensor(("n",), "int32")) -> R.Tensor(("k",), "int32"):
        n = T.int64()
        k = T.int64()
        cls = Module
        c = R.call_tir(cls.missing, (x,), out_sinfo=R.Tensor((1,), "int64"))
        s = R.match_cast(R.tensor_to_shape(c), R.Shape([k]), why="`Range` takes sizes from it")
        y = R.call_tir(cls.ones, (), out_sinfo=R.Tensor((k,), "int32"))
        return y
# error: `s`: -9 is no size
# note: `Range` takes sizes from it

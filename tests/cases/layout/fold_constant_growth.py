# run: opt --pass fold_constant --pass-config fold_constant.growth=32 --explain
# A broadcast of four bytes to 64 is 60 bytes more, which is over the limit; one to 32 is not.


@I.ir_module
class Module:
    @T.prim_func
    def spread(A: T.Buffer((1,), "float32"), B: T.Buffer((16,), "float32")):
        for i in range(16):
            B[i] = A[0]

    @T.prim_func
    def some(A: T.Buffer((1,), "float32"), B: T.Buffer((8,), "float32")):
        for i in range(8):
            B[i] = A[0]

    @R.function
    def main():
        cls = Module
        with R.dataflow():
            w = R.const([2.0], "float32")
            a = R.call_tir(cls.spread, (w,), out_sinfo=R.Tensor((16,), "float32"))
            #^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ remark: the call of `spread` for `a` is not folded
            # note: its results are 60 bytes larger than its arguments, the limit is 32
            b = R.call_tir(cls.some, (w,), out_sinfo=R.Tensor((8,), "float32"))
            R.output(a, b)
        return (a, b)

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T
from tvm.script import relax as R


@I.ir_module
class Module:
    @T.prim_func
    def spread(A: T.Buffer((1,), "float32"), B: T.Buffer((16,), "float32")):
        for i in range(16):
            B[i] = A[0]

    @R.function
    def main():
        cls = Module
        with R.dataflow():
            w = R.const([2.0], "float32")
            a = R.call_tir(cls.spread, (w,), out_sinfo=R.Tensor((16,), dtype="float32"))
            b = R.const([2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0], "float32")
            R.output(a, b)
        return (a, b)

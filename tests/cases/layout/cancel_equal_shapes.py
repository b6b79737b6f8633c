# run: opt --pass cancel_layout
# Of four turns of a square, the first and the second have equal shapes and undo nothing: taken for
# inverse to each other, `a` would be `x`. Two transpositions are none.


@I.ir_module
class Module:
    @T.prim_func
    def transpose(A: T.Buffer((3, 3), "float32"), B: T.Buffer((3, 3), "float32")):
        for i, j in T.grid(3, 3):
            B[i, j] = A[j, i]

    @T.prim_func
    def flip(A: T.Buffer((3, 3), "float32"), B: T.Buffer((3, 3), "float32")):
        for i, j in T.grid(3, 3):
            B[i, j] = A[2 - i, j]

    @T.prim_func
    def double(A: T.Buffer((3, 3), "float32"), B: T.Buffer((3, 3), "float32")):
        for i, j in T.grid(3, 3):
            B[i, j] = A[i, j] * T.float32(2)

    @R.function
    def main(x: R.Tensor((3, 3), "float32")):
        cls = Module
        with R.dataflow():
            t = R.call_tir(cls.transpose, (x,), out_sinfo=R.Tensor((3, 3), "float32"))
            a = R.call_tir(cls.flip, (t,), out_sinfo=R.Tensor((3, 3), "float32"))
            b = R.call_tir(cls.double, (a,), out_sinfo=R.Tensor((3, 3), "float32"))
            u = R.call_tir(cls.transpose, (b,), out_sinfo=R.Tensor((3, 3), "float32"))
            v = R.call_tir(cls.transpose, (u,), out_sinfo=R.Tensor((3, 3), "float32"))
            w = R.call_tir(cls.double, (v,), out_sinfo=R.Tensor((3, 3), "float32"))
            R.output(w)
        return w

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T
from tvm.script import relax as R


@I.ir_module
class Module:
    @T.prim_func
    def double(A: T.Buffer((3, 3), "float32"), B: T.Buffer((3, 3), "float32")):
        for i, j in T.grid(3, 3):
            B[i, j] = A[i, j] * T.float32(2.0)

    @R.function
    def main(x: R.Tensor((3, 3), dtype="float32")):
        cls = Module
        with R.dataflow():
            a = R.call_tir(cls.convert, (x,), out_sinfo=R.Tensor((3, 3), dtype="float32"))
            b = R.call_tir(cls.double, (a,), out_sinfo=R.Tensor((3, 3), dtype="float32"))
            w = R.call_tir(cls.double, (b,), out_sinfo=R.Tensor((3, 3), dtype="float32"))
            R.output(w)
        return w

    @T.prim_func
    def convert(x: T.Buffer((3, 3), "float32"), y: T.Buffer((3, 3), "float32")):
        for c0, c1 in T.grid(3, 3):
            with T.block("convert"):
                vc0, vc1 = T.axis.remap("SS", [c0, c1])
                y[vc0, vc1] = x[vc1, 2 - vc0]

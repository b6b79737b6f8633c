# run: opt --pass cancel_layout --explain
# The padding holds -1 and is wanted as 0: one selecting copy is left. Where any value will do, none.


@I.ir_module
class Module:
    @T.prim_func
    def pad_minus(A: T.Buffer((6,), "int32"), P: T.Buffer((2, 4), "int32")):
        for i, j in T.grid(2, 4):
            P[i, j] = T.if_then_else(i * 4 + j < 6, A[i * 4 + j], -1)

    @T.prim_func
    def crop(P: T.Buffer((2, 4), "int32"), A: T.Buffer((6,), "int32")):
        for i in range(6):
            A[i] = P[i // 4, i % 4]

    @T.prim_func
    def pad_zero(A: T.Buffer((6,), "int32"), P: T.Buffer((2, 4), "int32")):
        for i, j in T.grid(2, 4):
            P[i, j] = T.if_then_else(i * 4 + j < 6, A[i * 4 + j], 0)

    @T.prim_func
    def pad_any(A: T.Buffer((6,), "int32"), P: T.Buffer((2, 4), "int32")):
        for i, j in T.grid(2, 4):
            P[i, j] = T.if_then_else(i * 4 + j < 6, A[i * 4 + j], T.undef(dtype="int32"))

    @T.prim_func
    def negate(A: T.Buffer((2, 4), "int32"), B: T.Buffer((2, 4), "int32")):
        for i, j in T.grid(2, 4):
            B[i, j] = 0 - A[i, j]

    @R.function
    def main(x: R.Tensor((6,), "int32")):
        cls = Module
        with R.dataflow():
            a = R.call_tir(cls.pad_minus, (x,), out_sinfo=R.Tensor((2, 4), "int32"))
            b = R.call_tir(cls.negate, (a,), out_sinfo=R.Tensor((2, 4), "int32"))
            c = R.call_tir(cls.crop, (b,), out_sinfo=R.Tensor((6,), "int32"))
            d = R.call_tir(cls.pad_zero, (c,), out_sinfo=R.Tensor((2, 4), "int32"))
            #^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ remark: `b` is not taken for `d`
            # note: the cells of `b` where c0 != 0 and c1 >= 2 are not known to hold 0: they hold 1
            e = R.call_tir(cls.negate, (d,), out_sinfo=R.Tensor((2, 4), "int32"))
            f = R.call_tir(cls.crop, (e,), out_sinfo=R.Tensor((6,), "int32"))
            g = R.call_tir(cls.pad_any, (f,), out_sinfo=R.Tensor((2, 4), "int32"))
            h = R.call_tir(cls.negate, (g,), out_sinfo=R.Tensor((2, 4), "int32"))
            k = R.call_tir(cls.crop, (h,), out_sinfo=R.Tensor((6,), "int32"))
            R.output(d, k)
        return (d, k)

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T
from tvm.script import relax as R


@I.ir_module
class Module:
    @T.prim_func
    def pad_minus(A: T.Buffer((6,), "int32"), P: T.Buffer((2, 4), "int32")):
        for i, j in T.grid(2, 4):
            P[i, j] = T.if_then_else(i * 4 + j < 6, A[i * 4 + j], -1)

    @T.prim_func
    def crop(P: T.Buffer((2, 4), "int32"), A: T.Buffer((6,), "int32")):
        for i in range(6):
            A[i] = P[i // 4, i % 4]

    @T.prim_func
    def negate(A: T.Buffer((2, 4), "int32"), B: T.Buffer((2, 4), "int32")):
        for i, j in T.grid(2, 4):
            B[i, j] = 0 - A[i, j]

    @R.function
    def main(x: R.Tensor((6,), dtype="int32")):
        cls = Module
        with R.dataflow():
            a = R.call_tir(cls.pad_minus, (x,), out_sinfo=R.Tensor((2, 4), dtype="int32"))
            b = R.call_tir(cls.negate, (a,), out_sinfo=R.Tensor((2, 4), dtype="int32"))
            d = R.call_tir(cls.convert, (b,), out_sinfo=R.Tensor((2, 4), dtype="int32"))
            e = R.call_tir(cls.negate, (d,), out_sinfo=R.Tensor((2, 4), dtype="int32"))
            h = R.call_tir(cls.negate, (e,), out_sinfo=R.Tensor((2, 4), dtype="int32"))
            k = R.call_tir(cls.crop, (h,), out_sinfo=R.Tensor((6,), dtype="int32"))
            R.output(d, k)
        return (d, k)

    @T.prim_func
    def convert(x: T.Buffer((2, 4), "int32"), y: T.Buffer((2, 4), "int32")):
        for c0, c1 in T.grid(2, 4):
            with T.block("convert"):
                vc0, vc1 = T.axis.remap("SS", [c0, c1])
                y[vc0, vc1] = T.if_then_else(vc0 == 0 or vc1 < 2, x[vc0, vc1], 0)

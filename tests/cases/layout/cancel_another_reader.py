# run: opt --pass cancel_layout --explain
# `p` is padded with ones, and `total` reads all of it. Cropped and padded with zeros it is another
# value: in place of `q`, `p` would add two to the sum.


@I.ir_module
class Module:
    @T.prim_func
    def pad_one(A: T.Buffer((6,), "float32"), P: T.Buffer((8,), "float32")):
        for i in range(8):
            P[i] = T.if_then_else(i < 6, A[i], T.float32(1))

    @T.prim_func
    def pad_zero(A: T.Buffer((6,), "float32"), P: T.Buffer((8,), "float32")):
        for i in range(8):
            P[i] = T.if_then_else(i < 6, A[i], T.float32(0))

    @T.prim_func
    def crop(P: T.Buffer((8,), "float32"), A: T.Buffer((6,), "float32")):
        for i in range(6):
            A[i] = P[i]

    @T.prim_func
    def total(A: T.Buffer((8,), "float32"), B: T.Buffer((1,), "float32")):
        for i, k in T.grid(1, 8):
            with T.block("sum"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[vi] = T.float32(0)
                B[vi] = B[vi] + A[vk]

    @R.function
    def main(x: R.Tensor((6,), "float32")):
        cls = Module
        with R.dataflow():
            p = R.call_tir(cls.pad_one, (x,), out_sinfo=R.Tensor((8,), "float32"))
            s = R.call_tir(cls.total, (p,), out_sinfo=R.Tensor((1,), "float32"))
            c = R.call_tir(cls.crop, (p,), out_sinfo=R.Tensor((6,), "float32"))
            q = R.call_tir(cls.pad_zero, (c,), out_sinfo=R.Tensor((8,), "float32"))
            t = R.call_tir(cls.total, (q,), out_sinfo=R.Tensor((1,), "float32"))
            d = R.call_tir(cls.crop, (q,), out_sinfo=R.Tensor((6,), "float32"))
            r = R.call_tir(cls.pad_one, (d,), out_sinfo=R.Tensor((8,), "float32"))
            u = R.call_tir(cls.total, (r,), out_sinfo=R.Tensor((1,), "float32"))
            R.output(s, t, u)
        return (s, t, u)

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T
from tvm.script import relax as R


@I.ir_module
class Module:
    @T.prim_func
    def pad_one(A: T.Buffer((6,), "float32"), P: T.Buffer((8,), "float32")):
        for i in range(8):
            P[i] = T.if_then_else(i < 6, A[i], T.float32(1.0))

    @T.prim_func
    def pad_zero(A: T.Buffer((6,), "float32"), P: T.Buffer((8,), "float32")):
        for i in range(8):
            P[i] = T.if_then_else(i < 6, A[i], T.float32(0.0))

    @T.prim_func
    def total(A: T.Buffer((8,), "float32"), B: T.Buffer((1,), "float32")):
        for i, k in T.grid(1, 8):
            with T.block("sum"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[vi] = T.float32(0.0)
                B[vi] = B[vi] + A[vk]

    @R.function
    def main(x: R.Tensor((6,), dtype="float32")):
        cls = Module
        with R.dataflow():
            p = R.call_tir(cls.pad_one, (x,), out_sinfo=R.Tensor((8,), dtype="float32"))
            s = R.call_tir(cls.total, (p,), out_sinfo=R.Tensor((1,), dtype="float32"))
            q = R.call_tir(cls.pad_zero, (x,), out_sinfo=R.Tensor((8,), dtype="float32"))
            t = R.call_tir(cls.total, (q,), out_sinfo=R.Tensor((1,), dtype="float32"))
            u = R.call_tir(cls.total, (p,), out_sinfo=R.Tensor((1,), dtype="float32"))
            R.output(s, t, u)
        return (s, t, u)

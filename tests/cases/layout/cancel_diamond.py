# run: opt --pass cancel_layout
# `b` is packed once for two readers, and `p` goes through a crop and back to where it was. The pack
# of `a`, the transposition and the crop become one conversion; the pack stays for its other reader.


@I.ir_module
class Module:
    @T.prim_func
    def pack(A: T.Buffer((14,), "float32"), P: T.Buffer((4, 4), "float32")):
        for i, j in T.grid(4, 4):
            P[i, j] = T.if_then_else(i * 4 + j < 14, A[i * 4 + j], T.undef(dtype="float32"))

    @T.prim_func
    def unpack(P: T.Buffer((4, 4), "float32"), A: T.Buffer((14,), "float32")):
        for i in range(14):
            A[i] = P[i // 4, i % 4]

    @T.prim_func
    def turn(P: T.Buffer((4, 4), "float32"), Q: T.Buffer((4, 4), "float32")):
        for i, j in T.grid(4, 4):
            Q[i, j] = P[j, i]

    @T.prim_func
    def add(
        A: T.Buffer((4, 4), "float32"), B: T.Buffer((4, 4), "float32"), C: T.Buffer((4, 4), "float32")
    ):
        for i, j in T.grid(4, 4):
            C[i, j] = A[i, j] + B[i, j]

    @R.function
    def main(a: R.Tensor((14,), "float32"), b: R.Tensor((14,), "float32")):
        cls = Module
        with R.dataflow():
            a0 = R.call_tir(cls.pack, (a,), out_sinfo=R.Tensor((4, 4), "float32"))
            b0 = R.call_tir(cls.pack, (b,), out_sinfo=R.Tensor((4, 4), "float32"))
            p = R.call_tir(cls.add, (a0, b0), out_sinfo=R.Tensor((4, 4), "float32"))
            c = R.call_tir(cls.unpack, (p,), out_sinfo=R.Tensor((14,), "float32"))
            c0 = R.call_tir(cls.pack, (c,), out_sinfo=R.Tensor((4, 4), "float32"))
            b1 = R.call_tir(cls.pack, (b,), out_sinfo=R.Tensor((4, 4), "float32"))
            q = R.call_tir(cls.add, (c0, b1), out_sinfo=R.Tensor((4, 4), "float32"))
            d = R.call_tir(cls.unpack, (q,), out_sinfo=R.Tensor((14,), "float32"))
            t = R.call_tir(cls.turn, (a0,), out_sinfo=R.Tensor((4, 4), "float32"))
            e = R.call_tir(cls.unpack, (t,), out_sinfo=R.Tensor((14,), "float32"))
            R.output(d, e)
        return (d, e)

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T
from tvm.script import relax as R


@I.ir_module
class Module:
    @T.prim_func
    def pack(A: T.Buffer((14,), "float32"), P: T.Buffer((4, 4), "float32")):
        for i, j in T.grid(4, 4):
            P[i, j] = T.if_then_else(i * 4 + j < 14, A[i * 4 + j], T.undef(dtype="float32"))

    @T.prim_func
    def unpack(P: T.Buffer((4, 4), "float32"), A: T.Buffer((14,), "float32")):
        for i in range(14):
            A[i] = P[i // 4, i % 4]

    @T.prim_func
    def add(A: T.Buffer((4, 4), "float32"), B: T.Buffer((4, 4), "float32"), C: T.Buffer((4, 4), "float32")):
        for i, j in T.grid(4, 4):
            C[i, j] = A[i, j] + B[i, j]

    @R.function
    def main(a: R.Tensor((14,), dtype="float32"), b: R.Tensor((14,), dtype="float32")):
        cls = Module
        with R.dataflow():
            a0 = R.call_tir(cls.pack, (a,), out_sinfo=R.Tensor((4, 4), dtype="float32"))
            b0 = R.call_tir(cls.pack, (b,), out_sinfo=R.Tensor((4, 4), dtype="float32"))
            p = R.call_tir(cls.add, (a0, b0), out_sinfo=R.Tensor((4, 4), dtype="float32"))
            q = R.call_tir(cls.add, (p, b0), out_sinfo=R.Tensor((4, 4), dtype="float32"))
            d = R.call_tir(cls.unpack, (q,), out_sinfo=R.Tensor((14,), dtype="float32"))
            e = R.call_tir(cls.convert_1, (a,), out_sinfo=R.Tensor((14,), dtype="float32"))
            R.output(d, e)
        return (d, e)

    @T.prim_func
    def convert_1(x: T.Buffer((14,), "float32"), y: T.Buffer((14,), "float32")):
        for c0 in range(14):
            with T.block("convert"):
                vc0 = T.axis.spatial(14, c0)
                y[vc0] = T.if_then_else(vc0 != 11, x[vc0 * 4 - vc0 // 4 * 15], T.undef(dtype="float32"))

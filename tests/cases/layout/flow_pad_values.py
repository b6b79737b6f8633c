# run: opt --pass flow_layout
# Layouts pass up and down through what lies between, with their pad values:
# adding one makes 1 of 0, and doubling it 2, so that the padding is right for a consumer that asks
# for 2. What the padding of `p` holds is not known, and so is one more: the function selects 0.
@I.ir_module
class Module:
    @T.prim_func
    def pack(A: T.Buffer((14,), "int32"), P: T.Buffer((4, 4), "int32")):
        for i, j in T.grid(4, 4):
            with T.block("P"):
                vi, vj = T.axis.remap("SS", [i, j])
                P[vi, vj] = T.if_then_else(4 * vi + vj < 14, A[4 * vi + vj], 0)

    @T.prim_func
    def pack_two(A: T.Buffer((14,), "int32"), P: T.Buffer((4, 4), "int32")):
        for i, j in T.grid(4, 4):
            with T.block("P"):
                vi, vj = T.axis.remap("SS", [i, j])
                P[vi, vj] = T.if_then_else(4 * vi + vj < 14, A[4 * vi + vj], 2)

    @T.prim_func
    def sum(P: T.Buffer((4, 4), "int32"), B: T.Buffer((1,), "int32")):
        for k, i, j in T.grid(1, 4, 4):
            with T.block("B"):
                vk, vi, vj = T.axis.remap("SRR", [k, i, j])
                with T.init():
                    B[vk] = 0
                B[vk] = B[vk] + P[vi, vj]

    @T.prim_func
    def addone(A: T.Buffer((14,), "int32"), B: T.Buffer((14,), "int32")):
        for i in T.serial(14):
            with T.block("B"):
                vi = T.axis.spatial(14, i)
                B[vi] = A[vi] + 1

    @T.prim_func
    def double(A: T.Buffer((14,), "int32"), B: T.Buffer((14,), "int32")):
        for i in T.serial(14):
            with T.block("B"):
                vi = T.axis.spatial(14, i)
                B[vi] = A[vi] * 2

    @T.prim_func
    def crop(P: T.Buffer((4, 4), "int32"), B: T.Buffer((14,), "int32")):
        for i in T.serial(14):
            with T.block("B"):
                vi = T.axis.spatial(14, i)
                B[vi] = P[vi // 4, vi % 4]

    @R.function
    def main(x: R.Tensor((14,), "int32"), p: R.Tensor((4, 4), "int32")):
        cls = Module
        with R.dataflow():
            a = R.call_tir(cls.addone, (x,), out_sinfo=R.Tensor((14,), "int32"))
            b = R.call_tir(cls.double, (a,), out_sinfo=R.Tensor((14,), "int32"))
            two = R.call_tir(cls.pack_two, (b,), out_sinfo=R.Tensor((4, 4), "int32"))
            s = R.call_tir(cls.sum, (two,), out_sinfo=R.Tensor((1,), "int32"))
            c = R.call_tir(cls.crop, (p,), out_sinfo=R.Tensor((14,), "int32"))
            d = R.call_tir(cls.addone, (c,), out_sinfo=R.Tensor((14,), "int32"))
            zero = R.call_tir(cls.pack, (d,), out_sinfo=R.Tensor((4, 4), "int32"))
            t = R.call_tir(cls.sum, (zero,), out_sinfo=R.Tensor((1,), "int32"))
            R.output(s, t)
        return (s, t)

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T
from tvm.script import relax as R


@I.ir_module
class Module:
    @T.prim_func
    def sum(P: T.Buffer((4, 4), "int32"), B: T.Buffer((1,), "int32")):
        for k, i, j in T.grid(1, 4, 4):
            with T.block("B"):
                vk, vi, vj = T.axis.remap("SRR", [k, i, j])
                with T.init():
                    B[vk] = 0
                B[vk] = B[vk] + P[vi, vj]

    @R.function
    def main(x: R.Tensor((14,), dtype="int32"), p: R.Tensor((4, 4), dtype="int32")):
        cls = Module
        with R.dataflow():
            x_1 = R.call_tir(cls.pack_1, (x,), out_sinfo=R.Tensor((4, 4), dtype="int32"))
            a = R.call_tir(cls.addone_physical, (x_1,), out_sinfo=R.Tensor((4, 4), dtype="int32"))
            b = R.call_tir(cls.double_physical, (a,), out_sinfo=R.Tensor((4, 4), dtype="int32"))
            s = R.call_tir(cls.sum, (b,), out_sinfo=R.Tensor((1,), dtype="int32"))
            d = R.call_tir(cls.addone_physical_1, (p,), out_sinfo=R.Tensor((4, 4), dtype="int32"))
            t = R.call_tir(cls.sum, (d,), out_sinfo=R.Tensor((1,), dtype="int32"))
            R.output(s, t)
        return (s, t)

    @T.prim_func
    def pack_1(x: T.Buffer((14,), "int32"), y: T.Buffer((4, 4), "int32")):
        for c0, c1 in T.grid(4, 4):
            with T.block("pack"):
                vc0, vc1 = T.axis.remap("SS", [c0, c1])
                y[vc0, vc1] = T.if_then_else(vc0 * 4 + vc1 < 14, x[vc0 * 4 + vc1], 0)

    @T.prim_func
    def addone_physical(A: T.Buffer((4, 4), "int32"), B: T.Buffer((4, 4), "int32")):
        for i_0, i_1 in T.grid(4, 4):
            with T.block("B"):
                vi_0, vi_1 = T.axis.remap("SS", [i_0, i_1])
                B[vi_0, vi_1] = A[vi_0, vi_1] + 1

    @T.prim_func
    def double_physical(A: T.Buffer((4, 4), "int32"), B: T.Buffer((4, 4), "int32")):
        for i_0, i_1 in T.grid(4, 4):
            with T.block("B"):
                vi_0, vi_1 = T.axis.remap("SS", [i_0, i_1])
                B[vi_0, vi_1] = A[vi_0, vi_1] * 2

    @T.prim_func
    def addone_physical_1(A: T.Buffer((4, 4), "int32"), y: T.Buffer((4, 4), "int32")):
        for c0, c1 in T.grid(4, 4):
            with T.block("pad"):
                vc0, vc1 = T.axis.remap("SS", [c0, c1])
                y[vc0, vc1] = T.if_then_else(vc0 < 3 or vc1 < 2, A[vc0, vc1] + 1, 0)

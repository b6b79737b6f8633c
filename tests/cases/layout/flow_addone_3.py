# run: opt --pass lift_layout,flow_layout
# One more in a layout with padding, for a consumer that wants the padding to hold 1. Here
# what it has is: the argument is padded, the result is not: it is padded anew.
@I.ir_module
class Module:
    @T.prim_func
    def addone(A: T.Buffer((14,), "int32"), B: T.Buffer((14,), "int32")):
        AC = T.alloc_buffer((4, 4), "int32")
        BC = T.alloc_buffer((4, 4), "int32")
        for io, ii in T.grid(4, 4):
            with T.block("AC"):
                T.block_attr({"preproc": "pad"})
                vo, vi = T.axis.remap("SS", [io, ii])
                AC[vo, vi] = T.if_then_else(vo * 4 + vi < 14, A[vo * 4 + vi], 0)
        for i in T.serial(14):
            with T.block("compute"):
                vi = T.axis.spatial(14, i)
                BC[vi // 4, vi % 4] = AC[vi // 4, vi % 4] + 1
        for i in T.serial(14):
            with T.block("B"):
                T.block_attr({"postproc": "crop"})
                vi = T.axis.spatial(14, i)
                B[vi] = BC[vi // 4, vi % 4]

    @T.prim_func
    def grow(A: T.Buffer((14,), "int32"), B: T.Buffer((1,), "int32")):
        AC = T.alloc_buffer((4, 4), "int32")
        for io, ii in T.grid(4, 4):
            with T.block("AC"):
                T.block_attr({"preproc": "pad"})
                vo, vi = T.axis.remap("SS", [io, ii])
                AC[vo, vi] = T.if_then_else(vo * 4 + vi < 14, A[vo * 4 + vi], 1)
        for o, io, ii in T.grid(1, 4, 4):
            with T.block("B"):
                vn, vo, vi = T.axis.remap("SRR", [o, io, ii])
                with T.init():
                    B[vn] = 0
                B[vn] = B[vn] + AC[vo, vi]

    @R.function
    def main(x: R.Tensor((14,), "int32")):
        cls = Module
        with R.dataflow():
            a = R.call_tir(cls.addone, (x,), out_sinfo=R.Tensor((14,), "int32"))
            b = R.call_tir(cls.grow, (a,), out_sinfo=R.Tensor((1,), "int32"))
            R.output(b)
        return b

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T
from tvm.script import relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((14,), dtype="int32")):
        cls = Module
        with R.dataflow():
            x_1 = R.call_tir(cls.pack, (x,), out_sinfo=R.Tensor((4, 4), dtype="int32"))
            a_physical = R.call_tir(cls.addone_physical, (x_1,), out_sinfo=R.Tensor((4, 4), dtype="int32"))
            a_physical_1 = R.call_tir(cls.pad, (a_physical,), out_sinfo=R.Tensor((4, 4), dtype="int32"))
            b = R.call_tir(cls.grow_physical, (a_physical_1,), out_sinfo=R.Tensor((1,), dtype="int32"))
            R.output(b)
        return b

    @T.prim_func
    def addone_physical(AC: T.Buffer((4, 4), "int32"), BC: T.Buffer((4, 4), "int32")):
        for c0, c1 in T.grid(4, 4):
            with T.block("AC_padding"):
                vc0, vc1 = T.axis.remap("SS", [c0, c1])
                T.assume(vc0 < 3 or vc1 < 2 or AC[vc0, vc1] == 0)
        for i in range(14):
            with T.block("compute"):
                vi = T.axis.spatial(14, i)
                BC[vi // 4, vi % 4] = AC[vi // 4, vi % 4] + 1

    @T.prim_func
    def grow_physical(AC: T.Buffer((4, 4), "int32"), B: T.Buffer((1,), "int32")):
        for c0, c1 in T.grid(4, 4):
            with T.block("AC_padding"):
                vc0, vc1 = T.axis.remap("SS", [c0, c1])
                T.assume(vc0 < 3 or vc1 < 2 or AC[vc0, vc1] == 1)
        for o, io, ii in T.grid(1, 4, 4):
            with T.block("B"):
                vn, vo, vi = T.axis.remap("SRR", [o, io, ii])
                with T.init():
                    B[vn] = 0
                B[vn] = B[vn] + AC[vo, vi]

    @T.prim_func
    def pack(x: T.Buffer((14,), "int32"), y: T.Buffer((4, 4), "int32")):
        for c0, c1 in T.grid(4, 4):
            with T.block("pack"):
                vc0, vc1 = T.axis.remap("SS", [c0, c1])
                y[vc0, vc1] = T.if_then_else(vc0 * 4 + vc1 < 14, x[vc0 * 4 + vc1], 0)

    @T.prim_func
    def pad(x: T.Buffer((4, 4), "int32"), y: T.Buffer((4, 4), "int32")):
        for c0, c1 in T.grid(4, 4):
            with T.block("pad"):
                vc0, vc1 = T.axis.remap("SS", [c0, c1])
                y[vc0, vc1] = T.if_then_else(vc0 < 3 or vc1 < 2, x[vc0, vc1], 1)

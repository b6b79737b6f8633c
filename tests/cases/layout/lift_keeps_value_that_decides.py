# run: opt --pass lift_layout --pass-config lift_layout.padding=undef --explain
# semantics: not compared, because random data may be out of range for `Q`
# No element of the result comes from the padding, but what it holds says which element of `Q` is
# read: not any value will do.


@I.ir_module
class Module:
    @T.prim_func
    def grow(A: T.Buffer((14,), "int32"), Q: T.Buffer((8,), "int32"), B: T.Buffer((14,), "int32")):
        AC = T.alloc_buffer((4, 4), "int32")
        BC = T.alloc_buffer((4, 4), "int32")
        for io, ii in T.grid(4, 4):
        #^^^^^^^^^^^^^^^^^^^^^^^^^ remark: `grow` keeps the pad value of `AC`
        # note: `AC[i, j]` decides more than a value
            with T.block("pad"):
                vo, vi = T.axis.remap("SS", [io, ii])
                T.block_attr({"preproc": "pad"})
                AC[vo, vi] = T.if_then_else(4 * vo + vi < 14, A[4 * vo + vi], 0)
        for i, j in T.grid(4, 4):
            with T.block("compute"):
                vi, vj = T.axis.remap("SS", [i, j])
                BC[vi, vj] = Q[AC[vi, vj]]
        for i in range(14):
            with T.block("crop"):
                vi = T.axis.spatial(14, i)
                T.block_attr({"postproc": "crop"})
                B[vi] = BC[vi // 4, vi % 4]

    @R.function
    def main(x: R.Tensor((14,), "int32"), q: R.Tensor((8,), "int32")) -> R.Tensor((14,), "int32"):
        cls = Module
        with R.dataflow():
            y = R.call_tir(cls.grow, (x, q), out_sinfo=R.Tensor((14,), "int32"))
            R.output(y)
        return y

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T
from tvm.script import relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((14,), dtype="int32"), q: R.Tensor((8,), dtype="int32")) -> R.Tensor((14,), dtype="int32"):
        cls = Module
        with R.dataflow():
            x_physical = R.call_tir(cls.pad, (x,), out_sinfo=R.Tensor((4, 4), dtype="int32"))
            y_physical = R.call_tir(cls.grow_physical, (x_physical, q), out_sinfo=R.Tensor((4, 4), dtype="int32"))
            y = R.call_tir(cls.crop, (y_physical,), out_sinfo=R.Tensor((14,), dtype="int32"))
            R.output(y)
        return y

    @T.prim_func
    def pad(A: T.Buffer((14,), "int32"), AC: T.Buffer((4, 4), "int32")):
        for io, ii in T.grid(4, 4):
            with T.block("pad"):
                vo, vi = T.axis.remap("SS", [io, ii])
                AC[vo, vi] = T.if_then_else(4 * vo + vi < 14, A[4 * vo + vi], 0)

    @T.prim_func
    def crop(BC: T.Buffer((4, 4), "int32"), B: T.Buffer((14,), "int32")):
        for i in range(14):
            with T.block("crop"):
                vi = T.axis.spatial(14, i)
                B[vi] = BC[vi // 4, vi % 4]

    @T.prim_func
    def grow_physical(AC: T.Buffer((4, 4), "int32"), Q: T.Buffer((8,), "int32"), BC: T.Buffer((4, 4), "int32")):
        for c0, c1 in T.grid(4, 4):
            with T.block("AC_padding"):
                vc0, vc1 = T.axis.remap("SS", [c0, c1])
                T.assume(vc0 < 3 or vc1 < 2 or AC[vc0, vc1] == 0)
        for i, j in T.grid(4, 4):
            with T.block("compute"):
                vi, vj = T.axis.remap("SS", [i, j])
                BC[vi, vj] = Q[AC[vi, vj]]

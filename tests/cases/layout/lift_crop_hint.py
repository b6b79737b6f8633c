# run: opt --pass lift_layout,cancel_layout
# The crop is marked with what it leaves behind: zeros. With that the crop and the next pad vanish,
# although nothing is known of the scale, which may be infinite.


@I.ir_module
class Module:
    @T.prim_func
    def grow(A: T.Buffer((14,), "float32"), S: T.Buffer((1,), "float32"), B: T.Buffer((14,), "float32")):
        AC = T.alloc_buffer((4, 4), "float32")
        BC = T.alloc_buffer((4, 4), "float32")
        for io, ii in T.grid(4, 4):
            with T.block("pad"):
                vo, vi = T.axis.remap("SS", [io, ii])
                T.block_attr({"preproc": "pad"})
                AC[vo, vi] = T.if_then_else(4 * vo + vi < 14, A[4 * vo + vi], T.float32(0))
        for i, j in T.grid(4, 4):
            with T.block("compute"):
                vi, vj = T.axis.remap("SS", [i, j])
                BC[vi, vj] = S[0] * AC[vi, vj]
        for i in range(14):
            with T.block("crop"):
                vi = T.axis.spatial(14, i)
                T.block_attr({"postproc": ["crop", 0]})
                B[vi] = BC[vi // 4, vi % 4]

    @R.function
    def main(x: R.Tensor((14,), "float32"), s: R.Tensor((1,), "float32")):
        cls = Module
        with R.dataflow():
            y = R.call_tir(cls.grow, (x, s), out_sinfo=R.Tensor((14,), "float32"))
            z = R.call_tir(cls.grow, (y, s), out_sinfo=R.Tensor((14,), "float32"))
            R.output(z)
        return z

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T
from tvm.script import relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((14,), dtype="float32"), s: R.Tensor((1,), dtype="float32")):
        cls = Module
        with R.dataflow():
            x_physical = R.call_tir(cls.pad, (x,), out_sinfo=R.Tensor((4, 4), dtype="float32"))
            y_physical = R.call_tir(cls.grow_physical, (x_physical, s), out_sinfo=R.Tensor((4, 4), dtype="float32"))
            z_physical = R.call_tir(cls.grow_physical, (y_physical, s), out_sinfo=R.Tensor((4, 4), dtype="float32"))
            z = R.call_tir(cls.crop, (z_physical,), out_sinfo=R.Tensor((14,), dtype="float32"))
            R.output(z)
        return z

    @T.prim_func
    def pad(A: T.Buffer((14,), "float32"), AC: T.Buffer((4, 4), "float32")):
        for io, ii in T.grid(4, 4):
            with T.block("pad"):
                vo, vi = T.axis.remap("SS", [io, ii])
                AC[vo, vi] = T.if_then_else(4 * vo + vi < 14, A[4 * vo + vi], T.float32(0.0))

    @T.prim_func
    def crop(BC: T.Buffer((4, 4), "float32"), B: T.Buffer((14,), "float32")):
        for c0, c1 in T.grid(4, 4):
            with T.block("BC_padding"):
                vc0, vc1 = T.axis.remap("SS", [c0, c1])
                T.assume(vc0 < 3 or vc1 < 2 or BC[vc0, vc1] == T.float32(0.0))
        for i in range(14):
            with T.block("crop"):
                vi = T.axis.spatial(14, i)
                B[vi] = BC[vi // 4, vi % 4]

    @T.prim_func
    def grow_physical(AC: T.Buffer((4, 4), "float32"), S: T.Buffer((1,), "float32"), BC: T.Buffer((4, 4), "float32")):
        for c0, c1 in T.grid(4, 4):
            with T.block("AC_padding"):
                vc0, vc1 = T.axis.remap("SS", [c0, c1])
                T.assume(vc0 < 3 or vc1 < 2 or AC[vc0, vc1] == T.float32(0.0))
        for i, j in T.grid(4, 4):
            with T.block("compute"):
                vi, vj = T.axis.remap("SS", [i, j])
                BC[vi, vj] = S[0] * AC[vi, vj]

# run: opt --pass lift_layout,fold_constant,cancel_layout --print-after-all
# Both operands are padded to what the hardware takes. The pads and crops move into the graph, those
# of constants happen now, and the crop and pad between the products vanish, since zero times zero
# is the zero that the pad would write.


@I.ir_module
class Module:
    @T.prim_func
    def multiply(
        A: T.Buffer((4, 7), "float32"), B: T.Buffer((4, 7), "float32"), C: T.Buffer((4, 7), "float32")
    ):
        A_physical = T.alloc_buffer((4, 8))
        B_physical = T.alloc_buffer((4, 8))
        C_physical = T.alloc_buffer((4, 8))
        for i, j in T.grid(4, 8):
            with T.block("pad"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.block_attr({"preproc": "pad"})
                A_physical[vi, vj] = T.if_then_else(vj < 7, A[vi, vj], 0.0)
        for i, j in T.grid(4, 8):
            with T.block("pad_too"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.block_attr({"preproc": "pad"})
                B_physical[vi, vj] = T.if_then_else(vj < 7, B[vi, vj], 0.0)
        for i, j in T.grid(4, 8):
            with T.block("compute"):
                vi, vj = T.axis.remap("SS", [i, j])
                C_physical[vi, vj] = A_physical[vi, vj] * B_physical[vi, vj]
        for i, j in T.grid(4, 7):
            with T.block("crop"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.block_attr({"postproc": "crop"})
                C[vi, vj] = C_physical[vi, vj]

    @R.function
    def main(x: R.Tensor((4, 7), "float32")) -> R.Tensor((4, 7), "float32"):
        cls = Module
        with R.dataflow():
            w0 = R.const(
                [
                    [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0],
                    [1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0],
                    [0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5],
                    [7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0],
                ],
                "float32",
            )
            w1 = R.const(
                [
                    [2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0],
                    [0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0],
                    [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0],
                    [3.0, 3.0, 3.0, 3.0, 3.0, 3.0, 3.0],
                ],
                "float32",
            )
            lv0 = R.call_tir(cls.multiply, (x, w0), out_sinfo=R.Tensor((4, 7), "float32"))
            lv1 = R.call_tir(cls.multiply, (lv0, w1), out_sinfo=R.Tensor((4, 7), "float32"))
            R.output(lv1)
        return lv1

# ---- expected
# after lift_layout
from tvm.script import ir as I
from tvm.script import tir as T
from tvm.script import relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((4, 7), dtype="float32")) -> R.Tensor((4, 7), dtype="float32"):
        cls = Module
        with R.dataflow():
            w0 = R.const([[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0], [1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0], [0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5], [7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0]], "float32")
            w1 = R.const([[2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0], [0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0], [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0], [3.0, 3.0, 3.0, 3.0, 3.0, 3.0, 3.0]], "float32")
            x_physical = R.call_tir(cls.pad, (x,), out_sinfo=R.Tensor((4, 8), dtype="float32"))
            w0_physical = R.call_tir(cls.pad, (w0,), out_sinfo=R.Tensor((4, 8), dtype="float32"))
            lv0_physical = R.call_tir(cls.multiply_physical, (x_physical, w0_physical), out_sinfo=R.Tensor((4, 8), dtype="float32"))
            lv0 = R.call_tir(cls.crop, (lv0_physical,), out_sinfo=R.Tensor((4, 7), dtype="float32"))
            lv0_physical_1 = R.call_tir(cls.pad, (lv0,), out_sinfo=R.Tensor((4, 8), dtype="float32"))
            w1_physical = R.call_tir(cls.pad, (w1,), out_sinfo=R.Tensor((4, 8), dtype="float32"))
            lv1_physical = R.call_tir(cls.multiply_physical, (lv0_physical_1, w1_physical), out_sinfo=R.Tensor((4, 8), dtype="float32"))
            lv1 = R.call_tir(cls.crop, (lv1_physical,), out_sinfo=R.Tensor((4, 7), dtype="float32"))
            R.output(lv1)
        return lv1

    @T.prim_func
    def pad(A: T.Buffer((4, 7), "float32"), A_physical: T.Buffer((4, 8), "float32")):
        for i, j in T.grid(4, 8):
            with T.block("pad"):
                vi, vj = T.axis.remap("SS", [i, j])
                A_physical[vi, vj] = T.if_then_else(vj < 7, A[vi, vj], T.float32(0.0))

    @T.prim_func
    def crop(C_physical: T.Buffer((4, 8), "float32"), C: T.Buffer((4, 7), "float32")):
        for i, j in T.grid(4, 7):
            with T.block("crop"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = C_physical[vi, vj]

    @T.prim_func
    def multiply_physical(A_physical: T.Buffer((4, 8), "float32"), B_physical: T.Buffer((4, 8), "float32"), C_physical: T.Buffer((4, 8), "float32")):
        for c0, c1 in T.grid(4, 8):
            with T.block("A_physical_padding"):
                vc0, vc1 = T.axis.remap("SS", [c0, c1])
                T.assume(vc1 < 7 or A_physical[vc0, vc1] == T.float32(0.0))
        for c0, c1 in T.grid(4, 8):
            with T.block("B_physical_padding"):
                vc0, vc1 = T.axis.remap("SS", [c0, c1])
                T.assume(vc1 < 7 or B_physical[vc0, vc1] == T.float32(0.0))
        for i, j in T.grid(4, 8):
            with T.block("compute"):
                vi, vj = T.axis.remap("SS", [i, j])
                C_physical[vi, vj] = A_physical[vi, vj] * B_physical[vi, vj]
# after fold_constant
from tvm.script import ir as I
from tvm.script import tir as T
from tvm.script import relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((4, 7), dtype="float32")) -> R.Tensor((4, 7), dtype="float32"):
        cls = Module
        with R.dataflow():
            x_physical = R.call_tir(cls.pad, (x,), out_sinfo=R.Tensor((4, 8), dtype="float32"))
            w0_physical = R.const([[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 0.0], [1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0], [0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.0], [7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0, 0.0]], "float32")
            lv0_physical = R.call_tir(cls.multiply_physical, (x_physical, w0_physical), out_sinfo=R.Tensor((4, 8), dtype="float32"))
            lv0 = R.call_tir(cls.crop, (lv0_physical,), out_sinfo=R.Tensor((4, 7), dtype="float32"))
            lv0_physical_1 = R.call_tir(cls.pad, (lv0,), out_sinfo=R.Tensor((4, 8), dtype="float32"))
            w1_physical = R.const([[2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 0.0], [0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 0.0], [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0], [3.0, 3.0, 3.0, 3.0, 3.0, 3.0, 3.0, 0.0]], "float32")
            lv1_physical = R.call_tir(cls.multiply_physical, (lv0_physical_1, w1_physical), out_sinfo=R.Tensor((4, 8), dtype="float32"))
            lv1 = R.call_tir(cls.crop, (lv1_physical,), out_sinfo=R.Tensor((4, 7), dtype="float32"))
            R.output(lv1)
        return lv1

    @T.prim_func
    def pad(A: T.Buffer((4, 7), "float32"), A_physical: T.Buffer((4, 8), "float32")):
        for i, j in T.grid(4, 8):
            with T.block("pad"):
                vi, vj = T.axis.remap("SS", [i, j])
                A_physical[vi, vj] = T.if_then_else(vj < 7, A[vi, vj], T.float32(0.0))

    @T.prim_func
    def crop(C_physical: T.Buffer((4, 8), "float32"), C: T.Buffer((4, 7), "float32")):
        for i, j in T.grid(4, 7):
            with T.block("crop"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = C_physical[vi, vj]

    @T.prim_func
    def multiply_physical(A_physical: T.Buffer((4, 8), "float32"), B_physical: T.Buffer((4, 8), "float32"), C_physical: T.Buffer((4, 8), "float32")):
        for c0, c1 in T.grid(4, 8):
            with T.block("A_physical_padding"):
                vc0, vc1 = T.axis.remap("SS", [c0, c1])
                T.assume(vc1 < 7 or A_physical[vc0, vc1] == T.float32(0.0))
        for c0, c1 in T.grid(4, 8):
            with T.block("B_physical_padding"):
                vc0, vc1 = T.axis.remap("SS", [c0, c1])
                T.assume(vc1 < 7 or B_physical[vc0, vc1] == T.float32(0.0))
        for i, j in T.grid(4, 8):
            with T.block("compute"):
                vi, vj = T.axis.remap("SS", [i, j])
                C_physical[vi, vj] = A_physical[vi, vj] * B_physical[vi, vj]
# after cancel_layout
from tvm.script import ir as I
from tvm.script import tir as T
from tvm.script import relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((4, 7), dtype="float32")) -> R.Tensor((4, 7), dtype="float32"):
        cls = Module
        with R.dataflow():
            x_physical = R.call_tir(cls.pad, (x,), out_sinfo=R.Tensor((4, 8), dtype="float32"))
            w0_physical = R.const([[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 0.0], [1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0], [0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.0], [7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0, 0.0]], "float32")
            lv0_physical = R.call_tir(cls.multiply_physical, (x_physical, w0_physical), out_sinfo=R.Tensor((4, 8), dtype="float32"))
            w1_physical = R.const([[2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 0.0], [0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 0.0], [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0], [3.0, 3.0, 3.0, 3.0, 3.0, 3.0, 3.0, 0.0]], "float32")
            lv1_physical = R.call_tir(cls.multiply_physical, (lv0_physical, w1_physical), out_sinfo=R.Tensor((4, 8), dtype="float32"))
            lv1 = R.call_tir(cls.crop, (lv1_physical,), out_sinfo=R.Tensor((4, 7), dtype="float32"))
            R.output(lv1)
        return lv1

    @T.prim_func
    def pad(A: T.Buffer((4, 7), "float32"), A_physical: T.Buffer((4, 8), "float32")):
        for i, j in T.grid(4, 8):
            with T.block("pad"):
                vi, vj = T.axis.remap("SS", [i, j])
                A_physical[vi, vj] = T.if_then_else(vj < 7, A[vi, vj], T.float32(0.0))

    @T.prim_func
    def crop(C_physical: T.Buffer((4, 8), "float32"), C: T.Buffer((4, 7), "float32")):
        for i, j in T.grid(4, 7):
            with T.block("crop"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = C_physical[vi, vj]

    @T.prim_func
    def multiply_physical(A_physical: T.Buffer((4, 8), "float32"), B_physical: T.Buffer((4, 8), "float32"), C_physical: T.Buffer((4, 8), "float32")):
        for c0, c1 in T.grid(4, 8):
            with T.block("A_physical_padding"):
                vc0, vc1 = T.axis.remap("SS", [c0, c1])
                T.assume(vc1 < 7 or A_physical[vc0, vc1] == T.float32(0.0))
        for c0, c1 in T.grid(4, 8):
            with T.block("B_physical_padding"):
                vc0, vc1 = T.axis.remap("SS", [c0, c1])
                T.assume(vc1 < 7 or B_physical[vc0, vc1] == T.float32(0.0))
        for i, j in T.grid(4, 8):
            with T.block("compute"):
                vi, vj = T.axis.remap("SS", [i, j])
                C_physical[vi, vj] = A_physical[vi, vj] * B_physical[vi, vj]

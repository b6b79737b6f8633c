# run: opt --pass flow_layout --pass-config flow_layout.outputs=physical
# A caller that takes results in physical layout, with anything in their padding, saves the last
# crop.
# semantics: not compared, because the result has another shape
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
    def main(p: R.Tensor((4, 4), "int32")):
        cls = Module
        with R.dataflow():
            c = R.call_tir(cls.crop, (p,), out_sinfo=R.Tensor((14,), "int32"))
            d = R.call_tir(cls.addone, (c,), out_sinfo=R.Tensor((14,), "int32"))
            R.output(d)
        return d

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T
from tvm.script import relax as R


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
    def double(A: T.Buffer((14,), "int32"), B: T.Buffer((14,), "int32")):
        for i in range(14):
            with T.block("B"):
                vi = T.axis.spatial(14, i)
                B[vi] = A[vi] * 2

    @R.function
    def main(p: R.Tensor((4, 4), dtype="int32")):
        R.func_attr({"stored_outputs": [{"digits": [[4, 4]], "offsets": [0], "order": [[0, 0], [0, 1]], "pad": None, "shape": [14]}]})
        cls = Module
        with R.dataflow():
            d = R.call_tir(cls.addone_physical, (p,), out_sinfo=R.Tensor((4, 4), dtype="int32"))
            R.output(d)
        return d

    @T.prim_func
    def addone_physical(A: T.Buffer((4, 4), "int32"), B: T.Buffer((4, 4), "int32")):
        for i_0, i_1 in T.grid(4, 4):
            with T.block("B"):
                vi_0, vi_1 = T.axis.remap("SS", [i_0, i_1])
                B[vi_0, vi_1] = A[vi_0, vi_1] + 1

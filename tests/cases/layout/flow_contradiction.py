# run: opt --pass flow_layout --explain
# Two operands come in different layouts, and the result is wanted in that of the smaller one: the
# sum is computed there, and only the other operand is converted. `diagonal` then takes the layout
# that its accesses allow, and converts its small result.
@I.ir_module
class Module:
    @T.prim_func
    def crop_rows(P: T.Buffer((2, 8, 4), "float32"), B: T.Buffer((8, 8), "float32")):
        for i, j in T.grid(8, 8):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = P[vi // 4, vj, vi % 4]

    @T.prim_func
    def crop_columns(P: T.Buffer((8, 3, 3), "float32"), B: T.Buffer((8, 8), "float32")):
        for i, j in T.grid(8, 8):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = P[vi, vj // 3, vj % 3]

    @T.prim_func
    def add(A: T.Buffer((8, 8), "float32"), C: T.Buffer((8, 8), "float32"), B: T.Buffer((8, 8), "float32")):
        for i, j in T.grid(8, 8):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] + C[vi, vj]

    @T.prim_func
    def pack_rows(A: T.Buffer((8, 8), "float32"), P: T.Buffer((2, 8, 4), "float32")):
        for i, j, k in T.grid(2, 8, 4):
            with T.block("P"):
                vi, vj, vk = T.axis.remap("SSS", [i, j, k])
                P[vi, vj, vk] = A[vi * 4 + vk, vj]

    @T.prim_func
    def negate(P: T.Buffer((2, 8, 4), "float32"), B: T.Buffer((2, 8, 4), "float32")):
        for i, j, k in T.grid(2, 8, 4):
            with T.block("B"):
                vi, vj, vk = T.axis.remap("SSS", [i, j, k])
                B[vi, vj, vk] = T.float32(0) - P[vi, vj, vk]

    @T.prim_func
    def diagonal(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8,), "float32")):
        for i in T.serial(8):
        #^^^^^^^^^^^^^^^^^^^ remark: `t` keeps its layout: `A` is accessed at `vi * 3 % 8` along axis 1, which the layout splits into [3, 3]
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[vi, (vi * 3) % 8]

    @R.function
    def main(p: R.Tensor((2, 8, 4), "float32"), q: R.Tensor((8, 3, 3), "float32")):
        cls = Module
        with R.dataflow():
            x = R.call_tir(cls.crop_rows, (p,), out_sinfo=R.Tensor((8, 8), "float32"))
            y = R.call_tir(cls.crop_columns, (q,), out_sinfo=R.Tensor((8, 8), "float32"))
            z = R.call_tir(cls.add, (x, y), out_sinfo=R.Tensor((8, 8), "float32"))
            r = R.call_tir(cls.pack_rows, (z,), out_sinfo=R.Tensor((2, 8, 4), "float32"))
            s = R.call_tir(cls.negate, (r,), out_sinfo=R.Tensor((2, 8, 4), "float32"))
            t = R.call_tir(cls.diagonal, (y,), out_sinfo=R.Tensor((8,), "float32"))
            R.output(s, t)
        return (s, t)

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T
from tvm.script import relax as R


@I.ir_module
class Module:
    @T.prim_func
    def negate(P: T.Buffer((2, 8, 4), "float32"), B: T.Buffer((2, 8, 4), "float32")):
        for i, j, k in T.grid(2, 8, 4):
            with T.block("B"):
                vi, vj, vk = T.axis.remap("SSS", [i, j, k])
                B[vi, vj, vk] = T.float32(0.0) - P[vi, vj, vk]

    @R.function
    def main(p: R.Tensor((2, 8, 4), dtype="float32"), q: R.Tensor((8, 3, 3), dtype="float32")):
        cls = Module
        with R.dataflow():
            y = R.call_tir(cls.relayout, (q,), out_sinfo=R.Tensor((2, 8, 4), dtype="float32"))
            z = R.call_tir(cls.add_physical, (p, y), out_sinfo=R.Tensor((2, 8, 4), dtype="float32"))
            s = R.call_tir(cls.negate, (z,), out_sinfo=R.Tensor((2, 8, 4), dtype="float32"))
            t = R.call_tir(cls.diagonal_physical, (y,), out_sinfo=R.Tensor((2, 4), dtype="float32"))
            t_1 = R.call_tir(cls.crop, (t,), out_sinfo=R.Tensor((8,), dtype="float32"))
            R.output(s, t_1)
        return (s, t_1)

    @T.prim_func
    def relayout(x: T.Buffer((8, 3, 3), "float32"), y: T.Buffer((2, 8, 4), "float32")):
        for c0, c1, c2 in T.grid(2, 8, 4):
            with T.block("relayout"):
                vc0, vc1, vc2 = T.axis.remap("SSS", [c0, c1, c2])
                y[vc0, vc1, vc2] = x[vc0 * 4 + vc2, vc1 // 3, vc1 % 3]

    @T.prim_func
    def add_physical(A: T.Buffer((2, 8, 4), "float32"), C: T.Buffer((2, 8, 4), "float32"), B: T.Buffer((2, 8, 4), "float32")):
        for i_0, j, i_1 in T.grid(2, 8, 4):
            with T.block("B"):
                vi_0, vj, vi_1 = T.axis.remap("SSS", [i_0, j, i_1])
                B[vi_0, vj, vi_1] = A[vi_0, vj, vi_1] + C[vi_0, vj, vi_1]

    @T.prim_func
    def diagonal_physical(A: T.Buffer((2, 8, 4), "float32"), B: T.Buffer((2, 4), "float32")):
        for i_0, i_1 in T.grid(2, 4):
            with T.block("B"):
                vi_0, vi_1 = T.axis.remap("SS", [i_0, i_1])
                B[vi_0, vi_1] = A[vi_0, (vi_0 * 4 + vi_1) * 3 % 8, vi_1]

    @T.prim_func
    def crop(x: T.Buffer((2, 4), "float32"), y: T.Buffer((8,), "float32")):
        for i0 in range(8):
            with T.block("crop"):
                vi0 = T.axis.spatial(8, i0)
                y[vi0] = x[vi0 // 4, vi0 % 4]

# run: opt
# layout: A[i, j] at [i // 4, i % 4, j // 8, j % 8], padding 0
# layout: B[i] at [i // 4, i % 4], padding undef
# "Multiple Buffer Semantics": the padding of `A` by rows is arbitrary, by columns it is zero.
@T.prim_func
def main(A: T.Buffer((14, 60), "int32"), B: T.Buffer((14,), "int32")):
    for i, j in T.grid(14, 60):
        with T.block("compute"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                B[vi] = 0
            B[vi] = B[vi] + A[vi, vj]

# ---- schedule
sched.transform_layout(block='compute', buffer='A', lambda i, j: [i//4, i%4, j], pad_value=lambda io, ii, j: tir.undef(dtype="int32"))
sched.transform_layout(block='compute', buffer='A', lambda io, ii, j: [io, ii, j//8, j%8], pad_value=0)
sched.transform_layout(block='compute', buffer='B', lambda i: [i//4, i%4], pad_value=lambda io, ii: tir.undef(dtype="int32"))
sched.sequential_buffer_access(block='compute', buffer='A')

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((4, 4, 8, 8), "int32"), B: T.Buffer((4, 4), "int32")):
        for io, ii, j_0, j_1 in T.grid(4, 4, 8, 8):
            with T.block("buffer_A_assumption_1"):
                v_io, v_ii, v_j_0, v_j_1 = T.axis.remap("SSSS", [io, ii, j_0, j_1])
                T.assume(not (v_j_0 == 7 and v_j_1 >= 4) or A[v_io, v_ii, v_j_0, v_j_1] == 0)
        for i_0, i_1, j in T.grid(4, 4, 60):
            with T.block("buffer_A_assumption"):
                v_i_0, v_i_1, v_j = T.axis.remap("SSS", [i_0, i_1, j])
                T.assume(not (v_i_0 == 3 and v_i_1 >= 2) or A[v_i_0, v_i_1, v_j // 8, v_j % 8] == T.undef(dtype="int32"))
        for i_0, i_1, j_0, j_1 in T.grid(4, 4, 8, 8):
            with T.block("compute"):
                vi = T.axis.spatial(14, i_0 * 4 + i_1)
                vj = T.axis.reduce(60, j_0 * 8 + j_1)
                T.where(i_0 * 4 + i_1 < 14 and j_0 * 8 + j_1 < 60)
                with T.init():
                    B[vi // 4, vi % 4] = 0
                B[vi // 4, vi % 4] = B[vi // 4, vi % 4] + A[vi // 4, vi % 4, vj // 8, vj % 8]
        for i_0, i_1 in T.grid(4, 4):
            with T.block("buffer_B_padding"):
                v_i_0, v_i_1 = T.axis.remap("SS", [i_0, i_1])
                T.where(i_0 == 3 and i_1 >= 2)
                B[v_i_0, v_i_1] = T.undef(dtype="int32")

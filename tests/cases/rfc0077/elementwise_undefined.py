# run: opt
# layout: A[i] at [i // 4, i % 4], padding undef
# layout: B[i] at [i // 4, i % 4], padding undef
# "Apply operator element-wise over the transformation padding".
@T.prim_func
def main(A: T.Buffer((14,), "int32"), B: T.Buffer((14,), "int32")):
    for i in T.serial(14):
        with T.block("compute"):
            B[i] = 2 * A[i]

# ---- schedule
sched.transform_layout(block='compute', buffer='A', lambda i: [i//4, i%4], pad_value=lambda io, ii: tir.undef(dtype="int32"))
sched.transform_layout(block='compute', buffer='B', lambda i: [i//4, i%4], pad_value=lambda io, ii: tir.undef(dtype="int32"))
sched.sequential_buffer_access(block='compute', buffer='B')

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((4, 4), "int32"), B: T.Buffer((4, 4), "int32")):
        for i_0, i_1 in T.grid(4, 4):
            with T.block("buffer_A_assumption"):
                v_i_0, v_i_1 = T.axis.remap("SS", [i_0, i_1])
                T.assume(not (v_i_0 == 3 and v_i_1 >= 2) or A[v_i_0, v_i_1] == T.undef(dtype="int32"))
        for i_0, i_1 in T.grid(4, 4):
            with T.block("compute"):
                T.where(i_0 * 4 + i_1 < 14)
                B[i_0, i_1] = 2 * A[i_0, i_1]
        for i_0, i_1 in T.grid(4, 4):
            with T.block("buffer_B_padding"):
                v_i_0, v_i_1 = T.axis.remap("SS", [i_0, i_1])
                T.where(i_0 == 3 and i_1 >= 2)
                B[v_i_0, v_i_1] = T.undef(dtype="int32")

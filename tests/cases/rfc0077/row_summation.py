# run: opt --pass simplify
# layout: A[i, j] at [i, j // 4, j % 4], padding 0
# "Overcompute vs Branching": the loop follows the layout, under a condition.
@T.prim_func
def row_summation(A: T.Buffer((16, 14), "float32"), B: T.Buffer((16,), "float32")):
    with T.block("compute"):
        for i in T.serial(16):
            B[i] = 0.0
            for j in T.serial(14):
                B[i] = B[i] + A[i, j]

# ---- schedule
sched.transform_layout(block='compute', buffer='A', lambda i, j: [i, j//4, j%4], pad_value=0.0)
sched.split('j', [None, 4])

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def row_summation(A: T.Buffer((16, 4, 4), "float32"), B: T.Buffer((16,), "float32")):
        for i, j_0, j_1 in T.grid(16, 4, 4):
            with T.block("buffer_A_assumption"):
                v_i, v_j_0, v_j_1 = T.axis.remap("SSS", [i, j_0, j_1])
                T.assume(not (v_j_0 == 3 and v_j_1 >= 2) or A[v_i, v_j_0, v_j_1] == T.float32(0.0))
        with T.block("compute"):
            for i in range(16):
                B[i] = T.float32(0.0)
                for j_0, j_1 in T.grid(4, 4):
                    if j_0 < 3 or j_1 < 2:
                        B[i] = B[i] + A[i, j_0, j_1]

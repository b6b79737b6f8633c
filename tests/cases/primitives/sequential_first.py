# run: opt
# layout: B[i, j] at [j // 4, i, j % 4]
# The loops that are mapped come first, and what stands behind them keeps the old ones.
@T.prim_func
def main(A: T.Buffer((6, 14), "int32"), B: T.Buffer((6, 14), "int32"), D: T.Buffer((6,), "int32")):
    with T.block("compute"):
        for i in range(6):
            for j in range(14):
                B[i, j] = A[i, j] + 1
            D[i] = B[i, 3]

# ---- schedule
sched.transform_layout(block='compute', buffer='B', lambda i, j: [j // 4, i, j % 4])
sched.sequential_buffer_access(block='compute', buffer='B')

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((6, 14), "int32"), B: T.Buffer((4, 6, 4), "int32"), D: T.Buffer((6,), "int32")):
        with T.block("compute"):
            for j_0, i, j_1 in T.grid(4, 6, 4):
                if j_0 * 4 + j_1 < 14:
                    B[j_0, i, j_1] = A[i, j_0 * 4 + j_1] + 1
            for i in range(6):
                D[i] = B[0, i, 3]

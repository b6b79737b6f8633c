# run: opt
# layout: B[i, j] at [j // 4, i, j % 4]
# What stands behind the inner loop gets a loop of its own, too.
@T.prim_func
def main(A: T.Buffer((6, 14), "int32"), B: T.Buffer((6, 14), "int32"), C: T.Buffer((6,), "int32"), D: T.Buffer((6,), "int32")):
    with T.block("compute"):
        for i in range(6):
            C[i] = 0
            for j in range(14):
                B[i, j] = A[i, j] + C[i]
            D[i] = A[i, 3]

# ---- schedule
sched.transform_layout(block='compute', buffer='B', lambda i, j: [j // 4, i, j % 4])
sched.sequential_buffer_access(block='compute', buffer='B')

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((6, 14), "int32"), B: T.Buffer((4, 6, 4), "int32"), C: T.Buffer((6,), "int32"), D: T.Buffer((6,), "int32")):
        with T.block("compute"):
            for i in range(6):
                C[i] = 0
            for j_0, i, j_1 in T.grid(4, 6, 4):
                if j_0 * 4 + j_1 < 14:
                    B[j_0, i, j_1] = A[i, j_0 * 4 + j_1] + C[i]
            for i in range(6):
                D[i] = A[i, 3]

# run: opt
# layout: A[i] at [i // 4, i % 4]
# The first read says the order; the other one follows.
@T.prim_func
def main(A: T.Buffer((15,), "int32"), B: T.Buffer((14,), "int32")):
    with T.block("compute"):
        for i in range(14):
            B[i] = A[i] + A[i + 1]

# ---- schedule
sched.transform_layout(block='compute', buffer='A', lambda i: [i // 4, i % 4])
sched.sequential_buffer_access(block='compute', buffer='A')

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((4, 4), "int32"), B: T.Buffer((14,), "int32")):
        with T.block("compute"):
            for i_0, i_1 in T.grid(4, 4):
                if i_0 * 4 + i_1 < 14:
                    B[i_0 * 4 + i_1] = A[i_0, i_1] + A[i_0 + (i_1 + 1) // 4, (i_1 + 1) % 4]

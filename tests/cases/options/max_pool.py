# run: opt --pass simplify,remove_branching_through_overcompute,remove_assume
# layout: A[i] at [(i + 1) // 4, (i + 1) % 4], padding -inf
# Windows of a maximum that reach over both ends: the padding takes the place of the condition.
@T.prim_func
def func(A: T.Buffer((14,), "float32"), B: T.Buffer((14,), "float32")):
    with T.block("pool"):
        for i in T.serial(14):
            B[i] = T.float32("-inf")
            for f in T.serial(3):
                if 0 <= i + f - 1 and i + f - 1 < 14:
                    B[i] = T.max(B[i], A[i + f - 1])

# ---- schedule
sched.transform_layout(block='pool', buffer='A', lambda i: [(i+1)//4, (i+1)%4], pad_value=lambda io, ii: T.float32("-inf"))

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def func(A: T.Buffer((4, 4), "float32"), B: T.Buffer((14,), "float32")):
        with T.block("pool"):
            for i in range(14):
                B[i] = T.float32("-inf")
                for f in range(3):
                    B[i] = T.max(B[i], A[(i + f) // 4, (i + f) % 4])

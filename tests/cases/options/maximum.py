# run: opt --pass simplify,remove_branching_through_overcompute,remove_assume
# layout: A[i] at [i // 4, i % 4], padding -inf
# The maximum of padding that holds minus infinity is that of the rest.
@T.prim_func
def func(A: T.Buffer((14,), "float32"), B: T.Buffer((1,), "float32")):
    with T.block("compute"):
        B[0] = T.float32("-inf")
        for i in T.serial(14):
            B[0] = T.max(B[0], A[i])

# ---- schedule
sched.transform_layout(block='compute', buffer='A', lambda i: [i//4, i%4], pad_value=lambda io, ii: T.float32("-inf"))
sched.sequential_buffer_access(block='compute', buffer='A')

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def func(A: T.Buffer((4, 4), "float32"), B: T.Buffer((1,), "float32")):
        with T.block("compute"):
            B[0] = T.float32("-inf")
            for i_0, i_1 in T.grid(4, 4):
                B[0] = T.max(B[0], A[i_0, i_1])

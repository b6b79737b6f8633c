# run: opt --pass simplify,remove_branching_through_overcompute,remove_assume,remove_store_undef
# layout: A[i] at [i // 4, i % 4], padding undef
# layout: B[i] at [i // 4, i % 4], padding undef
# "Apply operator element-wise over the transformation padding".
@T.prim_func
def func(A: T.Buffer((14,), "int32"), B: T.Buffer((14,), "int32")):
    with T.block("compute"):
        for i in T.serial(14):
            B[i] = 2 * A[i]

# ---- schedule
sched.transform_layout(block='compute', buffer='A', lambda i: [i//4, i%4], pad_value=lambda io, ii: T.undef())
sched.transform_layout(block='compute', buffer='B', lambda i: [i//4, i%4], pad_value=lambda io, ii: T.undef())
sched.sequential_buffer_access(block='compute', buffer='B')

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def func(A: T.Buffer((4, 4), "int32"), B: T.Buffer((4, 4), "int32")):
        with T.block("compute"):
            for i_0, i_1 in T.grid(4, 4):
                B[i_0, i_1] = 2 * A[i_0, i_1]

# run: opt --pass simplify,remove_branching_through_overcompute --explain
# layout: A[i] at [i // 4, i % 4]
# "Never read from transformation padding": a sum would see what nobody wrote, so the guard stays.
@T.prim_func
def func(A: T.Buffer((14,), "int32"), B: T.Buffer((1,), "int32")):
    with T.block("compute"):
        B[0] = 0
        for i in T.serial(14):
            B[0] = B[0] + A[i]
# remark: the guard `i_0 < 3 or i_1 < 2` stays: what would be written to `B` is used, and is not known to be what is there
# note: at i_0=3, i_1=3: B[0] is seen by the caller

# ---- schedule
sched.transform_layout(block='compute', buffer='A', lambda i: [i//4, i%4])
sched.sequential_buffer_access(block='compute', buffer='A')

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def func(A: T.Buffer((4, 4), "int32"), B: T.Buffer((1,), "int32")):
        with T.block("compute"):
            B[0] = 0
            for i_0, i_1 in T.grid(4, 4):
                if i_0 < 3 or i_1 < 2:
                    B[0] = B[0] + A[i_0, i_1]

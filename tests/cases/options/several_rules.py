# run: opt --pass simplify,remove_branching_through_overcompute,remove_assume,remove_store_undef,merge_adjacent_loops
# layout: A[i, j] at [i // 4, i % 4, j // 8, j % 8], padding 0
# layout: B[i] at [i // 4, i % 4], padding undef
# "Multiple buffer semantics": zeros along `j`, anything along `i`.
@T.prim_func
def func(A: T.Buffer((14, 60), "int32"), B: T.Buffer((14,), "int32")):
    with T.block("compute"):
        for i in T.serial(14):
            B[i] = 0
            for j in T.serial(60):
                B[i] = B[i] + A[i, j]

# ---- schedule
sched.transform_layout(block='compute', buffer='A', lambda i, j: [i//4, i%4, j], pad_value=lambda io, ii, j: T.undef())
sched.transform_layout(block='compute', buffer='A', lambda io, ii, j: [io, ii, j//8, j%8], pad_value=0)
sched.transform_layout(block='compute', buffer='B', lambda i: [i//4, i%4], pad_value=lambda io, ii: T.undef())
sched.sequential_buffer_access(block='compute', buffer='A')
sched.sequential_buffer_access(block='compute', buffer='B')

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def func(A: T.Buffer((4, 4, 8, 8), "int32"), B: T.Buffer((4, 4), "int32")):
        with T.block("compute"):
            for i_0, i_1 in T.grid(4, 4):
                B[i_0, i_1] = 0
                for j_0, j_1 in T.grid(8, 8):
                    B[i_0, i_1] = B[i_0, i_1] + A[i_0, i_1, j_0, j_1]

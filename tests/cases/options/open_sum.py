# run: opt --pass remove_branching_through_overcompute
# sizes: n=1
# layout: A[i] at [i // 8, i % 8], padding 0
# For every size. Zeros in the padding add nothing.
@T.prim_func
def func(a: T.handle, B: T.Buffer((1,), "int32"), n: T.int64):
    A = T.match_buffer(a, (n,), "int32")
    with T.block("compute"):
        B[0] = 0
        for i in T.serial(n):
            B[0] = B[0] + A[i]

# ---- schedule
sched.transform_layout(block='compute', buffer='A', lambda i: [i//8, i%8], pad_value=0)
sched.sequential_buffer_access(block='compute', buffer='A')

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def func(a: T.handle, B: T.Buffer((1,), "int32"), n: T.int64):
        A = T.match_buffer(a, ((n + T.int64(7)) // T.int64(8), T.int64(8)), "int32")
        for i_0, i_1 in T.grid((n + T.int64(7)) // T.int64(8), T.int64(8)):
            with T.block("buffer_A_assumption"):
                v_i_0, v_i_1 = T.axis.remap("SS", [i_0, i_1])
                T.assume(not v_i_0 * T.int64(8) + v_i_1 >= n or A[v_i_0, v_i_1] == 0)
        with T.block("compute"):
            B[0] = 0
            for i_0, i_1 in T.grid((n + T.int64(7)) // T.int64(8), T.int64(8)):
                B[0] = B[0] + A[i_0, i_1]

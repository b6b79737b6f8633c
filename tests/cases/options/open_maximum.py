# run: opt --pass remove_branching_through_overcompute
# sizes: n=7
# layout: A[i] at [i // 8, i % 8], padding -3.4028235e38
# For every size. The least number of the type in the padding changes no maximum that begins with it.
@T.prim_func
def func(a: T.handle, B: T.Buffer((1,), "float32"), n: T.int64):
    A = T.match_buffer(a, (n,), "float32")
    with T.block("compute"):
        B[0] = T.min_value("float32")
        for i in T.serial(n):
            B[0] = T.max(B[0], A[i])

# ---- schedule
sched.transform_layout(block='compute', buffer='A', lambda i: [i//8, i%8], pad_value=T.min_value("float32"))
sched.sequential_buffer_access(block='compute', buffer='A')

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def func(a: T.handle, B: T.Buffer((1,), "float32"), n: T.int64):
        A = T.match_buffer(a, ((n + T.int64(7)) // T.int64(8), T.int64(8)), "float32")
        for i_0, i_1 in T.grid((n + T.int64(7)) // T.int64(8), T.int64(8)):
            with T.block("buffer_A_assumption"):
                v_i_0, v_i_1 = T.axis.remap("SS", [i_0, i_1])
                T.assume(not v_i_0 * T.int64(8) + v_i_1 >= n or A[v_i_0, v_i_1] == T.float32(-3.4028235e38))
        with T.block("compute"):
            B[0] = T.float32(-3.4028235e38)
            for i_0, i_1 in T.grid((n + T.int64(7)) // T.int64(8), T.int64(8)):
                B[0] = T.max(B[0], A[i_0, i_1])

# run: opt --pass remove_branching_through_overcompute
# sizes: n=7
# layout: A[i] at [i // 8, i % 8], padding undef
# layout: B[i] at [i // 8, i % 8], padding undef
# For every size. Padding of any content: whole tiles, and what fills the last one is left open.
@T.prim_func
def func(a: T.handle, b: T.handle, n: T.int64):
    A = T.match_buffer(a, (n,), "int32")
    B = T.match_buffer(b, (n,), "int32")
    with T.block("compute"):
        for i in T.serial(n):
            B[i] = 2 * A[i]

# ---- schedule
sched.transform_layout(block='compute', buffer='A', lambda i: [i//8, i%8], pad_value=lambda io, ii: T.undef())
sched.transform_layout(block='compute', buffer='B', lambda i: [i//8, i%8], pad_value=lambda io, ii: T.undef())
sched.sequential_buffer_access(block='compute', buffer='B')

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def func(a: T.handle, b: T.handle, n: T.int64):
        A = T.match_buffer(a, ((n + T.int64(7)) // T.int64(8), T.int64(8)), "int32")
        B = T.match_buffer(b, ((n + T.int64(7)) // T.int64(8), T.int64(8)), "int32")
        for i_0, i_1 in T.grid((n + T.int64(7)) // T.int64(8), T.int64(8)):
            with T.block("buffer_A_assumption"):
                v_i_0, v_i_1 = T.axis.remap("SS", [i_0, i_1])
                T.assume(not v_i_0 * T.int64(8) + v_i_1 >= n or A[v_i_0, v_i_1] == T.undef(dtype="int32"))
        with T.block("compute"):
            for i_0, i_1 in T.grid((n + T.int64(7)) // T.int64(8), T.int64(8)):
                B[i_0, i_1] = 2 * A[i_0, i_1]
            for i_0, i_1 in T.grid((n + T.int64(7)) // T.int64(8), T.int64(8)):
                with T.block("buffer_B_padding"):
                    v_i_0, v_i_1 = T.axis.remap("SS", [i_0, i_1])
                    T.where(i_0 * T.int64(8) + i_1 >= n)
                    B[v_i_0, v_i_1] = T.undef(dtype="int32")

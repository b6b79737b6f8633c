# run: opt --pass remove_branching_through_overcompute
# sizes: n=7, m=9
# layout: A[i, j] at [i // 4, i % 4, j // 8, j % 8], padding 0
# layout: B[i] at [i // 4, i % 4], padding undef
# For every size. Two rules in turn for one buffer.
@T.prim_func
def func(a: T.handle, b: T.handle, n: T.int64, m: T.int64):
    A = T.match_buffer(a, (n, m), "int32")
    B = T.match_buffer(b, (n,), "int32")
    with T.block("compute"):
        for i in T.serial(n):
            B[i] = 0
            for j in T.serial(m):
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
    def func(a: T.handle, b: T.handle, n: T.int64, m: T.int64):
        A = T.match_buffer(a, ((n + T.int64(3)) // T.int64(4), T.int64(4), (m + T.int64(7)) // T.int64(8), T.int64(8)), "int32")
        B = T.match_buffer(b, ((n + T.int64(3)) // T.int64(4), T.int64(4)), "int32")
        for io, ii, j_0, j_1 in T.grid((n + T.int64(3)) // T.int64(4), T.int64(4), (m + T.int64(7)) // T.int64(8), T.int64(8)):
            with T.block("buffer_A_assumption_1"):
                v_io, v_ii, v_j_0, v_j_1 = T.axis.remap("SSSS", [io, ii, j_0, j_1])
                T.assume(not v_j_0 * T.int64(8) + v_j_1 >= m or A[v_io, v_ii, v_j_0, v_j_1] == 0)
        for i_0, i_1, j in T.grid((n + T.int64(3)) // T.int64(4), T.int64(4), m):
            with T.block("buffer_A_assumption"):
                v_i_0, v_i_1, v_j = T.axis.remap("SSS", [i_0, i_1, j])
                T.assume(not v_i_0 * T.int64(4) + v_i_1 >= n or A[v_i_0, v_i_1, v_j // T.int64(8), v_j % T.int64(8)] == T.undef(dtype="int32"))
        with T.block("compute"):
            for i_0, i_1 in T.grid((n + T.int64(3)) // T.int64(4), T.int64(4)):
                B[i_0, i_1] = 0
            for i_0, i_1, j_0, j_1 in T.grid((n + T.int64(3)) // T.int64(4), T.int64(4), (m + T.int64(7)) // T.int64(8), T.int64(8)):
                B[i_0, i_1] = B[i_0, i_1] + A[i_0, i_1, j_0, j_1]
            for i_0, i_1 in T.grid((n + T.int64(3)) // T.int64(4), T.int64(4)):
                with T.block("buffer_B_padding"):
                    v_i_0, v_i_1 = T.axis.remap("SS", [i_0, i_1])
                    T.where(i_0 * T.int64(4) + i_1 >= n)
                    B[v_i_0, v_i_1] = T.undef(dtype="int32")

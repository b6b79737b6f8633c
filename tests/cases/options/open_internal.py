# run: opt --pass remove_branching_through_overcompute
# sizes: n=7
# For every size. A buffer inside whose padding the copy writes.
@T.prim_func
def func(a: T.handle, B: T.Buffer((1,), "int32"), n: T.int64):
    A = T.match_buffer(a, (n,), "int32")
    with T.block("compute"):
        B[0] = 0
        for i in T.serial(n):
            B[0] = B[0] + A[i]

# ---- schedule
sched.cache_read(block='compute', buffer='A', "local")
sched.transform_layout(block='compute', buffer='A_local', lambda i: [i//8, i%8], pad_value=0)
sched.sequential_buffer_access(block='A_local', buffer='A_local')
sched.sequential_buffer_access(block='compute', buffer='A_local')

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def func(a: T.handle, B: T.Buffer((1,), "int32"), n: T.int64):
        A = T.match_buffer(a, (n,), "int32")
        A_local = T.alloc_buffer(((n + T.int64(7)) // T.int64(8), T.int64(8)), "int32", scope="local")
        for i_0, i_1 in T.grid((n + T.int64(7)) // T.int64(8), T.int64(8)):
            with T.block("A_local"):
                v_i_0, v_i_1 = T.axis.remap("SS", [i_0, i_1])
                T.reads(A[v_i_0 * T.int64(8) + v_i_1])
                T.writes(A_local[v_i_0, v_i_1])
                A_local[v_i_0, v_i_1] = T.if_then_else(v_i_0 * T.int64(8) + v_i_1 >= n, 0, A[v_i_0 * T.int64(8) + v_i_1])
        with T.block("compute"):
            B[0] = 0
            for i_0, i_1 in T.grid((n + T.int64(7)) // T.int64(8), T.int64(8)):
                B[0] = B[0] + A_local[i_0, i_1]

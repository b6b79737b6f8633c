# run: opt --pass remove_branching_through_overcompute
# sizes: n=7
# layout: A[i] at [i // 8, i % 8]
# For every size. As for reads: the caller's padding stays what it is.
@T.prim_func
def func(a: T.handle, n: T.int64):
    A = T.match_buffer(a, (n,), "int32")
    with T.block("compute"):
        for i in T.serial(n):
            A[i] = 42

# ---- schedule
sched.transform_layout(block='compute', buffer='A', lambda i: [i//8, i%8])
sched.sequential_buffer_access(block='compute', buffer='A')

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def func(a: T.handle, n: T.int64):
        A = T.match_buffer(a, ((n + T.int64(7)) // T.int64(8), T.int64(8)), "int32")
        with T.block("compute"):
            for i_0, i_1 in T.grid((n + T.int64(7)) // T.int64(8), T.int64(8)):
                if i_0 * T.int64(8) + i_1 < n:
                    A[i_0, i_1] = 42

# run: opt --pass simplify,remove_branching_through_overcompute
# "Allocate internal buffer containing transformation padding": its zeros are known from the stage
# that writes them, and nothing has to be assumed.
@T.prim_func
def func(A: T.Buffer((14,), "int32"), B: T.Buffer((1,), "int32")):
    with T.block("compute"):
        B[0] = 0
        for i in T.serial(14):
            B[0] = B[0] + A[i]

# ---- schedule
sched.cache_read(block='compute', buffer='A', "local")
sched.transform_layout(block='compute', buffer='A_local', lambda i: [i//4, i%4], pad_value=0)
sched.sequential_buffer_access(block='A_local', buffer='A_local')
sched.sequential_buffer_access(block='compute', buffer='A_local')

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def func(A: T.Buffer((14,), "int32"), B: T.Buffer((1,), "int32")):
        A_local = T.alloc_buffer((4, 4), "int32", scope="local")
        for i_0, i_1 in T.grid(4, 4):
            with T.block("A_local"):
                v_i_0, v_i_1 = T.axis.remap("SS", [i_0, i_1])
                T.reads(A[v_i_0 * 4 + v_i_1])
                T.writes(A_local[v_i_0, v_i_1])
                A_local[v_i_0, v_i_1] = T.if_then_else(v_i_0 == 3 and v_i_1 >= 2, 0, A[v_i_0 * 4 + v_i_1])
        with T.block("compute"):
            B[0] = 0
            for i_0, i_1 in T.grid(4, 4):
                B[0] = B[0] + A_local[i_0, i_1]

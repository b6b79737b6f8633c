# run: opt --pass simplify,remove_branching_through_overcompute,remove_assume
# semantics: not compared, because one layout for the arguments of two functions cannot be given
# "Explicitly write next operator's desired default at end of function".
@I.ir_module
class Module:
    @T.prim_func
    def producer(A: T.Buffer((14,), "int32")):
        with T.block("produce"):
            for i in T.serial(14):
                A[i] = 1000 + i

    @T.prim_func
    def consumer(A: T.Buffer((14,), "int32"), B: T.Buffer((1,), "int32")):
        with T.block("consume"):
            B[0] = 0
            for i in T.serial(14):
                B[0] = B[0] + A[i]

# ---- schedule
sched.transform_layout(block='produce', buffer='A', lambda i: [i//4, i%4], pad_value=0)
sched.transform_layout(block='consume', buffer='A', lambda i: [i//4, i%4], pad_value=0)
sched.sequential_buffer_access(block='produce', buffer='A')
sched.sequential_buffer_access(block='consume', buffer='A')

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def producer(A: T.Buffer((4, 4), "int32")):
        with T.block("produce"):
            for i_0, i_1 in T.grid(4, 4):
                A[i_0, i_1] = T.if_then_else(i_0 == 3 and i_1 >= 2, 0, 1000 + (i_0 * 4 + i_1))

    @T.prim_func
    def consumer(A: T.Buffer((4, 4), "int32"), B: T.Buffer((1,), "int32")):
        with T.block("consume"):
            B[0] = 0
            for i_0, i_1 in T.grid(4, 4):
                B[0] = B[0] + A[i_0, i_1]

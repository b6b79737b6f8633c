# run: opt
# layout: A[i] at [i // 4, i % 4], padding -1
# layout: B[i] at [i // 4, i % 4], padding -2
@T.prim_func
def func(A: T.Buffer[14, "float32"], B: T.Buffer[14, "float32"]):
    for i in T.serial(14):
        with T.block("compute"):
            B[i] = 2 * A[i]

# ---- schedule
sched.transform_layout(block='compute', buffer='A', lambda i: [i//4, i%4], pad_value=-1)
sched.transform_layout(block='compute', buffer='B', lambda i: [i//4, i%4], pad_value=-2)

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def func(A: T.Buffer((4, 4), "float32"), B: T.Buffer((4, 4), "float32")):
        for i_0, i_1 in T.grid(4, 4):
            with T.block("buffer_A_assumption"):
                v_i_0, v_i_1 = T.axis.remap("SS", [i_0, i_1])
                T.assume(not (v_i_0 == 3 and v_i_1 >= 2) or A[v_i_0, v_i_1] == T.float32(-1.0))
        for i_0, i_1 in T.grid(4, 4):
            with T.block("compute"):
                B[i_0, i_1] = T.if_then_else(i_0 == 3 and i_1 >= 2, T.float32(-2.0), T.float32(2.0) * A[i_0, i_1])

# run: opt
# layout: A[i] at [i // 4, i % 4], padding 0
# "Explicitly write next operator's desired default at end of function", the consumer.
@T.prim_func
def main(A: T.Buffer((14,), "int32"), B: T.Buffer((1,), "int32")):
    with T.block("compute"):
        B[0] = 0
        for i in T.serial(14):
            B[0] = B[0] + A[i]

# ---- schedule
sched.transform_layout(block='compute', buffer='A', lambda i: [i//4, i%4], pad_value=0)
sched.sequential_buffer_access(block='compute', buffer='A')

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((4, 4), "int32"), B: T.Buffer((1,), "int32")):
        for i_0, i_1 in T.grid(4, 4):
            with T.block("buffer_A_assumption"):
                v_i_0, v_i_1 = T.axis.remap("SS", [i_0, i_1])
                T.assume(not (v_i_0 == 3 and v_i_1 >= 2) or A[v_i_0, v_i_1] == 0)
        with T.block("compute"):
            B[0] = 0
            for i_0, i_1 in T.grid(4, 4):
                if i_0 * 4 + i_1 < 14:
                    B[0] = B[0] + A[i_0, i_1]

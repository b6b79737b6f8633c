# run: opt
# layout: A[i] at [i // 4, i % 4], padding 0
# "Explicitly write next operator's desired default at end of function", the producer.
@T.prim_func
def main(A: T.Buffer((14,), "int32")):
    with T.block("compute"):
        for i in T.serial(14):
            A[i] = 1000 + i

# ---- schedule
sched.transform_layout(block='compute', buffer='A', lambda i: [i//4, i%4], pad_value=0)

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((4, 4), "int32")):
        with T.block("compute"):
            for i_0, i_1 in T.grid(4, 4):
                A[i_0, i_1] = T.if_then_else(i_0 == 3 and i_1 >= 2, 0, 1000 + (i_0 * 4 + i_1))

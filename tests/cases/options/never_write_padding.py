# run: opt --pass simplify
# layout: A[i] at [i // 4, i % 4]
# "Never write to transformation padding": nobody said what it holds.
@T.prim_func
def func(A: T.Buffer((14,), "int32")):
    with T.block("compute"):
        for i in T.serial(14):
            A[i] = 42

# ---- schedule
sched.transform_layout(block='compute', buffer='A', lambda i: [i//4, i%4])
sched.sequential_buffer_access(block='compute', buffer='A')

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def func(A: T.Buffer((4, 4), "int32")):
        with T.block("compute"):
            for i_0, i_1 in T.grid(4, 4):
                if i_0 < 3 or i_1 < 2:
                    A[i_0, i_1] = 42

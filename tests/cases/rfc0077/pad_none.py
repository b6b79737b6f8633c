# run: opt
# layout: A[i] at [i // 4, i % 4]
# layout: B[i] at [i // 4, i % 4]
@T.prim_func
def main(A: T.Buffer((14,), "int32"), B: T.Buffer((14,), "int32")):
    for i in range(14):
        with T.block("compute"):
            B[i] = 2 * A[i]

# ---- schedule
sched.transform_layout(block='compute', buffer='A', lambda i: [i // 4, i % 4], pad_value=None)
sched.transform_layout(block='compute', buffer='B', lambda i: [i // 4, i % 4], pad_value=lambda io, ii: None)

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((4, 4), "int32"), B: T.Buffer((4, 4), "int32")):
        for i in range(14):
            with T.block("compute"):
                B[i // 4, i % 4] = 2 * A[i // 4, i % 4]

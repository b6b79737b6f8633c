# run: opt
# The condition depends on `n` alone, and leaves the loop.
@T.prim_func
def main(A: T.Buffer((8,), "float32"), n: T.int32):
    with T.block("root"):
        for i in range(8):
            if n < 4:
                A[i] = A[i] + 1.0

# ---- schedule
sch.hoist_expression("root")

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((8,), "float32"), n: T.int32):
        with T.block("root"):
            if n < 4:
                for i in range(8):
                    A[i] = A[i] + T.float32(1.0)

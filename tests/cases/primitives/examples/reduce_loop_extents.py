# run: opt
# Only the iterations that do something are left.
@T.prim_func
def main(A: T.Buffer((16,), "float32")):
    with T.block("A"):
        for i in range(16):
            if i >= 3 and i < 9:
                A[i] = 1.0

# ---- schedule
sch.reduce_loop_extents("A")

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((16,), "float32")):
        with T.block("A"):
            for i in range(3, 9):
                A[i] = T.float32(1.0)

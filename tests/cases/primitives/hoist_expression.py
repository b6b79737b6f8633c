# run: opt
# Inside of one block only.
@T.prim_func
def main(A: T.Buffer((4, 4), "float32"), B: T.Buffer((4, 4), "float32")):
    with T.block("first"):
        for i, j in T.grid(4, 4):
            if i == 0 and j < 2:
                A[i, j] = 0.0
    with T.block("second"):
        for i, j in T.grid(4, 4):
            if i == 0 and j < 2:
                B[i, j] = 0.0

# ---- schedule
b0 = sch.get_block(name="second")
sch.hoist_expression(b0)
sch.reduce_loop_extents(b0)

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((4, 4), "float32"), B: T.Buffer((4, 4), "float32")):
        with T.block("first"):
            for i, j in T.grid(4, 4):
                if i == 0 and j < 2:
                    A[i, j] = T.float32(0.0)
        with T.block("second"):
            i: T.int32 = T.int32(0)
            for j in range(2):
                B[i, j] = T.float32(0.0)

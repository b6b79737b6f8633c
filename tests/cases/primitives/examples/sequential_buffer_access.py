# run: opt
# The loops follow the axes of `B`, which lies in tiles.
@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((2, 4), "float32")):
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi // 4, vi % 4] = A[vi] + 1.0

# ---- schedule
sch.sequential_buffer_access("B", "B")

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((8,), "float32"), B: T.Buffer((2, 4), "float32")):
        for i_0, i_1 in T.grid(2, 4):
            with T.block("B"):
                vi = T.axis.spatial(8, i_0 * 4 + i_1)
                B[vi // 4, vi % 4] = A[vi] + T.float32(1.0)

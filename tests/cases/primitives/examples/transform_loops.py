# run: opt
# The loops run over the physical box of a map: tiles of 2 x 4.
@T.prim_func
def main(A: T.Buffer((6, 8), "float32"), B: T.Buffer((6, 8), "float32")):
    for i, j in T.grid(6, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + 1.0

# ---- schedule
i, j = sch.get_loops("B")
sch.transform_loops([i, j], lambda i, j: [i // 2, j // 4, i % 2, j % 4])

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((6, 8), "float32"), B: T.Buffer((6, 8), "float32")):
        for i_0, j_0, i_1, j_1 in T.grid(3, 2, 2, 4):
            with T.block("B"):
                vi = T.axis.spatial(6, i_0 * 2 + i_1)
                vj = T.axis.spatial(8, j_0 * 4 + j_1)
                B[vi, vj] = A[vi, vj] + T.float32(1.0)

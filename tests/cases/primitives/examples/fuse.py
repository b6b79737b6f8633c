# run: opt
# Two loops become one, which counts through both.
@T.prim_func
def main(A: T.Buffer((6, 8), "float32"), B: T.Buffer((6, 8), "float32")):
    for i, j in T.grid(6, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + 1.0

# ---- schedule
i, j = sch.get_loops("B")
sch.fuse(i, j)

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((6, 8), "float32"), B: T.Buffer((6, 8), "float32")):
        for i_j_fused in range(48):
            with T.block("B"):
                vi = T.axis.spatial(6, i_j_fused // 8)
                vj = T.axis.spatial(8, i_j_fused % 8)
                B[vi, vj] = A[vi, vj] + T.float32(1.0)

# run: opt
# The producer writes rows of a blocked layout, and the consumer reads them by the logical index.
@T.prim_func
def main(A: T.Buffer((32, 6), "float32"), C: T.Buffer((32, 6), "float32")):
    B = T.alloc_buffer((4, 6, 8))
    for o, j, i in T.grid(4, 6, 8):
        with T.block("B"):
            vo, vj, vi = T.axis.remap("SSS", [o, j, i])
            B[vo, vj, vi] = A[vo * 8 + vi, vj] * 2.0
    for i, j in T.grid(32, 6):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi // 8, vj, vi % 8] + 1.0

# ---- schedule
sch.reverse_compute_at("C", "o")

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((32, 6), "float32"), C: T.Buffer((32, 6), "float32")):
        B = T.alloc_buffer((4, 6, 8), "float32")
        for o in range(4):
            for j, i in T.grid(6, 8):
                with T.block("B"):
                    vo, vj, vi = T.axis.remap("SSS", [o, j, i])
                    B[vo, vj, vi] = A[vo * 8 + vi, vj] * T.float32(2.0)
            for ax0, ax1 in T.grid(8, 6):
                with T.block("C"):
                    vi = T.axis.spatial(32, o * 8 + ax0)
                    vj = T.axis.spatial(6, ax1)
                    C[vi, vj] = B[vi // 8, vj, vi % 8] + T.float32(1.0)

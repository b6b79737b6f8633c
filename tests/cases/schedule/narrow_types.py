# run: opt --pass schedule_stages
# Loops of other types than int32: the variables keep theirs, and sums that may wrap stay as they are.
@T.prim_func
def main(A: T.Buffer((6, 100), "float32"), B: T.Buffer((6, 100), "float32"), C: T.Buffer((6, 100), "int64")):
    for i, j in T.grid(T.uint8(6), T.uint8(100)):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi // T.uint8(2), (vj + T.uint8(200)) % T.uint8(100)]
    for i, j in T.grid(T.int64(6), T.int64(100)):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = vi * T.int64(100) + vj

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((6, 100), "float32"), B: T.Buffer((6, 100), "float32"), C: T.Buffer((6, 100), "int64")):
        for i_0, i_1, j in T.grid(T.uint8(3), T.uint8(2), T.uint8(100)):
            with T.block("B"):
                vi = T.axis.spatial(T.uint8(6), i_0 * T.uint8(2) + i_1)
                vj = T.axis.spatial(T.uint8(100), j)
                B[vi, vj] = A[vi // T.uint8(2), (vj + T.uint8(200)) % T.uint8(100)]
        for i, j in T.grid(T.int64(6), T.int64(100)):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = vi * T.int64(100) + vj

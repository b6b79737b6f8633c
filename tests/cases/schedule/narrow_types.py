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
        A_1 = T.decl_buffer((600,), "float32", data=A.data)
        B_1 = T.decl_buffer((600,), "float32", data=B.data)
        C_1 = T.decl_buffer((600,), "int64", data=C.data)
        for vi, vj in T.grid(6, 100):
            B_1[vi * 100 + vj] = A_1[T.Cast("int32", (T.Cast("uint8", vj) + T.uint8(200)) % T.uint8(100)) + T.Cast("int32", T.Cast("uint8", vi) // T.uint8(2)) * 100]
        for vi, vj in T.grid(6, 100):
            C_1[vi * 100 + vj] = T.Cast("int64", vi) * T.int64(100) + T.Cast("int64", vj)

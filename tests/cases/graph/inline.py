# run: opt --pass inline
@T.prim_func
def f(A: T.Buffer((6, 4), "float32"), B: T.Buffer((4, 6), "float32")):
    C = T.alloc_buffer((6, 4), "float32")
    D = T.alloc_buffer((4, 6), "float32")
    for i, j in T.grid(6, 4):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[vi, vj] + 1.0
    for i, j in T.grid(4, 6):
        with T.block("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = C[vj, vi]
    for i, j in T.grid(4, 6):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = D[vi, vj] * 2.0

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((6, 4), "float32"), B: T.Buffer((4, 6), "float32")):
        for i, j in T.grid(4, 6):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = (A[vj, vi] + T.float32(1.0)) * T.float32(2.0)

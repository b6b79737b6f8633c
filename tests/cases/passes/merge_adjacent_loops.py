# run: opt --pass merge_adjacent_loops
# Elementwise; a read of what an earlier iteration wrote; nests; across what touches other cells.
@T.prim_func
def f(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32"), C: T.Buffer((4, 4), "float32"), D: T.Buffer((4, 8), "float32")):
    for i in range(16):
        A[i] = 0.0
    for i in range(16):
        A[i] = 1.0
    for i in range(16):
        B[i] = 0.0
    for i in range(16):
        if i > 0:
            B[i] = B[i - 1] + 1.0
    for i, j in T.grid(4, 4):
        C[i, j] = 0.0
    for i, j in T.grid(4, 4):
        C[i, j] = C[i, j] + 1.0
    for i in range(4):
        for j in range(4):
            D[i, j] = 0.0
    for j in range(3):
        D[0, j + 5] = 1.0
    for i in range(4):
        D[i, 4] = D[i, 3]

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32"), C: T.Buffer((4, 4), "float32"), D: T.Buffer((4, 8), "float32")):
        for i in range(16):
            A[i] = T.float32(0.0)
            A[i] = T.float32(1.0)
            B[i] = T.float32(0.0)
            if i > 0:
                B[i] = B[i - 1] + T.float32(1.0)
        for i in range(4):
            for j in range(4):
                C[i, j] = T.float32(0.0)
                C[i, j] = C[i, j] + T.float32(1.0)
                D[i, j] = T.float32(0.0)
            D[i, 4] = D[i, 3]
        for j in range(3):
            D[0, j + 5] = T.float32(1.0)

# run: opt --pass reduce_loop_extents
# Bounds from guards, also where conditions and loops mix; one iteration becomes a binding.
@T.prim_func
def f(A: T.Buffer((4, 4), "float32"), B: T.Buffer((4, 4), "float32"), C: T.Buffer((4, 4), "float32"), D: T.Buffer((16,), "float32"), n: T.int32):
    for i, j in T.grid(4, 4):
        if i == 0 and j < 2:
            A[i, j] = 0.0
    for io, ii in T.grid(4, 4):
        if 4 * io + ii >= 14:
            B[io, ii] = 0.0
    for io in T.parallel(4):
        for ii in range(4):
            if 5 <= 4 * io + ii and 4 * io + ii < 11:
                C[io, ii] = 0.0
    for i in range(16):
        if i < 5:
            D[i] = 1.0
        if 3 <= i and i < n and i < 9:
            D[i] = 2.0
    for i in range(16):
        if i > 20:
            D[i] = 0.0

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((4, 4), "float32"), B: T.Buffer((4, 4), "float32"), C: T.Buffer((4, 4), "float32"), D: T.Buffer((16,), "float32"), n: T.int32):
        with T.LetStmt(T.int32(0)) as i:
            for j in range(2):
                A[i, j] = T.float32(0.0)
        with T.LetStmt(T.int32(3)) as io:
            for ii in range(2, 4):
                B[io, ii] = T.float32(0.0)
        for io in T.parallel(1, 3):
            for ii in range(T.max(5 - io * 4, 0), T.max(5 - io * 4, 0) + 3):
                C[io, ii] = T.float32(0.0)
        for i in range(T.Select(n < 6, 5, T.Select(n >= 9, 9, n))):
            if i < 5:
                D[i] = T.float32(1.0)
            if 3 <= i and i < n:
                D[i] = T.float32(2.0)

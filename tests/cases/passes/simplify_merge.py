# run: opt --pass simplify
# Branches that ask the same become one, those that ask the opposite too, however they put it.
@T.prim_func
def f(A: T.Buffer((4, 4), "int32"), B: T.Buffer((4, 4), "int32"), C: T.Buffer((16,), "int32")):
    for i, j in T.grid(4, 4):
        if 4 * i + j < 14:
            A[i, j] = 1
        if i == 3 and j >= 2:
            B[i, j] = 2
        else:
            B[i, j] = 3
    for i in range(16):
        if i < 8:
            C[i] = 1
        if i // 8 == 0:
            C[i + 8] = 2
        if i >= 8:
            C[i - 8] = 3

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((4, 4), "int32"), B: T.Buffer((4, 4), "int32"), C: T.Buffer((16,), "int32")):
        for i, j in T.grid(4, 4):
            if i < 3 or j < 2:
                A[i, j] = 1
                B[i, j] = 3
            else:
                B[i, j] = 2
        for i in range(16):
            if i < 8:
                C[i] = 1
                C[i + 8] = 2
            else:
                C[i - 8] = 3

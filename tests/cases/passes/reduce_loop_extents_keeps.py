# run: opt --pass reduce_loop_extents
# Guards that read memory, statements without a guard, vectorised loops and holes give no range.
@T.prim_func
def f(A: T.Buffer((16,), "int32"), B: T.Buffer((5, 16), "int32")):
    for i in range(16):
        if A[i] > 0:
            B[0, i] = 1
    for i in range(16):
        B[1, i] = 0
        if i < 3:
            B[1, i] = 1
    for i in T.vectorized(16):
        if i < 8:
            B[2, i] = 1
    for i in range(16):
        if i % 8 < 4:
            B[3, i] = 1
    for i in range(16):
        if A[0] > 0 and i < 4:
            A[0] = A[0] - 1
            if A[0] <= 0:
                B[4, i] = 1

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((16,), "int32"), B: T.Buffer((5, 16), "int32")):
        for i in range(16):
            if A[i] > 0:
                B[0, i] = 1
        for i in range(16):
            B[1, i] = 0
            if i < 3:
                B[1, i] = 1
        for i in T.vectorized(16):
            if i < 8:
                B[2, i] = 1
        for i in range(12):
            if i % 8 < 4:
                B[3, i] = 1
        for i in range(4):
            if A[0] > 0:
                A[0] = A[0] - 1
                if A[0] <= 0:
                    B[4, i] = 1

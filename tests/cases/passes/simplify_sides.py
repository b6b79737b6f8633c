# run: opt --pass simplify
# Sides that do the same, or have the same value, become one, also where only the place makes them
# the same.
@T.prim_func
def f(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32"), n: T.int32):
    for i in range(16):
        if i < n:
            B[i] = A[i % 8 + i // 8 * 8] + 1.0
        else:
            B[i] = A[i] + 1.0
        if i < 8:
            for j in range(2):
                B[i // 8 + j] = A[j]
        else:
            for k in range(2):
                B[k + 1] = A[k]
        if i < 4:
            B[i] = A[i]
        else:
            B[i] = A[i % 8]
        B[i] = T.if_then_else(i < 4, A[i], A[i % 8])
        B[i] = T.Select(A[i] < 1.0, A[i // 16] + 1.0, A[0] + 1.0)
        B[i] = T.if_then_else(A[i] < 1.0, A[i], A[i] + 1.0)

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32"), n: T.int32):
        for i in range(16):
            B[i] = A[i] + T.float32(1.0)
            for j in range(2):
                B[i // 8 + j] = A[j]
            B[i] = A[i % 8]
            B[i] = A[i % 8]
            B[i] = A[0] + T.float32(1.0)
            B[i] = T.if_then_else(A[i] < T.float32(1.0), A[i], A[i] + T.float32(1.0))

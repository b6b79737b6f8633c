# run: opt --pass simplify
# What memory is known to hold decides conditions and stands in the place of loads: from stores,
# from guards, and from a loop's earlier iterations being elsewhere.
@T.prim_func
def f(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32"), C: T.Buffer((16,), "float32")):
    for i in range(16):
        B[i] = i * 2
        C[i] = 0.0
    for i in range(8):
        if B[i + 8] >= 16:
            A[i] = B[i]
        if A[i + 8] == 7:
            A[i] = A[i + 8] + A[i]
        C[i] = C[i] + T.float32(1) * C[i + 8]
    for i in range(8):
        A[i] = B[i]
        B[15 - i] = 0
        if B[i] == 0:
            C[i] = C[i + 8]

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32"), C: T.Buffer((16,), "float32")):
        for i in range(16):
            B[i] = i * 2
            C[i] = T.float32(0.0)
        for i in range(8):
            A[i] = i * 2
            if A[i + 8] == 7:
                A[i] = 7 + i * 2
            C[i] = T.float32(0.0)
        for i in range(8):
            A[i] = i * 2
            B[15 - i] = 0
            if i == 0:
                C[i] = T.float32(0.0)

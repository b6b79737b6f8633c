# run: opt --pass compact_buffer
# A tail that no size has: `8 * n` is a multiple of 8. Its buffer keeps no open extent.


@T.prim_func
def f(a: T.handle, b: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (8 * n,), "float32")
    B = T.match_buffer(b, (8 * n,), "float32")
    L = T.decl_buffer((8 * n,), "float32", scope="local")
    for i in range(n):
        for j in range(8):
            L[i * 8 + j] = A[i * 8 + j]
        for j in range(8):
            B[i * 8 + j] = L[i * 8 + j]
    for i, j in T.grid(1, 8):
        if j < 8 * n % 8:
            L[8 * n // 8 * 8 + j] = A[j]
        if j < 8 * n % 8:
            B[j] = L[8 * n // 8 * 8 + j]

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(a: T.handle, b: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (8 * n,), "float32")
        B = T.match_buffer(b, (8 * n,), "float32")
        for i in range(n):
            L = T.decl_buffer((8,), "float32", scope="local")
            for j in range(8):
                L[j] = A[i * 8 + j]
            for j in range(8):
                B[i * 8 + j] = L[j]
        for i, j in T.grid(1, 8):
            if j < 8 * n % 8:
                L = T.decl_buffer((1,), "float32", scope="local")
                L[0] = A[j]
            if j < 8 * n % 8:
                L = T.decl_buffer((1,), "float32", scope="local")
                B[j] = L[0]

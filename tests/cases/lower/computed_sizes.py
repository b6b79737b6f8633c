# run: opt --pass lower
# sizes: h=17, w=26, n=32
# Sizes that are computed of others are sizes of their own for proofs: where nothing else is said of `h`, `w` and
# `n`, tiles of `h // 8 * (w // 8) + 1` rows and of `(n + 1) // 2` columns are in range, and need no checks.


@T.prim_func
def f(a: T.handle, b: T.handle, h: T.int32, w: T.int32, n: T.int32):
    A = T.match_buffer(a, (h // 8 * (w // 8) + 1, (n + 1) // 2), "float32")
    B = T.match_buffer(b, (h // 8 * (w // 8) + 1, (n + 1) // 2), "float32")
    for i0 in range((h // 8 * (w // 8) + 1) // 4):
        for j0 in range((n + 1) // 16):
            for i1, j1 in T.grid(4, 8):
                B[i0 * 4 + i1, j0 * 8 + j1] = A[i0 * 4 + i1, j0 * 8 + j1]
    for i in range((h // 8 * (w // 8) + 1) % 4):
        for j in range((n + 1) // 2):
            B[(h // 8 * (w // 8) + 1) // 4 * 4 + i, j] = A[(h // 8 * (w // 8) + 1) // 4 * 4 + i, j]

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(a: T.handle, b: T.handle, h: T.int32, w: T.int32, n: T.int32):
        A = T.match_buffer(a, (h // 8 * (w // 8) + 1, (n + 1) // 2), "float32")
        B = T.match_buffer(b, (h // 8 * (w // 8) + 1, (n + 1) // 2), "float32")
        size: T.int32 = (h // 8 * (w // 8) + 1) // 4
        size_1: T.int32 = (n + 1) // 2 // 8
        size_2: T.int64 = T.Cast("int64", (n + 1) // 2)
        size_3: T.int32 = (h // 8 * (w // 8) + 1) % 4
        size_4: T.int32 = (n + 1) // 2
        size_5: T.int32 = (h // 8 * (w // 8) + 1) // 4 * 4
        A_1 = T.decl_buffer(((h // 8 * (w // 8) + 1) * ((n + 1) // 2),), "float32", data=A.data)
        B_1 = T.decl_buffer(((h // 8 * (w // 8) + 1) * ((n + 1) // 2),), "float32", data=B.data)
        for i0, j0, i1, j1 in T.grid(size, size_1, 4, 8):
            B_1[T.Cast("int64", i0 * 4 + i1) * size_2 + T.Cast("int64", j0 * 8 + j1)] = A_1[T.Cast("int64", i0 * 4 + i1) * size_2 + T.Cast("int64", j0 * 8 + j1)]
        for i, j in T.grid(size_3, size_4):
            B_1[T.Cast("int64", size_5 + i) * size_2 + T.Cast("int64", j)] = A_1[T.Cast("int64", size_5 + i) * size_2 + T.Cast("int64", j)]

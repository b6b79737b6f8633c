# run: opt --pass lower
# sizes: n=9, m=16, k=3
# An extent is no more than a tensor can have, also where it is a sum: of half as much again as a size, as an image
# that is resized, or of what was and what is new, as a cache that grows. Tiles of it need no checks. Of `m * (m + 7)`
# in a loop nothing says so; an index that runs up to it still stays below it.


@T.prim_func
def f(a: T.handle, b: T.handle, c: T.handle):
    n, m, k = T.int32(), T.int32(), T.int32()
    A = T.match_buffer(a, (n + n // 2,), "float32")
    B = T.match_buffer(b, (4, m + k), "float32")
    C = T.match_buffer(c, (m * (m + 7),), "float32")
    for i0 in range((n + n // 2 + 7) // 8):
        for i1 in range(8):
            if i0 * 8 + i1 < n + n // 2:
                A[i0 * 8 + i1] = T.float32(1.0)
    for i, j0 in T.grid(4, (m + k + 7) // 8):
        for j1 in range(8):
            if j0 * 8 + j1 < m + k:
                B[i, j0 * 8 + j1] = T.float32(1.0)
    for i in range(m * (m + 7)):
        C[i] = T.float32(1.0)

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(a: T.handle, b: T.handle, c: T.handle):
        n = T.int32()
        m = T.int32()
        k = T.int32()
        A = T.match_buffer(a, (n + n // 2,), "float32")
        B = T.match_buffer(b, (4, m + k), "float32")
        C = T.match_buffer(c, (m * (m + 7),), "float32")
        size: T.int32 = (n + n // 2) // 8
        size_1: T.int32 = (n + n // 2 + 7) // 8 - (n + n // 2) // 8
        size_2: T.int32 = (n + n // 2) % 8
        size_3: T.int32 = T.int32(0) * 8 + (n + n // 2) // 8 * 8
        size_4: T.int32 = (m + k) // 8
        size_5: T.int64 = T.Cast("int64", m + k)
        size_6: T.int32 = (m + k + 7) // 8 - (m + k) // 8
        size_7: T.int32 = (m + k) % 8
        size_8: T.int32 = T.int32(0) * 8 + (m + k) // 8 * 8
        size_9: T.int32 = m * (m + 7)
        B_1 = T.decl_buffer(((m + k) * 4,), "float32", data=B.data)
        for i0, i1 in T.grid(size, 8):
            A[i0 * 8 + i1] = T.float32(1.0)
        if size_1 > 0:
            for i1 in range(size_2):
                A[size_3 + i1] = T.float32(1.0)
        for i in range(4):
            for j0, j1 in T.grid(size_4, 8):
                B_1[T.Cast("int64", i) * size_5 + T.Cast("int64", j0 * 8 + j1)] = T.float32(1.0)
            if size_6 > 0:
                for j1 in range(size_7):
                    B_1[T.Cast("int64", i) * size_5 + T.Cast("int64", size_8 + j1)] = T.float32(1.0)
        for i in range(size_9):
            C[i] = T.float32(1.0)

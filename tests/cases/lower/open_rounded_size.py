# run: opt --pass lower
# sizes: n=13
# An extent that is a size rounded up says how large that size is at most, so that no sum with it wraps, and of a number
# that the function is given, what it was rounded from.


@T.prim_func
def first(b: T.handle, n: T.int64):
    B = T.match_buffer(b, ((n + T.int64(11)) // T.int64(8), T.int64(8)), "float32")
    if n >= T.int64(1):
        B[(n + T.int64(10)) // T.int64(8) - T.int64(1), 0] = T.float32(0)


@T.prim_func
def total(a: T.handle, B: T.Buffer((1,), "int32"), n: T.int64):
    A = T.match_buffer(a, ((n + T.int64(7)) // T.int64(8), T.int64(8)), "int32")
    B[0] = 0
    for i, j in T.grid((n + T.int64(7)) // T.int64(8), T.int64(8)):
        if i * T.int64(8) + j < n:
            B[0] = B[0] + A[i, j]

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def first(b: T.handle, n: T.int64):
        B = T.match_buffer(b, ((n + T.int64(11)) // T.int64(8), T.int64(8)), "float32")
        size: T.int64 = (n + T.int64(10)) // T.int64(8) * T.int64(8) - T.int64(8)
        B_1 = T.decl_buffer(((n + T.int64(11)) // T.int64(8) * T.int64(8),), "float32", data=B.data)
        if n >= T.int64(1):
            B_1[size] = T.float32(0.0)

    @T.prim_func
    def total(a: T.handle, B: T.Buffer((1,), "int32"), n: T.int64):
        A = T.match_buffer(a, ((n + T.int64(7)) // T.int64(8), T.int64(8)), "int32")
        size: T.int64 = n // T.int64(8) * T.int64(8)
        size_1: T.int64 = (n + T.int64(7)) // T.int64(8) - n // T.int64(8)
        size_2: T.int64 = n % T.int64(8)
        size_3: T.int64 = T.int64(0) * T.int64(8) + n // T.int64(8) * T.int64(8)
        A_1 = T.decl_buffer(((n + T.int64(7)) // T.int64(8) * T.int64(8),), "int32", data=A.data)
        B[0] = 0
        for i in range(size):
            B[0] = B[0] + A_1[i]
        if size_1 > T.int64(0):
            for j in range(size_2):
                B[0] = B[0] + A_1[size_3 + j]

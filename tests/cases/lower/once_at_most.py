# run: opt --pass lower
# sizes: n=5
# The cell that rounding up to an even number adds, or not, is a condition and no loop.
@T.prim_func
def even(a: T.handle, b: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n,), "float32")
    B = T.match_buffer(b, ((n + 1) // 2 * 2,), "float32")
    for i in range(n):
        B[i] = A[i]
    for i in range((n + 1) // 2 * 2 - n):
        B[n + i] = T.float32(0)


# Of three there may be two.
@T.prim_func
def thirds(a: T.handle, b: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n,), "float32")
    B = T.match_buffer(b, ((n + 2) // 3 * 3,), "float32")
    for i in range(n):
        B[i] = A[i]
    for i in range((n + 2) // 3 * 3 - n):
        B[n + i] = T.float32(0)

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def even(a: T.handle, b: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n,), "float32")
        B = T.match_buffer(b, (2 * ((n + 1) // 2),), "float32")
        size: T.int32 = (n + 1) // 2 * 2 - n
        for i in range(n):
            B[i] = A[i]
        if size > 0:
            B[n + 0] = T.float32(0.0)

    @T.prim_func
    def thirds(a: T.handle, b: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n,), "float32")
        B = T.match_buffer(b, (3 * ((n + 2) // 3),), "float32")
        size: T.int32 = (n + 2) // 3 * 3 - n
        for i in range(n):
            B[i] = A[i]
        for i in range(size):
            B[n + i] = T.float32(0.0)

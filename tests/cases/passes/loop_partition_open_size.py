# run: opt --pass loop_partition,simplify
# sizes: n=70
# The full tiles, and the rest.
@T.prim_func
def f(a: T.handle, b: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n,), "float32")
    B = T.match_buffer(b, (n,), "float32")
    for io in range((n + 31) // 32):
        for ii in range(32):
            if T.likely(io * 32 + ii < n):
                B[io * 32 + ii] = A[io * 32 + ii] + 1.0

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(a: T.handle, b: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n,), "float32")
        B = T.match_buffer(b, (n,), "float32")
        for io, ii in T.grid(n // 32, 32):
            B[io * 32 + ii] = A[io * 32 + ii] + T.float32(1.0)
        for io, ii in T.grid((n + 31) // 32 - n // 32, 32):
            if ii < n % 32:
                B[n + ii - n % 32] = A[n + ii - n % 32] + T.float32(1.0)

# run: opt --pass simplify
# Products of numbers that a function is given wrap, and those of sums are sums of products that wrap in the same way.
# That a sum is larger, or a square not negative, is not known of them.


@T.prim_func
def f(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32"), n: T.int64, m: T.int64, c: T.int64):
    for i in range(16):
        if (n + 1) * m >= c and n * m + m < c:
            B[i] = A[i]
        if (n + 2) * (m - 2) == n * m - 2 * n + 2 * m - 4:
            B[i] = A[i] * T.float32(2)
        if n * m < c:
            if m * n < c + 1:
                B[i] = A[i] * T.float32(3)
        if n * n >= 0:
            B[i] = A[i] * T.float32(4)

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32"), n: T.int64, m: T.int64, c: T.int64):
        for i in range(16):
            B[i] = A[i] * T.float32(2.0)
            if n * m < c:
                if m * n < c + T.int64(1):
                    B[i] = A[i] * T.float32(3.0)
            if n * n >= T.int64(0):
                B[i] = A[i] * T.float32(4.0)

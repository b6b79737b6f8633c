# run: opt --pass lower
# sizes: n=13
# How often the inner loop runs is computed from an index of 64 bits: the loop counts in 64 bits, too, and its accesses
# are known to be in range.
@T.prim_func
def func(a: T.handle, F: T.Buffer((5,), "float32"), b: T.handle, n: T.int64):
    A = T.match_buffer(a, (n,), "float32")
    B = T.match_buffer(b, (n,), "float32")
    for i in T.serial(n):
        B[i] = 0.0
        for k in T.serial(5):
            if k <= i:
                B[i] = B[i] + F[k] * A[i - k]

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def func(a: T.handle, F: T.Buffer((5,), "float32"), b: T.handle, n: T.int64):
        A = T.match_buffer(a, (n,), "float32")
        B = T.match_buffer(b, (n,), "float32")
        if T.int64(4) <= n:
            for i in range(T.int64(4)):
                B[i] = T.float32(0.0)
                for k in range(i + T.int64(1)):
                    B[i] = B[i] + F[k] * A[i - k]
            for i in range(n - T.int64(4)):
                B[i + T.int64(4)] = T.float32(0.0)
                for k in range(5):
                    B[i + T.int64(4)] = B[i + T.int64(4)] + F[k] * A[i + T.int64(4) - T.Cast("int64", k)]
        else:
            for i in range(n):
                B[i] = T.float32(0.0)
                for k in range(i + T.int64(1)):
                    B[i] = B[i] + F[k] * A[i - k]

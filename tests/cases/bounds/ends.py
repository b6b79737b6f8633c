# run: opt --pass lower
# sizes: n=30, m=24
# Where the index is out of range is decided at the end of each loop: there are no loops of assertions.
@T.prim_func
def f(a: T.handle, b: T.handle):
    n = T.int32()
    m = T.int32()
    A = T.match_buffer(a, (n,), "float32")
    B = T.match_buffer(b, (m,), "float32")
    for i, j, k in T.grid(m, 5, 3):
        B[i] = B[i] + A[i + j - k + 2]
    for i in range(m):
        B[i] = B[i] + A[7 - i // 4] * A[i % 3]

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(a: T.handle, b: T.handle):
        n = T.int32()
        m = T.int32()
        A = T.match_buffer(a, (n,), "float32")
        B = T.match_buffer(b, (m,), "float32")
        size: T.int32 = 8 - (m + 3) // 4
        size_1: T.int64 = T.Cast("int64", 8 - (m + 3) // 4)
        if m > 0:
            assert m + 5 < n, ("`A[{}]` is out of range: axis 0 has extent {}", T.Cast("int64", m + 5), T.Cast("int64", n))
        for i, j, k in T.grid(m, 5, 3):
            B[i] = B[i] + A[i + j + 2 - k]
        if m > 0:
            assert 7 < n, ("`A[{}]` is out of range: axis 0 has extent {}", T.int64(7), T.Cast("int64", n))
        if m > 0:
            assert size >= 0, ("`A[{}]` is out of range: axis 0 has extent {}", size_1, T.Cast("int64", n))
        for i in range(m):
            assert i % 3 < n, ("`A[{}]` is out of range: axis 0 has extent {}", T.Cast("int64", i % 3), T.Cast("int64", n))
        for i in range(m):
            B[i] = B[i] + A[7 - i // 4] * A[i % 3]

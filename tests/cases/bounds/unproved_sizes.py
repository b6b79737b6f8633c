# run: opt --pass lower
# sizes: n=7
@T.prim_func
def f(a: T.handle, B: T.Buffer((16,), "float32")):
    n = T.int32()
    A = T.match_buffer(a, (n,), "float32")
    for i in range(16):
        if i < n * 2:
            B[i] = A[i // 2]
    for i in range(5):
        B[i] = A[i]

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(a: T.handle, B: T.Buffer((16,), "float32")):
        n = T.int32()
        A = T.match_buffer(a, (n,), "float32")
        size: T.int32 = T.min(n * 2, 16)
        size_1: T.int32 = (T.min(n * 2, 16) - 1) // 2
        size_2: T.int64 = T.Cast("int64", (T.min(n * 2, 16) - 1) // 2)
        if size > 0:
            assert size_1 < n, ("`A[{}]` is out of range: axis 0 has extent {}", size_2, T.Cast("int64", n))
        for i in range(size):
            B[i] = A[i // 2]
        assert 4 < n, ("`A[{}]` is out of range: axis 0 has extent {}", T.int64(4), T.Cast("int64", n))
        for i in range(5):
            B[i] = A[i]

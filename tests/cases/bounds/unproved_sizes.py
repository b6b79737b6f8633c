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
        for i in range(size):
            assert i // 2 < n, ("`A[{}]` is out of range: axis 0 has extent {}", T.Cast("int64", i // 2), T.Cast("int64", n))
        for i in range(size):
            B[i] = A[i // 2]
        for i in range(5):
            assert i < n, ("`A[{}]` is out of range: axis 0 has extent {}", T.Cast("int64", i), T.Cast("int64", n))
        for i in range(5):
            B[i] = A[i]

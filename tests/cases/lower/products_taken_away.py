# run: opt --pass lower
# sizes: n=5, h=2
# Of 4 * p rows, tiles of six leave over twice as many as -p % 3 says, for a product p of open sizes: nothing is
# asserted.
@T.prim_func
def f(n: T.int32, h: T.int32, a: T.Buffer((n * h * 4,), "float32")):
    for t in range(n * h * 2 // 3):
        for r in range(6):
            a[t * 6 + r] = T.float32(1)
    for t in range(n * -1 * h % 3):
        for r in range(2):
            a[n * h * 2 // 3 * 6 + t * 2 + r] = T.float32(2)

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(n: T.int32, h: T.int32, a_handle: T.handle):
        a = T.match_buffer(a_handle, (4 * (n * h),), "float32")
        size: T.int32 = n * h * 2 // 3
        size_1: T.int32 = (0 - n * h) % 3
        size_2: T.int32 = n * h * 2 // 3 * 6
        for t, r in T.grid(size, 6):
            a[t * 6 + r] = T.float32(1.0)
        for t, r in T.grid(size_1, 2):
            a[size_2 + t * 2 + r] = T.float32(2.0)

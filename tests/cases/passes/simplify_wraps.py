# run: opt --pass simplify
# Elements of buffers, and a scalar that is no size, are data, and sums of them wrap: what holds for
# integers without bounds is decided only where a range is known. Loops and sizes stay in their type.
@T.prim_func
def main(a: T.handle, B: T.Buffer((8,), "int32"), x: T.int32, m: T.int32):
    n = T.int32()
    A = T.match_buffer(a, (n, 8), "int32")
    for i in range(8):
        if B[i] + 1 > B[i]:
            A[0, i] = 1
        if x + 1 > x:
            A[0, i] = 2
        if B[i] < 100:
            if B[i] + 1 > B[i]:
                A[0, i] = 3
        y: T.int32 = B[i] * 2
        if y // 2 == B[i]:
            A[0, i] = 4
        if i + m < x + m:
            A[0, i] = 5
    for i, j in T.grid(n, m):
        if i + 1 <= n and j * 4 < m * 4:
            A[i, j % 8] = 6

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(a: T.handle, B: T.Buffer((8,), "int32"), x: T.int32, m: T.int32):
        n = T.int32()
        A = T.match_buffer(a, (n, 8), "int32")
        for i in range(8):
            if B[i] < 2147483647:
                A[0, i] = 1
            if x < 2147483647:
                A[0, i] = 2
            if B[i] < 100:
                A[0, i] = 3
            y: T.int32 = B[i] * 2
            if y // 2 == B[i]:
                A[0, i] = 4
            if i + m < x + m:
                A[0, i] = 5
        for i, j in T.grid(n, m):
            A[i, j % 8] = 6

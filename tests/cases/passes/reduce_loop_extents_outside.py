# run: opt --pass reduce_loop_extents
# The bounds of a guard may be outside of the loop.


@T.prim_func
def f(A: T.Buffer((16,), "int32"), n: T.int32, m: T.int32):
    for i in range(16):
        if i == n:
            A[i] = 1
    for i in T.parallel(2, 14):
        if n <= i and i < m:
            A[i] = 2
    for i in range(16):
        if i < 5 or i < n:
            A[i] = 3

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((16,), "int32"), n: T.int32, m: T.int32):
        for i in range(T.max(n, 0), T.min(n, 15) + 1):
            A[i] = 1
        for i in T.parallel(2, 14):
            if n <= i and i < m:
                A[i] = 2
        for i in range(T.Select(n < 6, 5, T.Select(n >= 16, 16, n))):
            A[i] = 3

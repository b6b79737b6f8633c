# run: opt --pass merge_adjacent_loops,reduce_loop_extents
# What is assumed of sizes holds for what comes after it: the loops have one range, and the guard
# holds for all of it.


@T.prim_func
def f(A: T.Buffer((64,), "int32"), B: T.Buffer((64,), "int32"), n: T.int32, m: T.int32):
    T.assume(n == m and 0 <= n and n <= 20)
    for i in range(n):
        A[i] = 1
    for j in range(m):
        B[j] = A[j]
    for k in range(32):
        if k < m:
            A[k + 32] = 2

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((64,), "int32"), B: T.Buffer((64,), "int32"), n: T.int32, m: T.int32):
        T.assume(n == m and 0 <= n and n <= 20)
        for i in range(n):
            A[i] = 1
            B[i] = A[i]
        for k in range(n):
            A[k + 32] = 2

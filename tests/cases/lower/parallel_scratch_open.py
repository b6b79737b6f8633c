# run: opt --pass lower
# An allocation of open size inside of a parallel loop gets a copy for each iteration, too.


@T.prim_func
def f(a: T.handle, b: T.handle, n: T.int32, m: T.int32):
    A = T.match_buffer(a, (m, n), "float32")
    B = T.match_buffer(b, (m, n), "float32")
    for i in T.parallel(m):
        with T.block("row"):
            vi = T.axis.spatial(m, i)
            C = T.alloc_buffer((n,), "float32")
            for j in range(n):
                with T.block("C"):
                    vj = T.axis.spatial(n, j)
                    C[vj] = A[vi, vj] * 2.0
            for j in range(n):
                with T.block("B"):
                    vj = T.axis.spatial(n, j)
                    B[vi, vj] = C[n - 1 - vj]

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(a: T.handle, b: T.handle, n: T.int32, m: T.int32, C_handle: T.handle):
        A = T.match_buffer(a, (m, n), "float32")
        B = T.match_buffer(b, (m, n), "float32")
        C = T.match_buffer(C_handle, (n * m,), "float32")
        T.func_attr({"tilewright.workspace": 1})
        A_1 = T.decl_buffer((m * n,), "float32", data=A.data)
        B_1 = T.decl_buffer((m * n,), "float32", data=B.data)
        for i in T.parallel(m):
            for j in range(n):
                C[i * n + j] = A_1[T.Cast("int64", i) * T.Cast("int64", n) + T.Cast("int64", j)] * T.float32(2.0)
            for j in range(n):
                B_1[T.Cast("int64", i) * T.Cast("int64", n) + T.Cast("int64", j)] = C[i * n + (n - j - 1)]

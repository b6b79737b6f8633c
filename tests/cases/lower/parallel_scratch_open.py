# run: opt --pass lower
# sizes: n=5, m=7
# An allocation of open size inside of a parallel loop gets a copy for each iteration, too, or for runs of these
# where there are many.


@T.prim_func
def f(a: T.handle, b: T.handle):
    n = T.int32()
    m = T.int32()
    A = T.match_buffer(a, (n, m), "float32")
    B = T.match_buffer(b, (n, m), "float32")
    for i in T.parallel(n):
        with T.block("row"):
            vi = T.axis.spatial(n, i)
            C = T.alloc_buffer((m,), "float32", scope="local")
            for j in range(m):
                with T.block("C"):
                    vj = T.axis.spatial(m, j)
                    C[vj] = A[vi, vj] * 2.0
            for j in range(m):
                with T.block("B"):
                    vj = T.axis.spatial(m, j)
                    B[vi, vj] = C[m - 1 - vj]

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(a: T.handle, b: T.handle, C_handle: T.handle):
        n = T.int32()
        m = T.int32()
        A = T.match_buffer(a, (n, m), "float32")
        B = T.match_buffer(b, (n, m), "float32")
        C = T.match_buffer(C_handle, (m * T.min(32, n),), "float32", scope="local")
        T.func_attr({"tilewright.in_memory": ["`C`: axis 0: its extent has no constant bound"], "tilewright.workspace": 1})
        size: T.int32 = n + n // 32
        size_1: T.int32 = n // 32 + 1
        A_1 = T.decl_buffer((n * m,), "float32", data=A.data)
        B_1 = T.decl_buffer((n * m,), "float32", data=B.data)
        for i_run in T.parallel(size // size_1):
            for i in range(i_run * size_1, i_run * size_1 + T.min(n - i_run * size_1, size_1)):
                for j in range(m):
                    C[T.first_of_task(i_run) * m + j] = A_1[T.Cast("int64", i) * T.Cast("int64", m) + T.Cast("int64", j)] * T.float32(2.0)
                for j in range(m):
                    B_1[T.Cast("int64", i) * T.Cast("int64", m) + T.Cast("int64", j)] = C[T.first_of_task(i_run) * m + (m - j - 1)]

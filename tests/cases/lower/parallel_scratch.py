# run: opt --pass lower
# An allocation inside of a parallel loop gets a copy for each iteration, in one parameter.


@T.prim_func
def f(A: T.Buffer((3, 6000), "float32"), B: T.Buffer((3, 6000), "float32")):
    for i in T.parallel(3):
        with T.block("row"):
            vi = T.axis.spatial(3, i)
            C = T.alloc_buffer((6000,), "float32")
            for j in range(6000):
                with T.block("C"):
                    vj = T.axis.spatial(6000, j)
                    C[vj] = A[vi, vj] * 2.0
            for j in range(6000):
                with T.block("B"):
                    vj = T.axis.spatial(6000, j)
                    B[vi, vj] = C[5999 - vj]

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((3, 6000), "float32"), B: T.Buffer((3, 6000), "float32"), C: T.Buffer((18000,), "float32")):
        T.func_attr({"tilewright.workspace": 1})
        A_1 = T.decl_buffer((18000,), "float32", data=A.data)
        B_1 = T.decl_buffer((18000,), "float32", data=B.data)
        for i in T.parallel(3):
            for j in range(6000):
                C[T.first_of_task(i) * 6000 + j] = A_1[i * 6000 + j] * T.float32(2.0)
            for j in range(6000):
                B_1[i * 6000 + j] = C[T.first_of_task(i) * 6000 + (5999 - j)]

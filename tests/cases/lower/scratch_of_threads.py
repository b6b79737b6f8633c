# run: opt --pass lower
# However large an allocation inside of loops over threads is, each thread has its own.


@T.prim_func
def f(A: T.Buffer((64, 6000), "float32"), B: T.Buffer((64, 6000), "float32")):
    for i in T.thread_binding(64, thread="threadIdx.x"):
        with T.block("row"):
            vi = T.axis.spatial(64, i)
            C = T.alloc_buffer((6000,), "float32", scope="local")
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
    def f(A: T.Buffer((64, 6000), "float32"), B: T.Buffer((64, 6000), "float32")):
        A_1 = T.decl_buffer((384000,), "float32", data=A.data)
        B_1 = T.decl_buffer((384000,), "float32", data=B.data)
        for i in T.thread_binding(64, thread="threadIdx.x"):
            C = T.decl_buffer((6000,), "float32", scope="local")
            for j in range(6000):
                C[j] = A_1[i * 6000 + j] * T.float32(2.0)
            for j in range(6000):
                B_1[i * 6000 + j] = C[5999 - j]

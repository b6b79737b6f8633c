# run: opt --pass lower
# The sums of a thread live over the phases in which its group fills `S`: one nest over the threads, with barriers.
@T.prim_func
def f(A: T.Buffer((12, 8), "float32"), C: T.Buffer((4, 8), "float32")):
    L = T.alloc_buffer((4, 8), "float32", scope="local")
    S = T.alloc_buffer((12, 8), "float32", scope="shared")
    for g in T.thread_binding(2, thread="blockIdx.x"):
        for t in T.thread_binding(4, thread="threadIdx.x"):
            for i in range(4):
                with T.block("init"):
                    vi = T.axis.spatial(4, i)
                    vj = T.axis.spatial(8, g * 4 + t)
                    L[vi, vj] = T.float32(0)
        for k in range(3):
            for t in T.thread_binding(4, thread="threadIdx.x"):
                for y in range(4):
                    with T.block("S"):
                        vk = T.axis.spatial(12, k * 4 + t)
                        vj = T.axis.spatial(8, g * 4 + y)
                        S[vk, vj] = A[vk, vj]
            for t in T.thread_binding(4, thread="threadIdx.x"):
                for i, y in T.grid(4, 4):
                    with T.block("update"):
                        vi = T.axis.spatial(4, i)
                        vj = T.axis.spatial(8, g * 4 + t)
                        vk = T.axis.reduce(12, k * 4 + y)
                        L[vi, vj] = L[vi, vj] + S[vk, vj]
        for t in T.thread_binding(4, thread="threadIdx.x"):
            for i in range(4):
                with T.block("C"):
                    vi = T.axis.spatial(4, i)
                    vj = T.axis.spatial(8, g * 4 + t)
                    C[vi, vj] = L[vi, vj]

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((12, 8), "float32"), C: T.Buffer((4, 8), "float32")):
        A_1 = T.decl_buffer((96,), "float32", data=A.data)
        C_1 = T.decl_buffer((32,), "float32", data=C.data)
        for g in T.thread_binding(2, thread="blockIdx.x"):
            S = T.decl_buffer((16,), "float32", scope="shared")
            for t in T.thread_binding(4, thread="threadIdx.x"):
                L = T.decl_buffer((4,), "float32", scope="local")
                for i in range(4):
                    L[i] = T.float32(0.0)
                for k in range(3):
                    for y in range(4):
                        S[t * 4 + y] = A_1[(k * 4 + t) * 8 + (g * 4 + y)]
                    T.evaluate(T.tvm_storage_sync("shared"))
                    for i, y in T.grid(4, 4):
                        L[i] = L[i] + S[y * 4 + t]
                    T.evaluate(T.tvm_storage_sync("shared"))
                for i in range(4):
                    C_1[i * 8 + (g * 4 + t)] = L[i]

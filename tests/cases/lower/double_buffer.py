# run: opt --pass lower --explain
# A group fills one half of the memory that it shares while it reads the other; parts of its rows are exchanged.


@T.prim_func
def f(A: T.Buffer((16, 64), "float32"), B: T.Buffer((16,), "float32")):
    for g in T.thread_binding(1, thread="blockIdx.x"):
        S = T.alloc_buffer((16, 16), "float32", scope="shared")
        sums = T.alloc_buffer((16,), "float32", scope="local")
        for t in T.thread_binding(16, thread="threadIdx.x"):
            sums[t] = T.float32(0)
        for k in T.serial(4, annotations={"double_buffer": 1, "exchanged_rows": [["S", 16, 4, 2, 4]]}):
            for t in T.thread_binding(16, thread="threadIdx.x"):
                for i in range(16):
                    S[i, t] = A[i, k * 16 + t]
            for t in T.thread_binding(16, thread="threadIdx.x"):
                for j in range(16):
                    sums[t] = sums[t] + S[t, j]
        for t in T.thread_binding(16, thread="threadIdx.x"):
            B[t] = sums[t]

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((16, 64), "float32"), B: T.Buffer((16,), "float32")):
        A_1 = T.decl_buffer((1024,), "float32", data=A.data)
        for g in T.thread_binding(1, thread="blockIdx.x"):
            S = T.decl_buffer((512,), "float32", scope="shared", annotations={"async_copy": 1})
            for t in T.thread_binding(16, thread="threadIdx.x"):
                sums = T.decl_buffer((1,), "float32", scope="local")
                sums[0] = T.float32(0.0)
                for i in range(16):
                    S[i * 16 + T.bitwise_xor(t // 4, i // 2 % 4) * 4 + t % 4] = A_1[i * 64 + t]
                T.evaluate(T.tvm_storage_sync("shared"))
                for k in range(4):
                    if k < 3:
                        for i in range(16):
                            S[(k + 1) % 2 * 256 + i * 16 + T.bitwise_xor(t // 4, i // 2 % 4) * 4 + t % 4] = A_1[i * 64 + k * 16 + t + 16]
                    for j in range(16):
                        sums[0] = sums[0] + S[k % 2 * 256 + t * 16 + T.bitwise_xor(j // 4, t // 2 % 4) * 4 + j % 4]
                    T.evaluate(T.tvm_storage_sync("shared"))
                B[t] = sums[0]

# run: opt --pass lay_out_shared --explain
# Two elements of 16 bits share a word.
@T.prim_func
def f(A: T.Buffer((64, 48), "float16"), B: T.Buffer((48, 64), "float16")):
    for bi in T.thread_binding(64 // 16, thread="blockIdx.x"):
        for bj in T.thread_binding(48 // 16, thread="blockIdx.y"):
            with T.block("tile"):
                vi, vj = T.axis.remap("SS", [bi, bj])
                S = T.alloc_buffer((16, 16), "float16", scope="shared")
                for y in T.thread_binding(16, thread="threadIdx.y"):
                    for x in T.thread_binding(16, thread="threadIdx.x"):
                        with T.block("S"):
                            i, j = T.axis.remap("SS", [y, x])
                            S[i, j] = A[vi * 16 + i, vj * 16 + j]
                for y in T.thread_binding(16, thread="threadIdx.y"):
                    for x in T.thread_binding(16, thread="threadIdx.x"):
                        with T.block("B"):
                            j, i = T.axis.remap("SS", [y, x])
                            B[vj * 16 + j, vi * 16 + i] = S[i, j]
# remark: `S` as columns `T.bitwise_xor(j, i // 4 % 8 * 2)`: bank conflicts of degree 1, 4 before

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((64, 48), "float16"), B: T.Buffer((48, 64), "float16")):
        for bi in T.thread_binding(4, thread="blockIdx.x"):
            for bj in T.thread_binding(3, thread="blockIdx.y"):
                with T.block("tile"):
                    vi, vj = T.axis.remap("SS", [bi, bj])
                    S = T.alloc_buffer((16, 16), "float16", scope="shared")
                    for y in T.thread_binding(16, thread="threadIdx.y"):
                        for x in T.thread_binding(16, thread="threadIdx.x"):
                            with T.block("S"):
                                i, j = T.axis.remap("SS", [y, x])
                                S[i, T.bitwise_xor(j, i // 4 * 2)] = A[vi * 16 + i, vj * 16 + j]
                    for y in T.thread_binding(16, thread="threadIdx.y"):
                        for x in T.thread_binding(16, thread="threadIdx.x"):
                            with T.block("B"):
                                j, i = T.axis.remap("SS", [y, x])
                                B[vj * 16 + j, vi * 16 + i] = S[i, T.bitwise_xor(j, i // 4 * 2)]

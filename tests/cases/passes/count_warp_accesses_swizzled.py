# run: opt --pass count_warp_accesses --explain
# Columns exchanged by the row, without padding: no two lanes meet in a bank.
@T.prim_func
def f(A: T.Buffer((64, 64), "float32"), B: T.Buffer((64, 64), "float32")):
    for bi in T.thread_binding(2, thread="blockIdx.x"):
        for bj in T.thread_binding(2, thread="blockIdx.y"):
            with T.block("tile"):
                vi, vj = T.axis.remap("SS", [bi, bj])
                S = T.alloc_buffer((32, 32), "float32", scope="shared")
                for k in range(4):
                    for y in T.thread_binding(8, thread="threadIdx.y"):
                        for x in T.thread_binding(32, thread="threadIdx.x"):
                            S[k * 8 + y, T.bitwise_xor(x, k * 8 + y)] = A[vi * 32 + k * 8 + y, vj * 32 + x]
                            #^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ remark: the read of `A[(bi * 32 + k * 8 + y) * 64 + (bj * 32 + x)]` touches 1 segment of 128 bytes
                            #^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ remark: the write of `S[(k * 8 + y) * 32 + T.bitwise_xor(x, k * 8 + y)]` has no bank conflicts: degree 1
                for k in range(4):
                    for y in T.thread_binding(8, thread="threadIdx.y"):
                        for x in T.thread_binding(32, thread="threadIdx.x"):
                            B[vj * 32 + k * 8 + y, vi * 32 + x] = S[x, T.bitwise_xor(k * 8 + y, x)]
                            #^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ remark: the read of `S[x * 32 + T.bitwise_xor(k * 8 + y, x)]` has no bank conflicts: degree 1
                            #^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ remark: the write of `B[(bj * 32 + k * 8 + y) * 64 + (bi * 32 + x)]` touches 1 segment of 128 bytes

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((64, 64), "float32"), B: T.Buffer((64, 64), "float32")):
        for bi in T.thread_binding(2, thread="blockIdx.x"):
            for bj in T.thread_binding(2, thread="blockIdx.y"):
                with T.block("tile"):
                    vi, vj = T.axis.remap("SS", [bi, bj])
                    S = T.alloc_buffer((32, 32), "float32", scope="shared")
                    for k in range(4):
                        for y in T.thread_binding(8, thread="threadIdx.y"):
                            for x in T.thread_binding(32, thread="threadIdx.x"):
                                S[k * 8 + y, T.bitwise_xor(x, k * 8 + y)] = A[vi * 32 + k * 8 + y, vj * 32 + x]
                    for k in range(4):
                        for y in T.thread_binding(8, thread="threadIdx.y"):
                            for x in T.thread_binding(32, thread="threadIdx.x"):
                                B[vj * 32 + k * 8 + y, vi * 32 + x] = S[x, T.bitwise_xor(k * 8 + y, x)]

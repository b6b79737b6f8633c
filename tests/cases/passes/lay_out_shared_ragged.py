# run: opt --pass lay_out_shared --explain
# Rows of 12 elements are no power of two: longer rows.
@T.prim_func
def f(A: T.Buffer((60, 48), "float32"), B: T.Buffer((48, 60), "float32")):
    for bi in T.thread_binding(5, thread="blockIdx.x"):
        for bj in T.thread_binding(48 // 12, thread="blockIdx.y"):
            with T.block("tile"):
                vi, vj = T.axis.remap("SS", [bi, bj])
                S = T.alloc_buffer((12, 12), "float32", scope="shared")
                for y in T.thread_binding(12, thread="threadIdx.y"):
                    for x in T.thread_binding(12, thread="threadIdx.x"):
                        with T.block("S"):
                            i, j = T.axis.remap("SS", [y, x])
                            S[i, j] = A[vi * 12 + i, vj * 12 + j]
                for y in T.thread_binding(12, thread="threadIdx.y"):
                    for x in T.thread_binding(12, thread="threadIdx.x"):
                        with T.block("B"):
                            j, i = T.axis.remap("SS", [y, x])
                            B[vj * 12 + j, vi * 12 + i] = S[i, j]
# remark: the layout of `S` stays: its bank conflicts have degree 2

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((60, 48), "float32"), B: T.Buffer((48, 60), "float32")):
        for bi in T.thread_binding(5, thread="blockIdx.x"):
            for bj in T.thread_binding(4, thread="blockIdx.y"):
                with T.block("tile"):
                    vi, vj = T.axis.remap("SS", [bi, bj])
                    S = T.alloc_buffer((12, 12), "float32", scope="shared")
                    for y in T.thread_binding(12, thread="threadIdx.y"):
                        for x in T.thread_binding(12, thread="threadIdx.x"):
                            with T.block("S"):
                                i, j = T.axis.remap("SS", [y, x])
                                S[i, j] = A[vi * 12 + i, vj * 12 + j]
                    for y in T.thread_binding(12, thread="threadIdx.y"):
                        for x in T.thread_binding(12, thread="threadIdx.x"):
                            with T.block("B"):
                                j, i = T.axis.remap("SS", [y, x])
                                B[vj * 12 + j, vi * 12 + i] = S[i, j]

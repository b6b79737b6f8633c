# run: opt
# A reduction that runs at least once writes all that is copied back.


@T.prim_func
def matmul(A: T.Buffer((3, 5), "int32"), B: T.Buffer((3, 5), "int32"), C: T.Buffer((3, 3), "int32")):
    for i, j, k in T.grid(3, 3, 5):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = 0
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vj, vk]

# ---- schedule
sch.pad_einsum(block="C", padding=[4, 4, 4])

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def matmul(A: T.Buffer((3, 5), "int32"), B: T.Buffer((3, 5), "int32"), C: T.Buffer((3, 3), "int32")):
        A_pad = T.alloc_buffer((4, 8), "int32")
        B_pad = T.alloc_buffer((4, 8), "int32")
        C_pad = T.alloc_buffer((4, 4), "int32")
        for i0, i1 in T.grid(4, 8):
            with T.block("A_pad"):
                v0, v1 = T.axis.remap("SS", [i0, i1])
                T.reads(A[v0, v1])
                T.writes(A_pad[v0, v1])
                A_pad[v0, v1] = T.if_then_else(v0 < 3 and v1 < 5, A[v0, v1], 0)
        for i0, i1 in T.grid(4, 8):
            with T.block("B_pad"):
                v0, v1 = T.axis.remap("SS", [i0, i1])
                T.reads(B[v0, v1])
                T.writes(B_pad[v0, v1])
                B_pad[v0, v1] = T.if_then_else(v0 < 3 and v1 < 5, B[v0, v1], 0)
        for i, j, k in T.grid(4, 4, 8):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C_pad[vi, vj] = 0
                C_pad[vi, vj] = C_pad[vi, vj] + A_pad[vi, vk] * B_pad[vj, vk]
        for i0, i1 in T.grid(3, 3):
            with T.block("C_pad"):
                v0, v1 = T.axis.remap("SS", [i0, i1])
                T.reads(C_pad[v0, v1])
                T.writes(C[v0, v1])
                C[v0, v1] = C_pad[v0, v1]

# run: opt --pass auto_schedule --pass-config triple=cuda --pass-config cpu=sm_80 --pass-config features=+fma
# A group shares its operands, and a thread has a tile of sums in registers; what is ragged is computed beyond its end.
@T.prim_func
def f(A: T.Buffer((200, 33), "float32"), B: T.Buffer((33, 131), "float32"), C: T.Buffer((200, 131), "float32")):
    for i, j, k in T.grid(200, 131, 33):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((200, 33), "float32"), B: T.Buffer((33, 131), "float32"), C: T.Buffer((200, 131), "float32")):
        A_pad = T.alloc_buffer((224, 48), "float32", scope="shared")
        B_pad = T.alloc_buffer((48, 192), "float32", scope="shared")
        C_pad = T.alloc_buffer((224, 192), "float32", scope="local")
        for i_0 in T.thread_binding(7, thread="blockIdx.y"):
            for j_0 in T.thread_binding(3, thread="blockIdx.x"):
                for i_1 in T.thread_binding(16, thread="threadIdx.y"):
                    for j_1 in T.thread_binding(16, thread="threadIdx.x"):
                        for i_2 in T.unroll(2):
                            for j_2 in T.unroll(4):
                                with T.block("C_init"):
                                    vi = T.axis.spatial(224, (i_0 * 16 + i_1) * 2 + i_2)
                                    vj = T.axis.spatial(192, (j_0 * 16 + j_1) * 4 + j_2)
                                    C_pad[vi, vj] = T.float32(0.0)
                for k_0 in range(3):
                    for ax0_ax1_fused_1 in T.thread_binding(16, thread="threadIdx.y"):
                        for ax0_ax1_fused_2 in T.thread_binding(16, thread="threadIdx.x"):
                            for ax0_ax1_fused_0 in range(2):
                                with T.block("A_pad"):
                                    v0 = T.axis.spatial(224, i_0 * 32 + ((ax0_ax1_fused_0 * 16 + ax0_ax1_fused_1) * 16 + ax0_ax1_fused_2) // 16)
                                    v1 = T.axis.spatial(48, k_0 * 16 + ((ax0_ax1_fused_0 * 16 + ax0_ax1_fused_1) * 16 + ax0_ax1_fused_2) % 16)
                                    A_pad[v0, v1] = T.if_then_else(v0 < 200 and v1 < 33, A[v0, v1], T.float32(0.0))
                    for ax0_ax1_fused_1 in T.thread_binding(16, thread="threadIdx.y"):
                        for ax0_ax1_fused_2 in T.thread_binding(16, thread="threadIdx.x"):
                            for ax0_ax1_fused_0 in range(4):
                                with T.block("B_pad"):
                                    v0 = T.axis.spatial(48, k_0 * 16 + ((ax0_ax1_fused_0 * 16 + ax0_ax1_fused_1) * 16 + ax0_ax1_fused_2) // 64)
                                    v1 = T.axis.spatial(192, j_0 * 64 + ((ax0_ax1_fused_0 * 16 + ax0_ax1_fused_1) * 16 + ax0_ax1_fused_2) % 64)
                                    B_pad[v0, v1] = T.if_then_else(v0 < 33 and v1 < 131, B[v0, v1], T.float32(0.0))
                    for i_1 in T.thread_binding(16, thread="threadIdx.y"):
                        for j_1 in T.thread_binding(16, thread="threadIdx.x"):
                            for k_1 in range(16):
                                for i_2 in T.unroll(2):
                                    for j_2 in T.unroll(4):
                                        with T.block("C_update"):
                                            vi = T.axis.spatial(224, (i_0 * 16 + i_1) * 2 + i_2)
                                            vj = T.axis.spatial(192, (j_0 * 16 + j_1) * 4 + j_2)
                                            vk = T.axis.reduce(48, k_0 * 16 + k_1)
                                            C_pad[vi, vj] = C_pad[vi, vj] + A_pad[vi, vk] * B_pad[vk, vj]
                for ax0_0 in T.thread_binding(16, thread="threadIdx.y"):
                    for ax1_0 in T.thread_binding(16, thread="threadIdx.x"):
                        for ax0_1 in T.unroll(2):
                            for ax1_1 in T.unroll(4):
                                with T.block("C_pad"):
                                    v0 = T.axis.spatial(200, i_0 * 32 + (ax0_0 * 2 + ax0_1))
                                    v1 = T.axis.spatial(131, j_0 * 64 + (ax1_0 * 4 + ax1_1))
                                    T.where(i_0 * 32 + (ax0_0 * 2 + ax0_1) < 200 and j_0 * 64 + (ax1_0 * 4 + ax1_1) < 131)
                                    T.reads(C_pad[v0, v1])
                                    T.writes(C[v0, v1])
                                    C[v0, v1] = C_pad[v0, v1]

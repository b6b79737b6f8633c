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
        A_pad = T.alloc_buffer((208, 40), "float32", scope="shared")
        B_pad = T.alloc_buffer((40, 144), "float32", scope="shared")
        C_pad = T.alloc_buffer((13, 16, 1, 9, 16, 1), "float32", scope="local")
        for i_0 in T.thread_binding(13, thread="blockIdx.y"):
            for j_0 in T.thread_binding(9, thread="blockIdx.x", annotations={"expected": [51, 2048]}):
                for i_2 in T.thread_binding(16, thread="threadIdx.y"):
                    for j_2 in T.thread_binding(16, thread="threadIdx.x"):
                        for i_1 in T.unroll(1):
                            for j_1 in T.unroll(1):
                                with T.block("C_init"):
                                    vi = T.axis.spatial(208, (i_0 + i_1) * 16 + i_2)
                                    vj = T.axis.spatial(144, (j_0 + j_1) * 16 + j_2)
                                    C_pad[vi // 16, vi % 16, 0, vj // 16, vj % 16, 0] = T.float32(0.0)
                for k_0 in T.serial(5, annotations={"double_buffer": 1, "pragma_no_unroll": 1}):
                    for ax0_ax1_fused_1 in T.thread_binding(16, thread="threadIdx.y"):
                        for ax0_ax1_fused_2 in T.thread_binding(16, thread="threadIdx.x"):
                            for ax0_ax1_fused_0 in range(1):
                                with T.block("A_pad"):
                                    v0 = T.axis.spatial(208, i_0 * 16 + ((ax0_ax1_fused_0 * 16 + ax0_ax1_fused_1) * 16 + ax0_ax1_fused_2) // 8)
                                    v1 = T.axis.spatial(40, k_0 * 8 + ((ax0_ax1_fused_0 * 16 + ax0_ax1_fused_1) * 16 + ax0_ax1_fused_2) % 8)
                                    T.where((ax0_ax1_fused_0 * 16 + ax0_ax1_fused_1) * 16 + ax0_ax1_fused_2 < 128)
                                    A_pad[v0, v1] = T.if_then_else(v0 < 200 and v1 < 33, A[v0, v1], T.float32(0.0))
                    for ax0_ax1_fused_1 in T.thread_binding(16, thread="threadIdx.y"):
                        for ax0_ax1_fused_2 in T.thread_binding(16, thread="threadIdx.x"):
                            for ax0_ax1_fused_0 in range(1):
                                with T.block("B_pad"):
                                    v0 = T.axis.spatial(40, k_0 * 8 + ((ax0_ax1_fused_0 * 16 + ax0_ax1_fused_1) * 16 + ax0_ax1_fused_2) // 16)
                                    v1 = T.axis.spatial(144, j_0 * 16 + ((ax0_ax1_fused_0 * 16 + ax0_ax1_fused_1) * 16 + ax0_ax1_fused_2) % 16)
                                    T.where((ax0_ax1_fused_0 * 16 + ax0_ax1_fused_1) * 16 + ax0_ax1_fused_2 < 128)
                                    B_pad[v0, v1] = T.if_then_else(v0 < 33 and v1 < 131, B[v0, v1], T.float32(0.0))
                    for i_2 in T.thread_binding(16, thread="threadIdx.y"):
                        for j_2 in T.thread_binding(16, thread="threadIdx.x"):
                            for k_1 in range(8):
                                for i_1 in T.unroll(1):
                                    for j_1 in T.unroll(1):
                                        with T.block("C_update"):
                                            vi = T.axis.spatial(208, (i_0 + i_1) * 16 + i_2)
                                            vj = T.axis.spatial(144, (j_0 + j_1) * 16 + j_2)
                                            vk = T.axis.reduce(40, k_0 * 8 + k_1)
                                            C_pad[vi // 16, vi % 16, 0, vj // 16, vj % 16, 0] = C_pad[vi // 16, vi % 16, 0, vj // 16, vj % 16, 0] + A_pad[vi, vk] * B_pad[vk, vj]
                for ax0_1 in T.thread_binding(16, thread="threadIdx.y"):
                    for ax1_1 in T.thread_binding(16, thread="threadIdx.x"):
                        for ax0_0 in T.unroll(1):
                            for ax1_0 in T.unroll(1):
                                with T.block("C_pad"):
                                    v0 = T.axis.spatial(200, i_0 * 16 + (ax0_0 * 16 + ax0_1))
                                    v1 = T.axis.spatial(131, j_0 * 16 + (ax1_0 * 16 + ax1_1))
                                    T.where(i_0 * 16 + (ax0_0 * 16 + ax0_1) < 200 and j_0 * 16 + (ax1_0 * 16 + ax1_1) < 131)
                                    T.reads(C_pad[v0 // 16, v0 % 16, 0, v1 // 16, v1 % 16, 0])
                                    T.writes(C[v0, v1])
                                    C[v0, v1] = C_pad[v0 // 16, v0 % 16, 0, v1 // 16, v1 % 16, 0]

# run: opt --pass auto_schedule --pass-config triple=cuda --pass-config cpu=sm_80 --pass-config features=+fma,+mma
# Halves are multiplied by tensor instructions: what is ragged is zero in shared memory, and not stored.
@T.prim_func
def f(A: T.Buffer((17, 18), "float16"), B: T.Buffer((18, 9), "float16"), bias: T.Buffer((9,), "float16"), D: T.Buffer((17, 9), "float16")):
    C = T.alloc_buffer((17, 9), "float32")
    for i, j, k in T.grid(17, 9, 18):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + T.Cast("float32", A[vi, vk]) * T.Cast("float32", B[vk, vj])
    for i, j in T.grid(17, 9):
        with T.block("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = T.max(T.Cast("float16", C[vi, vj]) + bias[vj], T.float16(0))

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((17, 18), "float16"), B: T.Buffer((18, 9), "float16"), bias: T.Buffer((9,), "float16"), D: T.Buffer((17, 9), "float16")):
        A_pad = T.alloc_buffer((2, 1, 512), "float16", scope="shared")
        B_pad = T.alloc_buffer((1, 1, 512), "float16", scope="shared")
        C_pad = T.alloc_buffer((2, 2, 32, 4), "float32", scope="local")
        A_pad_local = T.alloc_buffer((2, 2, 32, 8), "float16", scope="local")
        B_pad_local = T.alloc_buffer((2, 2, 32, 4), "float16", scope="local")
        for i_0 in T.thread_binding(2, thread="blockIdx.y"):
            for j_0 in T.thread_binding(1, thread="blockIdx.x", annotations={"expected": [112, 4096]}):
                for i_1 in T.thread_binding(1, thread="threadIdx.y"):
                    for j_1 in T.thread_binding(1, thread="threadIdx.z"):
                        for i_3_1_j_3_0_fused in T.thread_binding(32, thread="threadIdx.x"):
                            for i_2 in T.unroll(1):
                                for j_2 in T.unroll(2):
                                    for i_3_0 in T.unroll(2):
                                        for j_3_1 in T.unroll(2):
                                            with T.block("C_init"):
                                                vi = T.axis.spatial(32, (i_0 + i_1 + i_2) * 16 + (i_3_0 * 8 + i_3_1_j_3_0_fused // 4))
                                                vj = T.axis.spatial(16, ((j_0 + j_1) * 2 + j_2) * 8 + (i_3_1_j_3_0_fused % 4 * 2 + j_3_1))
                                                C_pad[vi // 16, vj // 8, vi % 8 * 4 + vj % 8 // 2, vi % 16 // 8 * 2 + vj % 2] = T.float32(0.0)
                for k_0 in T.serial(1, annotations={"double_buffer": 1, "exchanged_rows": [["A_pad", 32, 8, 2, 4], ["B_pad", 16, 8, 4, 2]], "pragma_no_unroll": 1}):
                    for ax0_ax1_0_fused_1 in T.thread_binding(1, thread="threadIdx.z"):
                        for ax0_ax1_0_fused_2 in T.thread_binding(1, thread="threadIdx.y"):
                            for ax0_ax1_0_fused_3 in T.thread_binding(32, thread="threadIdx.x"):
                                for ax0_ax1_0_fused_0 in T.unroll(8):
                                    for ax1_1 in T.vectorized(2):
                                        with T.block("A_pad"):
                                            v0 = T.axis.spatial(32, i_0 * 16 + ((ax0_ax1_0_fused_0 + ax0_ax1_0_fused_1 + ax0_ax1_0_fused_2) * 32 + ax0_ax1_0_fused_3) // 16)
                                            v1 = T.axis.spatial(32, ((ax0_ax1_0_fused_0 + ax0_ax1_0_fused_1 + ax0_ax1_0_fused_2) * 32 + ax0_ax1_0_fused_3) % 16 * 2 + ax1_1)
                                            A_pad[v0 // 16, 0, v0 % 16 * 32 + v1] = T.if_then_else(v0 < 17 and v1 < 18, A[v0, v1], T.float16(0.0))
                    for ax0_ax1_0_fused_1 in T.thread_binding(1, thread="threadIdx.z"):
                        for ax0_ax1_0_fused_2 in T.thread_binding(1, thread="threadIdx.y"):
                            for ax0_ax1_0_fused_3 in T.thread_binding(32, thread="threadIdx.x"):
                                for ax0_ax1_0_fused_0 in T.unroll(16):
                                    for ax1_1 in T.vectorized(1):
                                        with T.block("B_pad"):
                                            v0 = T.axis.spatial(32, ((ax0_ax1_0_fused_0 + ax0_ax1_0_fused_1 + ax0_ax1_0_fused_2) * 32 + ax0_ax1_0_fused_3) // 16)
                                            v1 = T.axis.spatial(16, ((ax0_ax1_0_fused_0 + ax0_ax1_0_fused_1 + ax0_ax1_0_fused_2) * 32 + ax0_ax1_0_fused_3) % 16 + ax1_1)
                                            B_pad[0, 0, v0 * 16 + v1] = T.if_then_else(v0 < 18 and v1 < 9, B[v0, v1], T.float16(0.0))
                    for k_1 in T.unroll(2):
                        for ax0_0 in T.thread_binding(1, thread="threadIdx.y"):
                            for ax0_1 in T.unroll(1):
                                for ax0_2 in T.serial(16, annotations={"tensor_instruction": "ldmatrix"}):
                                    for ax1 in range(16):
                                        with T.block("A_pad_local"):
                                            v0 = T.axis.spatial(32, i_0 * 16 + ((ax0_0 + ax0_1) * 16 + ax0_2))
                                            v1 = T.axis.spatial(32, k_1 * 16 + ax1)
                                            A_pad_local[v0 // 16, v1 // 16, v0 % 8 * 4 + v1 % 8 // 2, v1 % 16 // 8 * 4 + v0 % 16 // 8 * 2 + v1 % 2] = A_pad[v0 // 16, 0, v0 % 16 * 32 + v1]
                        for ax1_0 in T.thread_binding(1, thread="threadIdx.z"):
                            for ax1_1 in T.unroll(2):
                                for ax0 in T.serial(16, annotations={"tensor_instruction": "ldmatrix"}):
                                    for ax1_2 in range(8):
                                        with T.block("B_pad_local"):
                                            v0 = T.axis.spatial(32, k_1 * 16 + ax0)
                                            v1 = T.axis.spatial(16, (ax1_0 * 2 + ax1_1) * 8 + ax1_2)
                                            B_pad_local[v0 // 16, v1 // 8, v1 % 8 * 4 + v0 % 8 // 2, v0 % 16 // 8 * 2 + v0 % 2] = B_pad[0, 0, v0 * 16 + v1]
                        for i_1 in T.thread_binding(1, thread="threadIdx.y"):
                            for j_1 in T.thread_binding(1, thread="threadIdx.z"):
                                for i_2 in T.unroll(1):
                                    for j_2 in T.unroll(2):
                                        for i_3 in T.serial(16, annotations={"tensor_instruction": "mma_m16n8k16_f16"}):
                                            for j_3, k_2 in T.grid(8, 16):
                                                with T.block("C_update"):
                                                    vi = T.axis.spatial(32, (i_0 + i_1 + i_2) * 16 + i_3)
                                                    vj = T.axis.spatial(16, ((j_0 + j_1) * 2 + j_2) * 8 + j_3)
                                                    vk = T.axis.reduce(32, (k_0 * 2 + k_1) * 16 + k_2)
                                                    C_pad[vi // 16, vj // 8, vi % 8 * 4 + vj % 8 // 2, vi % 16 // 8 * 2 + vj % 2] = C_pad[vi // 16, vj // 8, vi % 8 * 4 + vj % 8 // 2, vi % 16 // 8 * 2 + vj % 2] + T.Cast("float32", A_pad_local[vi // 16, vk // 16, vi % 8 * 4 + vk % 8 // 2, vk % 16 // 8 * 4 + vi % 16 // 8 * 2 + vk % 2]) * T.Cast("float32", B_pad_local[vk // 16, vj // 8, vj % 8 * 4 + vk % 8 // 2, vk % 16 // 8 * 2 + vk % 2])
                for ax0_0 in T.thread_binding(1, thread="threadIdx.y"):
                    for ax1_0 in T.thread_binding(1, thread="threadIdx.z"):
                        for ax0_3_ax1_2_fused in T.thread_binding(32, thread="threadIdx.x"):
                            for ax0_1 in T.unroll(1):
                                for ax1_1 in T.unroll(2):
                                    for ax0_2 in T.unroll(2):
                                        for ax1_3 in T.unroll(2):
                                            with T.block("D"):
                                                vi = T.axis.spatial(17, i_0 * 16 + (((ax0_0 + ax0_1) * 2 + ax0_2) * 8 + ax0_3_ax1_2_fused // 4))
                                                vj = T.axis.spatial(9, ((ax1_0 * 2 + ax1_1) * 4 + ax0_3_ax1_2_fused % 4) * 2 + ax1_3)
                                                T.where(i_0 * 16 + (((ax0_0 + ax0_1) * 2 + ax0_2) * 8 + ax0_3_ax1_2_fused // 4) < 17 and ((ax1_0 * 2 + ax1_1) * 4 + ax0_3_ax1_2_fused % 4) * 2 + ax1_3 < 9)
                                                D[vi, vj] = T.max(T.Cast("float16", C_pad[vi // 16, vj // 8, vi % 8 * 4 + vj % 8 // 2, vi % 16 // 8 * 2 + vj % 2]) + bias[vj], T.float16(0.0))

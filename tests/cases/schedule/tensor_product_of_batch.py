# run: opt --pass auto_schedule --pass-config triple=cuda --pass-config cpu=sm_80 --pass-config features=+fma,+mma
# A batch of products whose right factor lies with its columns as rows.
@T.prim_func
def f(A: T.Buffer((2, 32, 32), "bfloat16"), B: T.Buffer((2, 16, 32), "bfloat16"), C: T.Buffer((2, 32, 16), "float32")):
    for n, i, j, k in T.grid(2, 32, 16, 32):
        with T.block("C"):
            vn, vi, vj, vk = T.axis.remap("SSSR", [n, i, j, k])
            with T.init():
                C[vn, vi, vj] = T.float32(0)
            C[vn, vi, vj] = C[vn, vi, vj] + T.Cast("float32", A[vn, vi, vk]) * T.Cast("float32", B[vn, vj, vk])

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((2, 32, 32), "bfloat16"), B: T.Buffer((2, 16, 32), "bfloat16"), C: T.Buffer((2, 32, 16), "float32")):
        C_local = T.alloc_buffer((2, 2, 2, 32, 4), "float32", scope="local")
        A_shared = T.alloc_buffer((2, 2, 1, 512), "bfloat16", scope="shared")
        A_shared_local = T.alloc_buffer((2, 2, 2, 32, 8), "bfloat16", scope="local")
        B_shared = T.alloc_buffer((2, 1, 1, 512), "bfloat16", scope="shared")
        B_shared_local = T.alloc_buffer((2, 2, 2, 32, 4), "bfloat16", scope="local")
        for n in T.thread_binding(2, thread="blockIdx.z"):
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
                                                    vn = T.axis.spatial(2, n)
                                                    vi = T.axis.spatial(32, (i_0 + i_1 + i_2) * 16 + (i_3_0 * 8 + i_3_1_j_3_0_fused // 4))
                                                    vj = T.axis.spatial(16, ((j_0 + j_1) * 2 + j_2) * 8 + (i_3_1_j_3_0_fused % 4 * 2 + j_3_1))
                                                    C_local[vn, vi // 16, vj // 8, vi % 8 * 4 + vj % 8 // 2, vi % 16 // 8 * 2 + vj % 2] = T.float32(0.0)
                    for k_0 in T.serial(1, annotations={"double_buffer": 1, "exchanged_rows": [["A_shared", 32, 8, 2, 4], ["B_shared", 32, 8, 2, 4]], "pragma_no_unroll": 1}):
                        for ax0_ax1_0_fused_1 in T.thread_binding(1, thread="threadIdx.z"):
                            for ax0_ax1_0_fused_2 in T.thread_binding(1, thread="threadIdx.y"):
                                for ax0_ax1_0_fused_3 in T.thread_binding(32, thread="threadIdx.x"):
                                    for ax0_ax1_0_fused_0 in T.unroll(2):
                                        for ax1_1 in T.vectorized(8):
                                            with T.block("A_shared"):
                                                v0 = T.axis.spatial(2, n)
                                                v1 = T.axis.spatial(32, i_0 * 16 + ((ax0_ax1_0_fused_0 + ax0_ax1_0_fused_1 + ax0_ax1_0_fused_2) * 32 + ax0_ax1_0_fused_3) // 4)
                                                v2 = T.axis.spatial(32, ((ax0_ax1_0_fused_0 + ax0_ax1_0_fused_1 + ax0_ax1_0_fused_2) * 32 + ax0_ax1_0_fused_3) % 4 * 8 + ax1_1)
                                                A_shared[v0, v1 // 16, 0, v1 % 16 * 32 + v2] = A[v0, v1, v2]
                        for ax0_ax1_0_fused_1 in T.thread_binding(1, thread="threadIdx.z"):
                            for ax0_ax1_0_fused_2 in T.thread_binding(1, thread="threadIdx.y"):
                                for ax0_ax1_0_fused_3 in T.thread_binding(32, thread="threadIdx.x"):
                                    for ax0_ax1_0_fused_0 in T.unroll(2):
                                        for ax1_1 in T.vectorized(8):
                                            with T.block("B_shared"):
                                                v0 = T.axis.spatial(2, n)
                                                v1 = T.axis.spatial(16, ((ax0_ax1_0_fused_0 + ax0_ax1_0_fused_1 + ax0_ax1_0_fused_2) * 32 + ax0_ax1_0_fused_3) // 4)
                                                v2 = T.axis.spatial(32, ((ax0_ax1_0_fused_0 + ax0_ax1_0_fused_1 + ax0_ax1_0_fused_2) * 32 + ax0_ax1_0_fused_3) % 4 * 8 + ax1_1)
                                                B_shared[v0, 0, 0, v1 * 32 + v2] = B[v0, v1, v2]
                        for k_1 in T.unroll(2):
                            for ax0_0 in T.thread_binding(1, thread="threadIdx.y"):
                                for ax0_1 in T.unroll(1):
                                    for ax0_2 in T.serial(16, annotations={"tensor_instruction": "ldmatrix"}):
                                        for ax1 in range(16):
                                            with T.block("A_shared_local"):
                                                v0 = T.axis.spatial(2, n)
                                                v1 = T.axis.spatial(32, i_0 * 16 + ((ax0_0 + ax0_1) * 16 + ax0_2))
                                                v2 = T.axis.spatial(32, k_1 * 16 + ax1)
                                                A_shared_local[v0, v1 // 16, v2 // 16, v1 % 8 * 4 + v2 % 8 // 2, v2 % 16 // 8 * 4 + v1 % 16 // 8 * 2 + v2 % 2] = A_shared[v0, v1 // 16, 0, v1 % 16 * 32 + v2]
                            for ax0_0 in T.thread_binding(1, thread="threadIdx.z"):
                                for ax0_1 in T.unroll(2):
                                    for ax1 in T.serial(16, annotations={"tensor_instruction": "ldmatrix"}):
                                        for ax0_2 in range(8):
                                            with T.block("B_shared_local"):
                                                v0 = T.axis.spatial(2, n)
                                                v1 = T.axis.spatial(16, (ax0_0 * 2 + ax0_1) * 8 + ax0_2)
                                                v2 = T.axis.spatial(32, k_1 * 16 + ax1)
                                                B_shared_local[v0, v2 // 16, v1 // 8, v1 % 8 * 4 + v2 % 8 // 2, v2 % 16 // 8 * 2 + v2 % 2] = B_shared[v0, 0, 0, v1 * 32 + v2]
                            for i_1 in T.thread_binding(1, thread="threadIdx.y"):
                                for j_1 in T.thread_binding(1, thread="threadIdx.z"):
                                    for i_2 in T.unroll(1):
                                        for j_2 in T.unroll(2):
                                            for i_3 in T.serial(16, annotations={"tensor_instruction": "mma_m16n8k16_bf16"}):
                                                for j_3, k_2 in T.grid(8, 16):
                                                    with T.block("C_update"):
                                                        vn = T.axis.spatial(2, n)
                                                        vi = T.axis.spatial(32, (i_0 + i_1 + i_2) * 16 + i_3)
                                                        vj = T.axis.spatial(16, ((j_0 + j_1) * 2 + j_2) * 8 + j_3)
                                                        vk = T.axis.reduce(32, (k_0 * 2 + k_1) * 16 + k_2)
                                                        C_local[vn, vi // 16, vj // 8, vi % 8 * 4 + vj % 8 // 2, vi % 16 // 8 * 2 + vj % 2] = C_local[vn, vi // 16, vj // 8, vi % 8 * 4 + vj % 8 // 2, vi % 16 // 8 * 2 + vj % 2] + T.Cast("float32", A_shared_local[vn, vi // 16, vk // 16, vi % 8 * 4 + vk % 8 // 2, vk % 16 // 8 * 4 + vi % 16 // 8 * 2 + vk % 2]) * T.Cast("float32", B_shared_local[vn, vk // 16, vj // 8, vj % 8 * 4 + vk % 8 // 2, vk % 16 // 8 * 2 + vk % 2])
                    for ax0_0 in T.thread_binding(1, thread="threadIdx.y"):
                        for ax1_0 in T.thread_binding(1, thread="threadIdx.z"):
                            for ax0_3_ax1_2_fused in T.thread_binding(32, thread="threadIdx.x"):
                                for ax0_1 in T.unroll(1):
                                    for ax1_1 in T.unroll(2):
                                        for ax0_2 in T.unroll(2):
                                            for ax1_3 in T.unroll(2):
                                                with T.block("C_local"):
                                                    v0 = T.axis.spatial(2, n)
                                                    v1 = T.axis.spatial(32, i_0 * 16 + (((ax0_0 + ax0_1) * 2 + ax0_2) * 8 + ax0_3_ax1_2_fused // 4))
                                                    v2 = T.axis.spatial(16, ((ax1_0 * 2 + ax1_1) * 4 + ax0_3_ax1_2_fused % 4) * 2 + ax1_3)
                                                    T.reads(C_local[v0, v1 // 16, v2 // 8, v1 % 8 * 4 + v2 % 8 // 2, v1 % 16 // 8 * 2 + v2 % 2])
                                                    T.writes(C[v0, v1, v2])
                                                    C[v0, v1, v2] = C_local[v0, v1 // 16, v2 // 8, v1 % 8 * 4 + v2 % 8 // 2, v1 % 16 // 8 * 2 + v2 % 2]

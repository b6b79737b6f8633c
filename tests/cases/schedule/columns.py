# run: opt --pass auto_schedule --pass-config auto_schedule.cpu=x86-64-v4
# Four vectors of columns, and one column in vectors along the reduction.
@T.prim_func
def matmul(
    A: T.Buffer((12, 98), "float32"),
    B: T.Buffer((98, 65), "float32"),
    C: T.Buffer((12, 65), "float32"),
):
    T.func_attr({"layout_free_buffers": [1]})
    for i, j, k in T.grid(12, 65, 98):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = 0.0
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def matmul(A: T.Buffer((12, 98), "float32"), B: T.Buffer((98, 65), "float32"), C: T.Buffer((12, 65), "float32")):
        T.func_attr({"layout_free_buffers": [1]})
        C_local = T.alloc_buffer((2, 12, 64), "float32", scope="local")
        B_global = T.alloc_buffer((1, 98, 64), "float32")
        B_global_1 = T.alloc_buffer((1, 98), "float32")
        C_local_rf = T.alloc_buffer((2, 12, 64, 16), "float32", scope="local")
        C_local_rf_1 = T.alloc_buffer((2, 12, 64, 4), "float32", scope="local")
        for ax0, ax1 in T.grid(98, 1):
            with T.block("B_global_1"):
                v0, v1 = T.axis.remap("SS", [ax0, ax1])
                T.reads(B[v0, v1 + 64])
                T.writes(B_global_1[v1, v0])
                T.block_attr({"preproc": "layout"})
                B_global_1[v1, v0] = B[v0, v1 + 64]
        for ax0, ax1 in T.grid(98, 64):
            with T.block("B_global"):
                v0, v1 = T.axis.remap("SS", [ax0, ax1])
                T.reads(B[v0, v1])
                T.writes(B_global[0, v0, v1])
                T.block_attr({"preproc": "layout"})
                B_global[0, v0, v1] = B[v0, v1]
        for i1_0_i0_0_fused in T.parallel(4):
            if i1_0_i0_0_fused < 2:
                for i0_1 in T.unroll(6):
                    for i1_1_0 in T.unroll(4):
                        for i1_1_1 in T.vectorized(16):
                            with T.block("C_init"):
                                v_i0 = T.axis.spatial(12, i1_0_i0_0_fused * 6 + i0_1)
                                v_i1 = T.axis.spatial(65, T.int32(0) * 64 + (i1_1_0 * 16 + i1_1_1))
                                C_local[v_i1 // 64, v_i0, v_i1 % 64] = T.float32(0.0)
                for i2 in T.serial(98, annotations={"pragma_no_unroll": 1}):
                    for i0_1 in T.unroll(6):
                        for i1_1_0 in T.unroll(4):
                            for i1_1_1 in T.vectorized(16):
                                with T.block("C_update"):
                                    v_i0 = T.axis.spatial(12, i1_0_i0_0_fused * 6 + i0_1)
                                    v_i1 = T.axis.spatial(65, T.int32(0) * 64 + (i1_1_0 * 16 + i1_1_1))
                                    v_i2 = T.axis.reduce(98, i2)
                                    C_local[v_i1 // 64, v_i0, v_i1 % 64] = C_local[v_i1 // 64, v_i0, v_i1 % 64] + A[v_i0, v_i2] * B_global[v_i1 // 64, v_i2, v_i1 % 64]
                for ax0 in T.unroll(6):
                    for ax1_0 in T.unroll(4):
                        for ax1_1 in T.vectorized(16):
                            with T.block("C_local"):
                                v0 = T.axis.spatial(12, i1_0_i0_0_fused * 6 + ax0)
                                v1 = T.axis.spatial(65, T.int32(0) * 64 + (ax1_0 * 16 + ax1_1))
                                T.reads(C_local[v1 // 64, v0, v1 % 64])
                                T.writes(C[v0, v1])
                                C[v0, v1] = C_local[v1 // 64, v0, v1 % 64]
            else:
                for i0_1 in T.unroll(6):
                    for i1_1 in T.unroll(1):
                        for i2_1 in T.vectorized(16):
                            with T.block("C_1_rf_init"):
                                vi2_1 = T.axis.spatial(16, i2_1)
                                v_i0 = T.axis.spatial(12, (i1_0_i0_0_fused - 2) * 6 + i0_1)
                                v_i1 = T.axis.spatial(65, (T.int32(0) + 1) * 64 + i1_1)
                                C_local_rf[v_i1 // 64, v_i0, v_i1 % 64, vi2_1] = T.float32(0.0)
                for i2_0 in T.serial(6, annotations={"pragma_no_unroll": 1}):
                    for i0_1 in T.unroll(6):
                        for i1_1 in T.unroll(1):
                            for i2_1 in T.vectorized(16):
                                with T.block("C_1_rf_update"):
                                    vi2_1 = T.axis.spatial(16, i2_1)
                                    v_i0 = T.axis.spatial(12, (i1_0_i0_0_fused - 2) * 6 + i0_1)
                                    v_i1 = T.axis.spatial(65, (T.int32(0) + 1) * 64 + i1_1)
                                    vi2_0 = T.axis.reduce(6, i2_0)
                                    C_local_rf[v_i1 // 64, v_i0, v_i1 % 64, vi2_1] = C_local_rf[v_i1 // 64, v_i0, v_i1 % 64, vi2_1] + A[v_i0, vi2_0 * 16 + vi2_1] * B_global_1[v_i1 - 64, vi2_0 * 16 + vi2_1]
                for i0_1 in T.unroll(6):
                    for i1_1 in T.unroll(1):
                        for i2_1_1 in T.vectorized(4):
                            with T.block("C_1_rf_init_1"):
                                vi2_1_1 = T.axis.spatial(4, i2_1_1)
                                v_i0 = T.axis.spatial(12, (i1_0_i0_0_fused - 2) * 6 + i0_1)
                                v_i1 = T.axis.spatial(65, (T.int32(0) + 1) * 64 + i1_1)
                                C_local_rf_1[v_i1 // 64, v_i0, v_i1 % 64, vi2_1_1] = T.float32(0.0)
                for i2_1_0 in T.unroll(4):
                    for i0_1 in T.unroll(6):
                        for i1_1 in T.unroll(1):
                            for i2_1_1 in T.vectorized(4):
                                with T.block("C_1_rf_update_1"):
                                    vi2_1_1 = T.axis.spatial(4, i2_1_1)
                                    vi2_1_0 = T.axis.reduce(4, i2_1_0)
                                    v_i0 = T.axis.spatial(12, (i1_0_i0_0_fused - 2) * 6 + i0_1)
                                    v_i1 = T.axis.spatial(65, (T.int32(0) + 1) * 64 + i1_1)
                                    C_local_rf_1[v_i1 // 64, v_i0, v_i1 % 64, vi2_1_1] = C_local_rf_1[v_i1 // 64, v_i0, v_i1 % 64, vi2_1_1] + C_local_rf[v_i1 // 64, v_i0, v_i1 % 64, vi2_1_0 * 4 + vi2_1_1]
                for i0_1 in T.unroll(6):
                    for i1_1 in T.unroll(1):
                        with T.block("C_1_init"):
                            v_i0 = T.axis.spatial(12, (i1_0_i0_0_fused - 2) * 6 + i0_1)
                            v_i1 = T.axis.spatial(65, (T.int32(0) + 1) * 64 + i1_1)
                            C_local[v_i1 // 64, v_i0, v_i1 % 64] = T.float32(0.0)
                        for i2_1_1 in T.unroll(4):
                            with T.block("C_1_update"):
                                vi2_1_1 = T.axis.reduce(4, i2_1_1)
                                v_i0 = T.axis.spatial(12, (i1_0_i0_0_fused - 2) * 6 + i0_1)
                                v_i1 = T.axis.spatial(65, (T.int32(0) + 1) * 64 + i1_1)
                                C_local[v_i1 // 64, v_i0, v_i1 % 64] = C_local[v_i1 // 64, v_i0, v_i1 % 64] + C_local_rf_1[v_i1 // 64, v_i0, v_i1 % 64, vi2_1_1]
                for i2 in range(2):
                    for i0_1 in T.unroll(6):
                        for i1_1 in T.unroll(1):
                            with T.block("C_1_1"):
                                v_i0 = T.axis.spatial(12, (i1_0_i0_0_fused - 2) * 6 + i0_1)
                                v_i1 = T.axis.spatial(65, (T.int32(0) + 1) * 64 + i1_1)
                                v_i2 = T.axis.reduce(98, i2 + 96)
                                with T.init():
                                    C_local[v_i1 // 64, v_i0, v_i1 % 64] = T.float32(0.0)
                                C_local[v_i1 // 64, v_i0, v_i1 % 64] = C_local[v_i1 // 64, v_i0, v_i1 % 64] + A[v_i0, v_i2] * B_global_1[v_i1 - 64, v_i2]
                for ax0 in T.unroll(6):
                    for ax1 in T.unroll(1):
                        with T.block("C_local_1"):
                            v0 = T.axis.spatial(12, (i1_0_i0_0_fused - 2) * 6 + ax0)
                            v1 = T.axis.spatial(65, (T.int32(0) + 1) * 64 + ax1)
                            T.reads(C_local[v1 // 64, v0, v1 % 64])
                            T.writes(C[v0, v1])
                            C[v0, v1] = C_local[v1 // 64, v0, v1 % 64]

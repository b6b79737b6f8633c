# run: opt --pass auto_schedule --pass-config auto_schedule.cpu=x86-64-v4
# A long epilogue is a loop over the rows of a copy of the sums, which have left the registers.
@T.prim_func
def product_sigmoid(
    A: T.Buffer((12, 98), "float32"),
    B: T.Buffer((98, 64), "float32"),
    D: T.Buffer((12, 64), "float32"),
):
    T.func_attr({"layout_free_buffers": [1]})
    C = T.alloc_buffer((12, 64))
    for i, j, k in T.grid(12, 64, 98):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = 0.0
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
    for i, j in T.grid(12, 64):
        with T.block("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = C[vi, vj] * T.sigmoid(C[vi, vj])

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def product_sigmoid(A: T.Buffer((12, 98), "float32"), B: T.Buffer((98, 64), "float32"), D: T.Buffer((12, 64), "float32")):
        T.func_attr({"layout_free_buffers": [1]})
        C = T.alloc_buffer((1, 12, 64), "float32", scope="local")
        B_global = T.alloc_buffer((1, 98, 64), "float32")
        C_local = T.alloc_buffer((1, 12, 64), "float32", scope="local")
        for ax0, ax1 in T.grid(98, 64):
            with T.block("B_global"):
                v0, v1 = T.axis.remap("SS", [ax0, ax1])
                T.reads(B[v0, v1])
                T.writes(B_global[0, v0, v1])
                T.block_attr({"preproc": "layout"})
                B_global[0, v0, v1] = B[v0, v1]
        for i1_0_i0_0_fused in T.parallel(2):
            for i0_1 in T.unroll(6):
                for i1_1_0 in T.unroll(4):
                    for i1_1_1 in T.vectorized(16):
                        with T.block("C_init"):
                            v_i1_0 = T.axis.spatial(1, 0)
                            v_i0 = T.axis.spatial(12, i1_0_i0_0_fused * 6 + i0_1)
                            v_i1_1 = T.axis.spatial(64, i1_1_0 * 16 + i1_1_1)
                            C[0, v_i0, v_i1_1] = T.float32(0.0)
            for i2 in T.serial(98, annotations={"pragma_no_unroll": 1}):
                for i0_1 in T.unroll(6):
                    for i1_1_0 in T.unroll(4):
                        for i1_1_1 in T.vectorized(16):
                            with T.block("C_update"):
                                v_i1_0 = T.axis.spatial(1, 0)
                                v_i0 = T.axis.spatial(12, i1_0_i0_0_fused * 6 + i0_1)
                                v_i1_1 = T.axis.spatial(64, i1_1_0 * 16 + i1_1_1)
                                v_i2 = T.axis.reduce(98, i2)
                                C[0, v_i0, v_i1_1] = C[0, v_i0, v_i1_1] + A[v_i0, v_i2] * B_global[0, v_i2, v_i1_1]
            for ax0 in T.unroll(1):
                for ax1 in T.unroll(6):
                    for ax2_0 in T.unroll(4):
                        for ax2_1 in T.vectorized(16):
                            with T.block("C_local"):
                                v0 = T.axis.spatial(1, ax0)
                                v1 = T.axis.spatial(12, i1_0_i0_0_fused * 6 + ax1)
                                v2 = T.axis.spatial(64, ax2_0 * 16 + ax2_1)
                                T.reads(C[v0, v1, v2])
                                T.writes(C_local[v0, v1, v2])
                                C_local[v0, v1, v2] = C[v0, v1, v2]
            for ax0 in T.serial(6, annotations={"pragma_no_unroll": 1}):
                for ax1_0 in T.unroll(4):
                    for ax1_1 in T.vectorized(16):
                        with T.block("D"):
                            vi = T.axis.spatial(12, i1_0_i0_0_fused * 6 + ax0)
                            vj = T.axis.spatial(64, ax1_0 * 16 + ax1_1)
                            D[vi, vj] = C_local[0, vi, vj] * T.sigmoid(C_local[0, vi, vj])

# run: opt --pass auto_schedule
# What is only read has elements: a sum of two sizes is not zero, and a reduction over it is one of vectors.
@T.prim_func
def top(x_handle: T.handle, y_handle: T.handle, s: T.int32, p: T.int32):
    x = T.match_buffer(x_handle, (s * 14, p + s), "float32")
    y = T.match_buffer(y_handle, (s * 14,), "float32")
    T.func_attr({"tilewright.needs_elements": 1})
    for i, k in T.grid(s * 14, p + s):
        with T.block("top"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                y[vi] = T.float32("-inf")
            y[vi] = T.max(y[vi], x[vi, vk])

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def top(x_handle: T.handle, y_handle: T.handle, s: T.int32, p: T.int32):
        x = T.match_buffer(x_handle, (s * 14, p + s), "float32")
        y = T.match_buffer(y_handle, (s * 14,), "float32")
        T.func_attr({"tilewright.needs_elements": 1})
        y_local = T.alloc_buffer((s * 14,), "float32", scope="local")
        y_local_rf = T.alloc_buffer((s * 14, 32), "float32", scope="local")
        y_local_rf_1 = T.alloc_buffer((s * 14, 8), "float32", scope="local")
        y_local_rf_2 = T.alloc_buffer((s * 14, 4), "float32", scope="local")
        for i in T.parallel(s * 14):
            for k_1_0 in T.unroll(4):
                for k_1_1 in T.vectorized(8):
                    with T.block("top_rf_init"):
                        vk_1 = T.axis.spatial(32, k_1_0 * 8 + k_1_1)
                        vi = T.axis.spatial(s * 14, i)
                        y_local_rf[vi, vk_1] = T.float32("-inf")
            for k_0 in T.serial((s + p) // 32, annotations={"pragma_no_unroll": 1}):
                for k_1_0 in T.unroll(4):
                    for k_1_1 in T.vectorized(8):
                        with T.block("top_rf"):
                            vk_1 = T.axis.spatial(32, k_1_0 * 8 + k_1_1)
                            vi = T.axis.spatial(s * 14, i)
                            vk_0 = T.axis.reduce((p + s + 31) // 32, k_0)
                            y_local_rf[vi, vk_1] = T.max(y_local_rf[vi, vk_1], x[vi, vk_0 * 32 + vk_1])
            for k_0 in range((s + p + 31) // 32 - (s + p) // 32):
                for k_1_0 in T.unroll(4):
                    for k_1_1 in T.vectorized(8):
                        with T.block("top_rf_1"):
                            vk_1 = T.axis.spatial(32, k_1_0 * 8 + k_1_1)
                            vi = T.axis.spatial(s * 14, i)
                            vk_0 = T.axis.reduce((p + s + 31) // 32, k_0 + (s + p) // 32)
                            T.where((k_0 + (s + p) // 32) * 32 + (k_1_0 * 8 + k_1_1) < p + s)
                            y_local_rf[vi, vk_1] = T.max(y_local_rf[vi, vk_1], x[vi, vk_0 * 32 + vk_1])
            for k_1_1 in T.vectorized(8):
                with T.block("top_rf_2_init"):
                    vk_1_1, vi = T.axis.remap("SS", [k_1_1, i])
                    y_local_rf_1[vi, vk_1_1] = T.float32("-inf")
            for k_1_0 in T.unroll(4):
                for k_1_1 in T.vectorized(8):
                    with T.block("top_rf_2_update"):
                        vk_1_1, vk_1_0, vi = T.axis.remap("SRS", [k_1_1, k_1_0, i])
                        y_local_rf_1[vi, vk_1_1] = T.max(y_local_rf_1[vi, vk_1_1], y_local_rf[vi, vk_1_0 * 8 + vk_1_1])
            for k_1_1_1 in T.vectorized(4):
                with T.block("top_rf_2_init_1"):
                    vk_1_1_1, vi = T.axis.remap("SS", [k_1_1_1, i])
                    y_local_rf_2[vi, vk_1_1_1] = T.float32("-inf")
            for k_1_1_0 in T.unroll(2):
                for k_1_1_1 in T.vectorized(4):
                    with T.block("top_rf_2_update_1"):
                        vk_1_1_1, vk_1_1_0, vi = T.axis.remap("SRS", [k_1_1_1, k_1_1_0, i])
                        y_local_rf_2[vi, vk_1_1_1] = T.max(y_local_rf_2[vi, vk_1_1_1], y_local_rf_1[vi, vk_1_1_0 * 4 + vk_1_1_1])
            with T.block("top_init"):
                vi = T.axis.spatial(s * 14, i)
                y_local[vi] = T.float32("-inf")
            for k_1_1_1 in T.unroll(4):
                with T.block("top_update"):
                    vk_1_1_1, vi = T.axis.remap("RS", [k_1_1_1, i])
                    y_local[vi] = T.max(y_local[vi], y_local_rf_2[vi, vk_1_1_1])
            with T.block("y_local"):
                vi = T.axis.spatial(s * 14, i)
                T.reads(y_local[vi])
                T.writes(y[vi])
                y[vi] = y_local[vi]

# run: opt --pass auto_schedule --pass-config cpu=x86-64-v4 --explain
# Sums over rows of an open length that whole vectors divide: nothing is left over, so that no part of the loop is cut off.
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(x_handle: T.handle, y_handle: T.handle):
        n = T.int32()
        h = T.int32()
        x = T.match_buffer(x_handle, (n, h * 320), "float32")
        y = T.match_buffer(y_handle, (n,), "float32")
        T.func_attr({"tilewright.needs_elements": 1})
        for i, k in T.grid(n, h * 320):
            with T.block("y"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    y[vi] = T.float32(0.0)
                y[vi] = y[vi] + x[vi, vk]

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(x_handle: T.handle, y_handle: T.handle):
        n = T.int32()
        h = T.int32()
        x = T.match_buffer(x_handle, (n, h * 320), "float32")
        y = T.match_buffer(y_handle, (n,), "float32")
        T.func_attr({"tilewright.needs_elements": 1})
        y_local = T.alloc_buffer((n,), "float32", scope="local")
        y_local_rf = T.alloc_buffer((n, 64), "float32", scope="local")
        y_local_rf_1 = T.alloc_buffer((n, 16), "float32", scope="local")
        y_local_rf_2 = T.alloc_buffer((n, 4), "float32", scope="local")
        for i in T.parallel(n):
            for k_1_0 in T.unroll(4):
                for k_1_1 in T.vectorized(16):
                    with T.block("y_rf_init"):
                        vk_1 = T.axis.spatial(64, k_1_0 * 16 + k_1_1)
                        vi = T.axis.spatial(n, i)
                        y_local_rf[vi, vk_1] = T.float32(0.0)
            for k_0 in range(h * 5):
                for k_1_0 in T.unroll(4):
                    for k_1_1 in T.vectorized(16):
                        with T.block("y_rf_update"):
                            vk_1 = T.axis.spatial(64, k_1_0 * 16 + k_1_1)
                            vi = T.axis.spatial(n, i)
                            vk_0 = T.axis.reduce(h * 5, k_0)
                            y_local_rf[vi, vk_1] = y_local_rf[vi, vk_1] + x[vi, vk_0 * 64 + vk_1]
            for k_1_1 in T.vectorized(16):
                with T.block("y_rf_init_1"):
                    vk_1_1, vi = T.axis.remap("SS", [k_1_1, i])
                    y_local_rf_1[vi, vk_1_1] = T.float32(0.0)
            for k_1_0 in T.unroll(4):
                for k_1_1 in T.vectorized(16):
                    with T.block("y_rf_update_1"):
                        vk_1_1, vk_1_0, vi = T.axis.remap("SRS", [k_1_1, k_1_0, i])
                        y_local_rf_1[vi, vk_1_1] = y_local_rf_1[vi, vk_1_1] + y_local_rf[vi, vk_1_0 * 16 + vk_1_1]
            for k_1_1_1 in T.vectorized(4):
                with T.block("y_rf_init_2"):
                    vk_1_1_1, vi = T.axis.remap("SS", [k_1_1_1, i])
                    y_local_rf_2[vi, vk_1_1_1] = T.float32(0.0)
            for k_1_1_0 in T.unroll(4):
                for k_1_1_1 in T.vectorized(4):
                    with T.block("y_rf_update_2"):
                        vk_1_1_1, vk_1_1_0, vi = T.axis.remap("SRS", [k_1_1_1, k_1_1_0, i])
                        y_local_rf_2[vi, vk_1_1_1] = y_local_rf_2[vi, vk_1_1_1] + y_local_rf_1[vi, vk_1_1_0 * 4 + vk_1_1_1]
            with T.block("y_init"):
                vi = T.axis.spatial(n, i)
                y_local[vi] = T.float32(0.0)
            for k_1_1_1 in T.unroll(4):
                with T.block("y_update"):
                    vk_1_1_1, vi = T.axis.remap("RS", [k_1_1_1, i])
                    y_local[vi] = y_local[vi] + y_local_rf_2[vi, vk_1_1_1]
            with T.block("y_local"):
                vi = T.axis.spatial(n, i)
                T.reads(y_local[vi])
                T.writes(y[vi])
                y[vi] = y_local[vi]

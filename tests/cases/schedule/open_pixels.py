# run: opt --pass auto_schedule --pass-config cpu=x86-64-v4 --explain
# sizes: n=1, h=2, w=3
# A window over small images of open sizes, whose channels come last: tiles have pixels of any rows and images.
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(x_handle: T.handle, W: T.Buffer((3, 3, 64, 64), "float32"), y_handle: T.handle):
        n = T.int32()
        h = T.int32()
        w = T.int32()
        x = T.match_buffer(x_handle, (n, h + 2, w + 2, 64), "float32")
        y = T.match_buffer(y_handle, (n, h, w, 64), "float32")
        T.func_attr({"tilewright.needs_elements": 1, "tir_var_upper_bound": {"n": 2, "h": 9, "w": 9}})
        for i0, i1, i2, o, c, kh, kw in T.grid(n, h, w, 64, 64, 3, 3):
            with T.block("y"):
                vn, vh, vw, vo, vc, vkh, vkw = T.axis.remap("SSSSRRR", [i0, i1, i2, o, c, kh, kw])
                with T.init():
                    y[vn, vh, vw, vo] = T.float32(0.0)
                y[vn, vh, vw, vo] = y[vn, vh, vw, vo] + x[vn, vh + vkh, vw + vkw, vc] * W[vkh, vkw, vc, vo]

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(x_handle: T.handle, W: T.Buffer((3, 3, 64, 64), "float32"), y_handle: T.handle):
        n = T.int32()
        h = T.int32()
        w = T.int32()
        x = T.match_buffer(x_handle, (n, h + 2, w + 2, 64), "float32")
        y = T.match_buffer(y_handle, (n, h, w, 64), "float32")
        T.func_attr({"tilewright.needs_elements": 1, "tir_var_upper_bound": {"h": 9, "n": 2, "w": 9}})
        W_global = T.alloc_buffer((1, 3, 3, 64, 64), "float32")
        y_local = T.alloc_buffer((1, n * h * w, 64), "float32", scope="local")
        for i3_0_i0_i1_i2_i3_1_fused in T.parallel(36864):
            with T.block("W_global"):
                v_i3_0 = T.axis.spatial(1, 0)
                v_i0 = T.axis.spatial(3, i3_0_i0_i1_i2_i3_1_fused // 12288)
                v_i1 = T.axis.spatial(3, i3_0_i0_i1_i2_i3_1_fused // 4096 % 3)
                v_i2 = T.axis.spatial(64, i3_0_i0_i1_i2_i3_1_fused // 64 % 64)
                v_i3_1 = T.axis.spatial(64, i3_0_i0_i1_i2_i3_1_fused % 64)
                T.reads(W[v_i0, v_i1, v_i2, v_i3_1])
                T.writes(W_global[0, v_i0, v_i1, v_i2, v_i3_1])
                W_global[0, v_i0, v_i1, v_i2, v_i3_1] = W[v_i0, v_i1, v_i2, v_i3_1]
        for i1_0 in range(1):
            for i0_0 in T.parallel(n * h * w // 5):
                for i0_1 in T.unroll(5):
                    for i1_1_0 in T.unroll(4):
                        for i1_1_1 in T.vectorized(16):
                            with T.block("y_init"):
                                v_i1_0 = T.axis.spatial(1, i1_0)
                                v_i0 = T.axis.spatial(n * h * w, i0_0 * 5 + i0_1)
                                v_i1_1 = T.axis.spatial(64, i1_1_0 * 16 + i1_1_1)
                                y_local[0, v_i0, v_i1_1] = T.float32(0.0)
                for i3, i4 in T.grid(3, 3):
                    for i2 in T.serial(64, annotations={"pragma_no_unroll": 1}):
                        for i0_1 in T.unroll(5):
                            for i1_1_0 in T.unroll(4):
                                for i1_1_1 in T.vectorized(16):
                                    with T.block("y_update"):
                                        v_i1_0 = T.axis.spatial(1, i1_0)
                                        v_i0 = T.axis.spatial(n * h * w, i0_0 * 5 + i0_1)
                                        v_i1_1 = T.axis.spatial(64, i1_1_0 * 16 + i1_1_1)
                                        v_i3 = T.axis.reduce(3, i3)
                                        v_i4 = T.axis.reduce(3, i4)
                                        v_i2 = T.axis.reduce(64, i2)
                                        y_local[0, v_i0, v_i1_1] = y_local[0, v_i0, v_i1_1] + x[v_i0 // w // h, v_i0 // w % h + v_i3, v_i0 % w + v_i4, v_i2] * W_global[0, v_i3, v_i4, v_i2, v_i1_1]
                for i0_1 in T.unroll(5):
                    for ax0_0 in T.unroll(4):
                        for ax0_1 in T.vectorized(16):
                            with T.block("y_local"):
                                v_i0_i1_i2 = T.axis.spatial(n * h * w, i0_0 * 5 + i0_1)
                                v_i3 = T.axis.spatial(64, ax0_0 * 16 + ax0_1)
                                T.reads(y_local[0, v_i0_i1_i2, v_i3])
                                T.writes(y[v_i0_i1_i2 // w // h, v_i0_i1_i2 // w % h, v_i0_i1_i2 % w, v_i3])
                                y[v_i0_i1_i2 // w // h, v_i0_i1_i2 // w % h, v_i0_i1_i2 % w, v_i3] = y_local[0, v_i0_i1_i2, v_i3]
            for i0_0 in range((n * h * w % 5 + 1) // 2):
                for i0_1 in T.unroll(2):
                    for i1_1_0 in T.unroll(4):
                        for i1_1_1 in T.vectorized(16):
                            with T.block("y_1_init"):
                                v_i1_0 = T.axis.spatial(1, i1_0)
                                v_i0 = T.axis.spatial(n * h * w, i0_0 * 2 + i0_1 + (n * h * w - n * h * w % 5))
                                v_i1_1 = T.axis.spatial(64, i1_1_0 * 16 + i1_1_1)
                                T.where(i0_0 * 2 + i0_1 < n * h * w % 5)
                                y_local[0, v_i0, v_i1_1] = T.float32(0.0)
                for i3, i4 in T.grid(3, 3):
                    for i2 in T.serial(64, annotations={"pragma_no_unroll": 1}):
                        for i0_1 in T.unroll(2):
                            for i1_1_0 in T.unroll(4):
                                for i1_1_1 in T.vectorized(16):
                                    with T.block("y_1_update"):
                                        v_i1_0 = T.axis.spatial(1, i1_0)
                                        v_i0 = T.axis.spatial(n * h * w, i0_0 * 2 + i0_1 + (n * h * w - n * h * w % 5))
                                        v_i1_1 = T.axis.spatial(64, i1_1_0 * 16 + i1_1_1)
                                        v_i3 = T.axis.reduce(3, i3)
                                        v_i4 = T.axis.reduce(3, i4)
                                        v_i2 = T.axis.reduce(64, i2)
                                        T.where(i0_0 * 2 + i0_1 < n * h * w % 5)
                                        y_local[0, v_i0, v_i1_1] = y_local[0, v_i0, v_i1_1] + x[v_i0 // w // h, v_i0 // w % h + v_i3, v_i0 % w + v_i4, v_i2] * W_global[0, v_i3, v_i4, v_i2, v_i1_1]
                for i0_1 in T.unroll(2):
                    for ax0_0 in T.unroll(4):
                        for ax0_1 in T.vectorized(16):
                            with T.block("y_local_1"):
                                v_i0_i1_i2 = T.axis.spatial(n * h * w, i0_0 * 2 + i0_1 + (n * h * w - n * h * w % 5))
                                v_i3 = T.axis.spatial(64, ax0_0 * 16 + ax0_1)
                                T.where(i0_0 * 2 + i0_1 < n * h * w % 5)
                                T.reads(y_local[0, v_i0_i1_i2, v_i3])
                                T.writes(y[v_i0_i1_i2 // w // h, v_i0_i1_i2 // w % h, v_i0_i1_i2 % w, v_i3])
                                y[v_i0_i1_i2 // w // h, v_i0_i1_i2 // w % h, v_i0_i1_i2 % w, v_i3] = y_local[0, v_i0_i1_i2, v_i3]

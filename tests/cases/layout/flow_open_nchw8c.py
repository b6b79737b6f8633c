# run: opt --pass flow_layout --pass-config flow_layout.policy=nchw8c
# sizes: H=4, W=5
# Height and width are open, the 6 channels are not: they lie in a block of 8, also in what is between
# the convolutions. The height after pooling is an expression of the one before, which the second
# convolution takes as a number.
@I.ir_module
class Module:
    @T.prim_func
    def conv(x_handle: T.handle, w: T.Buffer((6, 6, 3, 3), "float32"), y_handle: T.handle):
        H = T.int32()
        W = T.int32()
        x = T.match_buffer(x_handle, (1, 6, H, W), "float32")
        y = T.match_buffer(y_handle, (1, 6, H, W), "float32")
        x_pad = T.alloc_buffer((1, 6, H + 2, W + 2), "float32")
        for n, c, i, j in T.grid(1, 6, H + 2, W + 2):
            with T.block("x_pad"):
                vn, vc, vi, vj = T.axis.remap("SSSS", [n, c, i, j])
                x_pad[vn, vc, vi, vj] = T.if_then_else(vi >= 1 and vi < H + 1 and vj >= 1 and vj < W + 1, x[vn, vc, vi - 1, vj - 1], T.float32(0))
        for n, m, i, j, c, p, q in T.grid(1, 6, H, W, 6, 3, 3):
            with T.block("y"):
                vn, vm, vi, vj, vc, vp, vq = T.axis.remap("SSSSRRR", [n, m, i, j, c, p, q])
                with T.init():
                    y[vn, vm, vi, vj] = T.float32(0)
                y[vn, vm, vi, vj] = y[vn, vm, vi, vj] + x_pad[vn, vc, vi + vp, vj + vq] * w[vm, vc, vp, vq]

    @T.prim_func
    def bias_relu(x_handle: T.handle, b: T.Buffer((6,), "float32"), y_handle: T.handle):
        H = T.int32()
        W = T.int32()
        x = T.match_buffer(x_handle, (1, 6, H, W), "float32")
        y = T.match_buffer(y_handle, (1, 6, H, W), "float32")
        for n, m, i, j in T.grid(1, 6, H, W):
            with T.block("y"):
                vn, vm, vi, vj = T.axis.remap("SSSS", [n, m, i, j])
                y[vn, vm, vi, vj] = T.max(x[vn, vm, vi, vj] + b[vm], T.float32(0))

    @T.prim_func
    def pool(x_handle: T.handle, y_handle: T.handle):
        H = T.int32()
        W = T.int32()
        x = T.match_buffer(x_handle, (1, 6, H, W), "float32")
        y = T.match_buffer(y_handle, (1, 6, (H + 1) // 2, W), "float32")
        for n, m, i, j in T.grid(1, 6, (H + 1) // 2, W):
            with T.block("y"):
                vn, vm, vi, vj = T.axis.remap("SSSS", [n, m, i, j])
                y[vn, vm, vi, vj] = x[vn, vm, vi * 2, vj]

    @R.function
    def main(x: R.Tensor((1, 6, "H", "W"), "float32"), w: R.Tensor((6, 6, 3, 3), "float32"), b: R.Tensor((6,), "float32")):
        H = T.int64()
        W = T.int64()
        cls = Module
        with R.dataflow():
            c = R.call_tir(cls.conv, (x, w), out_sinfo=R.Tensor((1, 6, H, W), "float32"))
            r = R.call_tir(cls.bias_relu, (c, b), out_sinfo=R.Tensor((1, 6, H, W), "float32"))
            p = R.call_tir(cls.pool, (r,), out_sinfo=R.Tensor((1, 6, (H + 1) // 2, W), "float32"))
            y = R.call_tir(cls.conv, (p, w), out_sinfo=R.Tensor((1, 6, (H + 1) // 2, W), "float32"))
            R.output(y)
        return y

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T
from tvm.script import relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((1, 6, "H", "W"), dtype="float32"), w: R.Tensor((6, 6, 3, 3), dtype="float32"), b: R.Tensor((6,), dtype="float32")):
        H = T.int64()
        W = T.int64()
        cls = Module
        with R.dataflow():
            x_1 = R.call_tir(cls.pack, (x,), out_sinfo=R.Tensor((1, 1, H, W, 8), dtype="float32"))
            w_1 = R.call_tir(cls.pack_1, (w,), out_sinfo=R.Tensor((1, 1, 3, 3, 8, 8), dtype="float32"))
            c = R.call_tir(cls.conv_physical, (x_1, w_1), out_sinfo=R.Tensor((1, 1, H, W, 8), dtype="float32"))
            b_1 = R.call_tir(cls.pack_2, (b,), out_sinfo=R.Tensor((1, 8), dtype="float32"))
            r = R.call_tir(cls.bias_relu_physical, (c, b_1), out_sinfo=R.Tensor((1, 1, H, W, 8), dtype="float32"))
            p = R.call_tir(cls.pool_physical, (r,), out_sinfo=R.Tensor((1, 1, (H + 1) // 2, W, 8), dtype="float32"))
            p_1 = R.call_tir(cls.pad, (p,), out_sinfo=R.Tensor((1, 1, (H + 1) // 2, W, 8), dtype="float32"), tir_vars=R.shape([T.Cast("int32", H)]))
            y = R.call_tir(cls.conv_1_physical, (p_1, w_1), out_sinfo=R.Tensor((1, 1, (H + 1) // 2, W, 8), dtype="float32"), tir_vars=R.shape([T.Cast("int32", H)]))
            y_1 = R.call_tir(cls.crop, (y,), out_sinfo=R.Tensor((1, 6, (H + 1) // 2, W), dtype="float32"), tir_vars=R.shape([T.Cast("int32", H)]))
            R.output(y_1)
        return y_1

    @T.prim_func
    def pack(x_handle: T.handle, y_handle: T.handle):
        H = T.int32()
        W = T.int32()
        x = T.match_buffer(x_handle, (1, 6, H, W), "float32")
        y = T.match_buffer(y_handle, (1, 1, H, W, 8), "float32")
        for c0, c1, c2, c3, c4 in T.grid(1, 1, H, W, 8):
            with T.block("pack"):
                vc0, vc1, vc2, vc3, vc4 = T.axis.remap("SSSSS", [c0, c1, c2, c3, c4])
                y[vc0, vc1, vc2, vc3, vc4] = T.if_then_else(vc1 * 8 + vc4 < 6, x[vc0, vc1 * 8 + vc4, vc2, vc3], T.float32(0.0))

    @T.prim_func
    def pack_1(x: T.Buffer((6, 6, 3, 3), "float32"), y: T.Buffer((1, 1, 3, 3, 8, 8), "float32")):
        for c0, c1, c2, c3, c4, c5 in T.grid(1, 1, 3, 3, 8, 8):
            with T.block("pack"):
                vc0, vc1, vc2, vc3, vc4, vc5 = T.axis.remap("SSSSSS", [c0, c1, c2, c3, c4, c5])
                y[vc0, vc1, vc2, vc3, vc4, vc5] = T.if_then_else(vc0 * 8 + vc5 < 6 and vc1 * 8 + vc4 < 6, x[vc0 * 8 + vc5, vc1 * 8 + vc4, vc2, vc3], T.float32(0.0))

    @T.prim_func
    def conv_physical(x_handle: T.handle, w: T.Buffer((1, 1, 3, 3, 8, 8), "float32"), y_handle: T.handle):
        H = T.int32()
        W = T.int32()
        x = T.match_buffer(x_handle, (1, 1, H, W, 8), "float32")
        y = T.match_buffer(y_handle, (1, 1, H, W, 8), "float32")
        x_pad = T.alloc_buffer((1, 1, H + 2, W + 2, 8), "float32")
        for n, c_0, i, j, c_1 in T.grid(1, 1, H + 2, W + 2, 8):
            with T.block("x_pad"):
                vn, vc_0, vi, vj, vc_1 = T.axis.remap("SSSSS", [n, c_0, i, j, c_1])
                x_pad[vn, vc_0, vi, vj, vc_1] = T.if_then_else(vi >= 1 and vi < H + 1 and vj >= 1 and vj < W + 1, x[vn, vc_0, vi - 1, vj - 1, vc_1], T.float32(0.0))
        for n, m_0, i, j, m_1, c_0, c_1, p, q in T.grid(1, 1, H, W, 8, 1, 8, 3, 3):
            with T.block("y"):
                vn, vm_0, vi, vj, vm_1, vc_0, vc_1, vp, vq = T.axis.remap("SSSSSRRRR", [n, m_0, i, j, m_1, c_0, c_1, p, q])
                with T.init():
                    y[vn, vm_0, vi, vj, vm_1] = T.float32(0.0)
                y[vn, vm_0, vi, vj, vm_1] = y[vn, vm_0, vi, vj, vm_1] + x_pad[vn, vc_0, vi + vp, vj + vq, vc_1] * w[vm_0, vc_0, vp, vq, vc_1, vm_1]

    @T.prim_func
    def pack_2(x: T.Buffer((6,), "float32"), y: T.Buffer((1, 8), "float32")):
        for c0, c1 in T.grid(1, 8):
            with T.block("pack"):
                vc0, vc1 = T.axis.remap("SS", [c0, c1])
                y[vc0, vc1] = T.if_then_else(vc0 * 8 + vc1 < 6, x[vc0 * 8 + vc1], T.float32(0.0))

    @T.prim_func
    def bias_relu_physical(x_handle: T.handle, b: T.Buffer((1, 8), "float32"), y_handle: T.handle):
        H = T.int32()
        W = T.int32()
        x = T.match_buffer(x_handle, (1, 1, H, W, 8), "float32")
        y = T.match_buffer(y_handle, (1, 1, H, W, 8), "float32")
        for n, m_0, i, j, m_1 in T.grid(1, 1, H, W, 8):
            with T.block("y"):
                vn, vm_0, vi, vj, vm_1 = T.axis.remap("SSSSS", [n, m_0, i, j, m_1])
                y[vn, vm_0, vi, vj, vm_1] = T.max(x[vn, vm_0, vi, vj, vm_1] + b[vm_0, vm_1], T.float32(0.0))

    @T.prim_func
    def pool_physical(x_handle: T.handle, y_handle: T.handle):
        H = T.int32()
        W = T.int32()
        x = T.match_buffer(x_handle, (1, 1, H, W, 8), "float32")
        y = T.match_buffer(y_handle, (1, 1, (H + 1) // 2, W, 8), "float32")
        for n, m_0, i, j, m_1 in T.grid(1, 1, (H + 1) // 2, W, 8):
            with T.block("y"):
                vn, vm_0, vi, vj, vm_1 = T.axis.remap("SSSSS", [n, m_0, i, j, m_1])
                y[vn, vm_0, vi, vj, vm_1] = x[vn, vm_0, vi * 2, vj, vm_1]

    @T.prim_func
    def pad(x_handle: T.handle, y_handle: T.handle, H: T.int32):
        W = T.int32()
        x = T.match_buffer(x_handle, (1, 1, (H + 1) // 2, W, 8), "float32")
        y = T.match_buffer(y_handle, (1, 1, (H + 1) // 2, W, 8), "float32")
        for c0, c1, c2, c3, c4 in T.grid(1, 1, (H + 1) // 2, W, 8):
            with T.block("pad"):
                vc0, vc1, vc2, vc3, vc4 = T.axis.remap("SSSSS", [c0, c1, c2, c3, c4])
                y[vc0, vc1, vc2, vc3, vc4] = T.if_then_else(vc4 < 6, x[0, 0, vc2, vc3, vc4], T.float32(0.0))

    @T.prim_func
    def conv_1_physical(x_handle: T.handle, w: T.Buffer((1, 1, 3, 3, 8, 8), "float32"), y_handle: T.handle, H: T.int32):
        W = T.int32()
        x = T.match_buffer(x_handle, (1, 1, (H + 1) // 2, W, 8), "float32")
        y = T.match_buffer(y_handle, (1, 1, (H + 1) // 2, W, 8), "float32")
        x_pad = T.alloc_buffer((1, 1, (H + 1) // 2 + 2, W + 2, 8), "float32")
        for n, c_0, i, j, c_1 in T.grid(1, 1, (H + 1) // 2 + 2, W + 2, 8):
            with T.block("x_pad"):
                vn, vc_0, vi, vj, vc_1 = T.axis.remap("SSSSS", [n, c_0, i, j, c_1])
                x_pad[vn, vc_0, vi, vj, vc_1] = T.if_then_else(vi >= 1 and vi < (H + 1) // 2 + 1 and vj >= 1 and vj < W + 1, x[vn, vc_0, vi - 1, vj - 1, vc_1], T.float32(0.0))
        for n, m_0, i, j, m_1, c_0, c_1, p, q in T.grid(1, 1, (H + 1) // 2, W, 8, 1, 8, 3, 3):
            with T.block("y"):
                vn, vm_0, vi, vj, vm_1, vc_0, vc_1, vp, vq = T.axis.remap("SSSSSRRRR", [n, m_0, i, j, m_1, c_0, c_1, p, q])
                with T.init():
                    y[vn, vm_0, vi, vj, vm_1] = T.float32(0.0)
                y[vn, vm_0, vi, vj, vm_1] = y[vn, vm_0, vi, vj, vm_1] + x_pad[vn, vc_0, vi + vp, vj + vq, vc_1] * w[vm_0, vc_0, vp, vq, vc_1, vm_1]

    @T.prim_func
    def crop(x_handle: T.handle, y_handle: T.handle, H: T.int32):
        W = T.int32()
        x = T.match_buffer(x_handle, (1, 1, (H + 1) // 2, W, 8), "float32")
        y = T.match_buffer(y_handle, (1, 6, (H + 1) // 2, W), "float32")
        for i0, i1, i2, i3 in T.grid(1, 6, (H + 1) // 2, W):
            with T.block("crop"):
                vi0, vi1, vi2, vi3 = T.axis.remap("SSSS", [i0, i1, i2, i3])
                y[vi0, vi1, vi2, vi3] = x[vi0, vi1 // 8, vi2, vi3, vi1 % 8]

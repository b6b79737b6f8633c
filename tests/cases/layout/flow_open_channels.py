# run: opt --explain --pass flow_layout --pass-config flow_layout.policy=nchw8c
# sizes: C=6
# How many channels there are is open, and blocks of 8 do not divide every number: the convolution
# keeps its layout, and says why.
@I.ir_module
class Module:
    @T.prim_func
    def conv(x_handle: T.handle, w_handle: T.handle, y: T.Buffer((1, 8, 4, 4), "float32")):
        #^^^ remark: `conv` is not computed in nchw8c
        # note: axis 1 of `x`, its channels, is `C` long, which is not a multiple of the blocks of nchw8c for every size
        C = T.int32()
        x = T.match_buffer(x_handle, (1, C, 6, 6), "float32")
        w = T.match_buffer(w_handle, (8, C, 3, 3), "float32")
        for n, m, i, j, c, p, q in T.grid(1, 8, 4, 4, C, 3, 3):
            with T.block("y"):
                vn, vm, vi, vj, vc, vp, vq = T.axis.remap("SSSSRRR", [n, m, i, j, c, p, q])
                with T.init():
                    y[vn, vm, vi, vj] = T.float32(0)
                y[vn, vm, vi, vj] = y[vn, vm, vi, vj] + x[vn, vc, vi + vp, vj + vq] * w[vm, vc, vp, vq]

    @R.function
    def main(x: R.Tensor((1, "C", 6, 6), "float32"), w: R.Tensor((8, "C", 3, 3), "float32")):
        C = T.int64()
        cls = Module
        with R.dataflow():
            y = R.call_tir(cls.conv, (x, w), out_sinfo=R.Tensor((1, 8, 4, 4), "float32"))
            R.output(y)
        return y

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T
from tvm.script import relax as R


@I.ir_module
class Module:
    @T.prim_func
    def conv(x_handle: T.handle, w_handle: T.handle, y: T.Buffer((1, 8, 4, 4), "float32")):
        C = T.int32()
        x = T.match_buffer(x_handle, (1, C, 6, 6), "float32")
        w = T.match_buffer(w_handle, (8, C, 3, 3), "float32")
        for n, m, i, j, c, p, q in T.grid(1, 8, 4, 4, C, 3, 3):
            with T.block("y"):
                vn, vm, vi, vj, vc, vp, vq = T.axis.remap("SSSSRRR", [n, m, i, j, c, p, q])
                with T.init():
                    y[vn, vm, vi, vj] = T.float32(0.0)
                y[vn, vm, vi, vj] = y[vn, vm, vi, vj] + x[vn, vc, vi + vp, vj + vq] * w[vm, vc, vp, vq]

    @R.function
    def main(x: R.Tensor((1, "C", 6, 6), dtype="float32"), w: R.Tensor((8, "C", 3, 3), dtype="float32")):
        C = T.int64()
        cls = Module
        with R.dataflow():
            y = R.call_tir(cls.conv, (x, w), out_sinfo=R.Tensor((1, 8, 4, 4), dtype="float32"))
            R.output(y)
        return y

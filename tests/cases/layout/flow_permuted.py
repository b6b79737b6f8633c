# run: opt --pass flow_layout --pass-config flow_layout.policy=nhwc
# A convolution between two transposes reads and writes what is on their other sides: a value that is another one
# with its axes in another order has the layouts of that.
@I.ir_module
class Module:
    @T.prim_func
    def to_channels_first(x: T.Buffer((1, 5, 6, 3)), y: T.Buffer((1, 3, 5, 6))):
        for n, c, h, w in T.grid(1, 3, 5, 6):
            with T.block("y"):
                vn, vc, vh, vw = T.axis.remap("SSSS", [n, c, h, w])
                y[vn, vc, vh, vw] = x[vn, vh, vw, vc]

    @T.prim_func
    def to_channels_last(x: T.Buffer((1, 4, 5, 6)), y: T.Buffer((1, 5, 6, 4))):
        for n, h, w, c in T.grid(1, 5, 6, 4):
            with T.block("y"):
                vn, vh, vw, vc = T.axis.remap("SSSS", [n, h, w, c])
                y[vn, vh, vw, vc] = x[vn, vc, vh, vw]

    @T.prim_func
    def conv(x: T.Buffer((1, 3, 5, 6)), w: T.Buffer((4, 3, 1, 1)), y: T.Buffer((1, 4, 5, 6))):
        for n, o, h, k, c, i, j in T.grid(1, 4, 5, 6, 3, 1, 1):
            with T.block("y"):
                vn, vo, vh, vk, vc, vi, vj = T.axis.remap("SSSSRRR", [n, o, h, k, c, i, j])
                with T.init():
                    y[vn, vo, vh, vk] = 0.0
                y[vn, vo, vh, vk] = y[vn, vo, vh, vk] + x[vn, vc, vh + vi, vk + vj] * w[vo, vc, vi, vj]

    @R.function
    def main(x: R.Tensor((1, 5, 6, 3), "float32"), w: R.Tensor((4, 3, 1, 1), "float32")):
        cls = Module
        with R.dataflow():
            a = R.call_tir(cls.to_channels_first, (x,), out_sinfo=R.Tensor((1, 3, 5, 6), "float32"))
            b = R.call_tir(cls.conv, (a, w), out_sinfo=R.Tensor((1, 4, 5, 6), "float32"))
            c = R.call_tir(cls.to_channels_last, (b,), out_sinfo=R.Tensor((1, 5, 6, 4), "float32"))
            R.output(c)
        return c

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T
from tvm.script import relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((1, 5, 6, 3), dtype="float32"), w: R.Tensor((4, 3, 1, 1), dtype="float32")):
        cls = Module
        with R.dataflow():
            w_1 = R.call_tir(cls.pack, (w,), out_sinfo=R.Tensor((1, 1, 3, 4), dtype="float32"))
            b = R.call_tir(cls.conv_physical, (x, w_1), out_sinfo=R.Tensor((1, 5, 6, 4), dtype="float32"))
            R.output(b)
        return b

    @T.prim_func
    def pack(x: T.Buffer((4, 3, 1, 1), "float32"), y: T.Buffer((1, 1, 3, 4), "float32")):
        for c0, c1, c2, c3 in T.grid(1, 1, 3, 4):
            with T.block("pack"):
                vc0, vc1, vc2, vc3 = T.axis.remap("SSSS", [c0, c1, c2, c3])
                y[vc0, vc1, vc2, vc3] = x[vc3, vc2, vc0, vc1]

    @T.prim_func
    def conv_physical(x: T.Buffer((1, 5, 6, 3), "float32"), w: T.Buffer((1, 1, 3, 4), "float32"), y: T.Buffer((1, 5, 6, 4), "float32")):
        for n, h, k, o, c, i, j in T.grid(1, 5, 6, 4, 3, 1, 1):
            with T.block("y"):
                vn, vh, vk, vo, vc, vi, vj = T.axis.remap("SSSSRRR", [n, h, k, o, c, i, j])
                with T.init():
                    y[vn, vh, vk, vo] = T.float32(0.0)
                y[vn, vh, vk, vo] = y[vn, vh, vk, vo] + x[vn, vh + vi, vk + vj, vc] * w[vi, vj, vc, vo]

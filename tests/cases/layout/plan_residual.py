# run: opt --pass plan_layout
# A residual block: one layout for both convolutions and what lies between, since that costs less than
# any other choice for this processor, conversions of input, weights and result included.
@I.ir_module
class Module:
    @T.prim_func
    def conv(x: T.Buffer((1, 32, 28, 28), "float32"), w: T.Buffer((32, 32, 3, 3), "float32"), y: T.Buffer((1, 32, 28, 28), "float32")):
        x_pad = T.alloc_buffer((1, 32, 30, 30), "float32")
        for n, c, i, j in T.grid(1, 32, 30, 30):
            with T.block("x_pad"):
                vn, vc, vi, vj = T.axis.remap("SSSS", [n, c, i, j])
                x_pad[vn, vc, vi, vj] = T.if_then_else(vi >= 1 and vi < 29 and vj >= 1 and vj < 29, x[vn, vc, vi - 1, vj - 1], T.float32(0))
        for n, m, i, j, c, p, q in T.grid(1, 32, 28, 28, 32, 3, 3):
            with T.block("y"):
                vn, vm, vi, vj, vc, vp, vq = T.axis.remap("SSSSRRR", [n, m, i, j, c, p, q])
                with T.init():
                    y[vn, vm, vi, vj] = T.float32(0)
                y[vn, vm, vi, vj] = y[vn, vm, vi, vj] + x_pad[vn, vc, vi + vp, vj + vq] * w[vm, vc, vp, vq]

    @T.prim_func
    def bias_relu(x: T.Buffer((1, 32, 28, 28), "float32"), b: T.Buffer((32,), "float32"), y: T.Buffer((1, 32, 28, 28), "float32")):
        for n, m, i, j in T.grid(1, 32, 28, 28):
            with T.block("y"):
                vn, vm, vi, vj = T.axis.remap("SSSS", [n, m, i, j])
                y[vn, vm, vi, vj] = T.max(x[vn, vm, vi, vj] + b[vm], T.float32(0))

    @T.prim_func
    def add(x: T.Buffer((1, 32, 28, 28), "float32"), z: T.Buffer((1, 32, 28, 28), "float32"), y: T.Buffer((1, 32, 28, 28), "float32")):
        for n, m, i, j in T.grid(1, 32, 28, 28):
            with T.block("y"):
                vn, vm, vi, vj = T.axis.remap("SSSS", [n, m, i, j])
                y[vn, vm, vi, vj] = x[vn, vm, vi, vj] + z[vn, vm, vi, vj]

    @R.function
    def main(x: R.Tensor((1, 32, 28, 28), "float32"), w: R.Tensor((32, 32, 3, 3), "float32"), b: R.Tensor((32,), "float32")):
        cls = Module
        with R.dataflow():
            c = R.call_tir(cls.conv, (x, w), out_sinfo=R.Tensor((1, 32, 28, 28), "float32"))
            r = R.call_tir(cls.bias_relu, (c, b), out_sinfo=R.Tensor((1, 32, 28, 28), "float32"))
            d = R.call_tir(cls.conv, (r, w), out_sinfo=R.Tensor((1, 32, 28, 28), "float32"))
            y = R.call_tir(cls.add, (d, r), out_sinfo=R.Tensor((1, 32, 28, 28), "float32"))
            R.output(y)
        return y

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T
from tvm.script import relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((1, 32, 28, 28), dtype="float32"), w: R.Tensor((32, 32, 3, 3), dtype="float32"), b: R.Tensor((32,), dtype="float32")):
        cls = Module
        with R.dataflow():
            x_1 = R.call_tir(cls.pack, (x,), out_sinfo=R.Tensor((1, 28, 28, 32), dtype="float32"))
            w_1 = R.call_tir(cls.pack_1, (w,), out_sinfo=R.Tensor((3, 3, 32, 32), dtype="float32"))
            c = R.call_tir(cls.conv_physical, (x_1, w_1), out_sinfo=R.Tensor((1, 28, 28, 32), dtype="float32"))
            r = R.call_tir(cls.bias_relu_physical, (c, b), out_sinfo=R.Tensor((1, 28, 28, 32), dtype="float32"))
            d = R.call_tir(cls.conv_physical, (r, w_1), out_sinfo=R.Tensor((1, 28, 28, 32), dtype="float32"))
            y = R.call_tir(cls.add_physical, (d, r), out_sinfo=R.Tensor((1, 28, 28, 32), dtype="float32"))
            y_1 = R.call_tir(cls.crop, (y,), out_sinfo=R.Tensor((1, 32, 28, 28), dtype="float32"))
            R.output(y_1)
        return y_1

    @T.prim_func
    def pack(x: T.Buffer((1, 32, 28, 28), "float32"), y: T.Buffer((1, 28, 28, 32), "float32")):
        for c0, c1, c2, c3 in T.grid(1, 28, 28, 32):
            with T.block("pack"):
                vc0, vc1, vc2, vc3 = T.axis.remap("SSSS", [c0, c1, c2, c3])
                y[vc0, vc1, vc2, vc3] = x[vc0, vc3, vc1, vc2]

    @T.prim_func
    def pack_1(x: T.Buffer((32, 32, 3, 3), "float32"), y: T.Buffer((3, 3, 32, 32), "float32")):
        for c0, c1, c2, c3 in T.grid(3, 3, 32, 32):
            with T.block("pack"):
                vc0, vc1, vc2, vc3 = T.axis.remap("SSSS", [c0, c1, c2, c3])
                y[vc0, vc1, vc2, vc3] = x[vc3, vc2, vc0, vc1]

    @T.prim_func
    def conv_physical(x: T.Buffer((1, 28, 28, 32), "float32"), w: T.Buffer((3, 3, 32, 32), "float32"), y: T.Buffer((1, 28, 28, 32), "float32")):
        x_pad = T.alloc_buffer((1, 30, 30, 32), "float32")
        for n, i, j, c in T.grid(1, 30, 30, 32):
            with T.block("x_pad"):
                vn, vi, vj, vc = T.axis.remap("SSSS", [n, i, j, c])
                x_pad[vn, vi, vj, vc] = T.if_then_else(vi >= 1 and vi < 29 and vj >= 1 and vj < 29, x[vn, vi - 1, vj - 1, vc], T.float32(0.0))
        for n, i, j, m, c, p, q in T.grid(1, 28, 28, 32, 32, 3, 3):
            with T.block("y"):
                vn, vi, vj, vm, vc, vp, vq = T.axis.remap("SSSSRRR", [n, i, j, m, c, p, q])
                with T.init():
                    y[vn, vi, vj, vm] = T.float32(0.0)
                y[vn, vi, vj, vm] = y[vn, vi, vj, vm] + x_pad[vn, vi + vp, vj + vq, vc] * w[vp, vq, vc, vm]

    @T.prim_func
    def bias_relu_physical(x: T.Buffer((1, 28, 28, 32), "float32"), b: T.Buffer((32,), "float32"), y: T.Buffer((1, 28, 28, 32), "float32")):
        for n, i, j, m in T.grid(1, 28, 28, 32):
            with T.block("y"):
                vn, vi, vj, vm = T.axis.remap("SSSS", [n, i, j, m])
                y[vn, vi, vj, vm] = T.max(x[vn, vi, vj, vm] + b[vm], T.float32(0.0))

    @T.prim_func
    def add_physical(x: T.Buffer((1, 28, 28, 32), "float32"), z: T.Buffer((1, 28, 28, 32), "float32"), y: T.Buffer((1, 28, 28, 32), "float32")):
        for n, i, j, m in T.grid(1, 28, 28, 32):
            with T.block("y"):
                vn, vi, vj, vm = T.axis.remap("SSSS", [n, i, j, m])
                y[vn, vi, vj, vm] = x[vn, vi, vj, vm] + z[vn, vi, vj, vm]

    @T.prim_func
    def crop(x: T.Buffer((1, 28, 28, 32), "float32"), y: T.Buffer((1, 32, 28, 28), "float32")):
        for i0, i1, i2, i3 in T.grid(1, 32, 28, 28):
            with T.block("crop"):
                vi0, vi1, vi2, vi3 = T.axis.remap("SSSS", [i0, i1, i2, i3])
                y[vi0, vi1, vi2, vi3] = x[vi0, vi2, vi3, vi1]

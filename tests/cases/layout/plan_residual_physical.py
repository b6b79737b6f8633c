# run: opt --pass plan_layout --pass-config plan_layout.io=physical
# Inputs and results are stored as the plan has them, without a conversion at run time; the attributes
# say how.
# semantics: not compared, because the result has another shape
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

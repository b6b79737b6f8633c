# run: opt --pass collapse_axes
# sizes: b=2, n=6
# Rows of `x`, whose number is open, could be one axis with its columns. The results' extents are known and stay
# apart: so does what is walked with them. In `whole` nothing is known, and all are one.
@I.ir_module
class Module:
    @T.prim_func
    def corner(x: T.handle, m: T.handle, y: T.handle):
        b = T.int32()
        n = T.int32()
        X = T.match_buffer(x, (b, n, 4, 9), "float32")
        M = T.match_buffer(m, (b, 3, 4, 5), "float32")
        Y = T.match_buffer(y, (b, 3, 4, 5), "float32")
        for i0, i1, i2, i3 in T.grid(b, 3, 4, 5):
            with T.block("corner"):
                v0, v1, v2, v3 = T.axis.remap("SSSS", [i0, i1, i2, i3])
                Y[v0, v1, v2, v3] = X[v0, v1, v2, v3] * M[v0, v1, v2, v3]

    @T.prim_func
    def whole(x: T.handle, y: T.handle):
        b = T.int32()
        n = T.int32()
        X = T.match_buffer(x, (b, n, 4, 9), "float32")
        Y = T.match_buffer(y, (b, n, 4, 9), "float32")
        for i0, i1, i2, i3 in T.grid(b, n, 4, 9):
            with T.block("whole"):
                v0, v1, v2, v3 = T.axis.remap("SSSS", [i0, i1, i2, i3])
                Y[v0, v1, v2, v3] = X[v0, v1, v2, v3] * T.float32(2)

    @R.function
    def main(x: R.Tensor(("b", "n", 4, 9), "float32"), m: R.Tensor(("b", 3, 4, 5), "float32")):
        b = T.int64()
        n = T.int64()
        with R.dataflow():
            y = R.call_tir(Module.whole, (x,), out_sinfo=R.Tensor((b, n, 4, 9), "float32"))
            z = R.call_tir(Module.corner, (y, m), out_sinfo=R.Tensor((b, 3, 4, 5), "float32"))
            R.output(z)
        return z

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T
from tvm.script import relax as R


@I.ir_module
class Module:
    @T.prim_func
    def corner(x: T.handle, m: T.handle, y: T.handle):
        b = T.int32()
        n = T.int32()
        X = T.match_buffer(x, (b, n, 4, 9), "float32")
        M = T.match_buffer(m, (b, 3, 4, 5), "float32")
        Y = T.match_buffer(y, (b, 3, 4, 5), "float32")
        for i0, i1, i2, i3 in T.grid(b, 3, 4, 5):
            with T.block("corner"):
                v0, v1, v2, v3 = T.axis.remap("SSSS", [i0, i1, i2, i3])
                Y[v0, v1, v2, v3] = X[v0, v1, v2, v3] * M[v0, v1, v2, v3]

    @R.function
    def main(x: R.Tensor(("b", "n", 4, 9), dtype="float32"), m: R.Tensor(("b", 3, 4, 5), dtype="float32")):
        b = T.int64()
        n = T.int64()
        cls = Module
        with R.dataflow():
            x_1 = R.call_tir(cls.view, (x,), out_sinfo=R.Tensor((b * n * 36,), dtype="float32"))
            y = R.call_tir(cls.whole_1, (x_1,), out_sinfo=R.Tensor((b * n * 36,), dtype="float32"), tir_vars=R.shape([T.Cast("int32", b), T.Cast("int32", n)]))
            y_1 = R.call_tir(cls.view_1, (y,), out_sinfo=R.Tensor((b, n, 4, 9), dtype="float32"))
            z = R.call_tir(cls.corner, (y_1, m), out_sinfo=R.Tensor((b, 3, 4, 5), dtype="float32"))
            R.output(z)
        return z

    @T.prim_func
    def whole_1(X_handle: T.handle, Y_handle: T.handle, b: T.int32, n: T.int32):
        X = T.match_buffer(X_handle, (b * n * 36,), "float32")
        Y = T.match_buffer(Y_handle, (b * n * 36,), "float32")
        for v0 in range(b * n * 36):
            with T.block("whole"):
                v0_1 = T.axis.spatial(b * n * 36, v0)
                Y[v0_1] = X[v0_1] * T.float32(2.0)

    @T.prim_func
    def view(x_handle: T.handle, view_handle: T.handle):
        b = T.int32()
        n = T.int32()
        x = T.match_buffer(x_handle, (b, n, 4, 9), "float32")
        view = T.match_buffer(view_handle, (b * n * 36,), "float32")
        T.func_attr({"tilewright.view": 1})
        for v0, v1, v2, v3 in T.grid(b, n, 4, 9):
            with T.block("view"):
                v0_1, v1_1, v2_1, v3_1 = T.axis.remap("SSSS", [v0, v1, v2, v3])
                view[((v0_1 * n + v1_1) * 4 + v2_1) * 9 + v3_1] = x[v0_1, v1_1, v2_1, v3_1]

    @T.prim_func
    def view_1(view_handle: T.handle, x_handle: T.handle):
        b = T.int32()
        n = T.int32()
        view = T.match_buffer(view_handle, (b * n * 36,), "float32")
        x = T.match_buffer(x_handle, (b, n, 4, 9), "float32")
        T.func_attr({"tilewright.view": 1})
        for v0, v1, v2, v3 in T.grid(b, n, 4, 9):
            with T.block("view"):
                v0_1, v1_1, v2_1, v3_1 = T.axis.remap("SSSS", [v0, v1, v2, v3])
                x[v0_1, v1_1, v2_1, v3_1] = view[((v0_1 * n + v1_1) * 4 + v2_1) * 9 + v3_1]

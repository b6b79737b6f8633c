# run: opt --pass collapse_axes
# sizes: n=2, h=3, w=5
# The sum over pixels has one axis of them, and one of images and channels; what turns the image keeps its axes apart.
@I.ir_module
class Module:
    @T.prim_func
    def sums(x: T.handle, y: T.handle):
        n = T.int32()
        h = T.int32()
        w = T.int32()
        X = T.match_buffer(x, (n, 7, h, w), "float32")
        Y = T.match_buffer(y, (n, 7), "float32")
        for b, c, i, j in T.grid(n, 7, h, w):
            with T.block("sums"):
                vb, vc, vi, vj = T.axis.remap("SSRR", [b, c, i, j])
                with T.init():
                    Y[vb, vc] = T.float32(0)
                Y[vb, vc] = Y[vb, vc] + X[vb, vc, vi, vj]

    @T.prim_func
    def turned(x: T.handle, y: T.handle):
        n = T.int32()
        h = T.int32()
        w = T.int32()
        X = T.match_buffer(x, (n, 7, h, w), "float32")
        Y = T.match_buffer(y, (n, 7, w, h), "float32")
        for b, c, i, j in T.grid(n, 7, w, h):
            with T.block("turned"):
                vb, vc, vi, vj = T.axis.remap("SSSS", [b, c, i, j])
                Y[vb, vc, vi, vj] = X[vb, vc, vj, vi]

    @R.function
    def main(x: R.Tensor(("n", 7, "h", "w"), "float32")):
        n = T.int64()
        h = T.int64()
        w = T.int64()
        with R.dataflow():
            y = R.call_tir(Module.sums, (x,), out_sinfo=R.Tensor((n, 7), "float32"))
            z = R.call_tir(Module.turned, (x,), out_sinfo=R.Tensor((n, 7, w, h), "float32"))
            R.output(y, z)
        return (y, z)

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T
from tvm.script import relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 7, "h", "w"), dtype="float32")):
        n = T.int64()
        h = T.int64()
        w = T.int64()
        cls = Module
        with R.dataflow():
            x_1 = R.call_tir(cls.view, (x,), out_sinfo=R.Tensor((n * 7, h * w), dtype="float32"))
            y = R.call_tir(cls.sums_1, (x_1,), out_sinfo=R.Tensor((n * 7,), dtype="float32"), tir_vars=R.shape([T.Cast("int32", n), T.Cast("int32", h), T.Cast("int32", w)]))
            y_1 = R.call_tir(cls.view_1, (y,), out_sinfo=R.Tensor((n, 7), dtype="float32"))
            x_2 = R.call_tir(cls.view_2, (x,), out_sinfo=R.Tensor((n * 7, h, w), dtype="float32"))
            z = R.call_tir(cls.turned_1, (x_2,), out_sinfo=R.Tensor((n * 7, w, h), dtype="float32"), tir_vars=R.shape([T.Cast("int32", n)]))
            z_1 = R.call_tir(cls.view_3, (z,), out_sinfo=R.Tensor((n, 7, w, h), dtype="float32"))
            R.output(y_1, z_1)
        return (y_1, z_1)

    @T.prim_func
    def sums_1(X_handle: T.handle, Y_handle: T.handle, n: T.int32, h: T.int32, w: T.int32):
        X = T.match_buffer(X_handle, (n * 7, h * w), "float32")
        Y = T.match_buffer(Y_handle, (n * 7,), "float32")
        for b, i in T.grid(n * 7, h * w):
            with T.block("sums"):
                vb, vi = T.axis.remap("SR", [b, i])
                with T.init():
                    Y[vb] = T.float32(0.0)
                Y[vb] = Y[vb] + X[vb, vi]

    @T.prim_func
    def view(x_handle: T.handle, view_handle: T.handle):
        n = T.int32()
        h = T.int32()
        w = T.int32()
        x = T.match_buffer(x_handle, (n, 7, h, w), "float32")
        view = T.match_buffer(view_handle, (n * 7, h * w), "float32")
        T.func_attr({"tilewright.view": 1})
        for v0, v1, v2, v3 in T.grid(n, 7, h, w):
            with T.block("view"):
                v0_1, v1_1, v2_1, v3_1 = T.axis.remap("SSSS", [v0, v1, v2, v3])
                view[v0_1 * 7 + v1_1, v2_1 * w + v3_1] = x[v0_1, v1_1, v2_1, v3_1]

    @T.prim_func
    def view_1(view_handle: T.handle, x_handle: T.handle):
        n = T.int32()
        view = T.match_buffer(view_handle, (n * 7,), "float32")
        x = T.match_buffer(x_handle, (n, 7), "float32")
        T.func_attr({"tilewright.view": 1})
        for v0, v1 in T.grid(n, 7):
            with T.block("view"):
                v0_1, v1_1 = T.axis.remap("SS", [v0, v1])
                x[v0_1, v1_1] = view[v0_1 * 7 + v1_1]

    @T.prim_func
    def turned_1(X_handle: T.handle, Y_handle: T.handle, n: T.int32):
        h = T.int32()
        w = T.int32()
        X = T.match_buffer(X_handle, (n * 7, h, w), "float32")
        Y = T.match_buffer(Y_handle, (n * 7, w, h), "float32")
        for b, i, j in T.grid(n * 7, w, h):
            with T.block("turned"):
                vb, vi, vj = T.axis.remap("SSS", [b, i, j])
                Y[vb, vi, vj] = X[vb, vj, vi]

    @T.prim_func
    def view_2(x_handle: T.handle, view_handle: T.handle):
        n = T.int32()
        h = T.int32()
        w = T.int32()
        x = T.match_buffer(x_handle, (n, 7, h, w), "float32")
        view = T.match_buffer(view_handle, (n * 7, h, w), "float32")
        T.func_attr({"tilewright.view": 1})
        for v0, v1, v2, v3 in T.grid(n, 7, h, w):
            with T.block("view"):
                v0_1, v1_1, v2_1, v3_1 = T.axis.remap("SSSS", [v0, v1, v2, v3])
                view[v0_1 * 7 + v1_1, v2_1, v3_1] = x[v0_1, v1_1, v2_1, v3_1]

    @T.prim_func
    def view_3(view_handle: T.handle, x_handle: T.handle):
        n = T.int32()
        w = T.int32()
        h = T.int32()
        view = T.match_buffer(view_handle, (n * 7, w, h), "float32")
        x = T.match_buffer(x_handle, (n, 7, w, h), "float32")
        T.func_attr({"tilewright.view": 1})
        for v0, v1, v2, v3 in T.grid(n, 7, w, h):
            with T.block("view"):
                v0_1, v1_1, v2_1, v3_1 = T.axis.remap("SSSS", [v0, v1, v2, v3])
                x[v0_1, v1_1, v2_1, v3_1] = view[v0_1 * 7 + v1_1, v2_1, v3_1]

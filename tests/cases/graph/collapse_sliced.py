# run: opt --pass collapse_axes,place_parts --pass-config place_parts.all=true
# sizes: n=2, h=3, w=5
# What is sliced along channels, which come last, is one axis of all pixels for who makes it, and so are the slices for who
# reads them: they lie in the whole, and nothing is copied.
@I.ir_module
class Module:
    @T.prim_func
    def relu(x: T.handle, y: T.handle):
        n = T.int32()
        h = T.int32()
        w = T.int32()
        X = T.match_buffer(x, (n, h, w, 7), "float32")
        Y = T.match_buffer(y, (n, h, w, 7), "float32")
        for b, i, j, c in T.grid(n, h, w, 7):
            with T.block("relu"):
                vb, vi, vj, vc = T.axis.remap("SSSS", [b, i, j, c])
                Y[vb, vi, vj, vc] = T.max(X[vb, vi, vj, vc], T.float32(0))

    @T.prim_func
    def first(x: T.handle, y: T.handle):
        n = T.int32()
        h = T.int32()
        w = T.int32()
        X = T.match_buffer(x, (n, h, w, 7), "float32")
        Y = T.match_buffer(y, (n, h, w, 3), "float32")
        for b, i, j, c in T.grid(n, h, w, 3):
            with T.block("first"):
                vb, vi, vj, vc = T.axis.remap("SSSS", [b, i, j, c])
                Y[vb, vi, vj, vc] = X[vb, vi, vj, vc]

    @T.prim_func
    def behind(x: T.handle, y: T.handle):
        n = T.int32()
        h = T.int32()
        w = T.int32()
        X = T.match_buffer(x, (n, h, w, 7), "float32")
        Y = T.match_buffer(y, (n, h, w, 3), "float32")
        for b, i, j, c in T.grid(n, h, w, 3):
            with T.block("behind"):
                vb, vi, vj, vc = T.axis.remap("SSSS", [b, i, j, c])
                Y[vb, vi, vj, vc] = X[vb, vi, vj, vc + 4]

    @T.prim_func
    def add(x: T.handle, y: T.handle, z: T.handle):
        n = T.int32()
        h = T.int32()
        w = T.int32()
        X = T.match_buffer(x, (n, h, w, 3), "float32")
        Y = T.match_buffer(y, (n, h, w, 3), "float32")
        Z = T.match_buffer(z, (n, h, w, 3), "float32")
        for b, i, j, c in T.grid(n, h, w, 3):
            with T.block("add"):
                vb, vi, vj, vc = T.axis.remap("SSSS", [b, i, j, c])
                Z[vb, vi, vj, vc] = X[vb, vi, vj, vc] + Y[vb, vi, vj, vc]

    @R.function
    def main(x: R.Tensor(("n", "h", "w", 7), "float32")):
        n = T.int64()
        h = T.int64()
        w = T.int64()
        with R.dataflow():
            y = R.call_tir(Module.relu, (x,), out_sinfo=R.Tensor((n, h, w, 7), "float32"))
            a = R.call_tir(Module.first, (y,), out_sinfo=R.Tensor((n, h, w, 3), "float32"))
            b = R.call_tir(Module.behind, (y,), out_sinfo=R.Tensor((n, h, w, 3), "float32"))
            z = R.call_tir(Module.add, (a, b), out_sinfo=R.Tensor((n, h, w, 3), "float32"))
            R.output(z)
        return z

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T
from tvm.script import relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", "h", "w", 7), dtype="float32")):
        n = T.int64()
        h = T.int64()
        w = T.int64()
        cls = Module
        with R.dataflow():
            x_1 = R.call_tir(cls.view, (x,), out_sinfo=R.Tensor((n * h * w * 7,), dtype="float32"))
            y = R.call_tir(cls.relu_1, (x_1,), out_sinfo=R.Tensor((n * h * w * 7,), dtype="float32"), tir_vars=R.shape([T.Cast("int32", n), T.Cast("int32", h), T.Cast("int32", w)]))
            y_1 = R.call_tir(cls.view_1, (y,), out_sinfo=R.Tensor((n, h, w, 7), dtype="float32"))
            a = R.call_tir(cls.first_1, (y_1,), out_sinfo=R.Tensor((n, h, w, 3), dtype="float32"))
            b = R.call_tir(cls.behind_1, (y_1,), out_sinfo=R.Tensor((n, h, w, 3), dtype="float32"))
            a_1 = R.call_tir(cls.view_2, (a,), out_sinfo=R.Tensor((n * h * w, 3), dtype="float32"))
            b_1 = R.call_tir(cls.view_2, (b,), out_sinfo=R.Tensor((n * h * w, 3), dtype="float32"))
            z = R.call_tir(cls.add_1_1, (a_1, b_1), out_sinfo=R.Tensor((n * h * w, 3), dtype="float32"), tir_vars=R.shape([T.Cast("int32", n), T.Cast("int32", h), T.Cast("int32", w)]))
            z_1 = R.call_tir(cls.view_3, (z,), out_sinfo=R.Tensor((n, h, w, 3), dtype="float32"))
            R.output(z_1)
        return z_1

    @T.prim_func
    def relu_1(X_handle: T.handle, Y_handle: T.handle, n: T.int32, h: T.int32, w: T.int32):
        X = T.match_buffer(X_handle, (n * h * w * 7,), "float32")
        Y = T.match_buffer(Y_handle, (n * h * w * 7,), "float32")
        for b in range(n * h * w * 7):
            with T.block("relu"):
                vb = T.axis.spatial(n * h * w * 7, b)
                Y[vb] = T.max(X[vb], T.float32(0.0))

    @T.prim_func
    def view(x_handle: T.handle, view_handle: T.handle):
        n = T.int32()
        h = T.int32()
        w = T.int32()
        x = T.match_buffer(x_handle, (n, h, w, 7), "float32")
        view = T.match_buffer(view_handle, (n * h * w * 7,), "float32")
        T.func_attr({"tilewright.view": 1})
        for v0, v1, v2, v3 in T.grid(n, h, w, 7):
            with T.block("view"):
                v0_1, v1_1, v2_1, v3_1 = T.axis.remap("SSSS", [v0, v1, v2, v3])
                view[((v0_1 * h + v1_1) * w + v2_1) * 7 + v3_1] = x[v0_1, v1_1, v2_1, v3_1]

    @T.prim_func
    def view_1(view_handle: T.handle, x_handle: T.handle):
        n = T.int32()
        h = T.int32()
        w = T.int32()
        view = T.match_buffer(view_handle, (n * h * w * 7,), "float32")
        x = T.match_buffer(x_handle, (n, h, w, 7), "float32")
        T.func_attr({"tilewright.view": 1})
        for v0, v1, v2, v3 in T.grid(n, h, w, 7):
            with T.block("view"):
                v0_1, v1_1, v2_1, v3_1 = T.axis.remap("SSSS", [v0, v1, v2, v3])
                x[v0_1, v1_1, v2_1, v3_1] = view[((v0_1 * h + v1_1) * w + v2_1) * 7 + v3_1]

    @T.prim_func
    def view_2(x_handle: T.handle, view_handle: T.handle):
        n = T.int32()
        h = T.int32()
        w = T.int32()
        x = T.match_buffer(x_handle, (n, h, w, 3), "float32")
        view = T.match_buffer(view_handle, (n * h * w, 3), "float32")
        T.func_attr({"tilewright.view": 1})
        for v0, v1, v2, v3 in T.grid(n, h, w, 3):
            with T.block("view"):
                v0_1, v1_1, v2_1, v3_1 = T.axis.remap("SSSS", [v0, v1, v2, v3])
                view[(v0_1 * h + v1_1) * w + v2_1, v3_1] = x[v0_1, v1_1, v2_1, v3_1]

    @T.prim_func
    def view_3(view_handle: T.handle, x_handle: T.handle):
        n = T.int32()
        h = T.int32()
        w = T.int32()
        view = T.match_buffer(view_handle, (n * h * w, 3), "float32")
        x = T.match_buffer(x_handle, (n, h, w, 3), "float32")
        T.func_attr({"tilewright.view": 1})
        for v0, v1, v2, v3 in T.grid(n, h, w, 3):
            with T.block("view"):
                v0_1, v1_1, v2_1, v3_1 = T.axis.remap("SSSS", [v0, v1, v2, v3])
                x[v0_1, v1_1, v2_1, v3_1] = view[(v0_1 * h + v1_1) * w + v2_1, v3_1]

    @T.prim_func
    def first_1(X_handle: T.handle, Y_handle: T.handle):
        n = T.int32()
        h = T.int32()
        w = T.int32()
        X = T.match_buffer(X_handle, (n, h, w, 7), "float32")
        Y = T.match_buffer(Y_handle, (n, h, w, 3), "float32", strides=(h * w * 7, w * 7, 7, 1))
        T.func_attr({"tilewright.slice": [[0, 0, 0, 0], [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]]})
        for b, i, j, c in T.grid(n, h, w, 3):
            with T.block("first"):
                vb, vi, vj, vc = T.axis.remap("SSSS", [b, i, j, c])
                Y[vb, vi, vj, vc] = X[vb, vi, vj, vc]

    @T.prim_func
    def behind_1(X_handle: T.handle, Y_handle: T.handle):
        n = T.int32()
        h = T.int32()
        w = T.int32()
        X = T.match_buffer(X_handle, (n, h, w, 7), "float32")
        Y = T.match_buffer(Y_handle, (n, h, w, 3), "float32", strides=(h * w * 7, w * 7, 7, 1))
        T.func_attr({"tilewright.slice": [[0, 0, 0, 4], [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]]})
        for b, i, j, c in T.grid(n, h, w, 3):
            with T.block("behind"):
                vb, vi, vj, vc = T.axis.remap("SSSS", [b, i, j, c])
                Y[vb, vi, vj, vc] = X[vb, vi, vj, vc + 4]

    @T.prim_func
    def add_1_1(X_handle: T.handle, Y_handle: T.handle, Z_handle: T.handle, n: T.int32, h: T.int32, w: T.int32):
        X = T.match_buffer(X_handle, (n * h * w, 3), "float32", strides=(7, 1))
        Y = T.match_buffer(Y_handle, (n * h * w, 3), "float32", strides=(7, 1))
        Z = T.match_buffer(Z_handle, (n * h * w, 3), "float32")
        for b, c in T.grid(n * h * w, 3):
            with T.block("add"):
                vb, vc = T.axis.remap("SS", [b, c])
                Z[vb, vc] = X[vb, vc] + Y[vb, vc]

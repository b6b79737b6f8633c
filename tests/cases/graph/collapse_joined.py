# run: opt --pass collapse_axes,place_parts --pass-config place_parts.all=true
# sizes: n=2, h=3, w=5
# What is a part along channels, or along the open axis of rows, has one axis of that one and those behind it, and lies in
# the whole; so does the copy of an input. The second part along rows begins where the first one ends.
@I.ir_module
class Module:
    @T.prim_func
    def relu(x: T.handle, y: T.handle):
        n = T.int32()
        h = T.int32()
        w = T.int32()
        X = T.match_buffer(x, (n, 7, h, w), "float32")
        Y = T.match_buffer(y, (n, 7, h, w), "float32")
        for b, c, i, j in T.grid(n, 7, h, w):
            with T.block("relu"):
                vb, vc, vi, vj = T.axis.remap("SSSS", [b, c, i, j])
                Y[vb, vc, vi, vj] = T.max(X[vb, vc, vi, vj], T.float32(0))

    @T.prim_func
    def channels(x: T.handle, y: T.handle, z: T.handle):
        n = T.int32()
        h = T.int32()
        w = T.int32()
        X = T.match_buffer(x, (n, 7, h, w), "float32")
        Y = T.match_buffer(y, (n, 7, h, w), "float32")
        Z = T.match_buffer(z, (n, 14, h, w), "float32")
        for b, c, i, j in T.grid(n, 7, h, w):
            with T.block("first"):
                vb, vc, vi, vj = T.axis.remap("SSSS", [b, c, i, j])
                Z[vb, vc, vi, vj] = X[vb, vc, vi, vj]
        for b, c, i, j in T.grid(n, 7, h, w):
            with T.block("second"):
                vb, vc, vi, vj = T.axis.remap("SSSS", [b, c, i, j])
                Z[vb, vc + 7, vi, vj] = Y[vb, vc, vi, vj]

    @T.prim_func
    def rows(x: T.handle, y: T.handle, z: T.handle):
        n = T.int32()
        h = T.int32()
        w = T.int32()
        X = T.match_buffer(x, (n, 7, h, w), "float32")
        Y = T.match_buffer(y, (n, 7, h, w), "float32")
        Z = T.match_buffer(z, (n, 7, h * 2, w), "float32")
        for b, c, i, j in T.grid(n, 7, h, w):
            with T.block("first"):
                vb, vc, vi, vj = T.axis.remap("SSSS", [b, c, i, j])
                Z[vb, vc, vi, vj] = X[vb, vc, vi, vj]
        for b, c, i, j in T.grid(n, 7, h, w):
            with T.block("second"):
                vb, vc, vi, vj = T.axis.remap("SSSS", [b, c, i, j])
                Z[vb, vc, vi + h, vj] = Y[vb, vc, vi, vj]

    @R.function
    def main(x: R.Tensor(("n", 7, "h", "w"), "float32")):
        n = T.int64()
        h = T.int64()
        w = T.int64()
        with R.dataflow():
            y = R.call_tir(Module.relu, (x,), out_sinfo=R.Tensor((n, 7, h, w), "float32"))
            z = R.call_tir(Module.channels, (x, y), out_sinfo=R.Tensor((n, 14, h, w), "float32"))
            u = R.call_tir(Module.relu, (x,), out_sinfo=R.Tensor((n, 7, h, w), "float32"))
            v = R.call_tir(Module.rows, (x, u), out_sinfo=R.Tensor((n, 7, h * 2, w), "float32"))
            R.output(z, v)
        return (z, v)

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
            x_1 = R.call_tir(cls.view, (x,), out_sinfo=R.Tensor((n, 7, h * w), dtype="float32"))
            y = R.call_tir(cls.relu_1_1, (x_1,), out_sinfo=R.Tensor((n, 7, h * w), dtype="float32"), tir_vars=R.shape([T.Cast("int32", h), T.Cast("int32", w)]))
            y_1 = R.call_tir(cls.view_1, (y,), out_sinfo=R.Tensor((n, 7, h, w), dtype="float32"))
            z = R.call_tir(cls.view_2, (x,), out_sinfo=R.Tensor((n, h * w * 7), dtype="float32"))
            z_1 = R.call_tir(cls.copy, (z,), out_sinfo=R.Tensor((n, h * w * 7), dtype="float32"), tir_vars=R.shape([T.Cast("int32", h), T.Cast("int32", w)]))
            z_2 = R.call_tir(cls.view_3, (z_1,), out_sinfo=R.Tensor((n, 7, h, w), dtype="float32"))
            z_3 = R.call_tir(cls.channels_1, (z_2, y_1), out_sinfo=R.Tensor((n, 14, h, w), dtype="float32"))
            u = R.call_tir(cls.relu_1_2, (x_1,), out_sinfo=R.Tensor((n, 7, h * w), dtype="float32"), tir_vars=R.shape([T.Cast("int32", h), T.Cast("int32", w)]))
            u_1 = R.call_tir(cls.view_1, (u,), out_sinfo=R.Tensor((n, 7, h, w), dtype="float32"))
            v = R.call_tir(cls.view_4, (x,), out_sinfo=R.Tensor((n * 7, h * w), dtype="float32"))
            v_1 = R.call_tir(cls.copy_1, (v,), out_sinfo=R.Tensor((n * 7, h * w), dtype="float32"), tir_vars=R.shape([T.Cast("int32", n), T.Cast("int32", h), T.Cast("int32", w)]))
            v_2 = R.call_tir(cls.view_5, (v_1,), out_sinfo=R.Tensor((n, 7, h, w), dtype="float32"))
            v_3 = R.call_tir(cls.rows_1, (v_2, u_1), out_sinfo=R.Tensor((n, 7, h * 2, w), dtype="float32"))
            R.output(z_3, v_3)
        return (z_3, v_3)

    @T.prim_func
    def view(x_handle: T.handle, view_handle: T.handle):
        n = T.int32()
        h = T.int32()
        w = T.int32()
        x = T.match_buffer(x_handle, (n, 7, h, w), "float32")
        view = T.match_buffer(view_handle, (n, 7, h * w), "float32")
        T.func_attr({"tilewright.view": 1})
        for v0, v1, v2, v3 in T.grid(n, 7, h, w):
            with T.block("view"):
                v0_1, v1_1, v2_1, v3_1 = T.axis.remap("SSSS", [v0, v1, v2, v3])
                view[v0_1, v1_1, v2_1 * w + v3_1] = x[v0_1, v1_1, v2_1, v3_1]

    @T.prim_func
    def view_1(view_handle: T.handle, x_handle: T.handle):
        n = T.int32()
        h = T.int32()
        w = T.int32()
        view = T.match_buffer(view_handle, (n, 7, h * w), "float32")
        x = T.match_buffer(x_handle, (n, 7, h, w), "float32")
        T.func_attr({"tilewright.view": 1})
        for v0, v1, v2, v3 in T.grid(n, 7, h, w):
            with T.block("view"):
                v0_1, v1_1, v2_1, v3_1 = T.axis.remap("SSSS", [v0, v1, v2, v3])
                x[v0_1, v1_1, v2_1, v3_1] = view[v0_1, v1_1, v2_1 * w + v3_1]

    @T.prim_func
    def relu_1_1(X_handle: T.handle, Y_handle: T.handle, h: T.int32, w: T.int32):
        n = T.int32()
        X = T.match_buffer(X_handle, (n, 7, h * w), "float32")
        Y = T.match_buffer(Y_handle, (n, 7, h * w), "float32", strides=(h * w * 14, h * w, 1))
        for b, c, i in T.grid(n, 7, h * w):
            with T.block("relu"):
                vb, vc, vi = T.axis.remap("SSS", [b, c, i])
                Y[vb, vc, vi] = T.max(X[vb, vc, vi], T.float32(0.0))

    @T.prim_func
    def view_2(x_handle: T.handle, view_handle: T.handle):
        n = T.int32()
        h = T.int32()
        w = T.int32()
        x = T.match_buffer(x_handle, (n, 7, h, w), "float32")
        view = T.match_buffer(view_handle, (n, h * w * 7), "float32")
        T.func_attr({"tilewright.view": 1})
        for v0, v1, v2, v3 in T.grid(n, 7, h, w):
            with T.block("view"):
                v0_1, v1_1, v2_1, v3_1 = T.axis.remap("SSSS", [v0, v1, v2, v3])
                view[v0_1, (v1_1 * h + v2_1) * w + v3_1] = x[v0_1, v1_1, v2_1, v3_1]

    @T.prim_func
    def copy(x_handle: T.handle, copy_handle: T.handle, h: T.int32, w: T.int32):
        n = T.int32()
        x = T.match_buffer(x_handle, (n, h * w * 7), "float32")
        copy = T.match_buffer(copy_handle, (n, h * w * 7), "float32", strides=(h * w * 14, 1))
        T.func_attr({"tilewright.copy": 1})
        for i0, i1 in T.grid(n, h * w * 7):
            with T.block("copy"):
                vi0, vi1 = T.axis.remap("SS", [i0, i1])
                copy[vi0, vi1] = x[vi0, vi1]

    @T.prim_func
    def view_3(view_handle: T.handle, x_handle: T.handle):
        n = T.int32()
        h = T.int32()
        w = T.int32()
        view = T.match_buffer(view_handle, (n, h * w * 7), "float32")
        x = T.match_buffer(x_handle, (n, 7, h, w), "float32")
        T.func_attr({"tilewright.view": 1})
        for v0, v1, v2, v3 in T.grid(n, 7, h, w):
            with T.block("view"):
                v0_1, v1_1, v2_1, v3_1 = T.axis.remap("SSSS", [v0, v1, v2, v3])
                x[v0_1, v1_1, v2_1, v3_1] = view[v0_1, (v1_1 * h + v2_1) * w + v3_1]

    @T.prim_func
    def channels_1(x: T.handle, y: T.handle, z: T.handle):
        n = T.int32()
        h = T.int32()
        w = T.int32()
        X = T.match_buffer(x, (n, 7, h, w), "float32", strides=(h * w * 14, h * w, w, 1))
        Y = T.match_buffer(y, (n, 7, h, w), "float32", strides=(h * w * 14, h * w, w, 1))
        Z = T.match_buffer(z, (n, 14, h, w), "float32")
        T.func_attr({"tilewright.parts": [[0, 0, 0, 0], [0, 7, 0, 0]]})
        for b, c, i, j in T.grid(n, 7, h, w):
            with T.block("first"):
                vb, vc, vi, vj = T.axis.remap("SSSS", [b, c, i, j])
                Z[vb, vc, vi, vj] = X[vb, vc, vi, vj]
        for b, c, i, j in T.grid(n, 7, h, w):
            with T.block("second"):
                vb, vc, vi, vj = T.axis.remap("SSSS", [b, c, i, j])
                Z[vb, vc + 7, vi, vj] = Y[vb, vc, vi, vj]

    @T.prim_func
    def relu_1_2(X_handle: T.handle, Y_handle: T.handle, h: T.int32, w: T.int32):
        n = T.int32()
        X = T.match_buffer(X_handle, (n, 7, h * w), "float32")
        Y = T.match_buffer(Y_handle, (n, 7, h * w), "float32", strides=(h * w * 14, h * w * 2, 1))
        for b, c, i in T.grid(n, 7, h * w):
            with T.block("relu"):
                vb, vc, vi = T.axis.remap("SSS", [b, c, i])
                Y[vb, vc, vi] = T.max(X[vb, vc, vi], T.float32(0.0))

    @T.prim_func
    def view_4(x_handle: T.handle, view_handle: T.handle):
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
    def copy_1(x_handle: T.handle, copy_handle: T.handle, n: T.int32, h: T.int32, w: T.int32):
        x = T.match_buffer(x_handle, (n * 7, h * w), "float32")
        copy = T.match_buffer(copy_handle, (n * 7, h * w), "float32", strides=(h * w * 2, 1))
        T.func_attr({"tilewright.copy": 1})
        for i0, i1 in T.grid(n * 7, h * w):
            with T.block("copy"):
                vi0, vi1 = T.axis.remap("SS", [i0, i1])
                copy[vi0, vi1] = x[vi0, vi1]

    @T.prim_func
    def view_5(view_handle: T.handle, x_handle: T.handle):
        n = T.int32()
        h = T.int32()
        w = T.int32()
        view = T.match_buffer(view_handle, (n * 7, h * w), "float32")
        x = T.match_buffer(x_handle, (n, 7, h, w), "float32")
        T.func_attr({"tilewright.view": 1})
        for v0, v1, v2, v3 in T.grid(n, 7, h, w):
            with T.block("view"):
                v0_1, v1_1, v2_1, v3_1 = T.axis.remap("SSSS", [v0, v1, v2, v3])
                x[v0_1, v1_1, v2_1, v3_1] = view[v0_1 * 7 + v1_1, v2_1 * w + v3_1]

    @T.prim_func
    def rows_1(x: T.handle, y: T.handle, z: T.handle):
        n = T.int32()
        h = T.int32()
        w = T.int32()
        X = T.match_buffer(x, (n, 7, h, w), "float32", strides=(h * w * 14, h * w * 2, w, 1))
        Y = T.match_buffer(y, (n, 7, h, w), "float32", strides=(h * w * 14, h * w * 2, w, 1))
        Z = T.match_buffer(z, (n, 7, h * 2, w), "float32")
        T.func_attr({"tilewright.parts": [[0, 0, 0, 0], [0, 0, [0], 0]]})
        for b, c, i, j in T.grid(n, 7, h, w):
            with T.block("first"):
                vb, vc, vi, vj = T.axis.remap("SSSS", [b, c, i, j])
                Z[vb, vc, vi, vj] = X[vb, vc, vi, vj]
        for b, c, i, j in T.grid(n, 7, h, w):
            with T.block("second"):
                vb, vc, vi, vj = T.axis.remap("SSSS", [b, c, i, j])
                Z[vb, vc, vi + h, vj] = Y[vb, vc, vi, vj]

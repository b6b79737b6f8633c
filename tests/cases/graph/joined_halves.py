# run: opt --pass place_parts --pass-config place_parts.all=true
# sizes: h=3, w=5, v=2
# The first part is an input, and copied into its place: not as rows of `2 * h`, since a view of these says nothing of
# two times `h` rows where `h` is zero.
@I.ir_module
class Module:
    @T.prim_func
    def relu(x: T.handle, y: T.handle):
        h = T.int32()
        v = T.int32()
        X = T.match_buffer(x, (2, h, v), "float32")
        Y = T.match_buffer(y, (2, h, v), "float32")
        for b, i, j in T.grid(2, h, v):
            with T.block("relu"):
                vb, vi, vj = T.axis.remap("SSS", [b, i, j])
                Y[vb, vi, vj] = T.max(X[vb, vi, vj], T.float32(0))

    @T.prim_func
    def join(x: T.handle, y: T.handle, z: T.handle):
        h = T.int32()
        w = T.int32()
        v = T.int32()
        X = T.match_buffer(x, (2, h, w), "float32")
        Y = T.match_buffer(y, (2, h, v), "float32")
        Z = T.match_buffer(z, (2, h, w + v), "float32")
        for b, i, j in T.grid(2, h, w):
            with T.block("first"):
                vb, vi, vj = T.axis.remap("SSS", [b, i, j])
                Z[vb, vi, vj] = X[vb, vi, vj]
        for b, i, j in T.grid(2, h, v):
            with T.block("second"):
                vb, vi, vj = T.axis.remap("SSS", [b, i, j])
                Z[vb, vi, vj + w] = Y[vb, vi, vj]

    @R.function
    def main(x: R.Tensor((2, "h", "w"), "float32"), y: R.Tensor((2, "h", "v"), "float32")) -> R.Tensor((2, "h", "w + v"), "float32"):
        h = T.int64()
        w = T.int64()
        v = T.int64()
        cls = Module
        with R.dataflow():
            a = R.call_tir(cls.relu, (y,), out_sinfo=R.Tensor((2, h, v), "float32"))
            z = R.call_tir(cls.join, (x, a), out_sinfo=R.Tensor((2, h, w + v), "float32"))
            R.output(z)
        return z

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T
from tvm.script import relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((2, "h", "w"), dtype="float32"), y: R.Tensor((2, "h", "v"), dtype="float32")) -> R.Tensor((2, "h", "w + v"), dtype="float32"):
        h = T.int64()
        w = T.int64()
        v = T.int64()
        cls = Module
        with R.dataflow():
            a = R.call_tir(cls.relu_1, (y,), out_sinfo=R.Tensor((2, h, v), dtype="float32"), tir_vars=R.shape([T.Cast("int32", h), T.Cast("int32", w), T.Cast("int32", v)]))
            z = R.call_tir(cls.view, (x,), out_sinfo=R.Tensor((h * 2, w), dtype="float32"))
            z_1 = R.call_tir(cls.copy, (z,), out_sinfo=R.Tensor((h * 2, w), dtype="float32"), tir_vars=R.shape([T.Cast("int32", h), T.Cast("int32", v)]))
            z_2 = R.call_tir(cls.view_1, (z_1,), out_sinfo=R.Tensor((2, h, w), dtype="float32"))
            z_3 = R.call_tir(cls.join_1, (z_2, a), out_sinfo=R.Tensor((2, h, w + v), dtype="float32"), tir_vars=R.shape([T.Cast("int32", h), T.Cast("int32", w), T.Cast("int32", v)]))
            R.output(z_3)
        return z_3

    @T.prim_func
    def relu_1(x: T.handle, y: T.handle, h: T.int32, w: T.int32, v: T.int32):
        h_1 = T.int32()
        v_1 = T.int32()
        X = T.match_buffer(x, (2, h_1, v_1), "float32")
        Y = T.match_buffer(y, (2, h_1, v_1), "float32", strides=(h * w + h * v, w + v, 1))
        for b, i, j in T.grid(2, h_1, v_1):
            with T.block("relu"):
                vb, vi, vj = T.axis.remap("SSS", [b, i, j])
                Y[vb, vi, vj] = T.max(X[vb, vi, vj], T.float32(0.0))

    @T.prim_func
    def view(x_handle: T.handle, view_handle: T.handle):
        h = T.int32()
        w = T.int32()
        x = T.match_buffer(x_handle, (2, h, w), "float32")
        view = T.match_buffer(view_handle, (h * 2, w), "float32")
        T.func_attr({"tilewright.view": 1})
        for v0, v1, v2 in T.grid(2, h, w):
            with T.block("view"):
                v0_1, v1_1, v2_1 = T.axis.remap("SSS", [v0, v1, v2])
                view[v0_1 * h + v1_1, v2_1] = x[v0_1, v1_1, v2_1]

    @T.prim_func
    def copy(x_handle: T.handle, copy_handle: T.handle, h: T.int32, v: T.int32):
        w = T.int32()
        x = T.match_buffer(x_handle, (h * 2, w), "float32")
        copy = T.match_buffer(copy_handle, (h * 2, w), "float32", strides=(w + v, 1))
        T.func_attr({"tilewright.copy": 1})
        for i0, i1 in T.grid(h * 2, w):
            with T.block("copy"):
                vi0, vi1 = T.axis.remap("SS", [i0, i1])
                copy[vi0, vi1] = x[vi0, vi1]

    @T.prim_func
    def view_1(view_handle: T.handle, x_handle: T.handle):
        h = T.int32()
        w = T.int32()
        view = T.match_buffer(view_handle, (h * 2, w), "float32")
        x = T.match_buffer(x_handle, (2, h, w), "float32")
        T.func_attr({"tilewright.view": 1})
        for v0, v1, v2 in T.grid(2, h, w):
            with T.block("view"):
                v0_1, v1_1, v2_1 = T.axis.remap("SSS", [v0, v1, v2])
                x[v0_1, v1_1, v2_1] = view[v0_1 * h + v1_1, v2_1]

    @T.prim_func
    def join_1(x: T.handle, y: T.handle, z: T.handle, h: T.int32, w: T.int32, v: T.int32):
        h_1 = T.int32()
        w_1 = T.int32()
        v_1 = T.int32()
        X = T.match_buffer(x, (2, h_1, w_1), "float32", strides=(h * w + h * v, w + v, 1))
        Y = T.match_buffer(y, (2, h_1, v_1), "float32", strides=(h * w + h * v, w + v, 1))
        Z = T.match_buffer(z, (2, h_1, w_1 + v_1), "float32")
        T.func_attr({"tilewright.parts": [[0, 0, 0], [0, 0, [0]]]})
        for b, i, j in T.grid(2, h_1, w_1):
            with T.block("first"):
                vb, vi, vj = T.axis.remap("SSS", [b, i, j])
                Z[vb, vi, vj] = X[vb, vi, vj]
        for b, i, j in T.grid(2, h_1, v_1):
            with T.block("second"):
                vb, vi, vj = T.axis.remap("SSS", [b, i, j])
                Z[vb, vi, vj + w_1] = Y[vb, vi, vj]

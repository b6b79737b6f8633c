# run: opt --pass place_parts --pass-config place_parts.all=true
# sizes: n=2, h=6, w=5
# A reader sees all rows of pixels as one axis, of which there may be none; what it reads lies in the whole nevertheless,
# since the rows of the whole follow each other at one distance.
@I.ir_module
class Module:
    @T.prim_func
    def half(x: T.handle, y: T.handle):
        n = T.int32()
        h = T.int32()
        w = T.int32()
        X = T.match_buffer(x, (n, h, w, 4), "float32")
        Y = T.match_buffer(y, (n, h // 2, w, 4), "float32")
        for b, i, j, c in T.grid(n, h // 2, w, 4):
            with T.block("half"):
                vb, vi, vj, vc = T.axis.remap("SSSS", [b, i, j, c])
                Y[vb, vi, vj, vc] = -X[vb, vi * 2, vj, vc]

    @T.prim_func
    def rows(x: T.handle, y: T.handle, h: T.int32):
        n = T.int32()
        w = T.int32()
        X = T.match_buffer(x, (n, h // 2, w, 4), "float32")
        Y = T.match_buffer(y, (n * (h // 2) * w, 4), "float32")
        T.func_attr({"tilewright.view": 1})
        for b, i, j, c in T.grid(n, h // 2, w, 4):
            with T.block("view"):
                vb, vi, vj, vc = T.axis.remap("SSSS", [b, i, j, c])
                Y[(vb * (h // 2) + vi) * w + vj, vc] = X[vb, vi, vj, vc]

    @T.prim_func
    def scale(x: T.handle, s: T.Buffer((4,), "float32"), y: T.handle, n: T.int32, h: T.int32, w: T.int32):
        X = T.match_buffer(x, (n * (h // 2) * w, 4), "float32")
        Y = T.match_buffer(y, (n * (h // 2) * w, 4), "float32")
        for i, c in T.grid(n * (h // 2) * w, 4):
            with T.block("scale"):
                vi, vc = T.axis.remap("SS", [i, c])
                Y[vi, vc] = X[vi, vc] * s[vc]

    @T.prim_func
    def image(x: T.handle, y: T.handle, h: T.int32):
        n = T.int32()
        w = T.int32()
        X = T.match_buffer(x, (n * (h // 2) * w, 4), "float32")
        Y = T.match_buffer(y, (n, h // 2, w, 4), "float32")
        T.func_attr({"tilewright.view": 1})
        for b, i, j, c in T.grid(n, h // 2, w, 4):
            with T.block("view"):
                vb, vi, vj, vc = T.axis.remap("SSSS", [b, i, j, c])
                Y[vb, vi, vj, vc] = X[(vb * (h // 2) + vi) * w + vj, vc]

    @T.prim_func
    def append(x: T.handle, y: T.handle, z: T.handle, h: T.int32):
        n = T.int32()
        w = T.int32()
        X = T.match_buffer(x, (n, h // 2, w, 4), "float32")
        Y = T.match_buffer(y, (n, h // 2, w, 4), "float32")
        Z = T.match_buffer(z, (n, h // 2, w, 8), "float32")
        for b, i, j, c in T.grid(n, h // 2, w, 4):
            with T.block("first"):
                vb, vi, vj, vc = T.axis.remap("SSSS", [b, i, j, c])
                Z[vb, vi, vj, vc] = X[vb, vi, vj, vc]
        for b, i, j, c in T.grid(n, h // 2, w, 4):
            with T.block("second"):
                vb, vi, vj, vc = T.axis.remap("SSSS", [b, i, j, c])
                Z[vb, vi, vj, vc + 4] = Y[vb, vi, vj, vc]

    @R.function
    def main(x: R.Tensor(("n", "h", "w", 4), "float32"), s: R.Tensor((4,), "float32")):
        n = T.int64()
        h = T.int64()
        w = T.int64()
        with R.dataflow():
            a = R.call_tir(Module.half, (x,), out_sinfo=R.Tensor((n, h // 2, w, 4), "float32"))
            b = R.call_tir(
                Module.rows, (a,), out_sinfo=R.Tensor((n * (h // 2) * w, 4), "float32"),
                tir_vars=R.shape([T.Cast("int32", h)]),
            )
            c = R.call_tir(
                Module.scale, (b, s), out_sinfo=R.Tensor((n * (h // 2) * w, 4), "float32"),
                tir_vars=R.shape([T.Cast("int32", n), T.Cast("int32", h), T.Cast("int32", w)]),
            )
            y = R.call_tir(
                Module.image, (c,), out_sinfo=R.Tensor((n, h // 2, w, 4), "float32"),
                tir_vars=R.shape([T.Cast("int32", h)]),
            )
            z = R.call_tir(
                Module.append, (a, y), out_sinfo=R.Tensor((n, h // 2, w, 8), "float32"),
                tir_vars=R.shape([T.Cast("int32", h)]),
            )
            R.output(z)
        return z

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T
from tvm.script import relax as R


@I.ir_module
class Module:
    @T.prim_func
    def rows(x: T.handle, y: T.handle, h: T.int32):
        n = T.int32()
        w = T.int32()
        X = T.match_buffer(x, (n, h // 2, w, 4), "float32")
        Y = T.match_buffer(y, (n * (h // 2) * w, 4), "float32")
        T.func_attr({"tilewright.view": 1})
        for b, i, j, c in T.grid(n, h // 2, w, 4):
            with T.block("view"):
                vb, vi, vj, vc = T.axis.remap("SSSS", [b, i, j, c])
                Y[(vb * (h // 2) + vi) * w + vj, vc] = X[vb, vi, vj, vc]

    @T.prim_func
    def image(x: T.handle, y: T.handle, h: T.int32):
        n = T.int32()
        w = T.int32()
        X = T.match_buffer(x, (n * (h // 2) * w, 4), "float32")
        Y = T.match_buffer(y, (n, h // 2, w, 4), "float32")
        T.func_attr({"tilewright.view": 1})
        for b, i, j, c in T.grid(n, h // 2, w, 4):
            with T.block("view"):
                vb, vi, vj, vc = T.axis.remap("SSSS", [b, i, j, c])
                Y[vb, vi, vj, vc] = X[(vb * (h // 2) + vi) * w + vj, vc]

    @R.function
    def main(x: R.Tensor(("n", "h", "w", 4), dtype="float32"), s: R.Tensor((4,), dtype="float32")):
        n = T.int64()
        h = T.int64()
        w = T.int64()
        cls = Module
        with R.dataflow():
            a = R.call_tir(cls.half_1, (x,), out_sinfo=R.Tensor((n, h // 2, w, 4), dtype="float32"), tir_vars=R.shape([T.Cast("int32", w), T.Cast("int32", h)]))
            b = R.call_tir(cls.rows, (a,), out_sinfo=R.Tensor((n * (h // 2) * w, 4), dtype="float32"), tir_vars=R.shape([T.Cast("int32", h)]))
            c = R.call_tir(cls.scale_1, (b, s), out_sinfo=R.Tensor((n * (h // 2) * w, 4), dtype="float32"), tir_vars=R.shape([T.Cast("int32", n), T.Cast("int32", h), T.Cast("int32", w)]))
            y = R.call_tir(cls.image, (c,), out_sinfo=R.Tensor((n, h // 2, w, 4), dtype="float32"), tir_vars=R.shape([T.Cast("int32", h)]))
            z = R.call_tir(cls.append_1, (a, y), out_sinfo=R.Tensor((n, h // 2, w, 8), dtype="float32"), tir_vars=R.shape([T.Cast("int32", h), T.Cast("int32", w), T.Cast("int32", h)]))
            R.output(z)
        return z

    @T.prim_func
    def half_1(x: T.handle, y: T.handle, w: T.int32, h: T.int32):
        n = T.int32()
        h_1 = T.int32()
        w_1 = T.int32()
        X = T.match_buffer(x, (n, h_1, w_1, 4), "float32")
        Y = T.match_buffer(y, (n, h_1 // 2, w_1, 4), "float32", strides=(w * (h // 2) * 8, w * 8, 8, 1))
        for b, i, j, c in T.grid(n, h_1 // 2, w_1, 4):
            with T.block("half"):
                vb, vi, vj, vc = T.axis.remap("SSSS", [b, i, j, c])
                Y[vb, vi, vj, vc] = X[vb, vi * 2, vj, vc] * T.float32(-1.0)

    @T.prim_func
    def scale_1(x: T.handle, s: T.Buffer((4,), "float32"), y: T.handle, n: T.int32, h: T.int32, w: T.int32):
        X = T.match_buffer(x, (n * (h // 2) * w, 4), "float32", strides=(8, 1))
        Y = T.match_buffer(y, (n * (h // 2) * w, 4), "float32", strides=(8, 1))
        for i, c in T.grid(n * (h // 2) * w, 4):
            with T.block("scale"):
                vi, vc = T.axis.remap("SS", [i, c])
                Y[vi, vc] = X[vi, vc] * s[vc]

    @T.prim_func(names={"h_1": "h"})
    def append_1(x: T.handle, y: T.handle, z: T.handle, h: T.int32, w: T.int32, h_1: T.int32):
        n = T.int32()
        w_1 = T.int32()
        X = T.match_buffer(x, (n, h // 2, w_1, 4), "float32", strides=(w * (h_1 // 2) * 8, w * 8, 8, 1))
        Y = T.match_buffer(y, (n, h // 2, w_1, 4), "float32", strides=(w * (h_1 // 2) * 8, w * 8, 8, 1))
        Z = T.match_buffer(z, (n, h // 2, w_1, 8), "float32")
        T.func_attr({"tilewright.parts": [[0, 0, 0, 0], [0, 0, 0, 4]]})
        for b, i, j, c in T.grid(n, h // 2, w_1, 4):
            with T.block("first"):
                vb, vi, vj, vc = T.axis.remap("SSSS", [b, i, j, c])
                Z[vb, vi, vj, vc] = X[vb, vi, vj, vc]
        for b, i, j, c in T.grid(n, h // 2, w_1, 4):
            with T.block("second"):
                vb, vi, vj, vc = T.axis.remap("SSSS", [b, i, j, c])
                Z[vb, vi, vj, vc + 4] = Y[vb, vi, vj, vc]

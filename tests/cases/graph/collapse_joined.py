# run: opt --pass collapse_axes,place_parts --pass-config place_parts.all=true
# sizes: n=2, h=3, w=5
# What is a part along channels has one axis of channels and pixels, and lies in the whole; so does the copy of an input.
# Parts along an open axis are copied as rows of that axis and those behind it.
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

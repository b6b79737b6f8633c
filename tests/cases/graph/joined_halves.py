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

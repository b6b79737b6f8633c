# run: verify
# Rows of an open number of images, as one axis: a function that takes the size as a number; the bias is added from the other side.
@I.ir_module
class Module:
    @T.prim_func
    def product(x: T.handle, b: T.Buffer((6, 4), "float32"), y: T.handle):
        n = T.int32()
        a = T.match_buffer(x, (n, 18, 6), "float32")
        c = T.match_buffer(y, (n, 18, 4), "float32")
        for h, i, j, k in T.grid(n, 18, 4, 6):
            with T.block("y"):
                vh, vi, vj, vk = T.axis.remap("SSSR", [h, i, j, k])
                with T.init():
                    c[vh, vi, vj] = T.float32(0)
                c[vh, vi, vj] = c[vh, vi, vj] + a[vh, vi, vk] * b[vk, vj]

    @T.prim_func
    def bias(x: T.handle, b: T.Buffer((4,), "float32"), y: T.handle):
        n = T.int32()
        a = T.match_buffer(x, (n, 18, 4), "float32")
        c = T.match_buffer(y, (n, 18, 4), "float32")
        for h, i, j in T.grid(n, 18, 4):
            with T.block("y"):
                vh, vi, vj = T.axis.remap("SSS", [h, i, j])
                c[vh, vi, vj] = b[vj] + a[vh, vi, vj]

    @R.function
    def main(x: R.Tensor(("n", 18, 6), "float32"), w: R.Tensor((6, 4), "float32"), b: R.Tensor((4,), "float32")) -> R.Tensor(("n", 18, 4), "float32"):
        n = T.int64()
        cls = Module
        with R.dataflow():
            p = R.call_tir(cls.product, (x, w), out_sinfo=R.Tensor((n, 18, 4), "float32"))
            out = R.call_tir(cls.bias, (p, b), out_sinfo=R.Tensor((n, 18, 4), "float32"))
            R.output(out)
        return out

# ---- other
@I.ir_module
class Module:
    @T.prim_func
    def rows(x: T.handle, y: T.handle):
        n = T.int32()
        a = T.match_buffer(x, (n, 18, 6), "float32")
        c = T.match_buffer(y, (n * 18, 6), "float32")
        for i, j in T.grid(n * 18, 6):
            with T.block("y"):
                vi, vj = T.axis.remap("SS", [i, j])
                c[vi, vj] = a[vi // 18, vi % 18, vj]

    @T.prim_func
    def product(x: T.handle, b: T.Buffer((6, 4), "float32"), d: T.Buffer((4,), "float32"), y: T.handle, n: T.int32):
        a = T.match_buffer(x, (n * 18, 6), "float32")
        c = T.match_buffer(y, (n * 18, 4), "float32")
        s = T.alloc_buffer((n * 18, 4), "float32")
        for i, j, k in T.grid(n * 18, 4, 6):
            with T.block("s"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    s[vi, vj] = T.float32(0)
                s[vi, vj] = s[vi, vj] + a[vi, vk] * b[vk, vj]
        for i, j in T.grid(n * 18, 4):
            with T.block("y"):
                vi, vj = T.axis.remap("SS", [i, j])
                c[vi, vj] = s[vi, vj] + d[vj]

    @T.prim_func
    def back(x: T.handle, y: T.handle):
        n = T.int32()
        a = T.match_buffer(x, (n * 18, 4), "float32")
        c = T.match_buffer(y, (n, 18, 4), "float32")
        for h, i, j in T.grid(n, 18, 4):
            with T.block("y"):
                vh, vi, vj = T.axis.remap("SSS", [h, i, j])
                c[vh, vi, vj] = a[vh * 18 + vi, vj]

    @R.function
    def main(x: R.Tensor(("n", 18, 6), "float32"), w: R.Tensor((6, 4), "float32"), b: R.Tensor((4,), "float32")) -> R.Tensor(("n", 18, 4), "float32"):
        n = T.int64()
        cls = Module
        with R.dataflow():
            r = R.call_tir(cls.rows, (x,), out_sinfo=R.Tensor((n * 18, 6), "float32"))
            p = R.call_tir(cls.product, (r, w, b), out_sinfo=R.Tensor((n * 18, 4), "float32"), tir_vars=R.shape([n]))
            out = R.call_tir(cls.back, (p,), out_sinfo=R.Tensor((n, 18, 4), "float32"))
            R.output(out)
        return out

# ---- expected

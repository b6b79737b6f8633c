# run: opt --pass flow_layout
# One layout through a broadcast, a window, a concatenation, a softmax over the padded axis and a
# reduction: all found from accesses. The softmax must not see the padding: each of its reductions
# selects, and so does its exponential, which reads what it normalises by.
@I.ir_module
class Module:
    @T.prim_func
    def crop(P: T.Buffer((1, 2, 5, 4), "float32"), B: T.Buffer((1, 6, 5), "float32")):
        for n, c, i in T.grid(1, 6, 5):
            with T.block("B"):
                vn, vc, vi = T.axis.remap("SSS", [n, c, i])
                B[vn, vc, vi] = P[vn, vc // 4, vi, vc % 4]

    @T.prim_func
    def bias(A: T.Buffer((1, 6, 5), "float32"), b: T.Buffer((6,), "float32"), B: T.Buffer((1, 6, 5), "float32")):
        for n, c, i in T.grid(1, 6, 5):
            with T.block("B"):
                vn, vc, vi = T.axis.remap("SSS", [n, c, i])
                B[vn, vc, vi] = A[vn, vc, vi] + b[vc]

    @T.prim_func
    def pool(A: T.Buffer((1, 6, 5), "float32"), B: T.Buffer((1, 6, 2), "float32")):
        for n, c, i, k in T.grid(1, 6, 2, 3):
            with T.block("B"):
                vn, vc, vi, vk = T.axis.remap("SSSR", [n, c, i, k])
                with T.init():
                    B[vn, vc, vi] = T.min_value("float32")
                B[vn, vc, vi] = T.max(B[vn, vc, vi], A[vn, vc, vi * 2 + vk])

    @T.prim_func
    def concat(A: T.Buffer((1, 4, 2), "float32"), C: T.Buffer((1, 6, 2), "float32"), B: T.Buffer((1, 10, 2), "float32")):
        for n, c, i in T.grid(1, 4, 2):
            with T.block("B_0"):
                vn, vc, vi = T.axis.remap("SSS", [n, c, i])
                B[vn, vc, vi] = A[vn, vc, vi]
        for n, c, i in T.grid(1, 6, 2):
            with T.block("B_1"):
                vn, vc, vi = T.axis.remap("SSS", [n, c, i])
                B[vn, vc + 4, vi] = C[vn, vc, vi]

    @T.prim_func
    def softmax(A: T.Buffer((1, 10, 2), "float32"), B: T.Buffer((1, 10, 2), "float32")):
        m = T.alloc_buffer((1, 2), "float32")
        s = T.alloc_buffer((1, 2), "float32")
        for n, i, c in T.grid(1, 2, 10):
            with T.block("m"):
                vn, vi, vc = T.axis.remap("SSR", [n, i, c])
                with T.init():
                    m[vn, vi] = T.min_value("float32")
                m[vn, vi] = T.max(m[vn, vi], A[vn, vc, vi])
        for n, i, c in T.grid(1, 2, 10):
            with T.block("s"):
                vn, vi, vc = T.axis.remap("SSR", [n, i, c])
                with T.init():
                    s[vn, vi] = 0.0
                s[vn, vi] = s[vn, vi] + T.exp(A[vn, vc, vi] - m[vn, vi])
        for n, c, i in T.grid(1, 10, 2):
            with T.block("B"):
                vn, vc, vi = T.axis.remap("SSS", [n, c, i])
                B[vn, vc, vi] = T.exp(A[vn, vc, vi] - m[vn, vi]) / s[vn, vi]

    @T.prim_func
    def mean(A: T.Buffer((1, 10, 2), "float32"), B: T.Buffer((1, 10), "float32")):
        for n, c, i in T.grid(1, 10, 2):
            with T.block("B"):
                vn, vc, vi = T.axis.remap("SSR", [n, c, i])
                with T.init():
                    B[vn, vc] = 0.0
                B[vn, vc] = B[vn, vc] + A[vn, vc, vi]

    @T.prim_func
    def pack(A: T.Buffer((1, 10), "float32"), P: T.Buffer((1, 3, 4), "float32")):
        for n, c, k in T.grid(1, 3, 4):
            with T.block("P"):
                vn, vc, vk = T.axis.remap("SSS", [n, c, k])
                P[vn, vc, vk] = T.if_then_else(vc * 4 + vk < 10, A[vn, vc * 4 + vk], T.float32(0))

    @R.function
    def main(p: R.Tensor((1, 2, 5, 4), "float32"), b: R.Tensor((6,), "float32"), q: R.Tensor((1, 4, 2), "float32")):
        cls = Module
        with R.dataflow():
            x = R.call_tir(cls.crop, (p,), out_sinfo=R.Tensor((1, 6, 5), "float32"))
            y = R.call_tir(cls.bias, (x, b), out_sinfo=R.Tensor((1, 6, 5), "float32"))
            z = R.call_tir(cls.pool, (y,), out_sinfo=R.Tensor((1, 6, 2), "float32"))
            u = R.call_tir(cls.concat, (q, z), out_sinfo=R.Tensor((1, 10, 2), "float32"))
            v = R.call_tir(cls.softmax, (u,), out_sinfo=R.Tensor((1, 10, 2), "float32"))
            w = R.call_tir(cls.mean, (v,), out_sinfo=R.Tensor((1, 10), "float32"))
            r = R.call_tir(cls.pack, (w,), out_sinfo=R.Tensor((1, 3, 4), "float32"))
            R.output(r)
        return r

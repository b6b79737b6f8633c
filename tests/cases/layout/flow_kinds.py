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

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T
from tvm.script import relax as R


@I.ir_module
class Module:
    @R.function
    def main(p: R.Tensor((1, 2, 5, 4), dtype="float32"), b: R.Tensor((6,), dtype="float32"), q: R.Tensor((1, 4, 2), dtype="float32")):
        cls = Module
        with R.dataflow():
            b_1 = R.call_tir(cls.pack_1, (b,), out_sinfo=R.Tensor((2, 4), dtype="float32"))
            y = R.call_tir(cls.bias_physical, (p, b_1), out_sinfo=R.Tensor((1, 2, 5, 4), dtype="float32"))
            z = R.call_tir(cls.pool_physical, (y,), out_sinfo=R.Tensor((1, 2, 2, 4), dtype="float32"))
            q_1 = R.call_tir(cls.pack_2, (q,), out_sinfo=R.Tensor((1, 1, 2, 4), dtype="float32"))
            u = R.call_tir(cls.concat_physical, (q_1, z), out_sinfo=R.Tensor((1, 3, 2, 4), dtype="float32"))
            v = R.call_tir(cls.softmax_physical, (u,), out_sinfo=R.Tensor((1, 3, 2, 4), dtype="float32"))
            w = R.call_tir(cls.mean_physical_1, (v,), out_sinfo=R.Tensor((1, 3, 4), dtype="float32"))
            R.output(w)
        return w

    @T.prim_func
    def pack_1(x: T.Buffer((6,), "float32"), y: T.Buffer((2, 4), "float32")):
        for c0, c1 in T.grid(2, 4):
            with T.block("pack"):
                vc0, vc1 = T.axis.remap("SS", [c0, c1])
                y[vc0, vc1] = T.if_then_else(vc0 * 4 + vc1 < 6, x[vc0 * 4 + vc1], T.float32(0.0))

    @T.prim_func
    def bias_physical(A: T.Buffer((1, 2, 5, 4), "float32"), b: T.Buffer((2, 4), "float32"), B: T.Buffer((1, 2, 5, 4), "float32")):
        for n, c_0, i, c_1 in T.grid(1, 2, 5, 4):
            with T.block("B"):
                vn, vc_0, vi, vc_1 = T.axis.remap("SSSS", [n, c_0, i, c_1])
                B[vn, vc_0, vi, vc_1] = A[vn, vc_0, vi, vc_1] + b[vc_0, vc_1]

    @T.prim_func
    def pool_physical(A: T.Buffer((1, 2, 5, 4), "float32"), B: T.Buffer((1, 2, 2, 4), "float32")):
        for n, c_0, i, c_1, k in T.grid(1, 2, 2, 4, 3):
            with T.block("B"):
                vn, vc_0, vi, vc_1, vk = T.axis.remap("SSSSR", [n, c_0, i, c_1, k])
                with T.init():
                    B[vn, vc_0, vi, vc_1] = T.float32(-3.4028235e38)
                B[vn, vc_0, vi, vc_1] = T.max(B[vn, vc_0, vi, vc_1], A[vn, vc_0, vi * 2 + vk, vc_1])

    @T.prim_func
    def pack_2(x: T.Buffer((1, 4, 2), "float32"), y: T.Buffer((1, 1, 2, 4), "float32")):
        for c0, c1, c2, c3 in T.grid(1, 1, 2, 4):
            with T.block("pack"):
                vc0, vc1, vc2, vc3 = T.axis.remap("SSSS", [c0, c1, c2, c3])
                y[vc0, vc1, vc2, vc3] = x[vc0, vc1 * 4 + vc3, vc2]

    @T.prim_func
    def concat_physical(A: T.Buffer((1, 1, 2, 4), "float32"), C: T.Buffer((1, 2, 2, 4), "float32"), B: T.Buffer((1, 3, 2, 4), "float32")):
        for n, c_0, i, c_1 in T.grid(1, 1, 2, 4):
            with T.block("B_0"):
                vn, vc_0, vi, vc_1 = T.axis.remap("SSSS", [n, c_0, i, c_1])
                B[vn, vc_0, vi, vc_1] = A[vn, vc_0, vi, vc_1]
        for n, c_0, i, c_1 in T.grid(1, 2, 2, 4):
            with T.block("B_1"):
                vn, vc_0, vi, vc_1 = T.axis.remap("SSSS", [n, c_0, i, c_1])
                B[vn, vc_0 + 1, vi, vc_1] = C[vn, vc_0, vi, vc_1]

    @T.prim_func
    def softmax_physical(A: T.Buffer((1, 3, 2, 4), "float32"), B: T.Buffer((1, 3, 2, 4), "float32")):
        m = T.alloc_buffer((1, 2), "float32")
        s = T.alloc_buffer((1, 2), "float32")
        for n, i, c_0, c_1 in T.grid(1, 2, 3, 4):
            with T.block("m"):
                vn, vi, vc_0, vc_1 = T.axis.remap("SSRR", [n, i, c_0, c_1])
                with T.init():
                    m[vn, vi] = T.float32(-3.4028235e38)
                m[vn, vi] = T.max(m[vn, vi], T.Select(vc_0 * 4 + vc_1 < 10, A[vn, vc_0, vi, vc_1], T.float32(-3.4028235e38)))
        for n, i, c_0, c_1 in T.grid(1, 2, 3, 4):
            with T.block("s"):
                vn, vi, vc_0, vc_1 = T.axis.remap("SSRR", [n, i, c_0, c_1])
                with T.init():
                    s[vn, vi] = T.float32(0.0)
                s[vn, vi] = s[vn, vi] + T.Select(vc_0 * 4 + vc_1 < 10, T.exp(A[vn, vc_0, vi, vc_1] - m[vn, vi]), T.float32(0.0))
        for n, c_0, i, c_1 in T.grid(1, 3, 2, 4):
            with T.block("B"):
                vn, vc_0, vi, vc_1 = T.axis.remap("SSSS", [n, c_0, i, c_1])
                B[vn, vc_0, vi, vc_1] = T.exp(A[vn, vc_0, vi, vc_1] - m[vn, vi]) / s[vn, vi]

    @T.prim_func
    def mean_physical_1(A: T.Buffer((1, 3, 2, 4), "float32"), y: T.Buffer((1, 3, 4), "float32")):
        B = T.alloc_buffer((1, 3, 4), "float32")
        for n, c_0, c_1, i in T.grid(1, 3, 4, 2):
            with T.block("B"):
                vn, vc_0, vc_1, vi = T.axis.remap("SSSR", [n, c_0, c_1, i])
                with T.init():
                    B[vn, vc_0, vc_1] = T.float32(0.0)
                B[vn, vc_0, vc_1] = B[vn, vc_0, vc_1] + A[vn, vc_0, vi, vc_1]
        for c0, c1, c2 in T.grid(1, 3, 4):
            with T.block("pad"):
                vc0, vc1, vc2 = T.axis.remap("SSS", [c0, c1, c2])
                y[vc0, vc1, vc2] = T.if_then_else(vc1 < 2 or vc2 < 2, B[0, vc1, vc2], T.float32(0.0))

# run: opt --pass cancel_layout
# sizes: N=3
# A pack of rows, of which there are an open number, undoes the crop before it: for every size, since
# the cells that it pads hold zeros.
@I.ir_module
class Module:
    @T.prim_func
    def pack(a: T.handle, p: T.handle):
        N = T.int32()
        A = T.match_buffer(a, (N, 14), "float32")
        P = T.match_buffer(p, (4, N, 4), "float32")
        for i, j, k in T.grid(4, N, 4):
            P[i, j, k] = T.if_then_else(i * 4 + k < 14, A[j, i * 4 + k], T.float32(0))

    @T.prim_func
    def crop(p: T.handle, a: T.handle):
        N = T.int32()
        P = T.match_buffer(p, (4, N, 4), "float32")
        A = T.match_buffer(a, (N, 14), "float32")
        for i, j in T.grid(N, 14):
            A[i, j] = P[j // 4, i, j % 4]

    @T.prim_func
    def negate(p: T.handle, q: T.handle):
        N = T.int32()
        P = T.match_buffer(p, (4, N, 4), "float32")
        Q = T.match_buffer(q, (4, N, 4), "float32")
        for i, j, k in T.grid(4, N, 4):
            Q[i, j, k] = T.float32(0) - P[i, j, k]

    @R.function
    def main(a: R.Tensor(("N", 14), "float32")):
        N = T.int64()
        cls = Module
        with R.dataflow():
            p = R.call_tir(cls.pack, (a,), out_sinfo=R.Tensor((4, N, 4), "float32"))
            q = R.call_tir(cls.negate, (p,), out_sinfo=R.Tensor((4, N, 4), "float32"))
            b = R.call_tir(cls.crop, (q,), out_sinfo=R.Tensor((N, 14), "float32"))
            p1 = R.call_tir(cls.pack, (b,), out_sinfo=R.Tensor((4, N, 4), "float32"))
            y = R.call_tir(cls.negate, (p1,), out_sinfo=R.Tensor((4, N, 4), "float32"))
            R.output(y)
        return y

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T
from tvm.script import relax as R


@I.ir_module
class Module:
    @T.prim_func
    def pack(a: T.handle, p: T.handle):
        N = T.int32()
        A = T.match_buffer(a, (N, 14), "float32")
        P = T.match_buffer(p, (4, N, 4), "float32")
        for i, j, k in T.grid(4, N, 4):
            P[i, j, k] = T.if_then_else(i * 4 + k < 14, A[j, i * 4 + k], T.float32(0.0))

    @T.prim_func
    def negate(p: T.handle, q: T.handle):
        N = T.int32()
        P = T.match_buffer(p, (4, N, 4), "float32")
        Q = T.match_buffer(q, (4, N, 4), "float32")
        for i, j, k in T.grid(4, N, 4):
            Q[i, j, k] = T.float32(0.0) - P[i, j, k]

    @R.function
    def main(a: R.Tensor(("N", 14), dtype="float32")):
        N = T.int64()
        cls = Module
        with R.dataflow():
            p = R.call_tir(cls.pack, (a,), out_sinfo=R.Tensor((4, N, 4), dtype="float32"))
            q = R.call_tir(cls.negate, (p,), out_sinfo=R.Tensor((4, N, 4), dtype="float32"))
            y = R.call_tir(cls.negate, (q,), out_sinfo=R.Tensor((4, N, 4), dtype="float32"))
            R.output(y)
        return y

# run: opt --pass lift_layout,flow_layout
# semantics: not compared, because the interpreter does not know the C function
# A kernel library that wants its own layout: the function converts at its edges, and calls C in
# between. The conversions move into the graph, through `relu`, and the pair between the calls goes.
@I.ir_module
class Module:
    @T.prim_func
    def matmul(A: T.Buffer((16, 12), "float32"), B: T.Buffer((12, 12), "float32"), C: T.Buffer((16, 12), "float32")):
        P = T.alloc_buffer((2, 12, 8), "float32")
        Q = T.alloc_buffer((2, 12, 8), "float32")
        for i, j, k in T.grid(2, 12, 8):
            with T.block("P"):
                T.block_attr({"preproc": "layout"})
                vi, vj, vk = T.axis.remap("SSS", [i, j, k])
                P[vi, vj, vk] = A[vi * 8 + vk, vj]
        with T.block("kernel"):
            T.reads(P[0:2, 0:12, 0:8], B[0:12, 0:12])
            T.writes(Q[0:2, 0:12, 0:8])
            T.evaluate(T.call_extern("int32", "blocked_matmul", P.data, B.data, Q.data))
        for i, j in T.grid(16, 12):
            with T.block("C"):
                T.block_attr({"postproc": "layout"})
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = Q[vi // 8, vj, vi % 8]

    @T.prim_func
    def relu(A: T.Buffer((16, 12), "float32"), B: T.Buffer((16, 12), "float32")):
        for i, j in T.grid(16, 12):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = T.max(A[vi, vj], T.float32(0))

    @R.function
    def main(x: R.Tensor((16, 12), "float32"), v: R.Tensor((12, 12), "float32"), w: R.Tensor((12, 12), "float32")):
        cls = Module
        with R.dataflow():
            a = R.call_tir(cls.matmul, (x, v), out_sinfo=R.Tensor((16, 12), "float32"))
            b = R.call_tir(cls.relu, (a,), out_sinfo=R.Tensor((16, 12), "float32"))
            c = R.call_tir(cls.matmul, (b, w), out_sinfo=R.Tensor((16, 12), "float32"))
            R.output(c)
        return c

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T
from tvm.script import relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((16, 12), dtype="float32"), v: R.Tensor((12, 12), dtype="float32"), w: R.Tensor((12, 12), dtype="float32")):
        cls = Module
        with R.dataflow():
            x_1 = R.call_tir(cls.pack, (x,), out_sinfo=R.Tensor((2, 12, 8), dtype="float32"))
            a_physical = R.call_tir(cls.matmul_physical, (x_1, v), out_sinfo=R.Tensor((2, 12, 8), dtype="float32"))
            b = R.call_tir(cls.relu_physical, (a_physical,), out_sinfo=R.Tensor((2, 12, 8), dtype="float32"))
            c_physical = R.call_tir(cls.matmul_physical, (b, w), out_sinfo=R.Tensor((2, 12, 8), dtype="float32"))
            c = R.call_tir(cls.crop, (c_physical,), out_sinfo=R.Tensor((16, 12), dtype="float32"))
            R.output(c)
        return c

    @T.prim_func
    def matmul_physical(P: T.Buffer((2, 12, 8), "float32"), B: T.Buffer((12, 12), "float32"), Q: T.Buffer((2, 12, 8), "float32")):
        with T.block("kernel"):
            T.reads(P[0:2, 0:12, 0:8], B[0:12, 0:12])
            T.writes(Q[0:2, 0:12, 0:8])
            T.evaluate(T.call_extern("int32", "blocked_matmul", P.data, B.data, Q.data))

    @T.prim_func
    def pack(x: T.Buffer((16, 12), "float32"), y: T.Buffer((2, 12, 8), "float32")):
        for c0, c1, c2 in T.grid(2, 12, 8):
            with T.block("pack"):
                vc0, vc1, vc2 = T.axis.remap("SSS", [c0, c1, c2])
                y[vc0, vc1, vc2] = x[vc0 * 8 + vc2, vc1]

    @T.prim_func
    def relu_physical(A: T.Buffer((2, 12, 8), "float32"), B: T.Buffer((2, 12, 8), "float32")):
        for i_0, j, i_1 in T.grid(2, 12, 8):
            with T.block("B"):
                vi_0, vj, vi_1 = T.axis.remap("SSS", [i_0, j, i_1])
                B[vi_0, vj, vi_1] = T.max(A[vi_0, vj, vi_1], T.float32(0.0))

    @T.prim_func
    def crop(x: T.Buffer((2, 12, 8), "float32"), y: T.Buffer((16, 12), "float32")):
        for i0, i1 in T.grid(16, 12):
            with T.block("crop"):
                vi0, vi1 = T.axis.remap("SS", [i0, i1])
                y[vi0, vi1] = x[vi0 // 8, vi1, vi0 % 8]

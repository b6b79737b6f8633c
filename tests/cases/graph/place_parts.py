# run: opt --pass legalize,place_parts --pass-config place_parts.all=1
# The parts of a concatenation are computed in the whole: their producers and readers take strides. The
# last concatenation comes first: its result lies where the caller wants it, with its parts. A value that is
# joined twice is copied into its second place. For the first one most would have to be copied: it stays.



@I.ir_module
class Module:
    @T.prim_func
    def neg(A: T.Buffer((3, 2), "float32"), B: T.Buffer((3, 2), "float32")):
        for i, j in T.grid(3, 2):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * -1.0

    @T.prim_func
    def join(A: T.Buffer((3, 2), "float32"), B: T.Buffer((3, 2), "float32"), C: T.Buffer((3, 2), "float32"), D: T.Buffer((3, 6), "float32")):
        for i, j in T.grid(3, 2):
            with T.block("D"):
                vi, vj = T.axis.remap("SS", [i, j])
                D[vi, vj] = A[vi, vj]
        for i, j in T.grid(3, 2):
            with T.block("D_1"):
                vi, vj = T.axis.remap("SS", [i, j])
                D[vi, vj + 2] = B[vi, vj]
        for i, j in T.grid(3, 2):
            with T.block("D_2"):
                vi, vj = T.axis.remap("SS", [i, j])
                D[vi, vj + 4] = C[vi, vj]

    @T.prim_func
    def half(A: T.Buffer((3, 6), "float32"), B: T.Buffer((3, 6), "float32")):
        for i, j in T.grid(3, 6):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * 0.5

    @R.function
    def main(x: R.Tensor((3, 2), "float32")):
        cls = Module
        with R.dataflow():
            a = R.call_tir(cls.neg, (x,), out_sinfo=R.Tensor((3, 2), "float32"))
            b = R.call_tir(cls.neg, (a,), out_sinfo=R.Tensor((3, 2), "float32"))
            c = R.call_tir(cls.join, (x, a, b), out_sinfo=R.Tensor((3, 6), "float32"))
            d = R.call_tir(cls.half, (c,), out_sinfo=R.Tensor((3, 6), "float32"))
            e = R.call_tir(cls.join, (a, b, a), out_sinfo=R.Tensor((3, 6), "float32"))
            R.output(d, e)
        return (d, e)

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T
from tvm.script import relax as R


@I.ir_module
class Module:
    @T.prim_func
    def half(A: T.Buffer((3, 6), "float32"), B: T.Buffer((3, 6), "float32")):
        for i, j in T.grid(3, 6):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * T.float32(0.5)

    @R.function
    def main(x: R.Tensor((3, 2), dtype="float32")):
        R.func_attr({"output_names": ["d", "e"]})
        cls = Module
        with R.dataflow():
            a = R.call_tir(cls.neg_1, (x,), out_sinfo=R.Tensor((3, 2), dtype="float32"))
            b = R.call_tir(cls.neg_2, (a,), out_sinfo=R.Tensor((3, 2), dtype="float32"))
            c = R.call_tir(cls.join_1, (x, a, b), out_sinfo=R.Tensor((3, 6), dtype="float32"))
            d = R.call_tir(cls.half, (c,), out_sinfo=R.Tensor((3, 6), dtype="float32"))
            e = R.call_tir(cls.copy, (a,), out_sinfo=R.Tensor((3, 2), dtype="float32"))
            e_1 = R.call_tir(cls.join_2, (a, b, e), out_sinfo=R.Tensor((3, 6), dtype="float32"))
            R.output(d, e_1)
        return (d, e_1)

    @T.prim_func
    def neg_1(A: T.Buffer((3, 2), "float32"), B: T.Buffer((3, 2), "float32", strides=(6, 1))):
        for i, j in T.grid(3, 2):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * T.float32(-1.0)

    @T.prim_func
    def neg_2(A: T.Buffer((3, 2), "float32", strides=(6, 1)), B: T.Buffer((3, 2), "float32", strides=(6, 1))):
        for i, j in T.grid(3, 2):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * T.float32(-1.0)

    @T.prim_func
    def join_1(A: T.Buffer((3, 2), "float32"), B: T.Buffer((3, 2), "float32", strides=(6, 1)), C: T.Buffer((3, 2), "float32", strides=(6, 1)), D: T.Buffer((3, 6), "float32")):
        for i, j in T.grid(3, 2):
            with T.block("D"):
                vi, vj = T.axis.remap("SS", [i, j])
                D[vi, vj] = A[vi, vj]
        for i, j in T.grid(3, 2):
            with T.block("D_1"):
                vi, vj = T.axis.remap("SS", [i, j])
                D[vi, vj + 2] = B[vi, vj]
        for i, j in T.grid(3, 2):
            with T.block("D_2"):
                vi, vj = T.axis.remap("SS", [i, j])
                D[vi, vj + 4] = C[vi, vj]

    @T.prim_func
    def copy(x: T.Buffer((3, 2), "float32", strides=(6, 1)), copy: T.Buffer((3, 2), "float32", strides=(6, 1))):
        T.func_attr({"tilewright.copy": 1})
        for i0, i1 in T.grid(3, 2):
            with T.block("copy"):
                vi0, vi1 = T.axis.remap("SS", [i0, i1])
                copy[vi0, vi1] = x[vi0, vi1]

    @T.prim_func
    def join_2(A: T.Buffer((3, 2), "float32", strides=(6, 1)), B: T.Buffer((3, 2), "float32", strides=(6, 1)), C: T.Buffer((3, 2), "float32", strides=(6, 1)), D: T.Buffer((3, 6), "float32")):
        T.func_attr({"tilewright.parts": [[0, 0], [0, 2], [0, 4]]})
        for i, j in T.grid(3, 2):
            with T.block("D"):
                vi, vj = T.axis.remap("SS", [i, j])
                D[vi, vj] = A[vi, vj]
        for i, j in T.grid(3, 2):
            with T.block("D_1"):
                vi, vj = T.axis.remap("SS", [i, j])
                D[vi, vj + 2] = B[vi, vj]
        for i, j in T.grid(3, 2):
            with T.block("D_2"):
                vi, vj = T.axis.remap("SS", [i, j])
                D[vi, vj + 4] = C[vi, vj]

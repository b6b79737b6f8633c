# run: opt --pass legalize,place_parts --pass-config place_parts.all=1 --explain
# Slices are read where they lie: a split whose first part is read there and whose parts are joined again
# with more, every second row of an input, and a column. What is returned has memory of its own, and
# what runs backwards has no strides.


@I.ir_module
class Module:
    @T.prim_func
    def neg(A: T.Buffer((3, 4), "float32"), B: T.Buffer((3, 4), "float32")):
        for i, j in T.grid(3, 4):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * -1.0

    @T.prim_func
    def split(A: T.Buffer((3, 4), "float32"), B: T.Buffer((3, 1), "float32"), C: T.Buffer((3, 3), "float32")):
        for i, j in T.grid(3, 1):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj]
        for i, j in T.grid(3, 3):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = A[vi, vj + 1]

    @T.prim_func
    def half(A: T.Buffer((3, 3), "float32"), B: T.Buffer((3, 3), "float32")):
        for i, j in T.grid(3, 3):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * 0.5

    @T.prim_func
    def join(A: T.Buffer((3, 1), "float32"), B: T.Buffer((3, 3), "float32"), C: T.Buffer((3, 3), "float32"), D: T.Buffer((3, 7), "float32")):
        for i, j in T.grid(3, 1):
            with T.block("D"):
                vi, vj = T.axis.remap("SS", [i, j])
                D[vi, vj] = A[vi, vj]
        for i, j in T.grid(3, 3):
            with T.block("D_1"):
                vi, vj = T.axis.remap("SS", [i, j])
                D[vi, vj + 1] = B[vi, vj]
        for i, j in T.grid(3, 3):
            with T.block("D_2"):
                vi, vj = T.axis.remap("SS", [i, j])
                D[vi, vj + 4] = C[vi, vj]

    @T.prim_func
    def odd(A: T.Buffer((6, 5), "float32"), B: T.Buffer((3, 3), "float32")):
        for i, j in T.grid(3, 3):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi * 2 + 1, vj + 2]

    @T.prim_func
    def column(A: T.Buffer((6, 5), "float32"), B: T.Buffer((6,), "float32")):
        for i in range(6):
            with T.block("B"):
                vi = T.axis.spatial(6, i)
                B[vi] = A[vi, 4]

    @T.prim_func
    def backwards(A: T.Buffer((6,), "float32"), B: T.Buffer((6,), "float32")):
        #^^^^^^^^ remark: `backwards` copies: the index `5 - vi` of `A` goes down
        for i in range(6):
            with T.block("B"):
                vi = T.axis.spatial(6, i)
                B[vi] = A[5 - vi]

    @T.prim_func
    def double(A: T.Buffer((6,), "float32"), B: T.Buffer((6,), "float32")):
        for i in range(6):
            with T.block("B"):
                vi = T.axis.spatial(6, i)
                B[vi] = A[vi] * 2.0

    @R.function
    def main(x: R.Tensor((3, 4), "float32"), y: R.Tensor((6, 5), "float32")):
        cls = Module
        with R.dataflow():
            a = R.call_tir(cls.neg, (x,), out_sinfo=R.Tensor((3, 4), "float32"))
            lv = R.call_tir(cls.split, (a,), out_sinfo=[R.Tensor((3, 1), "float32"), R.Tensor((3, 3), "float32")])
            b = lv[0]
            c = lv[1]
            d = R.call_tir(cls.half, (c,), out_sinfo=R.Tensor((3, 3), "float32"))
            e = R.call_tir(cls.join, (b, c, d), out_sinfo=R.Tensor((3, 7), "float32"))
            f = R.call_tir(cls.odd, (y,), out_sinfo=R.Tensor((3, 3), "float32"))
            g = R.call_tir(cls.half, (f,), out_sinfo=R.Tensor((3, 3), "float32"))
            h = R.call_tir(cls.column, (y,), out_sinfo=R.Tensor((6,), "float32"))
            k = R.call_tir(cls.double, (h,), out_sinfo=R.Tensor((6,), "float32"))
            m = R.call_tir(cls.backwards, (k,), out_sinfo=R.Tensor((6,), "float32"))
            n = R.call_tir(cls.odd, (y,), out_sinfo=R.Tensor((3, 3), "float32"))
            #^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ remark: `n` is copied: it is a result, and has memory of its own
            R.output(e, g, m, n)
        return (e, g, m, n)

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T
from tvm.script import relax as R


@I.ir_module
class Module:
    @T.prim_func
    def odd(A: T.Buffer((6, 5), "float32"), B: T.Buffer((3, 3), "float32")):
        for i, j in T.grid(3, 3):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi * 2 + 1, vj + 2]

    @T.prim_func
    def backwards(A: T.Buffer((6,), "float32"), B: T.Buffer((6,), "float32")):
        for i in range(6):
            with T.block("B"):
                vi = T.axis.spatial(6, i)
                B[vi] = A[5 - vi]

    @R.function
    def main(x: R.Tensor((3, 4), dtype="float32"), y: R.Tensor((6, 5), dtype="float32")):
        R.func_attr({"output_names": ["e", "g", "m", "n"]})
        cls = Module
        with R.dataflow():
            a = R.call_tir(cls.neg_1, (x,), out_sinfo=R.Tensor((3, 4), dtype="float32"))
            c = R.call_tir(cls.split_2, (a,), out_sinfo=R.Tensor((3, 3), dtype="float32"))
            d = R.call_tir(cls.half_1, (c,), out_sinfo=R.Tensor((3, 3), dtype="float32"))
            e = R.call_tir(cls.join_1, (a, d), out_sinfo=R.Tensor((3, 7), dtype="float32"))
            f = R.call_tir(cls.odd_1, (y,), out_sinfo=R.Tensor((3, 3), dtype="float32"))
            g = R.call_tir(cls.half_2, (f,), out_sinfo=R.Tensor((3, 3), dtype="float32"))
            h = R.call_tir(cls.column_1, (y,), out_sinfo=R.Tensor((6,), dtype="float32"))
            k = R.call_tir(cls.double_1, (h,), out_sinfo=R.Tensor((6,), dtype="float32"))
            m = R.call_tir(cls.backwards, (k,), out_sinfo=R.Tensor((6,), dtype="float32"))
            n = R.call_tir(cls.odd, (y,), out_sinfo=R.Tensor((3, 3), dtype="float32"))
            R.output(e, g, m, n)
        return (e, g, m, n)

    @T.prim_func
    def neg_1(A: T.Buffer((3, 4), "float32"), B: T.Buffer((3, 4), "float32", strides=(7, 1))):
        for i, j in T.grid(3, 4):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * T.float32(-1.0)

    @T.prim_func
    def split_2(A: T.Buffer((3, 4), "float32", strides=(7, 1)), C: T.Buffer((3, 3), "float32", strides=(7, 1))):
        T.func_attr({"tilewright.slice": [[0, 1], [[1, 0], [0, 1]]]})
        for i, j in T.grid(3, 3):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = A[vi, vj + 1]

    @T.prim_func
    def half_1(A: T.Buffer((3, 3), "float32", strides=(7, 1)), B: T.Buffer((3, 3), "float32", strides=(7, 1))):
        for i, j in T.grid(3, 3):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * T.float32(0.5)

    @T.prim_func
    def join_1(part0: T.Buffer((3, 4), "float32", strides=(7, 1)), part1: T.Buffer((3, 3), "float32", strides=(7, 1)), whole: T.Buffer((3, 7), "float32")):
        T.func_attr({"tilewright.parts": [[0, 0], [0, 4]]})
        for v0, v1 in T.grid(3, 4):
            with T.block("part0"):
                v0_1, v1_1 = T.axis.remap("SS", [v0, v1])
                whole[v0_1, v1_1] = part0[v0_1, v1_1]
        for v0, v1 in T.grid(3, 3):
            with T.block("part1"):
                v0_1, v1_1 = T.axis.remap("SS", [v0, v1])
                whole[v0_1, v1_1 + 4] = part1[v0_1, v1_1]

    @T.prim_func
    def odd_1(A: T.Buffer((6, 5), "float32"), B: T.Buffer((3, 3), "float32", strides=(10, 1))):
        T.func_attr({"tilewright.slice": [[1, 2], [[2, 0], [0, 1]]]})
        for i, j in T.grid(3, 3):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi * 2 + 1, vj + 2]

    @T.prim_func
    def half_2(A: T.Buffer((3, 3), "float32", strides=(10, 1)), B: T.Buffer((3, 3), "float32")):
        for i, j in T.grid(3, 3):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * T.float32(0.5)

    @T.prim_func
    def column_1(A: T.Buffer((6, 5), "float32"), B: T.Buffer((6,), "float32", strides=(5,))):
        T.func_attr({"tilewright.slice": [[0, 4], [[1, 0]]]})
        for i in range(6):
            with T.block("B"):
                vi = T.axis.spatial(6, i)
                B[vi] = A[vi, 4]

    @T.prim_func
    def double_1(A: T.Buffer((6,), "float32", strides=(5,)), B: T.Buffer((6,), "float32")):
        for i in range(6):
            with T.block("B"):
                vi = T.axis.spatial(6, i)
                B[vi] = A[vi] * T.float32(2.0)

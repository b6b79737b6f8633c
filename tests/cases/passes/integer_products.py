# run: opt --pass integer_products
# A product of dequantised integers is one of the integers; its bias is added to the sums, and the
# scale of what follows divides their factor.


@I.ir_module
class Module:
    @T.prim_func
    def numbers(
        Q: T.Buffer((3, 8), "uint8"), S: T.Buffer((), "float32"), Z: T.Buffer((), "uint8"), X: T.Buffer((3, 8), "float32")
    ):
        for i, j in T.grid(3, 8):
            with T.block("X"):
                vi, vj = T.axis.remap("SS", [i, j])
                X[vi, vj] = T.float32(T.int32(Q[vi, vj]) - T.int32(Z[()])) * S[()]

    @T.prim_func
    def weights(
        Q: T.Buffer((8, 2), "int8"), S: T.Buffer((2,), "float32"), X: T.Buffer((8, 2), "float32")
    ):
        for i, j in T.grid(8, 2):
            with T.block("X"):
                vi, vj = T.axis.remap("SS", [i, j])
                X[vi, vj] = T.float32(T.int32(Q[vi, vj])) * S[vj]

    @T.prim_func
    def list(
        Q: T.Buffer((2,), "int32"), S: T.Buffer((2,), "float32"), X: T.Buffer((2,), "float32")
    ):
        for j in range(2):
            with T.block("X"):
                vj = T.axis.spatial(2, j)
                X[vj] = T.float32(Q[vj]) * S[vj]

    @T.prim_func
    def product(
        A: T.Buffer((3, 8), "float32"),
        B: T.Buffer((8, 2), "float32"),
        C: T.Buffer((2,), "float32"),
        D: T.Buffer((3, 2), "float32"),
    ):
        P = T.alloc_buffer((3, 2))
        for i, j, k in T.grid(3, 2, 8):
            with T.block("P"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    P[vi, vj] = 0.0
                P[vi, vj] = P[vi, vj] + A[vi, vk] * B[vk, vj]
        for i, j in T.grid(3, 2):
            with T.block("D"):
                vi, vj = T.axis.remap("SS", [i, j])
                D[vi, vj] = P[vi, vj] + C[vj]

    @T.prim_func
    def relu(A: T.Buffer((3, 2), "float32"), B: T.Buffer((3, 2), "float32")):
        for i, j in T.grid(3, 2):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = T.max(A[vi, vj], 0.0)

    @T.prim_func
    def integers(
        X: T.Buffer((3, 2), "float32"), S: T.Buffer((), "float32"), Q: T.Buffer((3, 2), "uint8")
    ):
        for i, j in T.grid(3, 2):
            with T.block("Q"):
                vi, vj = T.axis.remap("SS", [i, j])
                Q[vi, vj] = T.uint8(T.min(T.max(T.nearbyint(X[vi, vj] / S[()]), 0.0), 255.0))

    @R.function
    def main(q: R.Tensor((3, 8), "uint8"), w: R.Tensor((8, 2), "int8")) -> R.Tensor((3, 2), "uint8"):
        cls = Module
        with R.dataflow():
            a = R.call_tir(cls.numbers, (q, R.const(0.5, "float32"), R.const(3, "uint8")), out_sinfo=R.Tensor((3, 8), "float32"))
            b = R.call_tir(cls.weights, (w, R.const([0.25, 0.5], "float32")), out_sinfo=R.Tensor((8, 2), "float32"))
            c = R.call_tir(cls.list, (R.const([7, -9], "int32"), R.const([0.125, 0.25], "float32")), out_sinfo=R.Tensor((2,), "float32"))
            d = R.call_tir(cls.product, (a, b, c), out_sinfo=R.Tensor((3, 2), "float32"))
            e = R.call_tir(cls.relu, (d,), out_sinfo=R.Tensor((3, 2), "float32"))
            gv = R.call_tir(cls.integers, (e, R.const(2.0, "float32")), out_sinfo=R.Tensor((3, 2), "uint8"))
            R.output(gv)
        return gv

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T
from tvm.script import relax as R


@I.ir_module
class Module:
    @T.prim_func
    def relu(A: T.Buffer((3, 2), "float32"), B: T.Buffer((3, 2), "float32")):
        for i, j in T.grid(3, 2):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = T.max(A[vi, vj], T.float32(0.0))

    @R.function
    def main(q: R.Tensor((3, 8), dtype="uint8"), w: R.Tensor((8, 2), dtype="int8")) -> R.Tensor((3, 2), dtype="uint8"):
        cls = Module
        with R.dataflow():
            product_integer = R.call_tir(cls.product_integer, (q, R.const(3, "uint8"), w), out_sinfo=R.Tensor((3, 2), dtype="int32"))
            add_integer = R.call_tir(cls.add_integer, (product_integer, R.const([7, -9], "int32")), out_sinfo=R.Tensor((3, 2), dtype="int32"))
            d = R.call_tir(cls.rescaled, (add_integer, R.const([0.0625, 0.125], "float32")), out_sinfo=R.Tensor((3, 2), dtype="float32"))
            e = R.call_tir(cls.relu, (d,), out_sinfo=R.Tensor((3, 2), dtype="float32"))
            gv = R.call_tir(cls.integers_rounded, (e,), out_sinfo=R.Tensor((3, 2), dtype="uint8"))
            R.output(gv)
        return gv

    @T.prim_func
    def product_integer(A: T.Buffer((3, 8), "uint8"), A_zero_point: T.Buffer((), "uint8"), B: T.Buffer((8, 2), "int8"), sums: T.Buffer((3, 2), "int32")):
        for i, j, k in T.grid(3, 2, 8):
            with T.block("P_integer"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    sums[vi, vj] = 0
                sums[vi, vj] = sums[vi, vj] + (T.Cast("int32", A[vi, vk]) - T.Cast("int32", A_zero_point[()])) * T.Cast("int32", B[vk, vj])

    @T.prim_func
    def add_integer(sums: T.Buffer((3, 2), "int32"), C: T.Buffer((2,), "int32"), biased: T.Buffer((3, 2), "int32")):
        for v0, v1 in T.grid(3, 2):
            with T.block("biased"):
                v0_1, v1_1 = T.axis.remap("SS", [v0, v1])
                biased[v0_1, v1_1] = sums[v0_1, v1_1] + C[v1_1]

    @T.prim_func
    def rescaled(sums: T.Buffer((3, 2), "int32"), factor_0: T.Buffer((2,), "float32"), D: T.Buffer((3, 2), "float32")):
        for v0, v1 in T.grid(3, 2):
            with T.block("rescaled"):
                v0_1, v1_1 = T.axis.remap("SS", [v0, v1])
                D[v0_1, v1_1] = T.Cast("float32", sums[v0_1, v1_1]) * factor_0[v1_1]

    @T.prim_func
    def integers_rounded(X: T.Buffer((3, 2), "float32"), Q: T.Buffer((3, 2), "uint8")):
        for i, j in T.grid(3, 2):
            with T.block("Q"):
                vi, vj = T.axis.remap("SS", [i, j])
                Q[vi, vj] = T.Cast("uint8", T.min(T.max(T.nearbyint(X[vi, vj]), T.float32(0.0)), T.float32(255.0)))

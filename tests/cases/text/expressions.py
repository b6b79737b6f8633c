# run: opt
# Python's precedence, both divisions, chained comparisons, typed literals.


@T.prim_func
def f(
    A: T.Buffer((16,), "int32"),
    X: T.Buffer((16,), "float32"),
    B: T.Buffer((16,), "int32"),
    Y: T.Buffer((16,), "float32"),
):
    for i in T.serial(16):
        B[i] = (A[i] + 2) // 8 * 4 - (i - 5) % 3 + T.truncdiv(i - 9, 2) * T.truncmod(i - 9, 4)
        if 0 <= i < 14 and not (i == 3 or i > 10):
            B[i] = T.Select(i % 2 == 0, T.max(B[i], 3), -B[i])
        k: T.int64 = T.Cast("int64", i) * T.int64(3)
        Y[i] = T.exp(-X[i]) + T.float32(0.5) * T.Cast("float32", k) + T.sqrt(T.abs(X[i]))
        for j in T.unroll(2):
            with T.LetStmt(i * 2 + j) as t:
                if t == 7:
                    Y[i] = T.float32("inf")

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((16,), "int32"), X: T.Buffer((16,), "float32"), B: T.Buffer((16,), "int32"), Y: T.Buffer((16,), "float32")):
        for i in range(16):
            B[i] = (A[i] + 2) // 8 * 4 - (i - 5) % 3 + T.truncdiv(i - 9, 2) * T.truncmod(i - 9, 4)
            if 0 <= i and i < 14 and not (i == 3 or i > 10):
                B[i] = T.Select(i % 2 == 0, T.max(B[i], 3), B[i] * -1)
            k: T.int64 = T.Cast("int64", i) * T.int64(3)
            Y[i] = T.exp(X[i] * T.float32(-1.0)) + T.float32(0.5) * T.Cast("float32", k) + T.sqrt(T.abs(X[i]))
            for j in T.unroll(2):
                t: T.int32 = i * 2 + j
                if t == 7:
                    Y[i] = T.float32("inf")

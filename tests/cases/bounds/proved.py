# run: opt --pass lower
# Nothing is left to check: tails, padding, windows, quotients and remainders of fused loops, bounds
# that depend on outer loops, values of bindings.
@T.prim_func
def f(A: T.Buffer((13, 7), "float32"), B: T.Buffer((13, 7), "float32"), C: T.Buffer((15, 9), "float32"), n: T.int32):
    for io, ii in T.grid(4, 4):
        for j in range(7):
            if io * 4 + ii < 13:
                B[io * 4 + ii, j] = A[io * 4 + ii, j]
    for io in range(4):
        for ii in range(T.min(4, 13 - io * 4)):
            B[io * 4 + ii, 0] = T.float32(0)
    for k in range(91):
        B[k // 7, k % 7] = A[k // 7, k % 7]
    for i, j in T.grid(15, 9):
        C[i, j] = T.if_then_else(1 <= i and i < 14 and 1 <= j and j < 8, A[i - 1, j - 1], T.float32(0))
    for i, j in T.grid(15, 9):
        if not (i < 2 or j < 2):
            C[i, j] = A[(i - 1) // 2, (j - 2) // 2]
    for i in range(13):
        for j in range(i, 13):
            B[j - i, 0] = A[j, 0]
    for i in range(13):
        m: T.int32 = T.max(T.min(n, i), 0)
        B[m, T.min(m, 6)] = T.float32(1)

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((13, 7), "float32"), B: T.Buffer((13, 7), "float32"), C: T.Buffer((15, 9), "float32"), n: T.int32):
        A_1 = T.decl_buffer((91,), "float32", data=A.data)
        B_1 = T.decl_buffer((91,), "float32", data=B.data)
        C_1 = T.decl_buffer((135,), "float32", data=C.data)
        for io in range(4):
            for ii, j in T.grid(T.min(13 - io * 4, 4), 7):
                B_1[io * 28 + ii * 7 + j] = A_1[io * 28 + ii * 7 + j]
        for io in range(4):
            for ii in range(T.min(4, 13 - io * 4)):
                B_1[io * 28 + ii * 7] = T.float32(0.0)
        for k in range(91):
            B_1[k] = A_1[k]
        for i, j in T.grid(15, 9):
            C_1[i * 9 + j] = T.if_then_else(1 <= i and i < 14 and 1 <= j and j < 8, A_1[i * 7 + j - 8], T.float32(0.0))
        for i in range(2, 15):
            for j in range(2, 9):
                C_1[i * 9 + j] = A_1[(i + 1) // 2 * 7 + j // 2 - 8]
        for i in range(13):
            for j in range(i, 13):
                B_1[j * 7 - i * 7] = A_1[j * 7]
        for i in range(13):
            m: T.int32 = T.max(T.min(n, i), 0)
            B_1[T.Cast("int64", m) * T.int64(7) + T.Cast("int64", T.min(m, 6))] = T.float32(1.0)

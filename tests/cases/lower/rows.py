# run: opt --pass lower
# sizes: n=5
# Loops over rows and over their cells, which lie one behind the other, are one loop, where nothing else asks for a row.


@T.prim_func
def largest(a: T.handle, B: T.Buffer((1,), "float32"), n: T.int64):
    A = T.match_buffer(a, (n, 4, 8), "float32")
    B[0] = T.min_value("float32")
    for i, j, k in T.grid(n, 4, 8):
        B[0] = T.max(B[0], A[i, j, k])


@T.prim_func
def bias(a: T.handle, C: T.Buffer((8,), "float32"), b: T.handle, n: T.int64):
    A = T.match_buffer(a, (n, 8), "float32")
    B = T.match_buffer(b, (n, 8), "float32")
    for i, j in T.grid(n, 8):
        B[i, j] = A[i, j] + C[j]


@T.prim_func
def turned(A: T.Buffer((6, 8), "float32"), B: T.Buffer((48,), "float32")):
    for i, j in T.grid(6, 8):
        B[47 - (i * 8 + j)] = T.if_then_else(i * 8 + j < 40, A[i, j], T.float32(0))


@T.prim_func
def scheduled(A: T.Buffer((6, 8), "float32"), B: T.Buffer((6, 8), "float32")):
    for i in T.parallel(2):
        for j, k in T.grid(3, 8):
            B[i * 3 + j, k] = A[i * 3 + j, k]

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def largest(a: T.handle, B: T.Buffer((1,), "float32"), n: T.int64):
        A = T.match_buffer(a, (n, 4, 8), "float32")
        size: T.int64 = n * T.int64(32)
        A_1 = T.decl_buffer((n * T.int64(32),), "float32", data=A.data)
        B[0] = T.float32(-3.4028235e38)
        for i in range(size):
            B[0] = T.max(B[0], A_1[i])

    @T.prim_func
    def bias(a: T.handle, C: T.Buffer((8,), "float32"), b: T.handle, n: T.int64):
        A = T.match_buffer(a, (n, 8), "float32")
        B = T.match_buffer(b, (n, 8), "float32")
        A_1 = T.decl_buffer((n * T.int64(8),), "float32", data=A.data)
        B_1 = T.decl_buffer((n * T.int64(8),), "float32", data=B.data)
        for i, j in T.grid(n, 8):
            B_1[i * T.int64(8) + T.Cast("int64", j)] = A_1[i * T.int64(8) + T.Cast("int64", j)] + C[j]

    @T.prim_func
    def turned(A: T.Buffer((6, 8), "float32"), B: T.Buffer((48,), "float32")):
        A_1 = T.decl_buffer((48,), "float32", data=A.data)
        for i in range(48):
            B[47 - i] = T.if_then_else(i < 40, A_1[i], T.float32(0.0))

    @T.prim_func
    def scheduled(A: T.Buffer((6, 8), "float32"), B: T.Buffer((6, 8), "float32")):
        A_1 = T.decl_buffer((48,), "float32", data=A.data)
        B_1 = T.decl_buffer((48,), "float32", data=B.data)
        for i in T.parallel(2):
            for j, k in T.grid(3, 8):
                B_1[(i * 3 + j) * 8 + k] = A_1[(i * 3 + j) * 8 + k]

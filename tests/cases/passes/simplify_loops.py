# run: opt --pass simplify
# Ranges of all kinds: from below zero, empty ones, of one iteration, of symbolic and of wide sizes,
# of parallel and of vectorised loops.
@T.prim_func
def below_zero(A: T.Buffer((16,), "int32")):
    for i in range(-4, 12):
        if i >= 0:
            A[i] = i // 4
        if i < -4:
            A[0] = 1
        if (i + 4) // 16 == 0:
            A[i + 4] = (i + 4) % 16
    for i in range(-8, 0):
        A[i + 8] = T.truncdiv(i, 4) * 4 + T.truncmod(i, 4)


@T.prim_func
def empty(A: T.Buffer((16,), "int32"), n: T.int32):
    for i in range(0):
        A[0] = 1
    for i in range(5, 3):
        A[1] = 1
    for i in range(n, n):
        A[2] = 1
    for i in range(n):
        if n == 0:
            A[3] = 1
        if n > 0:
            A[4] = 1
    for i in range(3, 4):
        A[i] = A[i] + i


@T.prim_func
def kinds(A: T.Buffer((64,), "int32"), B: T.Buffer((64,), "int32")):
    for i in T.parallel(64):
        A[i] = 3
    for i in T.vectorized(64):
        if i < 64:
            B[i] = A[i]
    for i in T.unroll(4):
        if A[i] == 3:
            B[i] = 1
    for i in T.parallel(8):
        A[i] = 4
        B[i] = A[i + 8] + A[i]


@T.prim_func
def symbolic(a: T.handle, b: T.handle):
    n = T.int32()
    m = T.int32()
    A = T.match_buffer(a, (n, m), "int32")
    B = T.match_buffer(b, (n * m,), "int32")
    for i, j in T.grid(n, m):
        if i * m + j < n * m:
            B[i * m + j] = A[(i * m + j) // m, (i * m + j) % m]
    for i in range(n * m):
        if i // m < n and i % m >= 0:
            B[i] = B[i] + A[i // m, i % m]
    for i in range(n, m):
        for j in range(i, m):
            if j < n:
                B[0] = 3
            for k in range(j - i):
                if i == j:
                    B[1] = 6


@T.prim_func
def wide(A: T.Buffer((T.int64(16),), "int64"), n: T.int64):
    T.assume(T.int64(0) <= n and n < T.int64(4294967296))
    for i in T.serial(T.int64(16)):
        if i // T.int64(16) == T.int64(0):
            A[i] = i * T.int64(4294967296) // T.int64(4294967296)
        if n + i > T.int64(-5):
            A[i] = A[i] + n

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def below_zero(A: T.Buffer((16,), "int32")):
        for i in range(-4, 12):
            if i >= 0:
                A[i] = i // 4
            A[i + 4] = i + 4
        for i in range(-8, 0):
            A[i + 8] = i

    @T.prim_func
    def empty(A: T.Buffer((16,), "int32"), n: T.int32):
        for i in range(n):
            A[4] = 1
        A[3] = A[3] + 3

    @T.prim_func
    def kinds(A: T.Buffer((64,), "int32"), B: T.Buffer((64,), "int32")):
        for i in T.parallel(64):
            A[i] = 3
        for i in T.vectorized(64):
            B[i] = 3
        for i in T.unroll(4):
            B[i] = 1
        for i in T.parallel(8):
            A[i] = 4
            B[i] = 7

    @T.prim_func
    def symbolic(a: T.handle, b: T.handle):
        n = T.int32()
        m = T.int32()
        A = T.match_buffer(a, (n, m), "int32")
        B = T.match_buffer(b, (n * m,), "int32")
        for i, j in T.grid(n, m):
            B[i * m + j] = A[i, j]
        for i in range(n * m):
            B[i] = B[i] + A[i // m, i % m]

    @T.prim_func
    def wide(A: T.Buffer((T.int64(16),), "int64"), n: T.int64):
        T.assume(T.int64(0) <= n and n < T.int64(4294967296))
        for i in range(T.int64(16)):
            A[i] = i
            A[i] = i + n

# run: opt --pass lower
# sizes: n=19
# A loop of open extent that nobody scheduled is taken apart where its guards change, so that most iterations have none.
# Where `n` is too small for the parts, the loop stays whole.


@T.prim_func
def convolve(a: T.handle, F: T.Buffer((3,), "float32"), b: T.handle, n: T.int64):
    A = T.match_buffer(a, ((n + T.int64(9)) // T.int64(8), T.int64(8)), "float32")
    B = T.match_buffer(b, ((n + T.int64(11)) // T.int64(8), T.int64(8)), "float32")
    for i, j in T.grid((n + T.int64(11)) // T.int64(8), T.int64(8)):
        B[i, j] = T.float32(0.0)
        for k in range(T.int64(3)):
            if i * T.int64(8) + j >= k + T.int64(2) and i * T.int64(8) + j < n + k + T.int64(2):
                B[i, j] = B[i, j] + F[k] * A[i + (j - k) // T.int64(8), (j - k) % T.int64(8)]


@T.prim_func
def pad(a: T.handle, b: T.handle, n: T.int64):
    A = T.match_buffer(a, (n,), "float32")
    B = T.match_buffer(b, ((n + T.int64(7)) // T.int64(8), T.int64(8)), "float32")
    for i, j in T.grid((n + T.int64(7)) // T.int64(8), T.int64(8)):
        B[i, j] = T.if_then_else(i * T.int64(8) + j < n, A[i * T.int64(8) + j], T.float32(0.0))


# A loop with a kind of its own is left as it was made.
@T.prim_func
def scheduled(a: T.handle, b: T.handle, n: T.int64):
    A = T.match_buffer(a, (n,), "float32")
    B = T.match_buffer(b, ((n + T.int64(7)) // T.int64(8), T.int64(8)), "float32")
    for i in T.parallel((n + T.int64(7)) // T.int64(8)):
        for j in range(T.int64(8)):
            B[i, j] = T.if_then_else(i * T.int64(8) + j < n, A[i * T.int64(8) + j], T.float32(0.0))

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def convolve(a: T.handle, F: T.Buffer((3,), "float32"), b: T.handle, n: T.int64):
        A = T.match_buffer(a, ((n + T.int64(9)) // T.int64(8), T.int64(8)), "float32")
        B = T.match_buffer(b, ((n + T.int64(11)) // T.int64(8), T.int64(8)), "float32")
        size: T.int64 = (n + T.int64(11)) // T.int64(8)
        size_1: T.int64 = (n - T.int64(6)) // T.int64(8)
        size_2: T.int64 = (n - T.int64(6)) // T.int64(8) * T.int64(8)
        size_3: T.int64 = ((n + T.int64(11)) // T.int64(8) - (n + T.int64(2)) // T.int64(8)) * T.int64(8)
        size_4: T.int64 = (n + T.int64(2)) // T.int64(8) * T.int64(8)
        size_5: T.int64 = (n + T.int64(11)) // T.int64(8) * T.int64(8)
        A_1 = T.decl_buffer(((n + T.int64(9)) // T.int64(8) * T.int64(8),), "float32", data=A.data)
        B_1 = T.decl_buffer(((n + T.int64(11)) // T.int64(8) * T.int64(8),), "float32", data=B.data)
        if T.int64(1) <= size and size_1 >= T.int64(0):
            for j in range(T.int64(8)):
                B_1[j] = T.float32(0.0)
                for k in range(T.min(j - T.int64(1), T.int64(3))):
                    B_1[j] = B_1[j] + F[k] * A_1[j - k]
            for i in range(size_2):
                B_1[i + T.int64(8)] = T.float32(0.0)
                for k in range(T.int64(3)):
                    B_1[i + T.int64(8)] = B_1[i + T.int64(8)] + F[k] * A_1[i + T.int64(8) - k]
            for i in range(size_3):
                B_1[size_4 + i] = T.float32(0.0)
                for k in range(T.max(size_4 + i - n - T.int64(1), T.int64(0)), T.int64(3)):
                    B_1[size_4 + i] = B_1[size_4 + i] + F[k] * A_1[size_4 + i - k]
        else:
            for i in range(size_5):
                B_1[i] = T.float32(0.0)
                for k in range(T.max(i - n - T.int64(1), T.int64(0)), T.max(i - n - T.int64(1), T.int64(0)) + T.min(i - T.int64(1), T.min(n, T.min(n + T.int64(4) - i, T.int64(3))))):
                    B_1[i] = B_1[i] + F[k] * A_1[i - k]

    @T.prim_func
    def pad(a: T.handle, b: T.handle, n: T.int64):
        A = T.match_buffer(a, (n,), "float32")
        B = T.match_buffer(b, ((n + T.int64(7)) // T.int64(8), T.int64(8)), "float32")
        size: T.int64 = n // T.int64(8) * T.int64(8)
        size_1: T.int64 = (n + T.int64(7)) // T.int64(8) - n // T.int64(8)
        size_2: T.int64 = T.int64(0) * T.int64(8) + n // T.int64(8) * T.int64(8)
        B_1 = T.decl_buffer(((n + T.int64(7)) // T.int64(8) * T.int64(8),), "float32", data=B.data)
        for i in range(size):
            B_1[i] = A[i]
        if size_1 > T.int64(0):
            for j in range(T.int64(8)):
                B_1[size_2 + j] = T.if_then_else(size_2 + j < n, A[size_2 + j], T.float32(0.0))

    @T.prim_func
    def scheduled(a: T.handle, b: T.handle, n: T.int64):
        A = T.match_buffer(a, (n,), "float32")
        B = T.match_buffer(b, ((n + T.int64(7)) // T.int64(8), T.int64(8)), "float32")
        size: T.int64 = (n + T.int64(7)) // T.int64(8)
        B_1 = T.decl_buffer(((n + T.int64(7)) // T.int64(8) * T.int64(8),), "float32", data=B.data)
        for i in T.parallel(size):
            for j in range(T.int64(8)):
                B_1[i * T.int64(8) + j] = T.if_then_else(i * T.int64(8) + j < n, A[i * T.int64(8) + j], T.float32(0.0))

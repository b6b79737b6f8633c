# run: opt --pass lower
# sizes: n=3
# Of the parts that a loop is taken apart into, none is right where the size is too small for them: then the loop runs as
# it was written.


@T.prim_func
def convolve(a: T.handle, F: T.Buffer((3,), "float32"), b: T.handle, n: T.int64):
    A = T.match_buffer(a, ((n + T.int64(9)) // T.int64(8), T.int64(8)), "float32")
    B = T.match_buffer(b, ((n + T.int64(11)) // T.int64(8), T.int64(8)), "float32")
    for i, j in T.grid((n + T.int64(11)) // T.int64(8), T.int64(8)):
        B[i, j] = T.float32(0.0)
        for k in range(T.int64(3)):
            if i * T.int64(8) + j >= k + T.int64(2) and i * T.int64(8) + j < n + k + T.int64(2):
                B[i, j] = B[i, j] + F[k] * A[i + (j - k) // T.int64(8), (j - k) % T.int64(8)]

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

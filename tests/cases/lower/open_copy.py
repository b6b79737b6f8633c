# run: opt --pass lower
# sizes: n=3
# How many samples a tensor can hold at most is no bound that memory is taken for: the copy of all samples keeps `n`.


@T.prim_func
def f(a: T.handle, b: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n, 20, 80, 64), "float32")
    B = T.match_buffer(b, (n, 20, 80, 64), "float32")
    C = T.alloc_buffer((n, 20, 82, 64), "float32")
    for i, h, w, c in T.grid(n, 20, 82, 64):
        C[i, h, w, c] = T.if_then_else(1 <= w and w < 81, A[i, h, w - 1, c], T.float32(0))
    for i, h, w, c in T.grid(n, 20, 80, 64):
        B[i, h, w, c] = C[i, h, w, c] + C[i, h, w + 2, c]

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(a: T.handle, b: T.handle, C_handle: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n, 20, 80, 64), "float32")
        B = T.match_buffer(b, (n, 20, 80, 64), "float32")
        C = T.match_buffer(C_handle, (n * 104960,), "float32")
        T.func_attr({"tilewright.workspace": 1})
        A_1 = T.decl_buffer((n * 102400,), "float32", data=A.data)
        B_1 = T.decl_buffer((n * 102400,), "float32", data=B.data)
        for i, h in T.grid(n, 20):
            for c in range(64):
                C[T.Cast("int64", i) * T.int64(104960) + T.Cast("int64", h) * T.int64(5248) + T.Cast("int64", c)] = T.float32(0.0)
            for w in range(5120):
                C[T.Cast("int64", i) * T.int64(104960) + T.Cast("int64", h) * T.int64(5248) + T.Cast("int64", w) + T.int64(64)] = A_1[T.Cast("int64", i) * T.int64(102400) + T.Cast("int64", h) * T.int64(5120) + T.Cast("int64", w)]
            for c in range(64):
                C[T.Cast("int64", i) * T.int64(104960) + T.Cast("int64", h) * T.int64(5248) + T.int64(5184) + T.Cast("int64", c)] = T.float32(0.0)
        for i, h, w in T.grid(n, 20, 5120):
            B_1[T.Cast("int64", i) * T.int64(102400) + T.Cast("int64", h) * T.int64(5120) + T.Cast("int64", w)] = C[T.Cast("int64", i) * T.int64(104960) + T.Cast("int64", h) * T.int64(5248) + T.Cast("int64", w)] + C[T.Cast("int64", i) * T.int64(104960) + T.Cast("int64", h) * T.int64(5248) + T.Cast("int64", w) + T.int64(128)]

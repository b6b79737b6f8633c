# run: opt --pass lower
# sizes: n=2, h=40, w=23
# The second part begins at an open place. What `int32` makes of the sum of two sizes may wrap; where the index is in
# range it did not, so that its parts are added in 64 bits, which shows that lanes are neighbours.
@T.prim_func
def join(a: T.handle, b: T.handle, c: T.handle, n: T.int32, h: T.int32, w: T.int32):
    A = T.match_buffer(a, (n, h), "float32")
    B = T.match_buffer(b, (n, w), "float32")
    C = T.match_buffer(c, (n, h + w), "float32")
    for i in range(n):
        for j_0 in range((w + 15) // 16):
            for j_1 in T.vectorized(16):
                with T.block("second"):
                    vi = T.axis.spatial(n, i)
                    vj = T.axis.spatial(w, j_0 * 16 + j_1)
                    T.where(j_0 * 16 + j_1 < w)
                    C[vi, vj + h] = B[vi, vj] + A[vi, 0]

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def join(a: T.handle, b: T.handle, c: T.handle, n: T.int32, h: T.int32, w: T.int32):
        A = T.match_buffer(a, (n, h), "float32")
        B = T.match_buffer(b, (n, w), "float32")
        C = T.match_buffer(c, (n, h + w), "float32")
        size: T.int32 = (w + 15) // 16
        size_1: T.int64 = T.Cast("int64", h + w)
        A_1 = T.decl_buffer((n * h,), "float32", data=A.data)
        B_1 = T.decl_buffer((n * w,), "float32", data=B.data)
        C_1 = T.decl_buffer((n * (h + w),), "float32", data=C.data)
        if n > 0:
            for j_0, j_1 in T.grid(size, 16):
                if j_0 * 16 + j_1 < w:
                    assert 0 < h, ("`A[{}, {}]` is out of range: axis 1 has extent {}", T.int64(0), T.int64(0), T.Cast("int64", h))
        for i, j_0 in T.grid(n, size):
            if T.Ramp(j_0 * 16, 1, 16) < T.Broadcast(w, 16):
                C_1[T.Broadcast(T.Cast("int64", i) * size_1, 16) + T.Cast("int64x16", T.Ramp(j_0 * 16, 1, 16)) + T.Broadcast(T.Cast("int64", h), 16)] = B_1[T.Broadcast(T.Cast("int64", i) * T.Cast("int64", w), 16) + T.Cast("int64x16", T.Ramp(j_0 * 16, 1, 16))] + T.Broadcast(A_1[T.Cast("int64", i) * T.Cast("int64", h)], 16)

# run: opt --pass lower
# sizes: s=7
# Whether the half of an odd size stays in its type is asked while it is asked where the index lies, and says as much of
# the one as of the other: such proofs end.
@T.prim_func
def rows_of_half(a: T.handle, b: T.handle, s: T.int32):
    A = T.match_buffer(a, (2, s * 2 - 2 + (s + 1) % 2 * 2), "float32")
    B = T.match_buffer(b, (2, s - (s + 1) // 2, 4), "float32")
    for i, j, k in T.grid(2, s - (s + 1) // 2, 4):
        with T.block("rows"):
            vi, vj, vk = T.axis.remap("SSS", [i, j, k])
            B[vi, vj, vk] = A[vi, vj * 4 + vk]

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def rows_of_half(a: T.handle, b: T.handle, s: T.int32):
        A = T.match_buffer(a, (2, s * 2 - 2 + (s + 1) % 2 * 2), "float32")
        B = T.match_buffer(b, (2, s - (s + 1) // 2, 4), "float32")
        size: T.int32 = s - (s + 1) // 2
        size_1: T.int32 = s * 2 + (s + 1) % 2 * 2 - 2
        size_2: T.int64 = T.Cast("int64", s * 2 + (s + 1) % 2 * 2 - 2)
        size_3: T.int64 = T.Cast("int64", s * 4 - (s + 1) // 2 * 4)
        A_1 = T.decl_buffer(((s * 2 - 2 + (s + 1) % 2 * 2) * 2,), "float32", data=A.data)
        B_1 = T.decl_buffer(((s - (s + 1) // 2) * 8,), "float32", data=B.data)
        for j, k in T.grid(size, 4):
            assert j * 4 + k >= 0 and j * 4 + k < size_1, ("`A[{}, {}]` is out of range: axis 1 has extent {}", T.int64(0), T.Cast("int64", j * 4 + k), size_2)
        for i, j, k in T.grid(2, size, 4):
            B_1[T.Cast("int64", j) * T.int64(4) + T.Cast("int64", i) * size_3 + T.Cast("int64", k)] = A_1[T.Cast("int64", i) * size_2 + T.Cast("int64", T.Let(at, where={at: j * 4 + k}))]

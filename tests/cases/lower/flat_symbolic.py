# run: opt --pass flatten_buffer,simplify
# Constant extents of a flat shape are one factor beside the open ones.
# sizes: n=3
@T.prim_func
def f(a: T.handle, b: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (8, n, 4), "float32")
    B = T.match_buffer(b, (8, n, 4), "float32")
    for i in range(n * 32):
        B[i // (n * 4), i % (n * 4) // 4, i % 4] = A[i // (n * 4), i % (n * 4) // 4, i % 4]

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(a: T.handle, b: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (8, n, 4), "float32")
        B = T.match_buffer(b, (8, n, 4), "float32")
        A_1 = T.decl_buffer((n * 32,), "float32", data=A.data)
        B_1 = T.decl_buffer((n * 32,), "float32", data=B.data)
        for i in range(n * 32):
            B_1[i // (n * 4) * (n * 4) + i % (n * 4) // 4 * 4 + i % 4] = A_1[i // (n * 4) * (n * 4) + i % (n * 4) // 4 * 4 + i % 4]

# run: opt --pass loop_partition,simplify --pass-config partition_const_loop=1 --pass-config no_unroll_loop_with_extent_one=1
# Both ends of a window; the cuts come from the loops inside.
@T.prim_func
def f(A: T.Buffer((16,), "float32"), B: T.Buffer((16, 3), "float32")):
    for i, w in T.grid(16, 3):
        B[i, w] = T.if_then_else(T.likely(1 <= i + w and i + w < 17), A[i + w - 1], T.float32(0))

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((16,), "float32"), B: T.Buffer((16, 3), "float32")):
        B[0, 0] = T.float32(0.0)
        for w in range(2):
            B[0, w + 1] = A[w]
        for i, w in T.grid(14, 3):
            B[i + 1, w] = A[i + w]
        for w in range(2):
            B[15, w] = A[w + 14]
        B[15, 2] = T.float32(0.0)

# run: opt
# Several names at once.


@T.prim_func
def main(a: T.handle, b: T.handle):
    N, C = T.int64(), T.int64()
    A = T.match_buffer(a, (N, C), "float32")
    B = T.match_buffer(b, (N, C), "float32")
    for i, j in T.grid(N, C):
        with T.block("B"):
            vi, vj = T.axis.spatial(N, i), T.axis.spatial(C, j)
            B[vi, vj] = A[vi, vj] + 1.0

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(a: T.handle, b: T.handle):
        N = T.int64()
        C = T.int64()
        A = T.match_buffer(a, (N, C), "float32")
        B = T.match_buffer(b, (N, C), "float32")
        for i, j in T.grid(N, C):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] + T.float32(1.0)

# run: opt --pass unroll_loop --pass-config copies=6
# A loop that becomes three statements, around one that becomes two; one of a size that is not known,
# one that does not begin at zero, one that is not unrolled, and one of more iterations than are copied.
@T.prim_func
def f(a: T.handle, B: T.Buffer((3, 4), "int32"), C: T.Buffer((7,), "int32")):
    n = T.int32()
    A = T.match_buffer(a, (n,), "int32")
    for i in T.unroll(3):
        for j in T.unroll(2):
            B[i, j] = A[i + j]
    for k in T.unroll(n):
        A[k] = k
    for k in T.unroll(1, 3):
        A[k] = A[k] + 1
    for k in range(2):
        A[k] = A[k] * 2
    for k in T.unroll(7):
        for j in T.unroll(2):
            C[k] = k + j

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(a: T.handle, B: T.Buffer((3, 4), "int32"), C: T.Buffer((7,), "int32")):
        n = T.int32()
        A = T.match_buffer(a, (n,), "int32")
        B[0, 0] = A[T.int32(0) + 0]
        B[0, 1] = A[T.int32(0) + 1]
        B[1, 0] = A[T.int32(1) + 0]
        B[1, 1] = A[T.int32(1) + 1]
        B[2, 0] = A[T.int32(2) + 0]
        B[2, 1] = A[T.int32(2) + 1]
        for k in T.unroll(n):
            A[k] = k
        for k in T.unroll(1, 3):
            A[k] = A[k] + 1
        for k in range(2):
            A[k] = A[k] * 2
        for k in T.unroll(7):
            C[k] = k + 0
            C[k] = k + 1

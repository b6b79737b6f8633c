# run: opt --pass remove_no_op
# The index is zero whatever `M` holds, and `M` is read for it all the same: its cells must be
# written.
@T.prim_func
def main(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32"), O: T.Buffer((1,), "float32")):
    M = T.alloc_buffer((4,), "int32")
    N = T.alloc_buffer((4,), "int32")
    for i in range(4):
        M[i] = 2
        N[i] = 3
    for i in range(4):
        O[T.max(T.min(M[i], 0), 0)] = A[i]
    for i in range(4):
        B[i] = A[T.max(T.min(N[i], 0), 0)]

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32"), O: T.Buffer((1,), "float32")):
        M = T.alloc_buffer((4,), "int32")
        N = T.alloc_buffer((4,), "int32")
        for i in range(4):
            M[i] = 2
            N[i] = 3
        for i in range(4):
            O[T.max(T.min(M[i], 0), 0)] = A[i]
        for i in range(4):
            B[i] = A[T.max(T.min(N[i], 0), 0)]

# run: opt --pass lower_blocks,compact_buffer
# A binding, a bound and a condition read what an earlier loop wrote, too.


@T.prim_func
def f(A: T.Buffer((4,), "int32"), B: T.Buffer((6,), "int32")):
    M = T.alloc_buffer((4,), "int32")
    N = T.alloc_buffer((4,), "int32")
    for i in range(4):
        M[i] = A[i] * 2
    for i in range(4):
        N[i] = A[i] + 1
    for i in range(6):
        x: T.int32 = M[1]
        B[i] = x * x
    for i in range(6):
        if N[2] > 3:
            B[i] = 0

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((4,), "int32"), B: T.Buffer((6,), "int32")):
        M = T.decl_buffer((4,), "int32")
        for i in range(4):
            M[i] = A[i] * 2
        N = T.decl_buffer((4,), "int32")
        for i in range(4):
            N[i] = A[i] + 1
        for i in range(6):
            x: T.int32 = M[1]
            B[i] = x * x
        for i in range(6):
            if N[2] > 3:
                B[i] = 0

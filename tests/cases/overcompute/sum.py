# run: opt --pass remove_branching_through_overcompute
# semantics: not compared, because the assumptions do not hold for all data
# The row sum of RFC 0077: zeros in the padding add nothing. So it is with ones in a product and
# with the ends of the range in a minimum and a maximum.


@T.prim_func
def row_summation(A: T.Buffer((16, 4, 4), "float32"), B: T.Buffer((16,), "float32")):
    for i, io, ii in T.grid(16, 4, 4):
        T.assume(4 * io + ii < 14 or A[i, io, ii] == 0.0)
    for i in T.serial(16):
        B[i] = 0.0
        for j_outer, j_inner in T.grid(4, 4):
            if 4 * j_outer + j_inner < 14:
                B[i] = B[i] + A[i, j_outer, j_inner]


@T.prim_func
def others(A: T.Buffer((4, 4), "float32"), B: T.Buffer((3,), "float32")):
    for io, ii in T.grid(4, 4):
        T.assume(4 * io + ii < 14 or A[io, ii] == T.float32("-inf"))
    P = T.alloc_buffer((4, 4), "float32")
    Q = T.alloc_buffer((4, 4), "float32")
    for io, ii in T.grid(4, 4):
        P[io, ii] = A[io, ii]
    for i in range(2):
        P[3, i + 2] = 1.0
    for io, ii in T.grid(4, 4):
        if 4 * io + ii < 14:
            Q[io, ii] = 0.0 - A[io, ii]
        else:
            Q[io, ii] = T.float32("inf")
    B[0] = T.float32("-inf")
    B[1] = 1.0
    B[2] = T.float32("inf")
    for io, ii in T.grid(4, 4):
        if 4 * io + ii < 14:
            B[0] = T.max(B[0], A[io, ii])
            B[1] = P[io, ii] * B[1]
    for io, ii in T.grid(4, 4):
        if io < 3 or ii < 2:
            B[2] = T.min(Q[io, ii], B[2])

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def row_summation(A: T.Buffer((16, 4, 4), "float32"), B: T.Buffer((16,), "float32")):
        for i, io, ii in T.grid(16, 4, 4):
            T.assume(4 * io + ii < 14 or A[i, io, ii] == T.float32(0.0))
        for i in range(16):
            B[i] = T.float32(0.0)
            for j_outer, j_inner in T.grid(4, 4):
                B[i] = B[i] + A[i, j_outer, j_inner]

    @T.prim_func
    def others(A: T.Buffer((4, 4), "float32"), B: T.Buffer((3,), "float32")):
        P = T.alloc_buffer((4, 4), "float32")
        Q = T.alloc_buffer((4, 4), "float32")
        for io, ii in T.grid(4, 4):
            T.assume(4 * io + ii < 14 or A[io, ii] == T.float32("-inf"))
        for io, ii in T.grid(4, 4):
            P[io, ii] = A[io, ii]
        for i in range(2):
            P[3, i + 2] = T.float32(1.0)
        for io, ii in T.grid(4, 4):
            Q[io, ii] = T.float32(0.0) - A[io, ii]
        B[0] = T.float32("-inf")
        B[1] = T.float32(1.0)
        B[2] = T.float32("inf")
        for io, ii in T.grid(4, 4):
            B[0] = T.max(B[0], A[io, ii])
            B[1] = P[io, ii] * B[1]
        for io, ii in T.grid(4, 4):
            B[2] = T.min(Q[io, ii], B[2])

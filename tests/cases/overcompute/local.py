# run: opt --pass remove_branching_through_overcompute
# An internal buffer with padding (RFC 0077): the zeros are written by a stage of the function. The
# predicate of a block goes like any other guard, and its variables take more values.


@T.prim_func
def func(A: T.Buffer((14,), "int32"), B: T.Buffer((1,), "int32")):
    A_local = T.alloc_buffer((4, 4), "int32", scope="local")
    for io, ii in T.grid(4, 4):
        if 4 * io + ii < 14:
            A_local[io, ii] = A[4 * io + ii]
    for io, ii in T.grid(4, 4):
        if io == 3 and ii >= 2:
            A_local[io, ii] = 0
    B[0] = 0
    for io, ii in T.grid(4, 4):
        with T.block("sum"):
            vi = T.axis.reduce(14, 4 * io + ii)
            T.where(4 * io + ii < 14)
            B[0] = B[0] + A_local[vi // 4, vi % 4]

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def func(A: T.Buffer((14,), "int32"), B: T.Buffer((1,), "int32")):
        A_local = T.alloc_buffer((4, 4), "int32", scope="local")
        for io, ii in T.grid(4, 4):
            if 4 * io + ii < 14:
                A_local[io, ii] = A[4 * io + ii]
        for io, ii in T.grid(4, 4):
            if io == 3 and ii >= 2:
                A_local[io, ii] = 0
        B[0] = 0
        for io, ii in T.grid(4, 4):
            with T.block("sum"):
                vi = T.axis.reduce(16, 4 * io + ii)
                B[0] = B[0] + A_local[vi // 4, vi % 4]

# run: opt --pass remove_branching_through_overcompute
# semantics: not compared, because the padding of the result may hold anything
# The elementwise operator of RFC 0077: the padding is arbitrary in the result, and may be read in the
# argument.


@T.prim_func
def func(A: T.Buffer((4, 4), "int32"), B: T.Buffer((4, 4), "int32")):
    for io, ii in T.grid(4, 4):
        T.assume(4 * io + ii < 14 or A[io, ii] == T.undef(dtype="int32"))
    for io, ii in T.grid(4, 4):
        if 4 * io + ii < 14:
            B[io, ii] = 2 * A[io, ii]
    for io, ii in T.grid(4, 4):
        if 4 * io + ii >= 14:
            B[io, ii] = T.undef(dtype="int32")

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def func(A: T.Buffer((4, 4), "int32"), B: T.Buffer((4, 4), "int32")):
        for io, ii in T.grid(4, 4):
            T.assume(4 * io + ii < 14 or A[io, ii] == T.undef(dtype="int32"))
        for io, ii in T.grid(4, 4):
            B[io, ii] = 2 * A[io, ii]
        for io, ii in T.grid(4, 4):
            if 4 * io + ii >= 14:
                B[io, ii] = T.undef(dtype="int32")

# run: opt --pass remove_branching_through_overcompute
# The one-dimensional convolution of RFC 0077, with room for the window: what the guard kept out is
# overwritten by the padding.


@T.prim_func
def func(A: T.Buffer((5, 4), "float32"), F: T.Buffer((3,), "float32"), B: T.Buffer((4, 4), "float32")):
    for i in range(4):
        T.assume(A[4, i] == T.undef(dtype="float32"))
    with T.block("compute"):
        for io, ii in T.grid(4, 4):
            if 0 <= 4 * io + ii and 4 * io + ii < 14:
                B[io, ii] = 0.0
                for f in T.serial(3):
                    B[io, ii] = B[io, ii] + F[f] * A[io + (ii + f) // 4, (ii + f) % 4]
        for io, ii in T.grid(4, 4):
            if io == 3 and ii >= 2:
                B[io, ii] = 0.0

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def func(A: T.Buffer((5, 4), "float32"), F: T.Buffer((3,), "float32"), B: T.Buffer((4, 4), "float32")):
        for i in range(4):
            T.assume(A[4, i] == T.undef(dtype="float32"))
        with T.block("compute"):
            for io, ii in T.grid(4, 4):
                B[io, ii] = T.float32(0.0)
                for f in range(3):
                    B[io, ii] = B[io, ii] + F[f] * A[io + (ii + f) // 4, (ii + f) % 4]
            for io, ii in T.grid(4, 4):
                if io == 3 and ii >= 2:
                    B[io, ii] = T.float32(0.0)

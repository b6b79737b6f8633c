# run: opt --pass remove_branching_through_overcompute
# semantics: not compared, because the assumptions do not hold for all data
# Two sides that do the same where they meet, given what is known: one of them is enough. So it is in
# a stored value. Where they differ, both stay.


@T.prim_func
def func(
    A: T.Buffer((4, 4), "float32"), B: T.Buffer((4, 4), "float32"), C: T.Buffer((4, 4), "float32"), D: T.Buffer((4, 4), "float32")
):
    for io, ii in T.grid(4, 4):
        T.assume(io * 4 + ii < 14 or A[io, ii] == 0.0)
    for io, ii in T.grid(4, 4):
        if io * 4 + ii < 14:
            B[io, ii] = A[io, ii] * 2.0
        else:
            B[io, ii] = 0.0
    for io, ii in T.grid(4, 4):
        C[io, ii] = T.if_then_else(io < 3 or ii < 2, A[io, ii] + 1.0, 1.0)
    for io, ii in T.grid(4, 4):
        if io < 2:
            D[io, ii] = T.if_then_else(io * 4 + ii < 14, A[io, ii], 5.0)
        else:
            D[io, ii] = T.if_then_else(ii < 2, 0.0, A[io, ii])

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def func(A: T.Buffer((4, 4), "float32"), B: T.Buffer((4, 4), "float32"), C: T.Buffer((4, 4), "float32"), D: T.Buffer((4, 4), "float32")):
        for io, ii in T.grid(4, 4):
            T.assume(io * 4 + ii < 14 or A[io, ii] == T.float32(0.0))
        for io, ii in T.grid(4, 4):
            B[io, ii] = A[io, ii] * T.float32(2.0)
        for io, ii in T.grid(4, 4):
            C[io, ii] = A[io, ii] + T.float32(1.0)
        for io, ii in T.grid(4, 4):
            if io < 2:
                D[io, ii] = A[io, ii]
            else:
                D[io, ii] = T.if_then_else(ii < 2, T.float32(0.0), A[io, ii])

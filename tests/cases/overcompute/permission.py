# run: opt --pass remove_branching_through_overcompute --explain
# What a function does not touch may hold nothing: an argument's padding, too. It is read where the
# function reads it anyway, where it is known, or where that is permitted.


@T.prim_func
def forbidden(A: T.Buffer((4, 4), "int32"), B: T.Buffer((4, 4), "int32")):
    for io, ii in T.grid(4, 4):
        if 4 * io + ii < 14:
        #^^^^^^^^^^^^^^^^^^ remark: the guard `4 * io + ii < 14` stays: `A` would be read where it may hold nothing
        # note: at io=3, ii=2: A[3, 2]
        # help: `T.assume(A[...] == T.undef())` permits reading cells
            B[io, ii] = A[io, ii]
    for ii in range(2, 4):
        B[3, ii] = 0


@T.prim_func
def permitted(A: T.Buffer((4, 4), "int32"), B: T.Buffer((4, 4), "int32")):
    for ii in range(2, 4):
        T.assume(A[3, ii] == T.undef(dtype="int32"))
    for io, ii in T.grid(4, 4):
        if 4 * io + ii < 14:
            B[io, ii] = A[io, ii]
    for ii in range(2, 4):
        B[3, ii] = 0


@T.prim_func
def read_anyway(A: T.Buffer((4, 4), "int32"), B: T.Buffer((4, 4), "int32"), C: T.Buffer((2,), "int32")):
    for io, ii in T.grid(4, 4):
        if 4 * io + ii < 14:
            B[io, ii] = A[io, ii]
    for ii in range(2, 4):
        B[3, ii] = 0
    for ii in range(2):
        C[ii] = A[3, ii + 2]


@T.prim_func
def read_too_late(A: T.Buffer((4, 4), "int32"), B: T.Buffer((4, 4), "int32"), C: T.Buffer((2,), "int32")):
    for io, ii in T.grid(4, 4):
        if 4 * io + ii < 14:
        #^^^^^^^^^^^^^^^^^^ remark: the guard `4 * io + ii < 14` stays: `A` would be read where it may hold nothing
        # note: at io=3, ii=2: A[3, 2]
        # help: `T.assume(A[...] == T.undef())` permits reading cells
            B[io, ii] = A[io, ii]
    for ii in range(2, 4):
        B[3, ii] = 0
        A[3, ii] = 0
    for ii in range(2):
        C[ii] = A[3, ii + 2]

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def forbidden(A: T.Buffer((4, 4), "int32"), B: T.Buffer((4, 4), "int32")):
        for io, ii in T.grid(4, 4):
            if 4 * io + ii < 14:
                B[io, ii] = A[io, ii]
        for ii in range(2, 4):
            B[3, ii] = 0

    @T.prim_func
    def permitted(A: T.Buffer((4, 4), "int32"), B: T.Buffer((4, 4), "int32")):
        for ii in range(2, 4):
            T.assume(A[3, ii] == T.undef(dtype="int32"))
        for io, ii in T.grid(4, 4):
            B[io, ii] = A[io, ii]
        for ii in range(2, 4):
            B[3, ii] = 0

    @T.prim_func
    def read_anyway(A: T.Buffer((4, 4), "int32"), B: T.Buffer((4, 4), "int32"), C: T.Buffer((2,), "int32")):
        for io, ii in T.grid(4, 4):
            B[io, ii] = A[io, ii]
        for ii in range(2, 4):
            B[3, ii] = 0
        for ii in range(2):
            C[ii] = A[3, ii + 2]

    @T.prim_func
    def read_too_late(A: T.Buffer((4, 4), "int32"), B: T.Buffer((4, 4), "int32"), C: T.Buffer((2,), "int32")):
        for io, ii in T.grid(4, 4):
            if 4 * io + ii < 14:
                B[io, ii] = A[io, ii]
        for ii in range(2, 4):
            B[3, ii] = 0
            A[3, ii] = 0
        for ii in range(2):
            C[ii] = A[3, ii + 2]

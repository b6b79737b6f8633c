# run: opt --pass remove_branching_through_overcompute
# semantics: not compared, because the assumptions do not hold for all data
# The least number of a type in the padding changes no maximum that begins with it or more, nor the greatest a minimum.
# A maximum that the caller began may be less, as may one that begins below the padding.


@T.prim_func
def begun(A: T.Buffer((4, 4), "float32"), B: T.Buffer((3,), "float32"), C: T.Buffer((4, 4), "int8"), D: T.Buffer((1,), "int8")):
    for io, ii in T.grid(4, 4):
        T.assume(4 * io + ii < 14 or A[io, ii] == T.min_value("float32"))
        T.assume(4 * io + ii < 14 or C[io, ii] == T.int8(-100))
    P = T.alloc_buffer((3,), "float32")
    P[0] = T.min_value("float32")
    P[1] = T.float32(0)
    P[2] = T.max_value("float32")
    D[0] = T.int8(-100)
    for io, ii in T.grid(4, 4):
        if 4 * io + ii < 14:
            P[0] = T.max(P[0], A[io, ii])
            P[1] = T.max(A[io, ii], P[1])
            D[0] = T.max(D[0], C[io, ii])
    for i in range(3):
        B[i] = P[i]


@T.prim_func
def smallest(A: T.Buffer((4, 4), "float32"), B: T.Buffer((3,), "float32")):
    for io, ii in T.grid(4, 4):
        T.assume(4 * io + ii < 14 or A[io, ii] == T.max_value("float32"))
    for i in range(3):
        B[i] = T.max_value("float32")
    for i, io, ii in T.grid(3, 4, 4):
        if 4 * io + ii < 14:
            B[i] = T.min(B[i], A[io, ii])


@T.prim_func
def begun_by_the_caller(A: T.Buffer((4, 4), "float32"), B: T.Buffer((1,), "float32")):
    for io, ii in T.grid(4, 4):
        T.assume(4 * io + ii < 14 or A[io, ii] == T.min_value("float32"))
    for io, ii in T.grid(4, 4):
        if 4 * io + ii < 14:
            B[0] = T.max(B[0], A[io, ii])


@T.prim_func
def begun_below(A: T.Buffer((4, 4), "float32"), B: T.Buffer((1,), "float32")):
    for io, ii in T.grid(4, 4):
        T.assume(4 * io + ii < 14 or A[io, ii] == T.float32(-3))
    B[0] = T.float32(-5)
    for io, ii in T.grid(4, 4):
        if 4 * io + ii < 14:
            B[0] = T.max(B[0], A[io, ii])

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def begun(A: T.Buffer((4, 4), "float32"), B: T.Buffer((3,), "float32"), C: T.Buffer((4, 4), "int8"), D: T.Buffer((1,), "int8")):
        P = T.alloc_buffer((3,), "float32")
        for io, ii in T.grid(4, 4):
            T.assume(4 * io + ii < 14 or A[io, ii] == T.float32(-3.4028235e38))
            T.assume(4 * io + ii < 14 or C[io, ii] == T.int8(-100))
        P[0] = T.float32(-3.4028235e38)
        P[1] = T.float32(0.0)
        P[2] = T.float32(3.4028235e38)
        D[0] = T.int8(-100)
        for io, ii in T.grid(4, 4):
            P[0] = T.max(P[0], A[io, ii])
            P[1] = T.max(A[io, ii], P[1])
            D[0] = T.max(D[0], C[io, ii])
        for i in range(3):
            B[i] = P[i]

    @T.prim_func
    def smallest(A: T.Buffer((4, 4), "float32"), B: T.Buffer((3,), "float32")):
        for io, ii in T.grid(4, 4):
            T.assume(4 * io + ii < 14 or A[io, ii] == T.float32(3.4028235e38))
        for i in range(3):
            B[i] = T.float32(3.4028235e38)
        for i, io, ii in T.grid(3, 4, 4):
            B[i] = T.min(B[i], A[io, ii])

    @T.prim_func
    def begun_by_the_caller(A: T.Buffer((4, 4), "float32"), B: T.Buffer((1,), "float32")):
        for io, ii in T.grid(4, 4):
            T.assume(4 * io + ii < 14 or A[io, ii] == T.float32(-3.4028235e38))
        for io, ii in T.grid(4, 4):
            if 4 * io + ii < 14:
                B[0] = T.max(B[0], A[io, ii])

    @T.prim_func
    def begun_below(A: T.Buffer((4, 4), "float32"), B: T.Buffer((1,), "float32")):
        for io, ii in T.grid(4, 4):
            T.assume(4 * io + ii < 14 or A[io, ii] == T.float32(-3.0))
        B[0] = T.float32(-5.0)
        for io, ii in T.grid(4, 4):
            if 4 * io + ii < 14:
                B[0] = T.max(B[0], A[io, ii])

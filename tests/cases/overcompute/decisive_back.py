# run: opt --pass remove_overcompute_through_branching
# An initialisation stays where an update still reads it, as an index or as a value: only a place
# that nobody reads may be left alone. Where the update gets the guard too, the initialisation does.


@T.prim_func
def index(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
    for i in range(8):
        B[i] = i
    for i in range(8):
        B[i] = A[B[i]]
        if i >= 6:
            B[i] = 0


@T.prim_func
def divisor(B: T.Buffer((8,), "int32")):
    for i in range(8):
        B[i] = i + 1
    for i in range(8):
        B[i] = 100 // B[i]
        if i >= 6:
            B[i] = 0


@T.prim_func
def value(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
    S = T.alloc_buffer((8,), "int32")
    for i in range(8):
        S[i] = i
    for i in range(8):
        S[i] = S[i] + A[i]
        if i >= 6:
            S[i] = 0
    for i in range(8):
        B[i] = S[i]


@T.prim_func
def sum(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
    for i in range(8):
        B[i] = 0
    for i in range(8):
        B[i] = B[i] + A[i]
    for i in range(6, 8):
        B[i] = 0

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def index(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
        for i in range(8):
            B[i] = i
        for i in range(8):
            B[i] = A[B[i]]
            if i >= 6:
                B[i] = 0

    @T.prim_func
    def divisor(B: T.Buffer((8,), "int32")):
        for i in range(8):
            B[i] = i + 1
        for i in range(8):
            B[i] = 100 // B[i]
            if i >= 6:
                B[i] = 0

    @T.prim_func
    def value(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
        S = T.alloc_buffer((8,), "int32")
        for i in range(8):
            S[i] = i
        for i in range(8):
            S[i] = S[i] + A[i]
            if i >= 6:
                S[i] = 0
        for i in range(8):
            B[i] = S[i]

    @T.prim_func
    def sum(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
        for i in range(8):
            B[i] = 0
        for i in range(8):
            if i < 6:
                B[i] = B[i] + A[i]
        for i in range(6, 8):
            B[i] = 0

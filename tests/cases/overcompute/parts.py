# run: opt --pass remove_branching_through_overcompute --explain
# A guard that is needed in one direction goes in the other: there are zeros from column 60 on.


@T.prim_func
def rows(A: T.Buffer((16, 60), "int32"), C: T.Buffer((16,), "int32")):
    P = T.alloc_buffer((16, 64), "int32")
    for i, j in T.grid(16, 60):
        P[i, j] = A[i, j]
    for i, j in T.grid(16, 4):
        P[i, j + 60] = 0
    for i, j in T.grid(16, 64):
        if i < 14 and j < 60:
        #^^^^^^^^^^^^^^^^^^^ remark: the guard `i < 14` stays: what would be written to `C` is used, and is not known to be what is there
        # note: at i=14, j=59: C[14] is seen by the caller
            C[i] = C[i] + P[i, j]


@T.prim_func
def predicate(A: T.Buffer((16, 60), "int32"), C: T.Buffer((1,), "int32")):
    P = T.alloc_buffer((16, 64), "int32")
    for i, j in T.grid(16, 60):
        P[i, j] = A[i, j]
    for i, j in T.grid(16, 4):
        P[i, j + 60] = 0
    C[0] = 0
    for i, j in T.grid(16, 64):
        with T.block("sum"):
        #^^^^^^^^^^^^^^^^^^ remark: the guard `i < 14` stays: what would be written to `C` is used, and is not known to be what is there
        # note: at i=15, j=59: C[0] is seen by the caller
            vi, vj = T.axis.remap("RR", [i, j])
            T.where(j < 60 and i < 14)
            C[0] = C[0] + P[vi, vj]


@T.prim_func
def kept_apart(C: T.Buffer((16,), "int32"), n: T.int32):
    Z = T.alloc_buffer((16,), "int32")
    for i in range(16):
        Z[i] = 0
    for i in range(16):
        # Without its first part the second would divide by zero.
        if n != 0 and i < 5 // n and i < 20:
        #^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ remark: the guard `n != 0 and i < 5 // n and i < 20` stays: what would be written to `C` is used, and is not known to be what is there
        # note: at i=0: C[0] is seen by the caller
            C[i] = C[i] + 1
        if n != 0 and i < 5 // n:
        #^^^^^^^^^^^^^^^^^^^^^^^ remark: the guard `n != 0 and i < 5 // n` stays: `C` would be read where it may hold nothing
        # note: at i=0, n=0: C[0]
        # help: `T.assume(C[...] == T.undef())` permits reading cells
            C[i] = C[i] + Z[i]

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def rows(A: T.Buffer((16, 60), "int32"), C: T.Buffer((16,), "int32")):
        P = T.alloc_buffer((16, 64), "int32")
        for i, j in T.grid(16, 60):
            P[i, j] = A[i, j]
        for i, j in T.grid(16, 4):
            P[i, j + 60] = 0
        for i, j in T.grid(16, 64):
            if i < 14:
                C[i] = C[i] + P[i, j]

    @T.prim_func
    def predicate(A: T.Buffer((16, 60), "int32"), C: T.Buffer((1,), "int32")):
        P = T.alloc_buffer((16, 64), "int32")
        for i, j in T.grid(16, 60):
            P[i, j] = A[i, j]
        for i, j in T.grid(16, 4):
            P[i, j + 60] = 0
        C[0] = 0
        for i, j in T.grid(16, 64):
            with T.block("sum"):
                vi, vj = T.axis.remap("RR", [i, j])
                T.where(i < 14)
                C[0] = C[0] + P[vi, vj]

    @T.prim_func
    def kept_apart(C: T.Buffer((16,), "int32"), n: T.int32):
        Z = T.alloc_buffer((16,), "int32")
        for i in range(16):
            Z[i] = 0
        for i in range(16):
            if n != 0 and i < 5 // n and i < 20:
                C[i] = C[i] + 1
            if n != 0 and i < 5 // n:
                C[i] = C[i] + Z[i]

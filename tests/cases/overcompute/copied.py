# run: opt --pass remove_branching_through_overcompute --explain
# A cell that holds nothing may be copied, and its copy holds nothing: that a function copies a cell
# of an argument does not permit to use it.


@T.prim_func
def argument(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        C[i] = A[i]
    for i in range(8):
        if i < 6:
        #^^^^^^^ remark: the guard `i < 6` stays: `A` would be read where it may hold nothing
        # note: at i=6: A[6]
        # help: `T.assume(A[...] == T.undef())` permits reading cells
            B[i] = A[i] * T.float32(2)
    for i in range(8):
        if i >= 6:
        #^^^^^^^^ remark: the guard `i >= 6` stays: what would be written to `B` is used, and is not known to be what is there
        # note: at i=0: B[0] is seen by the caller
            B[i] = T.float32(0)


@T.prim_func
def copy(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    C = T.alloc_buffer((8,), "float32")
    for i in range(8):
        C[i] = A[i]
    for i in range(8):
        if i < 6:
        #^^^^^^^ remark: the guard `i < 6` stays: `A` would be read where it may hold nothing
        # help: `T.assume(A[...] == T.undef())` permits reading cells
            B[i] = C[i] * T.float32(2)
    for i in range(8):
        if i >= 6:
        #^^^^^^^^ remark: the guard `i >= 6` stays: what would be written to `B` is used, and is not known to be what is there
        # note: at i=0: B[0] is seen by the caller
            B[i] = T.float32(0)


@T.prim_func
def copy_of_copy(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    C = T.alloc_buffer((8,), "float32")
    D = T.alloc_buffer((2, 4), "float32")
    for i in range(8):
        C[i] = A[i]
    for i, j in T.grid(2, 4):
        D[i, j] = C[i * 4 + j]
    for i in range(8):
        if i < 6:
        #^^^^^^^ remark: the guard `i < 6` stays: `A` would be read where it may hold nothing
        # help: `T.assume(A[...] == T.undef())` permits reading cells
            B[i] = D[i // 4, i % 4] * T.float32(2)
    for i in range(8):
        if i >= 6:
        #^^^^^^^^ remark: the guard `i >= 6` stays: what would be written to `B` is used, and is not known to be what is there
        # note: at i=0: B[0] is seen by the caller
            B[i] = T.float32(0)


@T.prim_func
def of_local(A: T.Buffer((6,), "float32"), B: T.Buffer((8,), "float32")):
    C = T.alloc_buffer((8,), "float32")
    D = T.alloc_buffer((8,), "float32")
    for i in range(6):
        C[i] = A[i] + T.float32(1)
    for i in range(8):
        D[i] = C[i]
    for i in range(8):
        if i < 6:
        #^^^^^^^ remark: the guard `i < 6` stays: `C` would be read where nothing has been written
            B[i] = D[i] * T.float32(2)
    for i in range(8):
        if i >= 6:
        #^^^^^^^^ remark: the guard `i >= 6` stays: what would be written to `B` is used, and is not known to be what is there
        # note: at i=0: B[0] is seen by the caller
            B[i] = T.float32(0)

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def argument(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        for i in range(8):
            C[i] = A[i]
        for i in range(8):
            if i < 6:
                B[i] = A[i] * T.float32(2.0)
        for i in range(8):
            if i >= 6:
                B[i] = T.float32(0.0)

    @T.prim_func
    def copy(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        C = T.alloc_buffer((8,), "float32")
        for i in range(8):
            C[i] = A[i]
        for i in range(8):
            if i < 6:
                B[i] = C[i] * T.float32(2.0)
        for i in range(8):
            if i >= 6:
                B[i] = T.float32(0.0)

    @T.prim_func
    def copy_of_copy(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        C = T.alloc_buffer((8,), "float32")
        D = T.alloc_buffer((2, 4), "float32")
        for i in range(8):
            C[i] = A[i]
        for i, j in T.grid(2, 4):
            D[i, j] = C[i * 4 + j]
        for i in range(8):
            if i < 6:
                B[i] = D[i // 4, i % 4] * T.float32(2.0)
        for i in range(8):
            if i >= 6:
                B[i] = T.float32(0.0)

    @T.prim_func
    def of_local(A: T.Buffer((6,), "float32"), B: T.Buffer((8,), "float32")):
        C = T.alloc_buffer((8,), "float32")
        D = T.alloc_buffer((8,), "float32")
        for i in range(6):
            C[i] = A[i] + T.float32(1.0)
        for i in range(8):
            D[i] = C[i]
        for i in range(8):
            if i < 6:
                B[i] = D[i] * T.float32(2.0)
        for i in range(8):
            if i >= 6:
                B[i] = T.float32(0.0)

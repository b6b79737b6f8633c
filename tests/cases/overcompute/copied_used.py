# run: opt --pass remove_branching_through_overcompute --explain
# What is copied may be used where it was computed, is a constant, may be read, or is used anyway.


@T.prim_func
def used_directly(A: T.Buffer((8,), "float32"), S: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    C = T.alloc_buffer((8,), "float32")
    for i in range(8):
        C[i] = A[i]
    for i in range(8):
        S[i] = A[i] + T.float32(1)
    for i in range(8):
        if i < 6:
            B[i] = C[i] * T.float32(2)
    for i in range(8):
        if i >= 6:
        #^^^^^^^^ remark: the guard `i >= 6` stays: what would be written to `B` is used, and is not known to be what is there
        # note: at i=0: B[0] is seen by the caller
            B[i] = T.float32(0)


@T.prim_func
def used_by_copy(A: T.Buffer((8,), "float32"), S: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    C = T.alloc_buffer((8,), "float32")
    for i in range(8):
        C[i] = A[i]
    for i in range(8):
        S[i] = C[i] + T.float32(1)
    for i in range(8):
        if i < 6:
            B[i] = A[i] * T.float32(2)
    for i in range(8):
        if i >= 6:
        #^^^^^^^^ remark: the guard `i >= 6` stays: what would be written to `B` is used, and is not known to be what is there
        # note: at i=0: B[0] is seen by the caller
            B[i] = T.float32(0)


@T.prim_func
def padding(A: T.Buffer((6,), "float32"), B: T.Buffer((8,), "float32")):
    C = T.alloc_buffer((8,), "float32")
    for i in range(8):
        C[i] = T.if_then_else(i < 6, A[i], T.float32(0))
    for i in range(8):
        if i < 6:
            B[i] = C[i] * T.float32(2)
    for i in range(8):
        if i >= 6:
        #^^^^^^^^ remark: the guard `i >= 6` stays: what would be written to `B` is used, and is not known to be what is there
        # note: at i=0: B[0] is seen by the caller
            B[i] = T.float32(0)


@T.prim_func
def permitted(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    C = T.alloc_buffer((8,), "float32")
    for i in range(8):
        T.assume(i < 6 or A[i] == T.undef())
    for i in range(8):
        C[i] = A[i]
    for i in range(8):
        if i < 6:
            B[i] = C[i] * T.float32(2)
    for i in range(8):
        if i >= 6:
        #^^^^^^^^ remark: the guard `i >= 6` stays: what would be written to `B` is used, and is not known to be what is there
        # note: at i=0: B[0] is seen by the caller
            B[i] = T.float32(0)


@T.prim_func
def computed(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    C = T.alloc_buffer((8,), "float32")
    D = T.alloc_buffer((8,), "float32")
    for i in range(8):
        C[i] = A[i] + T.float32(1)
    for i in range(8):
        D[7 - i] = C[i]
    for i in range(8):
        if i < 6:
            B[i] = D[i] * T.float32(2)
    for i in range(8):
        if i >= 6:
        #^^^^^^^^ remark: the guard `i >= 6` stays: what would be written to `B` is used, and is not known to be what is there
        # note: at i=0: B[0] is seen by the caller
            B[i] = T.float32(0)


@T.prim_func
def only_copied(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    C = T.alloc_buffer((8,), "float32")
    for i in range(8):
        C[i] = A[i]
    for i in range(8):
        if i < 6:
            B[i] = C[i]
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
    def used_directly(A: T.Buffer((8,), "float32"), S: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        C = T.alloc_buffer((8,), "float32")
        for i in range(8):
            C[i] = A[i]
        for i in range(8):
            S[i] = A[i] + T.float32(1.0)
        for i in range(8):
            B[i] = C[i] * T.float32(2.0)
        for i in range(8):
            if i >= 6:
                B[i] = T.float32(0.0)

    @T.prim_func
    def used_by_copy(A: T.Buffer((8,), "float32"), S: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        C = T.alloc_buffer((8,), "float32")
        for i in range(8):
            C[i] = A[i]
        for i in range(8):
            S[i] = C[i] + T.float32(1.0)
        for i in range(8):
            B[i] = A[i] * T.float32(2.0)
        for i in range(8):
            if i >= 6:
                B[i] = T.float32(0.0)

    @T.prim_func
    def padding(A: T.Buffer((6,), "float32"), B: T.Buffer((8,), "float32")):
        C = T.alloc_buffer((8,), "float32")
        for i in range(8):
            C[i] = T.if_then_else(i < 6, A[i], T.float32(0.0))
        for i in range(8):
            B[i] = C[i] * T.float32(2.0)
        for i in range(8):
            if i >= 6:
                B[i] = T.float32(0.0)

    @T.prim_func
    def permitted(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        C = T.alloc_buffer((8,), "float32")
        for i in range(8):
            T.assume(i < 6 or A[i] == T.undef(dtype="float32"))
        for i in range(8):
            C[i] = A[i]
        for i in range(8):
            B[i] = C[i] * T.float32(2.0)
        for i in range(8):
            if i >= 6:
                B[i] = T.float32(0.0)

    @T.prim_func
    def computed(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        C = T.alloc_buffer((8,), "float32")
        D = T.alloc_buffer((8,), "float32")
        for i in range(8):
            C[i] = A[i] + T.float32(1.0)
        for i in range(8):
            D[7 - i] = C[i]
        for i in range(8):
            B[i] = D[i] * T.float32(2.0)
        for i in range(8):
            if i >= 6:
                B[i] = T.float32(0.0)

    @T.prim_func
    def only_copied(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        C = T.alloc_buffer((8,), "float32")
        for i in range(8):
            C[i] = A[i]
        for i in range(8):
            B[i] = C[i]
        for i in range(8):
            if i >= 6:
                B[i] = T.float32(0.0)

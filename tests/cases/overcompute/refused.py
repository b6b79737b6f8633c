# run: opt --pass remove_branching_through_overcompute --explain
# semantics: not compared, because two iterations of the parallel loop in `threads` write one cell
# Guards that stay: what they keep out is read, is seen by the caller, is not known to be zero, would
# read what nobody has written, would run an assertion, or would meet another thread.


@T.prim_func
def used(A: T.Buffer((4, 4), "int32"), B: T.Buffer((4, 4), "int32"), C: T.Buffer((1,), "int32")):
    with T.block("fill"):
        for io, ii in T.grid(4, 4):
            if 4 * io + ii < 14:
            #^^^^^^^^^^^^^^^^^^ remark: the guard `4 * io + ii < 14` stays: what would be written to `B` is used, and is not known to be what is there
            # note: at io=3, ii=2: B[3, 2] is read by block "sum" before it is written again
                B[io, ii] = A[io, ii]
    with T.block("sum"):
        for io, ii in T.grid(4, 4):
            C[0] = C[0] + B[io, ii]
    with T.block("pad"):
        for ii in T.serial(2):
            B[3, ii + 2] = 0


@T.prim_func
def seen(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32")):
    for i in range(16):
        if i < 14:
        #^^^^^^^^ remark: the guard `i < 14` stays: what would be written to `B` is used, and is not known to be what is there
        # note: at i=14: B[14] is seen by the caller
            B[i] = A[i]


@T.prim_func
def unknown(A: T.Buffer((16,), "int32"), B: T.Buffer((1,), "int32")):
    for i in range(16):
        if i < 14:
        #^^^^^^^^ remark: the guard `i < 14` stays: what would be written to `B` is used, and is not known to be what is there
        # note: at i=15: B[0] is seen by the caller
            B[0] = B[0] + A[i]


@T.prim_func
def unwritten(A: T.Buffer((14,), "int32"), B: T.Buffer((16,), "int32")):
    L = T.alloc_buffer((16,), "int32")
    for i in range(14):
        L[i] = A[i]
    for i in range(16):
        if i < 14:
        #^^^^^^^^ remark: the guard `i < 14` stays: `L` would be read where nothing has been written
        # note: at i=14: L[14]
            B[i] = L[i]
    for i in range(2):
        B[i + 14] = 0


@T.prim_func
def asserts(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32"), n: T.int32):
    for i in range(16):
        if i < 14:
        #^^^^^^^^ remark: the guard `i < 14` stays: an assertion stands under it
            assert n > 3, "more"
            B[i] = A[i] // n
    for i in range(2):
        B[i + 14] = 0


@T.prim_func
def threads(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32")):
    for i in T.parallel(16):
        if i < 14:
        #^^^^^^^^ remark: the guard `i < 14` stays: iterations of the parallel loop `i` would touch one cell of `B`
        # note: at i=15, i=0: B[0]
            B[i % 15] = A[i]
        if i == 15:
        #^^^^^^^^^ remark: the guard `i == 15` stays: iterations of the parallel loop `i` would touch one cell of `B`
        # note: at i=1, i=0: B[0]
            B[0] = 0
        if i == 0:
        #^^^^^^^^ remark: the guard `i == 0` stays: iterations of the parallel loop `i` would touch one cell of `B`
        # note: at i=1, i=0: B[0]
            B[0] = A[i]
    for i in range(2):
        B[i + 14] = 0

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def used(A: T.Buffer((4, 4), "int32"), B: T.Buffer((4, 4), "int32"), C: T.Buffer((1,), "int32")):
        with T.block("fill"):
            for io, ii in T.grid(4, 4):
                if 4 * io + ii < 14:
                    B[io, ii] = A[io, ii]
        with T.block("sum"):
            for io, ii in T.grid(4, 4):
                C[0] = C[0] + B[io, ii]
        with T.block("pad"):
            for ii in range(2):
                B[3, ii + 2] = 0

    @T.prim_func
    def seen(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32")):
        for i in range(16):
            if i < 14:
                B[i] = A[i]

    @T.prim_func
    def unknown(A: T.Buffer((16,), "int32"), B: T.Buffer((1,), "int32")):
        for i in range(16):
            if i < 14:
                B[0] = B[0] + A[i]

    @T.prim_func
    def unwritten(A: T.Buffer((14,), "int32"), B: T.Buffer((16,), "int32")):
        L = T.alloc_buffer((16,), "int32")
        for i in range(14):
            L[i] = A[i]
        for i in range(16):
            if i < 14:
                B[i] = L[i]
        for i in range(2):
            B[i + 14] = 0

    @T.prim_func
    def asserts(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32"), n: T.int32):
        for i in range(16):
            if i < 14:
                assert n > 3, "more"
                B[i] = A[i] // n
        for i in range(2):
            B[i + 14] = 0

    @T.prim_func
    def threads(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32")):
        for i in T.parallel(16):
            if i < 14:
                B[i % 15] = A[i]
            if i == 15:
                B[0] = 0
            if i == 0:
                B[0] = A[i]
        for i in range(2):
            B[i + 14] = 0

# run: opt --pass remove_branching_through_overcompute --explain
# semantics: not compared, because random inputs do not hold what `zeros` assumes
# "Points of Communication": a stage alone knows of its input's padding what it assumes. Nothing,
# or that it may be read, is not enough for a sum; zeros are. In one function the stage that
# writes the padding says it.
@I.ir_module
class Module:
    @T.prim_func
    def nothing_known(B: T.Buffer((4, 4), "int32"), C: T.Buffer((1,), "int32")):
        C[0] = 0
        for io, ii in T.grid(4, 4):
            if 4 * io + ii < 14:
            #^^^^^^^^^^^^^^^^^^ remark: the guard `4 * io + ii < 14` stays: what would be written to `C` is used, and is not known to be what is there
            # note: at io=3, ii=3: C[0] is seen by the caller
                C[0] = C[0] + B[io, ii]

    @T.prim_func
    def may_be_read(B: T.Buffer((4, 4), "int32"), C: T.Buffer((1,), "int32")):
        for io, ii in T.grid(4, 4):
            T.assume(4 * io + ii < 14 or B[io, ii] == T.undef(dtype="int32"))
        C[0] = 0
        for io, ii in T.grid(4, 4):
            if 4 * io + ii < 14:
            #^^^^^^^^^^^^^^^^^^ remark: the guard `4 * io + ii < 14` stays: what would be written to `C` is used, and is not known to be what is there
            # note: at io=3, ii=3: C[0] is seen by the caller
                C[0] = C[0] + B[io, ii]

    @T.prim_func
    def zeros(B: T.Buffer((4, 4), "int32"), C: T.Buffer((1,), "int32")):
        for io, ii in T.grid(4, 4):
            T.assume(4 * io + ii < 14 or B[io, ii] == 0)
        C[0] = 0
        for io, ii in T.grid(4, 4):
            if 4 * io + ii < 14:
                C[0] = C[0] + B[io, ii]

    @T.prim_func
    def one_function(A: T.Buffer((14,), "int32"), C: T.Buffer((1,), "int32")):
        B = T.alloc_buffer((4, 4), "int32")
        for io, ii in T.grid(4, 4):
            if 4 * io + ii < 14:
                B[io, ii] = A[4 * io + ii]
            else:
                B[io, ii] = 0
        C[0] = 0
        for io, ii in T.grid(4, 4):
            if 4 * io + ii < 14:
                C[0] = C[0] + B[io, ii]

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def nothing_known(B: T.Buffer((4, 4), "int32"), C: T.Buffer((1,), "int32")):
        C[0] = 0
        for io, ii in T.grid(4, 4):
            if 4 * io + ii < 14:
                C[0] = C[0] + B[io, ii]

    @T.prim_func
    def may_be_read(B: T.Buffer((4, 4), "int32"), C: T.Buffer((1,), "int32")):
        for io, ii in T.grid(4, 4):
            T.assume(4 * io + ii < 14 or B[io, ii] == T.undef(dtype="int32"))
        C[0] = 0
        for io, ii in T.grid(4, 4):
            if 4 * io + ii < 14:
                C[0] = C[0] + B[io, ii]

    @T.prim_func
    def zeros(B: T.Buffer((4, 4), "int32"), C: T.Buffer((1,), "int32")):
        for io, ii in T.grid(4, 4):
            T.assume(4 * io + ii < 14 or B[io, ii] == 0)
        C[0] = 0
        for io, ii in T.grid(4, 4):
            C[0] = C[0] + B[io, ii]

    @T.prim_func
    def one_function(A: T.Buffer((14,), "int32"), C: T.Buffer((1,), "int32")):
        B = T.alloc_buffer((4, 4), "int32")
        for io, ii in T.grid(4, 4):
            if 4 * io + ii < 14:
                B[io, ii] = A[4 * io + ii]
            else:
                B[io, ii] = 0
        C[0] = 0
        for io, ii in T.grid(4, 4):
            C[0] = C[0] + B[io, ii]

# run: opt --pass use_assume --explain
# semantics: not compared, because the assumption is not true of random data
# The first guard goes: where it is false, what is assumed is what is stored. Of the second nothing is
# known. A function without assumptions is left alone, guards and all.
@I.ir_module
class Module:
    @T.prim_func
    def padded(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32"), C: T.Buffer((16,), "int32")):
        for i in T.serial(16):
            T.assume(i < 14 or A[i] == 0)
        for i in T.serial(16):
            B[i] = 0
        for i in T.serial(16):
            if i < 14:
                B[i] = A[i] * 2
        for i in T.serial(16):
            if i < 14:
            #^^^^^^^^ remark: the guard `i < 14` stays: what would be written to `C` is used, and is not known to be what is there
            # note: at i=14: C[14] is seen by the caller
                C[i] = A[i] * 2

    @T.prim_func
    def plain(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32")):
        for i in T.serial(16):
            B[i] = 0
        for i in T.serial(16):
            if i < 16:
                B[i] = A[i] * 2

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def padded(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32"), C: T.Buffer((16,), "int32")):
        for i in range(16):
            B[i] = 0
        for i in range(16):
            B[i] = A[i] * 2
        for i in range(16):
            if i < 14:
                C[i] = A[i] * 2

    @T.prim_func
    def plain(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32")):
        for i in range(16):
            B[i] = 0
        for i in range(16):
            if i < 16:
                B[i] = A[i] * 2

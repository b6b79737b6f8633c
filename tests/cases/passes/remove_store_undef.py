# run: opt --pass remove_store_undef
# semantics: not compared, because what was arbitrary may be anything
# No `T.undef()` is left: a store of an arbitrary value goes, also where it is arbitrary only under a
# condition; zero times anything is zero; a binding that is used twice is the same value twice.


@T.prim_func
def f(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32"), C: T.Buffer((16,), "int32")):
    for i in range(16):
        if i >= 14:
            A[i] = T.undef(dtype="int32") + 1
    for i in range(16):
        B[i] = T.if_then_else(i < 14, A[i], T.undef(dtype="int32"))
    once = T.undef(dtype="int32")
    A[15] = T.max(once, 3)
    twice = T.undef(dtype="int32")
    C[0] = twice - twice
    C[1] = 0 * T.undef(dtype="int32")

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32"), C: T.Buffer((16,), "int32")):
        for i in range(16):
            if i < 14:
                B[i] = A[i]
        twice: T.int32 = T.int32(0)
        C[0] = twice - twice
        C[1] = 0

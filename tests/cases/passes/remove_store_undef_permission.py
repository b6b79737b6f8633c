# run: opt --pass remove_store_undef
# An assumption of an arbitrary value is permission to read, and has been used. One of a value stays.


@T.prim_func
def f(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(6, 8):
        A[i] = 0.0
        T.assume(A[i] == 0.0)
        T.assume(B[i] == T.undef(dtype="float32"))
    for i in range(8):
        A[i] = A[i] + B[i]
    for i in range(8):
        B[i] = T.Select(i < 6, A[i], T.undef(dtype="float32") + A[i])

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        for i in range(6, 8):
            A[i] = T.float32(0.0)
            T.assume(A[i] == T.float32(0.0))
        for i in range(8):
            A[i] = A[i] + B[i]
        for i in range(8):
            if i < 6:
                B[i] = A[i]

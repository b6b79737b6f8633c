# run: opt --pass simplify
# semantics: not compared, because arbitrary values are arbitrary
# Arbitrary values differ each time; what is computed from them is arbitrary; zero times one is zero.
@T.prim_func
def f(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "int32")):
    A[0] = T.undef(dtype="float32") - T.undef(dtype="float32")
    A[1] = T.float32(0) * T.undef(dtype="float32") + A[5]
    A[2] = T.exp(T.undef(dtype="float32")) + A[2]
    B[0] = T.undef(dtype="int32") - T.undef(dtype="int32")
    B[1] = T.undef(dtype="int32") * 0 + B[1]
    B[2] = T.Cast("int32", T.undef(dtype="float32"))
    A[3] = T.if_then_else(B[3] > 0, T.undef(dtype="float32"), A[4])
    for i in range(8):
        if i < 0 or i > 8:
            A[i] = T.undef(dtype="float32")

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "int32")):
        A[0] = T.undef(dtype="float32")
        A[1] = A[5]
        A[2] = T.undef(dtype="float32")
        B[0] = T.undef(dtype="int32")
        B[2] = T.undef(dtype="int32")
        A[3] = T.if_then_else(B[3] > 0, T.undef(dtype="float32"), A[4])

# run: opt
# The bits of a number as one of another type; a constant that is no literal stays as it is.


@T.prim_func
def f(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "int32"), C: T.Buffer((4,), "float16")):
    for i in range(4):
        B[i] = T.reinterpret("int32", A[i]) + T.reinterpret("int32", T.float32(1))
        C[i] = T.reinterpret("float16", T.Cast("int16", B[i]))

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "int32"), C: T.Buffer((4,), "float16")):
        for i in range(4):
            B[i] = T.reinterpret("int32", A[i]) + T.reinterpret("int32", T.float32(1.0))
            C[i] = T.reinterpret("float16", T.Cast("int16", B[i]))

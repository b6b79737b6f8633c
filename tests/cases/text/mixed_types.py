# run: opt
# Numbers of another type are converted, as TVM does it; of integers that bits are taken of, the wider type counts.


@T.prim_func
def f(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "int32"), C: T.Buffer((4,), "int64")):
    for i in range(4):
        A[i] = B[i]
        C[i] = (C[i] ^ B[i]) + (B[i] << C[0]) + T.bitwise_and(B[i], C[i])

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "int32"), C: T.Buffer((4,), "int64")):
        for i in range(4):
            A[i] = T.Cast("float32", B[i])
            C[i] = T.bitwise_xor(C[i], T.Cast("int64", B[i])) + T.shift_left(T.Cast("int64", B[i]), C[0]) + T.bitwise_and(T.Cast("int64", B[i]), C[i])

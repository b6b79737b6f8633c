# run: opt --pass simplify
# Shifts by a variable and integers from floating point have the bounds of their ends.
@T.prim_func
def f(A: T.Buffer((16,), "float32"), n: T.int32):
    for i in range(16):
        if T.shift_left(3, i) <= 98304 and T.shift_right(i - 16, i) < 0:
            A[i] = 0.0
        if T.Cast("int32", T.ceil(T.log2(T.Cast("float32", i + 1030)))) == 11:
            A[i] = A[i] + 1.0
        if T.Cast("int32", T.log2(T.Cast("float64", i + 1024))) == 10:
            A[i] = A[i] + 2.0
        if T.Cast("int32", T.log2(T.Cast("float64", i + 1025))) == 10:
            A[i] = A[i] + 3.0
        if T.shift_left(1, n) > 0:
            A[i] = A[i] + 4.0

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((16,), "float32"), n: T.int32):
        for i in range(16):
            A[i] = T.float32(0.0)
            A[i] = T.float32(1.0)
            if T.Cast("int32", T.log2(T.Cast("float64", i + 1024))) == 10:
                A[i] = T.float32(3.0)
            A[i] = A[i] + T.float32(3.0)
            if T.shift_left(1, n) > 0:
                A[i] = A[i] + T.float32(4.0)

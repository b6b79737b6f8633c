# run: opt --pass simplify
# Floating point where nothing is rounded differently: 0.1 + 0.2 is done in the type, the order of
# a sum stays, x - x stays (it may be NaN), and so does 0 * x. Minus infinity is neutral to max.
@T.prim_func
def f(A: T.Buffer((8,), "float32"), H: T.Buffer((8,), "float16")):
    A[0] = (A[0] + T.float32(0)) * T.float32(1)
    A[1] = T.float32(0.1) + T.float32(0.2)
    A[2] = A[2] + T.float32(1) + T.float32(2)
    A[3] = A[3] - A[3]
    A[4] = T.float32(0) * A[4]
    A[5] = T.float32(1) / T.float32(3) + T.Cast("float32", 2)
    A[6] = T.float32(3e38) * T.float32(10)
    H[0] = T.float16(2048) + T.float16(1)
    if T.float32(1) < T.float32(2):
        A[7] = A[7] / T.float32(1)
    H[1] = T.max(H[2], T.float16("-inf"))
    H[3] = T.min(T.max(T.float16(2), T.float16(3)), H[4])
    H[5] = T.float16(0) / T.float16(0)

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((8,), "float32"), H: T.Buffer((8,), "float16")):
        A[1] = T.float32(0.3)
        A[2] = A[2] + T.float32(1.0) + T.float32(2.0)
        A[3] = A[3] - A[3]
        A[4] = T.float32(0.0) * A[4]
        A[5] = T.float32(2.3333333)
        A[6] = T.float32("inf")
        H[0] = T.float16(2048.0)
        H[1] = H[2]
        H[3] = T.min(T.float16(3.0), H[4])
        H[5] = T.float16(0.0) / T.float16(0.0)

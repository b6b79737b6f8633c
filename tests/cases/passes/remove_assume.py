# run: opt --pass remove_assume
# What an assumption was for has been done; the loop that only held it goes with it.


@T.prim_func
def f(A: T.Buffer((4, 4), "float32"), B: T.Buffer((1,), "float32"), n: T.int32):
    T.assume(n >= 0)
    for io, ii in T.grid(4, 4):
        T.assume(io * 4 + ii < 14 or A[io, ii] == T.undef(dtype="float32"))
    B[0] = 0.0
    for io, ii in T.grid(4, 4):
        B[0] = B[0] + A[io, ii]

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((4, 4), "float32"), B: T.Buffer((1,), "float32"), n: T.int32):
        B[0] = T.float32(0.0)
        for io, ii in T.grid(4, 4):
            B[0] = B[0] + A[io, ii]

# run: opt --pass simplify
# Loops, guards and lets decide conditions; decided branches, empty and single loops go.
@T.prim_func
def f(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for io, ii, u in T.grid(4, 4, 1):
        if io * 4 + ii < 16:
            B[(io * 4 + ii) // 16 + io * 4 + ii] = A[(io * 4 + ii) % 16 + u]
        else:
            B[0] = 0.0
        if ii < 2:
            if ii < 3:
                B[io * 4 + ii] = A[io * 4 + ii] + 1.0
            else:
                B[0] = 1.0
        for k in range(ii - 4):
            B[k] = 2.0
        if io == 1:
            B[ii] = 3.0
        else:
            B[ii] = 3.0
        B[io] = B[io]

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
        for io, ii in T.grid(4, 4):
            B[io * 4 + ii] = A[io * 4 + ii]
            if ii < 2:
                B[io * 4 + ii] = A[io * 4 + ii] + T.float32(1.0)
            B[ii] = T.float32(3.0)

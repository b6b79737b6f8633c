# run: opt --pass simplify
# A branch that may change what the next one asks is not merged with it.
@T.prim_func
def f(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32")):
    for i in range(16):
        if A[i] > 3:
            A[i] = B[i]
        if A[i] > 3:
            B[i] = 2
    for i in range(16):
        if A[i] > 3:
            B[i] = 3
        if A[i] > 3:
            B[i] = B[i] * 2
        else:
            B[i] = 5

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32")):
        for i in range(16):
            if A[i] > 3:
                A[i] = B[i]
            if A[i] > 3:
                B[i] = 2
        for i in range(16):
            if A[i] > 3:
                B[i] = 3
                B[i] = 6
            else:
                B[i] = 5

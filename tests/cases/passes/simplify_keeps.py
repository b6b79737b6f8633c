# run: opt --pass simplify
# Nothing is evaluated that was guarded, arithmetic of data may wrap, and a loop's own writes count.
@T.prim_func
def f(A: T.Buffer((8,), "int32"), B: T.Buffer((16,), "int32")):
    for i in range(16):
        if i < 8 and A[i] > 0:
            B[i] = A[i] * 2 // 2
    for i in range(8):
        if A[i] < 5:
            for j in range(8):
                if A[i] < 5:
                    A[j] = A[j] + 1
    for i in range(16):
        B[i] = T.if_then_else(i < 8, T.if_then_else(i < 9, A[i], 3), 0)

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((8,), "int32"), B: T.Buffer((16,), "int32")):
        for i in range(16):
            if i < 8 and A[i] > 0:
                B[i] = A[i] * 2 // 2
        for i in range(8):
            if A[i] < 5:
                for j in range(8):
                    if A[i] < 5:
                        A[j] = A[j] + 1
        for i in range(16):
            B[i] = T.if_then_else(i < 8, A[i], 0)

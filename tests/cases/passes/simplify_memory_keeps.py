# run: opt --pass simplify
# Facts end: with a write, with a call, with the condition that they rest on, in the iterations
# that a loop's own writes reach. A block does not read a loop variable that it is not bound to.
@T.prim_func
def f(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32"), C: T.Buffer((16, 16), "int32")):
    A[0] = 1
    if B[0] == 2:
        A[0] = 2
        A[1] = 4
    B[1] = A[0] + A[1] + B[0]
    for i in range(1, 16):
        if A[i - 1] == 1:
            A[i] = 1
    for i in range(16):
        for j in range(16):
            C[i, j] = i
        for j in range(16):
            with T.sblock("copy"):
                v = T.axis.spatial(16, j)
                w = T.axis.spatial(16, i)
                B[v] = C[w, v]

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32"), C: T.Buffer((16, 16), "int32")):
        A[0] = 1
        if B[0] == 2:
            A[0] = 2
            A[1] = 4
        B[1] = A[0] + A[1] + B[0]
        for i in range(1, 16):
            if A[i - 1] == 1:
                A[i] = 1
        for i in range(16):
            for j in range(16):
                C[i, j] = i
            for j in range(16):
                with T.block("copy"):
                    v, w = T.axis.remap("SS", [j, i])
                    B[v] = C[w, v]

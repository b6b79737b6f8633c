# run: opt --pass simplify
# semantics: not compared, because the seeded data breaks the assumption
# An assumption under loops speaks of every cell, after the loops and in other ones, until a write.
@T.prim_func
def f(A: T.Buffer((4, 4), "float32"), B: T.Buffer((16,), "float32")):
    for io, ii in T.grid(4, 4):
        T.assume(4 * io + ii < 14 or A[io, ii] == T.float32(0))
    for i in range(16):
        if 14 <= i:
            if A[i // 4, i % 4] == T.float32(0):
                B[i] = A[i // 4, i % 4] + T.float32(1)
    for i in range(2):
        A[3, i] = T.float32(1)
    for i in range(4):
        with T.sblock("row"):
            v = T.axis.spatial(4, 3 - i)
            if v >= 2:
                if A[3, v] == T.float32(0):
                    A[3, v] = T.float32(2)
            B[v] = A[3, v]

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((4, 4), "float32"), B: T.Buffer((16,), "float32")):
        for io, ii in T.grid(4, 4):
            T.assume(4 * io + ii < 14 or A[io, ii] == T.float32(0.0))
        for i in range(16):
            if 14 <= i:
                B[i] = T.float32(1.0)
        for i in range(2):
            A[3, i] = T.float32(1.0)
        for i in range(4):
            with T.block("row"):
                v = T.axis.spatial(4, 3 - i)
                if v >= 2:
                    A[3, v] = T.float32(2.0)
                B[v] = A[3, v]

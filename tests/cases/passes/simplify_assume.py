# run: opt --pass simplify
# semantics: not compared, because the seeded data breaks the assumption
# sizes: n=5
# An assumption about a size decides n // 8; one about memory holds until a write may touch it.
@T.prim_func
def f(n: T.int32, A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
    T.assume(0 <= n and n < 8)
    if n // 8 == 0:
        B[n // 8] = n
    T.assume(A[0] < 100)
    if A[0] < 200:
        B[1] = 1
    A[0] = B[3]
    if A[0] < 200:
        B[2] = 1

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(n: T.int32, A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
        T.assume(0 <= n and n < 8)
        B[0] = n
        T.assume(A[0] < 100)
        B[1] = 1
        A[0] = B[3]
        if A[0] < 200:
            B[2] = 1

# run: opt --pass merge_adjacent_loops --explain
# What an assumption allows comes after it.
@T.prim_func
def f(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
    for i in range(16):
        T.assume(i < 14 or A[i] == 0.0)
    for i in range(16):
        B[i] = A[i]
    for i in range(16):
    #^^^^^^^^^^^^^^^^^ remark: the loops over `i` are not merged: the first reads `A[i]` and the second reads `A[15 - i]`
    # note: at i=14 of the first and i=1 of the second
        C[i] = A[15 - i]
# semantics: not compared, because random data does not keep the assumption

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
        for i in range(16):
            T.assume(i < 14 or A[i] == T.float32(0.0))
            B[i] = A[i]
        for i in range(16):
            C[i] = A[15 - i]

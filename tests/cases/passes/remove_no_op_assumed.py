# run: opt --pass remove_no_op
# semantics: not compared, because the assumption does not hold for all data
# A value that is assumed to be there need not be written: the sum of RFC 0077.


@T.prim_func
def sum(A: T.Buffer((16,), "float32"), B: T.Buffer((1,), "float32")):
    T.assume(B[0] == 0.0)
    B[0] = 0.0
    for i in range(16):
        B[0] = B[0] + A[i]

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def sum(A: T.Buffer((16,), "float32"), B: T.Buffer((1,), "float32")):
        T.assume(B[0] == T.float32(0.0))
        for i in range(16):
            B[0] = B[0] + A[i]

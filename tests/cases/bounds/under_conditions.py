# run: opt --pass lower
# semantics: not compared, because random indices are out of range
# The first access is guarded, the second one by less than it takes.
@T.prim_func
def f(A: T.Buffer((10,), "float32"), at: T.Buffer((6,), "int32"), B: T.Buffer((6,), "float32")):
    for i in range(6):
        B[i] = T.if_then_else(0 <= at[i] and at[i] < 10, A[at[i]], T.float32(0))
    for i in range(6):
        if at[i] < 10:
            B[i] = B[i] + A[at[i]]

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((10,), "float32"), at: T.Buffer((6,), "int32"), B: T.Buffer((6,), "float32")):
        for i in range(6):
            B[i] = T.if_then_else(0 <= at[i] and at[i] < 10, A[at[i]], T.float32(0.0))
        for i in range(6):
            if at[i] < 10:
                assert at[i] >= 0 and at[i] < 10, ("`A[{}]` is out of range: axis 0 has extent 10", T.Cast("int64", at[i]))
        for i in range(6):
            if at[i] < 10:
                B[i] = B[i] + A[at[i]]

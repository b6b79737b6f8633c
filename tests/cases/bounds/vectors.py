# run: opt --pass lower
# semantics: not compared, because random indices are out of range
# A vectorised loop stays one behind its assertions.
@T.prim_func
def f(A: T.Buffer((10,), "float32"), at: T.Buffer((8,), "int32"), B: T.Buffer((8,), "float32")):
    for i in T.vectorized(8):
        B[i] = A[at[i]]
    B[0:4] = A[T.Ramp(2, 2, 4)]

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((10,), "float32"), at: T.Buffer((8,), "int32"), B: T.Buffer((8,), "float32")):
        for i in range(8):
            assert at[i] >= 0 and at[i] < 10, ("`A[{}]` is out of range: axis 0 has extent 10", T.Cast("int64", at[i]))
        B[T.Ramp(0, 1, 8)] = A[at[T.Ramp(0, 1, 8)]]
        B[T.Ramp(0, 1, 4)] = A[T.Ramp(2, 2, 4)]

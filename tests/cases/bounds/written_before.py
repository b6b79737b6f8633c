# run: opt --pass lower
# semantics: not compared, because random indices are out of range
# The indices are made in the loop that uses them: the assertion stays where it is.
@T.prim_func
def f(A: T.Buffer((10,), "float32"), at: T.Buffer((6,), "int32"), B: T.Buffer((6,), "float32")):
    moved = T.decl_buffer((6,), "int32")
    for i in range(6):
        moved[i] = at[i] + 1
        B[i] = A[moved[i]]

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((10,), "float32"), at: T.Buffer((6,), "int32"), B: T.Buffer((6,), "float32")):
        for i in range(6):
            moved = T.decl_buffer((1,), "int32")
            moved[0] = at[i] + 1
            assert moved[0] >= 0 and moved[0] < 10, ("`A[{}]` is out of range: axis 0 has extent 10", T.Cast("int64", moved[0]))
            B[i] = A[moved[0]]

# run: opt --pass hoist_expression --pass-config hoisted_let_bindings=1
# Only the binding that the condition needs.
@T.prim_func
def f(A: T.Buffer((4, 4), "int32"), n: T.int32):
    for i, j in T.grid(4, 4):
        limit: T.int32 = i + n
        value: T.int32 = i * n
        if limit < 5:
            A[i, j] = value

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((4, 4), "int32"), n: T.int32):
        for i in range(4):
            limit: T.int32 = i + n
            if limit < 5:
                for j in range(4):
                    value: T.int32 = i * n
                    A[i, j] = value

# run: opt --pass hoist_expression --pass-config hoisted_conditionals=0 --pass-config hoisted_let_bindings=0
@T.prim_func
def f(A: T.Buffer((4, 4), "float32"), n: T.int32):
    for i, j in T.grid(4, 4):
        limit: T.int32 = i + n
        if limit < 5:
            A[i, j] = 0.0

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((4, 4), "float32"), n: T.int32):
        for i, j in T.grid(4, 4):
            limit: T.int32 = i + n
            if limit < 5:
                A[i, j] = T.float32(0.0)

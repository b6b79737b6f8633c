# run: opt --pass hoist_expression
# A condition that is bound inside of the loop it depends on stays there; one that is bound further
# in than necessary takes its binding along.
@T.prim_func
def f(A: T.Buffer((4,), "float32"), B: T.Buffer((4, 4), "float32"), n: T.int32):
    for i in range(4):
        is_in_bounds: T.bool = i < 3
        if is_in_bounds:
            A[i] = 0.0
    for i in range(4):
        for j in range(4):
            limit: T.int32 = i + n
            small: T.bool = limit < 5
            if small:
                B[i, j] = 0.0

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((4,), "float32"), B: T.Buffer((4, 4), "float32"), n: T.int32):
        for i in range(4):
            is_in_bounds: T.bool = i < 3
            if is_in_bounds:
                A[i] = T.float32(0.0)
        for i in range(4):
            limit: T.int32 = i + n
            small: T.bool = limit < 5
            if small:
                for j in range(4):
                    B[i, j] = T.float32(0.0)

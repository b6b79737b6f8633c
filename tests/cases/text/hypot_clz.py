# run: opt
@T.prim_func
def f(A: T.Buffer((4,), "float16"), n: T.int64):
    for i in range(4):
        A[i] = T.hypot(A[i], 3)
    A[T.clz(n) // 32] = T.float16(0)

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((4,), "float16"), n: T.int64):
        for i in range(4):
            A[i] = T.hypot(A[i], T.float16(3.0))
        A[T.clz(n) // 32] = T.float16(0.0)

# run: opt --pass hoist_if --pass-config support_block_scope_hoisting=1
@T.prim_func
def f(A: T.Buffer((8, 8), "float32")):
    for t in T.thread_binding(8, thread="threadIdx.x"):
        for i in range(8):
            if t < 3:
                A[t, i] = 0.0

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((8, 8), "float32")):
        for t in T.thread_binding(8, thread="threadIdx.x"):
            if t < 3:
                for i in range(8):
                    A[t, i] = T.float32(0.0)

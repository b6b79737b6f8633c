# run: opt --pass hoist_if
# Conditions on a thread stay unless asked for; others stop at the loop over threads; bindings do
# not move.
@T.prim_func
def f(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8, 8), "float32"), C: T.Buffer((8, 8), "float32"), n: T.int32):
    for t in T.thread_binding(8, thread="threadIdx.x"):
        for i in range(8):
            if t < 3:
                A[t, i] = 0.0
        for i in range(8):
            if n > 3:
                B[t, i] = 0.0
        for i in range(8):
            big: T.bool = n > 0
            if big:
                C[t, i] = 1.0

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8, 8), "float32"), C: T.Buffer((8, 8), "float32"), n: T.int32):
        for t in T.thread_binding(8, thread="threadIdx.x"):
            for i in range(8):
                if t < 3:
                    A[t, i] = T.float32(0.0)
            if n > 3:
                for i in range(8):
                    B[t, i] = T.float32(0.0)
            for i in range(8):
                big: T.bool = n > 0
                if big:
                    C[t, i] = T.float32(1.0)

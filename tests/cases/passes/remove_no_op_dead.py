# run: opt --pass remove_no_op
# Dead: a store that is overwritten at once, a loop whose cells another loop writes before anything
# reads them, and a chain of stages that ends nowhere. What the caller sees is never dead.


@T.prim_func
def f(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32"), C: T.Buffer((4, 4), "float32")):
    for i in range(16):
        B[i] = A[i]
        B[i] = A[i] * 2.0
    for io, ii in T.grid(4, 4):
        C[io, ii] = 1.0
    for i in range(16):
        C[i // 4, i % 4] = 2.0
    first = T.alloc_buffer((16,), "float32")
    second = T.alloc_buffer((16,), "float32")
    for i in range(16):
        first[i] = A[i]
    for i in range(16):
        second[i] = 0.0
        for k in range(i):
            second[i] = second[i] + first[k]

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32"), C: T.Buffer((4, 4), "float32")):
        for i in range(16):
            B[i] = A[i] * T.float32(2.0)
        for i in range(16):
            C[i // 4, i % 4] = T.float32(2.0)

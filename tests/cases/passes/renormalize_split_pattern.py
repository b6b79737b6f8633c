# run: opt --pass renormalize_split_pattern
# semantics: not compared, because threads of `f` write different values to one cell
# Quotients and remainders of a flat index by the parts that it was made of; nothing else changes.
@T.prim_func
def f(A: T.Buffer((1024,), "float32"), B: T.Buffer((1024,), "float32")):
    for i in range(32):
        for t in T.thread_binding(32, thread="threadIdx.x"):
            if i < 32:
                B[(i * 32 + t) // 128 * 128 + (i * 32 + t) % 128] = A[(i * 32 + t) % 128 // 32 * 256]
            B[i * 4 + t % 4] = T.if_then_else(
                128 <= i * 32 + t and i * 32 + t < 640, A[(i * 128 + t * 4) % 256 // 8], T.float32(0)
            )

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((1024,), "float32"), B: T.Buffer((1024,), "float32")):
        for i in range(32):
            for t in T.thread_binding(32, thread="threadIdx.x"):
                if T.bool(True):
                    B[i * 32 + t] = A[i % 4 * 256]
                B[i * 4 + t % 4] = T.if_then_else(i >= 4 and i < 20, A[i % 2 * 16 + t // 2], T.float32(0.0))

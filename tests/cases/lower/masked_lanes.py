# run: opt --pass vectorize_loop
# sizes: n=5
# A condition that differs between lanes is a mask of stores of neighbours, and of the loads of a value that it chooses;
# what reads or writes cells that are apart, or of narrow types, runs lane by lane.
@T.prim_func
def f(a: T.handle, b: T.handle, C: T.Buffer((16,), "int8"), D: T.Buffer((8,), "float32")):
    n = T.int32()
    A = T.match_buffer(a, (n,), "float32")
    B = T.match_buffer(b, (n * 2,), "float32")
    for i in T.vectorized(8):
        if i < n:
            A[i] = A[i] + B[i]
    for i in T.vectorized(8):
        if i < n:
            B[i * 2] = T.float32(1)
    for i in T.vectorized(8):
        if i < n:
            C[i] = T.int8(1)
    for i in T.vectorized(8):
        D[i] = T.if_then_else(1 <= i and i < n, B[i * 2 - 1], T.float32(0))
    for i in T.vectorized(8):
        D[i] = T.if_then_else(i * 5 < n, B[i * 5], T.float32(0))

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(a: T.handle, b: T.handle, C: T.Buffer((16,), "int8"), D: T.Buffer((8,), "float32")):
        n = T.int32()
        A = T.match_buffer(a, (n,), "float32")
        B = T.match_buffer(b, (n * 2,), "float32")
        if T.Ramp(0, 1, 8) < T.Broadcast(n, 8):
            A[T.Ramp(0, 1, 8)] = A[T.Ramp(0, 1, 8)] + B[T.Ramp(0, 1, 8)]
        for i in range(8):
            if i < n:
                B[i * 2] = T.float32(1.0)
        for i in range(8):
            if i < n:
                C[i] = T.int8(1)
        D[T.Ramp(0, 1, 8)] = T.if_then_else(T.Broadcast(1, 8) <= T.Ramp(0, 1, 8) and T.Ramp(0, 1, 8) < T.Broadcast(n, 8), B[T.Ramp(-1, 2, 8)], T.Broadcast(T.float32(0.0), 8))
        for i in range(8):
            D[i] = T.if_then_else(i * 5 < n, B[i * 5], T.float32(0.0))

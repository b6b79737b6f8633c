# run: opt --pass compact_buffer
# What one iteration hands to the next one, or one statement to a later one, keeps its memory.


@T.prim_func
def f(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    # A running sum, in a cell of its own or along a row.
    S = T.decl_buffer((4,), "float32")
    S[2] = T.float32(0)
    for i in range(16):
        S[2] = S[2] + A[i]
        B[i] = S[2]
    P = T.decl_buffer((17,), "float32")
    P[0] = T.float32(0)
    for i in range(16):
        P[i + 1] = P[i] + A[i]
        B[i] = P[i + 1]
    # Two buffers that cross each other.
    X = T.decl_buffer((16,), "float32")
    Y = T.decl_buffer((16,), "float32")
    for i in range(8):
        X[i] = A[i]
    for i in range(8):
        Y[i + 8] = A[i]
    for i in range(8):
        B[i] = X[i]
    for i in range(8):
        B[i + 8] = Y[i + 8]
    # The condition is read from the buffer.
    Q = T.decl_buffer((16,), "float32")
    for i in range(16):
        Q[i] = A[i]
        if Q[i] > T.float32(0):
            B[i] = Q[i]

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
        with T.decl_buffer((1,), "float32") as S:
            S[0] = T.float32(0.0)
            for i in range(16):
                S[0] = S[0] + A[i]
                B[i] = S[0]
        with T.decl_buffer((17,), "float32") as P:
            P[0] = T.float32(0.0)
            for i in range(16):
                P[i + 1] = P[i] + A[i]
                B[i] = P[i + 1]
        with T.decl_buffer((8,), "float32") as X:
            for i in range(8):
                X[i] = A[i]
            Y = T.decl_buffer((8,), "float32")
            for i in range(8):
                Y[i] = A[i]
            for i in range(8):
                B[i] = X[i]
            for i in range(8):
                B[i + 8] = Y[i]
        for i in range(16):
            Q = T.decl_buffer((1,), "float32")
            Q[0] = A[i]
            if Q[0] > T.float32(0.0):
                B[i] = Q[0]

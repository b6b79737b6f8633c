# run: opt --pass remove_branching_through_overcompute
# Values that are chosen: when they were written, and when they are read. What counts is the side that
# the padding has.


@T.prim_func
def written(A: T.Buffer((14,), "float32"), C: T.Buffer((1,), "float32")):
    P = T.alloc_buffer((16,), "float32")
    Q = T.alloc_buffer((16,), "float32")
    for i in range(16):
        P[i] = T.if_then_else(i < 14, A[i], 0.0)
        Q[i] = T.Select(i < 14, 2.0, 0.0)
    C[0] = 0.0
    for i in range(16):
        if i < 14:
            C[0] = C[0] + P[i]
        if i < 14:
            C[0] = C[0] + Q[i]


@T.prim_func
def read(A: T.Buffer((14,), "float32"), C: T.Buffer((1,), "float32")):
    P = T.alloc_buffer((16,), "float32")
    Q = T.alloc_buffer((16,), "float32")
    for i in range(14):
        P[i] = A[i]
        Q[i] = 2.0
    for i in range(2):
        P[i + 14] = 0.0
        Q[i + 14] = 0.0
    C[0] = 0.0
    for i in range(16):
        if i < 14:
            C[0] = C[0] + T.Select(i % 2 == 0, P[i], Q[i])

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def written(A: T.Buffer((14,), "float32"), C: T.Buffer((1,), "float32")):
        P = T.alloc_buffer((16,), "float32")
        Q = T.alloc_buffer((16,), "float32")
        for i in range(16):
            P[i] = T.if_then_else(i < 14, A[i], T.float32(0.0))
            Q[i] = T.Select(i < 14, T.float32(2.0), T.float32(0.0))
        C[0] = T.float32(0.0)
        for i in range(16):
            C[0] = C[0] + P[i]
            C[0] = C[0] + Q[i]

    @T.prim_func
    def read(A: T.Buffer((14,), "float32"), C: T.Buffer((1,), "float32")):
        P = T.alloc_buffer((16,), "float32")
        Q = T.alloc_buffer((16,), "float32")
        for i in range(14):
            P[i] = A[i]
            Q[i] = T.float32(2.0)
        for i in range(2):
            P[i + 14] = T.float32(0.0)
            Q[i + 14] = T.float32(0.0)
        C[0] = T.float32(0.0)
        for i in range(16):
            C[0] = C[0] + T.Select(i % 2 == 0, P[i], Q[i])

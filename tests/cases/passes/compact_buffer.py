# run: opt --pass compact_buffer
# Allocations move into the loops whose iterations share nothing, into the only part of a sequence
# that uses them, and into parts that share nothing; there they keep the cells that live at once.


@T.prim_func
def tile(A: T.Buffer((12, 9), "float32"), C: T.Buffer((12, 32), "float32")):
    # A register tile, with the copy that a partition of `i` leaves.
    L = T.decl_buffer((2, 3, 4, 16), "float32", scope="local")
    for j in range(2):
        for i in range(2):
            for r in T.unroll(4):
                for l in T.vectorized(16):
                    L[j, i, r, l] = T.float32(0)
            for k in range(9):
                for r in T.unroll(4):
                    for l in T.vectorized(16):
                        L[j, i, r, l] = L[j, i, r, l] + A[i * 4 + r, k]
            for r in T.unroll(4):
                for l in T.vectorized(16):
                    C[i * 4 + r, j * 16 + l] = L[j, i, r, l]
        for r, l in T.grid(3, 16):
            L[j, 2, r, l] = T.float32(1)
        for r, l in T.grid(3, 16):
            C[8 + r, j * 16 + l] = L[j, 2, r, l]


@T.prim_func
def window(A: T.Buffer((66,), "float32"), B: T.Buffer((64,), "float32"), C: T.Buffer((64,), "float32")):
    # Each iteration uses a window; windows overlap, but each is written before it is read.
    W = T.decl_buffer((66,), "float32")
    for t in T.parallel(16):
        for x in range(6):
            W[t * 4 + x] = A[t * 4 + x] * T.float32(2)
        for x in range(4):
            B[t * 4 + x] = W[t * 4 + x] + W[t * 4 + x + 2]
    # One memory for two stages that share nothing.
    S = T.decl_buffer((64,), "float32")
    for x in range(64):
        S[x] = B[x] + T.float32(1)
        B[x] = S[x]
    for x in range(64):
        S[x] = B[x] * T.float32(3)
        C[x] = S[x]


@T.prim_func
def shapes(A: T.Buffer((40,), "int32"), B: T.Buffer((40,), "int32")):
    # Guards count, strides stay, a row that starts inside loses its start.
    G = T.decl_buffer((40,), "int32")
    for x in range(40):
        if 7 <= x and x < 23:
            G[x] = A[x]
    for x in range(40):
        if 7 <= x and x < 23:
            B[x] = G[x]
    R = T.decl_buffer((8, 5), "int32", strides=(7, 1))
    for i, j in T.grid(3, 4):
        R[i + 4, j + 1] = A[i * 4 + j]
    for i, j in T.grid(3, 4):
        B[i * 4 + j] = R[i + 4, j + 1]
    # The corner of a triangle: for each row as long as the longest.
    D = T.decl_buffer((8, 8), "int32")
    for i in range(5):
        for j in range(i + 1):
            D[i, j] = A[i * 5 + j]
        for j in range(i + 1):
            B[i * 5 + j] = D[i, j]
    # Nobody uses it.
    N = T.decl_buffer((8,), "int32")
    B[39] = 1

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def tile(A: T.Buffer((12, 9), "float32"), C: T.Buffer((12, 32), "float32")):
        for j in range(2):
            for i in range(2):
                L = T.decl_buffer((1, 1, 4, 16), "float32", scope="local")
                for r in T.unroll(4):
                    for l in T.vectorized(16):
                        L[0, 0, r, l] = T.float32(0.0)
                for k in range(9):
                    for r in T.unroll(4):
                        for l in T.vectorized(16):
                            L[0, 0, r, l] = L[0, 0, r, l] + A[i * 4 + r, k]
                for r in T.unroll(4):
                    for l in T.vectorized(16):
                        C[i * 4 + r, j * 16 + l] = L[0, 0, r, l]
            L = T.decl_buffer((1, 1, 3, 16), "float32", scope="local")
            for r, l in T.grid(3, 16):
                L[0, 0, r, l] = T.float32(1.0)
            for r, l in T.grid(3, 16):
                C[8 + r, j * 16 + l] = L[0, 0, r, l]

    @T.prim_func
    def window(A: T.Buffer((66,), "float32"), B: T.Buffer((64,), "float32"), C: T.Buffer((64,), "float32")):
        for t in T.parallel(16):
            W = T.decl_buffer((6,), "float32")
            for x in range(6):
                W[x] = A[t * 4 + x] * T.float32(2.0)
            for x in range(4):
                B[t * 4 + x] = W[x] + W[x + 2]
        for x in range(64):
            S = T.decl_buffer((1,), "float32")
            S[0] = B[x] + T.float32(1.0)
            B[x] = S[0]
        for x in range(64):
            S = T.decl_buffer((1,), "float32")
            S[0] = B[x] * T.float32(3.0)
            C[x] = S[0]

    @T.prim_func
    def shapes(A: T.Buffer((40,), "int32"), B: T.Buffer((40,), "int32")):
        with T.decl_buffer((16,), "int32") as G:
            for x in range(40):
                if 7 <= x and x < 23:
                    G[x - 7] = A[x]
            for x in range(40):
                if 7 <= x and x < 23:
                    B[x] = G[x - 7]
        with T.decl_buffer((3, 4), "int32", strides=(7, 1)) as R_:
            for i, j in T.grid(3, 4):
                R_[i, j] = A[i * 4 + j]
            for i, j in T.grid(3, 4):
                B[i * 4 + j] = R_[i, j]
        for i in range(5):
            D = T.decl_buffer((1, 5), "int32")
            for j in range(i + 1):
                D[0, j] = A[i * 5 + j]
            for j in range(i + 1):
                B[i * 5 + j] = D[0, j]
        B[39] = 1

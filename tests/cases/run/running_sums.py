# run: run
# Sums along each axis of a box, in a block and not: each cell is written before it is read.
@T.prim_func
def f(B: T.Buffer((3, 4), "int32"), C: T.Buffer((3, 4), "int32"), D: T.Buffer((2, 3, 2), "int32")):
    for i, j in T.grid(3, 4):
        B[i, j] = T.if_then_else(j > 0, B[i, j - 1], 0) + i * 4 + j
    for i, j in T.grid(3, 4):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = T.if_then_else(vi > 0, C[vi - 1, vj], 0) + B[vi, vj]
    for i, j, k in T.grid(2, 3, 2):
        D[i, j, k] = T.if_then_else(j > 0, D[i, j - 1, k], 0) + i * 6 + j * 2 + k

# ---- expected
# B: int32 [3, 4] 0 1 3 6 4 9 15 22 ...
# C: int32 [3, 4] 0 1 3 6 4 10 18 28 ...
# D: int32 [2, 3, 2] 0 1 2 4 6 9 6 7 ...

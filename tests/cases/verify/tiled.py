# run: verify
# Tiles and an order of loops of their own; the guard of the last tile.


@T.prim_func
def f(A: T.Buffer((14, 6), "float32"), B: T.Buffer((14, 6), "float32")):
    for i, j in T.grid(14, 6):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = T.max(A[vi, vj] * 2.0, 0.0)

# ---- other
@T.prim_func
def f(A: T.Buffer((14, 6), "float32"), B: T.Buffer((14, 6), "float32")):
    for io, j, ii in T.grid(4, 6, 4):
        if io * 4 + ii < 14:
            B[io * 4 + ii, j] = T.max(0.0, A[io * 4 + ii, j] * 2.0)

# ---- expected
